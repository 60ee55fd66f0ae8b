#include "allocators/boehm/objects.h"

enum { PROGRESS_STEP = 1 << 10 /* blocks */ };

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
 * An object is as large as GC_size() says. Where there is an extra byte, its user may not use the
 * last one; but a pointer there, behind what the user has, still holds the object.
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
	struct error *error = NULL;
	struct marks marks;

	if (is_free(block))
		return block_sink_add(sink, (struct block){ block->start, block->size, BLOCK_FREE,
							    traits_of(block) });
	if (is_small(collector, block) && block->swept != (uint16_t)collector->cycle)
		boehm_read_marks(collector, image, block, &marks);
	for (uint64_t i = 0; i < object_slots(collector, block) && !error; i++)
		error = add_object(collector, block, &marks, i, sink);
	return error;
}

/* Blocks in a row, from first to *ret_end, are one region. */
static struct error *begin_region(const struct collector *collector, arena_number arena,
				  size_t first, struct block_sink *sink, size_t *ret_end)
{
	const struct boehm_block *blocks = boehm_blocks(collector);
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
	const struct boehm_block *blocks = boehm_blocks(collector);
	size_t end = 0;

	for (size_t i = 0; i < collector->blocks.count; i++) {
		struct error *error = NULL;

		/* There is no memory behind it. */
		if (is_unmapped(&blocks[i]))
			continue;
		if (i >= end)
			error = begin_region(collector, arena, i, sink, &end);
		if (!error)
			error = add_block(collector, context->image, &blocks[i], sink);
		if (error)
			return error;
		if (i % PROGRESS_STEP == 0 &&
		    !progress_step(context->progress, PROGRESS_STEP * block_bytes(collector)))
			return error_create(ERROR_INTERRUPTED, "interrupted");
	}
	return NULL;
}
