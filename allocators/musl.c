/*
 * musl's malloc from 1.2.1 on (mallocng).
 *
 * Nothing is needed but the dump's memory: no symbols, no debug information. See musl/musl.h for
 * the layouts, musl/search.c for how the heap is found.
 */
#include "allocators/musl/musl.h"

#include <inttypes.h>

static void musl_close(struct heap *base)
{
	struct musl_heap *heap = (struct musl_heap *)base;

	arrays_release(&heap->areas, &heap->groups);
}

static struct error *musl_open(struct heap *base, const struct heap_context *context, bool *ret)
{
	struct musl_heap *heap = (struct musl_heap *)base;

	heap->context = *context;
	arrays_use(context->account, &heap->areas, &heap->groups);
	TRY(musl_search(heap, ret));
	return *ret ? musl_read_groups(heap) : NULL;
}

static void report(const struct musl_heap *heap, struct findings *findings)
{
	heap_damage_report(&heap->absent, findings, "musl", "groups that the core lacks",
			   "they are not counted");
	heap_damage_report(&heap->strangers, findings, "musl",
			   "metas and their areas that are not as they should be",
			   "what they stand for is not counted");
	heap_damage_report(&heap->overlaps, findings, "musl", "groups that overlap others",
			   "they are not counted");
	heap_damage_report(&heap->headers, findings, "musl",
			   "slots in use whose header is not theirs",
			   "the whole slot counts as used");
}

static const struct arena_kind musl_arena_kinds[] = {
	{ .name = "heap", .group = "The heap of musl" },
	{ NULL },
};

static struct error *musl_walk(struct heap *base, struct block_sink *sink)
{
	struct musl_heap *heap = (struct musl_heap *)base;

	array_for_each(area, &heap->areas)
		TRY(block_sink_claim(sink, area->start, area->end));
	TRY(musl_add_blocks(heap, base->first_arena, sink));
	report(heap, heap->context.findings);
	return array_append(&base->arenas,
			    (struct arena){ musl_arena_kinds, heap->head, heap->bytes });
}

enum { FREE_AVAILABLE, FREE_FREED };

static const struct free_kind musl_free_kinds[] = {
	[FREE_AVAILABLE] = { "available slot" }, /* the next ones to be handed out */
	[FREE_FREED] = { "freed slot" },	 /* once these are used up */
	{ NULL },
};

static unsigned int musl_free_kind(const struct heap *base, size_t number, allocation_id id,
				   struct block block)
{
	unsigned int slot;
	const struct musl_group *group =
		musl_find_slot((const struct musl_heap *)base, block.start, &slot);

	return group && group->freed >> slot & 1 ? FREE_FREED : FREE_AVAILABLE;
}

/* The slot. */
static struct memory_range musl_extent(const struct heap *base, size_t number, struct block block,
				       const struct free_kind *kind)
{
	unsigned int slot;
	const struct musl_group *group =
		musl_find_slot((const struct musl_heap *)base, block.start, &slot);

	if (!group)
		return (struct memory_range){ block.start, block.start + block.size };
	return (struct memory_range){ slot_start(group, slot), slot_start(group, slot + 1) };
}

/* Sizes are as asked for. */
static bool musl_size_fits(uint64_t size, uint64_t wanted, bool exactly)
{
	return size == wanted;
}

static bool musl_lives_in(const struct heap *base, uint64_t start, uint64_t end)
{
	const struct musl_heap *heap = (const struct musl_heap *)base;

	return heap->module_start == start && heap->module_end == end;
}

static bool tell_area(const struct musl_heap *heap, uint64_t address, char *ret, size_t size)
{
	array_for_each(group, &heap->groups)
		if (address - group->meta < meta_bytes(heap->context.image) ||
		    address - group->start < UNIT) {
			snprintf(ret, size, "the %s of the group at %#" PRIx64,
				 address - group->start < UNIT ? "header" : "meta", group->start);
			return true;
		}
	array_for_each(area, &heap->areas)
		if (address - area->start < area->end - area->start) {
			snprintf(ret, size, "in a meta area");
			return true;
		}
	return false;
}

static bool musl_tell(const struct heap *base, uint64_t address, char *ret, size_t size)
{
	const struct musl_heap *heap = (const struct musl_heap *)base;
	unsigned int slot;
	const struct musl_group *group = musl_find_slot(heap, address, &slot);

	if (tell_area(heap, address, ret, size))
		return true;
	if (!group)
		return false;
	snprintf(ret, size,
		 "in slot %u of the group at %#" PRIx64 ", of slots of %" PRIu64 " bytes", slot,
		 group->start, group->stride);
	return true;
}

const struct allocator allocator_musl = {
	.name = "musl",
	.summary = "musl's malloc from 1.2.1 on",
	.narrow = true,
	.alignment = UNIT,
	.heap_size = sizeof(struct musl_heap),
	FILL_SLOTS(musl, open, walk, close, arena_kinds, free_kinds, free_kind, extent, size_fits,
		   lives_in, tell),
};
