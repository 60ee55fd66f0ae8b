#include "allocators/glibc/bins.h"

#include <inttypes.h>

/*
 * Visit the chunks of a bin until one does not point back, or visit returns an
 * error. Where links do not fit, the memory they stand in is left in
 * *ret_broken; else 0.
 */
static struct error *walk_bin(struct glibc_heap *heap, uint64_t bin,
			      struct error *(*visit)(struct glibc_heap *heap,
						     uint64_t chunk),
			      uint64_t *ret_broken)
{
	struct view view = { heap->context.image };
	uint64_t chunk, last = bin, back, mark = 0, steps = 0, power = 1;

	*ret_broken = 0;
	if (!view_word(&view, bin + 16, &chunk))
		return NULL;
	while (chunk != bin) {
		struct error *error;

		*ret_broken = 0;
		if (view_is_absent(&view, chunk))
			return NULL;
		*ret_broken = last + HEADER;
		if (chunk % 16 != 0 || chunk == mark ||
		    !view_word(&view, chunk + 24, &back))
			return NULL;
		/* Either link may be wrong; a chunk's own is the likely one. */
		*ret_broken = chunk + HEADER;
		if (back != last)
			return NULL;
		error = visit ? visit(heap, chunk) : NULL;
		if (error)
			return error;
		if (++steps == power) {
			mark = chunk;
			power *= 2;
		}
		last = chunk;
		if (!view_word(&view, chunk + 16, &chunk))
			return NULL;
	}
	*ret_broken = view_word(&view, bin + 24, &back) && back != last
			      ? bin + HEADER
			      : 0;
	return NULL;
}

const char *glibc_bin_kind(uint64_t number)
{
	return number == 1   ? "unsorted bin"
	       : number < 64 ? "small bin"
			     : "large bin";
}

/*
 * A list that a thread was changing when the core was taken. States are told
 * by the chunks, so it costs nothing.
 */
static void report_changing(struct glibc_heap *heap,
			    const struct glibc_broken_list *list)
{
	findings_add(heap->context.findings, FINDING_NOTE,
		     "the core was taken while a thread was changing an arena: "
		     "the list of the %s at %#" PRIx64 " is unfinished",
		     list->kind, list->owner);
}

/* What stands below memory in which a link is wrong may have overrun it. */
static void report_broken(struct glibc_heap *heap,
			  const struct block_sink *sink,
			  const struct glibc_broken_list *list,
			  const char *what_follows)
{
	struct block below = { 0 };
	char size[32] = "";

	if (list->size)
		snprintf(size, sizeof(size), " of size %#" PRIx64, list->size);
	if (list->user == list->owner ||
	    !block_sink_below(sink, list->user, &below))
		findings_add(
			heap->context.findings, FINDING_INCOMPLETE,
			"the heap is damaged: the head of the %s%s at %#" PRIx64
			" is wrong. %s",
			list->kind, size, list->owner, what_follows);
	else
		findings_add(heap->context.findings, FINDING_INCOMPLETE,
			     "the heap is damaged at %#" PRIx64
			     ": a link of the %s%s at %#" PRIx64
			     " is wrong there. The allocation below it, at "
			     "%#" PRIx64 " of size %#" PRIx64
			     ", may have been overrun. %s",
			     list->user, list->kind, size, list->owner,
			     below.start, below.size, what_follows);
}

static struct error *note_unsorted(struct glibc_heap *heap, uint64_t chunk)
{
	return number_list_add(&heap->unsorted, chunk);
}

static struct error *check_bins(struct glibc_heap *heap,
				const struct block_sink *sink,
				const struct glibc_arena *arena)
{
	uint64_t bin = arena->address + arena->layout->bins - 16;

	for (unsigned int i = 0; i < BINS; i++, bin += 16) {
		struct glibc_broken_list list = {
			.kind = glibc_bin_kind(i + 1),
			.owner = bin + HEADER,
		};
		struct view view = { heap->context.image };
		struct error *error = walk_bin(
			heap, bin, i == 0 ? note_unsorted : NULL, &list.user);

		if (error)
			return error;
		if (!list.user)
			continue;
		if (list.user != list.owner)
			list.size = view_chunk_size(&view, list.user - HEADER);
		if (arena->locked)
			report_changing(heap, &list);
		else
			report_broken(heap, sink, &list,
				      "What is free is told by the chunks "
				      "themselves");
	}
	return NULL;
}

struct error *glibc_check_lists(struct glibc_heap *heap,
				struct block_sink *sink)
{
	struct error *error = NULL;

	for (size_t i = 0; i < heap->broken_count; i++)
		report_broken(heap, sink, &heap->broken[i],
			      "The rest of the list is recognised by its "
			      "contents only");
	for (size_t i = 0; i < heap->arena_count && !error; i++)
		error = check_bins(heap, sink, &heap->arenas[i]);
	number_list_sort(&heap->unsorted);
	return error;
}

static struct error *vouch(struct glibc_heap *heap, uint64_t chunk)
{
	return number_list_add(&heap->vouched, chunk);
}

static struct error *vouch_all(struct glibc_heap *heap,
			       const struct number_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		struct error *error = vouch(heap, numbers(list)[i]);

		if (error)
			return error;
	}
	return NULL;
}

struct error *glibc_collect_vouched(struct glibc_heap *heap)
{
	struct error *error = vouch_all(heap, &heap->cached);

	if (!error)
		error = vouch_all(heap, &heap->fast);
	for (size_t i = 0; i < heap->arena_count && !error; i++) {
		const struct glibc_arena *arena = &heap->arenas[i];
		uint64_t bin = arena->address + arena->layout->bins - 16;
		uint64_t broken;

		error = vouch(heap, arena->top);
		for (unsigned int j = 0; j < BINS && !error; j++, bin += 16)
			error = walk_bin(heap, bin, vouch, &broken);
	}
	number_list_sort(&heap->vouched);
	heap->vouched_known = true;
	return error;
}
