#include "allocators/boehm/cycle.h"

#include "allocators/boehm/blocks.h"
#include "allocators/boehm/calibrate.h"
#include "allocators/boehm/data.h"
#include "allocators/boehm/lists.h"
#include "allocators/boehm/marking.h"
#include "analyzer/program/symbols.h"

enum {
	HEADER_NEXT = 0,  /* hb_next: on a list of blocks to be swept */
	KIND_RECLAIM = 8, /* ok_reclaim_list, in GC_obj_kinds */
	FRAMES = 1024,	  /* bytes of a stack to look at */
	MANY_OBJECTS = 1000,
};

/* The cycle of the block swept last, as far as 16 bits go. */
static uint16_t latest_sweep(const struct collector *collector)
{
	const struct boehm_block *blocks = boehm_blocks(collector);
	uint16_t latest = 0;

	for (size_t i = 0; i < collector->blocks.count; i++)
		if (i == 0 || (int16_t)(blocks[i].swept - latest) > 0)
			latest = blocks[i].swept;
	return latest;
}

/*
 * Whether a block that waits to be swept, on a list at address, was swept in that cycle: so there
 * was a collection since.
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
		address = block->header + HEADER_NEXT;
	}
	return false;
}

static bool is_followed(const struct collector *collector, struct view *view, uint16_t cycle)
{
	size_t steps = 0;

	for (size_t kind = 0; collector->kinds && kind < collector->kind_count; kind++) {
		uint64_t list;

		if (!view_word(view, collector->kinds + kind * collector->kind_size + KIND_RECLAIM,
			       &list) ||
		    list == 0)
			continue;
		for (uint64_t i = 0; i < list_heads(collector); i++)
			if (waits_again(collector, view, list + 8 * i, cycle, &steps))
				return true;
	}
	return false;
}

/* The module that the collector's variables are in. */
static const struct module *home(const struct collector *collector, const struct program *program)
{
	for (size_t i = 0; i < program_module_count(program); i++)
		if (program_module(program, i)->start == collector->start)
			return program_module(program, i);
	return NULL;
}

/* What the symbol says, if blocks do not contradict it. */
static bool ask_symbol(const struct collector *collector, const struct heap_context *context,
		       uint16_t latest, uint64_t *ret)
{
	const struct module *module = home(collector, context->program);
	uint64_t address;

	return module && module_find_variable(module, "GC_gc_no", &address) &&
	       image_read_u64(context->image, address, ret) &&
	       (int16_t)((uint16_t)*ret - latest) >= 0;
}

/* Whether the thread waits in the collector's handler to be let go on. */
static bool is_stopped(const struct collector *collector, struct view *view,
		       const struct thread *thread)
{
	if (thread->system_call != SYSTEM_CALL_SUSPEND)
		return false;
	for (uint64_t i = 0; i < FRAMES; i += 8) {
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
	for (size_t i = 0; i < program_thread_count(program); i++)
		if (is_stopped(collector, view, program_thread(program, i)))
			return true;
	return false;
}

/*
 * Whether no object is marked that is there since an earlier cycle, as at the beginning of a
 * collection.
 */
static bool lacks_marks(const struct collector *collector, const struct image *image)
{
	const struct boehm_block *blocks = boehm_blocks(collector);
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

	collector->cycle_is_told = ask_symbol(collector, context, latest, &collector->cycle);
	if (!collector->cycle_is_told)
		collector->cycle = (uint16_t)(latest + is_followed(collector, &view, latest));
	if (boehm_mark_state(collector, context, &state))
		collector->is_collecting = state != 0;
	else
		collector->is_collecting =
			has_stopped_threads(collector, &view, context->program) ||
			lacks_marks(collector, context->image);
}
