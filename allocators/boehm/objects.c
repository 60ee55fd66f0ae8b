/*
 * The state of each object.
 *
 * A collection marks reachable objects, and leaves it to later allocations to sweep: to put objects
 * without a mark on lists of free ones. So an object that is on no list is in use if it is marked,
 * or if its block was swept since the last collection, because objects taken from the lists are not
 * marked. Otherwise it is dead: known to be garbage, and not usable yet.
 */
#include "allocators/boehm/boehm.h"

#include "analyzer/program/symbols.h"

enum {
	FRAMES = 1024, /* bytes of a stack to search */
	MANY_OBJECTS = 1000,
	PROGRESS_STEP = 1 << 10, /* blocks */
};

/* The cycle of the block swept last, as far as 16 bits go. */
static uint16_t latest_sweep(const struct collector *collector)
{
	const struct boehm_block *blocks = collector->blocks.items;
	uint16_t latest = 0;

	for (size_t i = 0; i < collector->blocks.count; i++)
		if (i == 0 || (int16_t)(blocks[i].swept - latest) > 0)
			latest = blocks[i].swept;
	return latest;
}

/*
 * True if a block at address, on a list of blocks to be swept, was swept in that cycle. Then a
 * collection has run since.
 */
static bool waits_again(const struct collector *collector, struct view *view, uint64_t address,
			uint16_t cycle, size_t *steps)
{
	size_t hint = 0;

	while (view_word(view, address, &address) && address && *steps < collector->blocks.count) {
		const struct boehm_block *block = boehm_find_block(collector, address, &hint);

		if (!block || block->start != address || is_free(block))
			return false;
		if (block->swept == cycle)
			return true;
		(*steps)++;
		address = block->header;
	}
	return false;
}

static bool is_followed(const struct collector *collector, struct view *view, uint16_t cycle)
{
	size_t steps = 0;

	for (size_t kind = 0; kind < collector->kind_count; kind++) {
		uint64_t list;

		if (!view_word(view, kind_entry(collector, kind) + words(collector, KIND_RECLAIM),
			       &list) ||
		    list == 0)
			continue;
		for (uint64_t i = 0; i < list_heads(collector); i++)
			if (waits_again(collector, view, list + words(collector, i), cycle, &steps))
				return true;
	}
	return false;
}

/* GC_gc_no, if it has a symbol and blocks do not contradict it. */
static bool read_cycle(const struct collector *collector, const struct heap_context *context,
		       uint16_t latest, uint64_t *ret)
{
	const struct module *module = program_find_module(context->program, collector->start);
	uint64_t address;

	return module && module_find_variable(module, "GC_gc_no", &address) &&
	       image_read_word(context->image, address, ret) &&
	       (int16_t)((uint16_t)*ret - latest) >= 0;
}

/* True if the collector suspended the thread, which now waits in its signal handler. */
static bool is_stopped(const struct collector *collector, struct view *view,
		       const struct thread *thread)
{
	if (thread->system_call != SYSTEM_CALL_SUSPEND)
		return false;
	for (uint64_t i = 0; i < FRAMES; i += collector->geometry.word) {
		const struct region *region;
		uint64_t word;

		if (!view_word(view, thread->stack_pointer + i, &word))
			return false;
		if (word < collector->start || word >= collector->end)
			continue;
		region = image_find(view->image, word);
		if (region && (region->rights & RIGHT_EXECUTE))
			return true;
	}
	return false;
}

static bool has_stopped_threads(const struct collector *collector, struct view *view,
				const struct program *program)
{
	for (size_t i = 0; i < program->thread_count; i++)
		if (is_stopped(collector, view, &program->threads[i]))
			return true;
	return false;
}

/* True if no object of an earlier cycle is marked, as at the beginning of a collection. */
static bool lacks_marks(const struct collector *collector, const struct image *image)
{
	const struct boehm_block *blocks = collector->blocks.items;
	uint64_t count = 0;

	for (size_t i = 0; i < collector->blocks.count; i++) {
		uint64_t slots = object_slots(collector, &blocks[i]);
		struct marks marks;

		if (!is_small(collector, &blocks[i]) ||
		    blocks[i].swept == (uint16_t)collector->cycle)
			continue;
		boehm_read_marks(collector, image, &blocks[i], &marks);
		for (uint64_t slot = 0; slot < slots; slot++)
			if (boehm_is_marked(collector, &blocks[i], &marks, slot))
				return false;
		count += slots;
	}
	return count >= MANY_OBJECTS;
}

void boehm_find_cycle(struct collector *collector, const struct heap_context *context)
{
	struct view view = { context->image };
	uint16_t latest = latest_sweep(collector);
	uint32_t state;

	if (!read_cycle(collector, context, latest, &collector->cycle))
		collector->cycle = (uint16_t)(latest + is_followed(collector, &view, latest));
	if (boehm_mark_state(collector, context, &state))
		collector->is_collecting = state != 0;
	else
		collector->is_collecting =
			has_stopped_threads(collector, &view, context->program) ||
			lacks_marks(collector, context->image);
}

enum object_state boehm_object_state(const struct collector *collector,
				     const struct boehm_block *block, const struct marks *marks,
				     uint64_t slot)
{
	uint64_t number = block->first + slot;

	if (bitmap_get(&collector->cached, number))
		return OBJECT_CACHED;
	if (bitmap_get(&collector->listed, number))
		return OBJECT_FREE;
	if (!is_small(collector, block) || block->swept == (uint16_t)collector->cycle ||
	    boehm_is_marked(collector, block, marks, slot))
		return OBJECT_USED;
	return collector->is_collecting ? OBJECT_UNDECIDED : OBJECT_DEAD;
}

static unsigned int traits_of(const struct boehm_block *block)
{
	unsigned int traits = TRAIT_MANAGED;

	if (is_free(block))
		return traits;
	if (block->pointerless)
		traits |= TRAIT_POINTERLESS;
	if (block->kind != KIND_UNCOLLECTABLE && block->kind != KIND_ATOMIC_UNCOLLECTABLE)
		traits |= TRAIT_COLLECTABLE;
	return traits;
}

/*
 * An object's size is that of GC_size(). Where there is an extra byte, the program may not use the
 * last one, but a pointer to it still holds the object.
 */
static struct error *add_object(struct collector *collector, const struct boehm_block *block,
				const struct marks *marks, uint64_t slot, struct block_sink *sink)
{
	static const enum block_state states[] = {
		[OBJECT_USED] = BLOCK_USED,	 [OBJECT_FREE] = BLOCK_FREE,
		[OBJECT_CACHED] = BLOCK_CACHED,	 [OBJECT_DEAD] = BLOCK_FREE,
		[OBJECT_UNDECIDED] = BLOCK_USED,
	};
	enum object_state state = boehm_object_state(collector, block, marks, slot);
	struct block object = {
		.start = block->start + slot * block->size,
		.size = block->size,
		.state = states[state],
		.traits = traits_of(block),
	};

	if (state == OBJECT_DEAD)
		object.traits |= TRAIT_DEAD;
	if (state == OBJECT_UNDECIDED)
		collector->undecided++;
	return block_sink_add(sink, object);
}

/* The objects of the block; a free run is one free block. */
static struct error *add_block(struct collector *collector, const struct image *image,
			       const struct boehm_block *block, struct block_sink *sink)
{
	struct marks marks;

	if (is_free(block))
		return block_sink_add(sink, (struct block){ block->start, block->size, BLOCK_FREE,
							    traits_of(block) });
	if (is_small(collector, block) && block->swept != (uint16_t)collector->cycle)
		boehm_read_marks(collector, image, block, &marks);
	for (uint64_t i = 0; i < object_slots(collector, block); i++)
		TRY(add_object(collector, block, &marks, i, sink));
	return NULL;
}

/* Blocks in a row, from first to *ret_end, are one region. */
static struct error *begin_region(const struct collector *collector, arena_number arena,
				  size_t first, struct block_sink *sink, size_t *ret_end)
{
	const struct boehm_block *blocks = collector->blocks.items;
	uint64_t end = block_end(collector, &blocks[first]);
	size_t i = first + 1;

	while (i < collector->blocks.count && blocks[i].start == end && !is_unmapped(&blocks[i]))
		end = block_end(collector, &blocks[i++]);
	*ret_end = i;
	return block_sink_region(sink, blocks[first].start, end, arena);
}

struct error *boehm_add_objects(struct collector *collector, const struct heap_context *context,
				arena_number arena, struct block_sink *sink)
{
	const struct boehm_block *blocks = collector->blocks.items;
	size_t end = 0;

	for (size_t i = 0; i < collector->blocks.count; i++) {
		/* There is no memory behind it. */
		if (is_unmapped(&blocks[i]))
			continue;
		if (i >= end)
			TRY(begin_region(collector, arena, i, sink, &end));
		TRY(add_block(collector, context->image, &blocks[i], sink));
		if (i % PROGRESS_STEP == 0)
			TRY(progress_check(context->progress,
					   PROGRESS_STEP * block_bytes(collector)));
	}
	return NULL;
}
