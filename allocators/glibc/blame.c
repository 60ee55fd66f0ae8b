/*
 * Finds the block that caused damage. The size in the chunk's header, which precedes a block's
 * memory, distinguishes an overrun of the block below, which must have changed it, from a write to
 * a free block. A list that returns to a block, or two lists with the same block, prove that it was
 * freed twice.
 */
#include "allocators/glibc/lists.h"

#include "analyzer/base/list.h"

#include <inttypes.h>

bool glibc_is_blamed(const struct glibc_heap *heap, uint64_t user)
{
	for (size_t i = 0; i < heap->broken_count; i++)
		if (heap->broken[i].user == user)
			return true;
	return false;
}

/*
 * True if the size before the block is intact. An overrun of the block below would have changed it,
 * so there was none.
 */
static bool has_valid_size(const struct glibc_heap *heap, const struct block_sink *sink,
			   const struct glibc_broken_list *list, struct block *ret)
{
	struct view view = { heap->context.image };

	return block_sink_find(sink, list->user, ret) &&
	       (!list->size || view_chunk_size(&view, list->user - heap->header) == list->size);
}

/*
 * True if the link points to a member of the list after all, whose header was overwritten. The key
 * of cached blocks proves it, or that no other chunk is there. A wrong link is hardly ever a valid
 * address once it is mangled.
 */
static bool leads_to_member(const struct glibc_heap *heap, const struct block_sink *sink,
			    const struct glibc_broken_list *list, struct block *ret_below)
{
	struct view view = { heap->context.image };
	struct block block;
	uint64_t key;

	if (!list->next || list->next % heap->grain != 0 || list->user == list->owner ||
	    !view_word(&view, list->next + heap->word, &key) ||
	    !block_sink_below(sink, list->next, ret_below) ||
	    list->next - ret_below->start > ret_below->size + heap->header)
		return false;
	return heap->mangled || (heap->tcache_key && key == heap->tcache_key) ||
	       !block_sink_find(sink, list->next, &block);
}

static void report_member(const struct glibc_heap *heap, const struct glibc_broken_list *list,
			  struct block below, const char *work, const char *what_follows)
{
	findings_add(heap->context.findings, FINDING_INCOMPLETE,
		     "the heap is damaged at %#" PRIx64
		     ": the header of the free block at %#" PRIx64 ", which the %s at %#" PRIx64
		     " has, is overwritten. The allocation below it, at %#" PRIx64
		     " of size %#" PRIx64 ", may have been overrun. %s%s",
		     list->next - heap->word, list->next, list->kind, list->owner, below.start,
		     below.size, work, what_follows);
}

static void report_link(const struct glibc_heap *heap, const struct block_sink *sink,
			const struct glibc_broken_list *list, const char *work,
			const char *what_follows)
{
	struct block below = { 0 }, block;
	char size[32] = "";

	if (list->size)
		snprintf(size, sizeof(size), " of size %#" PRIx64, list->size);
	if (leads_to_member(heap, sink, list, &below))
		report_member(heap, list, below, work, what_follows);
	else if (list->user != list->owner && has_valid_size(heap, sink, list, &block))
		findings_add(heap->context.findings, FINDING_INCOMPLETE,
			     "the heap is damaged at %#" PRIx64 ": a link of the %s%s at %#" PRIx64
			     " is wrong there. The free block at %#" PRIx64 " of size %#" PRIx64
			     " was written to after it was freed, as its header is intact. %s%s",
			     list->user, list->kind, size, list->owner, block.start, block.size,
			     work, what_follows);
	else if (list->user == list->owner || !block_sink_below(sink, list->user, &below))
		findings_add(heap->context.findings, FINDING_INCOMPLETE,
			     "the heap is damaged: the head of the %s%s at %#" PRIx64
			     " is wrong. %s%s",
			     list->kind, size, list->owner, work, what_follows);
	else
		findings_add(heap->context.findings, FINDING_INCOMPLETE,
			     "the heap is damaged at %#" PRIx64 ": a link of the %s%s at %#" PRIx64
			     " is wrong there. The allocation below it, at %#" PRIx64
			     " of size %#" PRIx64 ", may have been overrun. %s%s",
			     list->user, list->kind, size, list->owner, below.start, below.size,
			     work, what_follows);
}

/* The words for a block that lists have twice. */
static void report_twice(const struct glibc_heap *heap, uint64_t user, const char *where,
			 const char *work)
{
	findings_add(heap->context.findings, FINDING_INCOMPLETE,
		     "the heap is damaged: the free block at %#" PRIx64
		     " was freed twice, as it is in %s. %sThen malloc hands it out twice",
		     user, where, work);
}

void glibc_report_broken(const struct glibc_heap *heap, const struct block_sink *sink,
			 const struct glibc_broken_list *list, const char *work,
			 const char *what_follows)
{
	char where[96];

	switch (list->fault) {
	case FAULT_LINK:
		report_link(heap, sink, list, work, what_follows);
		break;
	case FAULT_KEY:
		findings_add(
			heap->context.findings, FINDING_INCOMPLETE,
			"the heap is damaged at %#" PRIx64 ": the free block at %#" PRIx64
			" was written to after it was freed, as it lacks the key of blocks in the %s at %#" PRIx64
			", and its link is intact. %sIts list is complete",
			list->user + heap->word, list->user, list->kind, list->owner, work);
		break;
	case FAULT_LEFT_OVER:
		findings_add(
			heap->context.findings, FINDING_INCOMPLETE,
			"the heap is damaged: the block at %#" PRIx64
			" was handed out twice, or was written to while it was free: the %s at %#" PRIx64
			" has no more blocks of its size, and still leads to it. %sIt counts as used",
			list->user, list->kind, list->owner, work);
		break;
	case FAULT_TWICE:
		if (list->owner)
			snprintf(where, sizeof(where), "the %s at %#" PRIx64 " twice", list->kind,
				 list->owner);
		else
			snprintf(where, sizeof(where), "%s", list->kind);
		report_twice(heap, list->user, where, work);
		break;
	}
}

static void report_foot(const struct glibc_heap *heap, const struct glibc_odd_foot *odd)
{
	const char *work = glibc_tell_any_work(heap);
	uint64_t user = odd->chunk + heap->header, end = odd->chunk + odd->size;

	if (odd->kind == FOOT_TWICE)
		report_twice(heap, user,
			     number_list_has(&heap->cached, odd->chunk)
				     ? "a bin and in a thread cache"
				     : "a bin and in a fast bin",
			     work);
	else if (odd->kind == FOOT_LOST)
		findings_add(
			heap->context.findings, FINDING_INCOMPLETE,
			"the heap is damaged at %#" PRIx64 ": the free block at %#" PRIx64
			" of size %#" PRIx64
			" was written to after it was freed, at its end: the copy of its chunk's size there (prev_size) is %#" PRIx64
			" instead of %#" PRIx64 ". %sThe chunks themselves say what is free",
			end, user, odd->size - heap->overhead, odd->foot, odd->size, work);
	else
		findings_add(
			heap->context.findings, FINDING_INCOMPLETE,
			"the heap is damaged at %#" PRIx64
			": the header there says that the block below it, at %#" PRIx64
			" of size %#" PRIx64
			", is free, and no list has it. That block may have been overrun. %sIt counts as used",
			end + heap->word, user, odd->size - heap->overhead, work);
}

void glibc_report_feet(const struct glibc_heap *heap)
{
	list_for_each(odd, heap->odd_feet, heap->odd_feet_count) {
		/* A locked arena may be half changed. */
		if (!odd->locked && !glibc_is_blamed(heap, odd->chunk + heap->header))
			report_foot(heap, odd);
	}
}
