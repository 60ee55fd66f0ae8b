/* The slots of spans as blocks. */
#include "allocators/partition_alloc/partition_alloc.h"
#include "analyzer/base/sort.h"

enum { SPANS_STEP = 256 };

struct adding {
	struct pa_heap *heap;
	struct block_sink *sink;
	struct view view, counts;
	uint64_t free[PA_MOST_SLOTS / 64]; /* a bit for each slot of the span */
};

const struct pa_span *pa_find_span(const struct pa_heap *heap, uint64_t address)
{
	const struct pa_span *span =
		LIST_LAST(heap->spans.items, heap->spans.count, start, address);

	return span && address < pa_span_end(span) ? span : NULL;
}

const struct pa_cached *pa_find_cached(const struct pa_heap *heap, uint64_t address)
{
	const struct pa_cached *cached =
		LIST_LAST(heap->cached.items, heap->cached.count, address, address);

	return cached && cached->address == address ? cached : NULL;
}

bool pa_read_link(struct view *view, uint64_t slot, uint64_t *ret, bool *ret_absent)
{
	uint64_t words[2];

	*ret_absent = !view_read(view, slot, words, sizeof(words));
	/* A page that was given back has zeros, and only the last of a list may be there. */
	*ret = *ret_absent ? 0 : __builtin_bswap64(words[0]);
	return !*ret_absent && (words[1] == ~words[0] || (words[0] | words[1]) == 0);
}

bool pa_is_quarantined(const struct pa_heap *heap, struct view *view, const struct pa_span *span,
		       uint64_t slot)
{
	uint64_t at = slot + span->slot_size - PA_COUNT_BYTES, page = slot % PA_SUPER_PAGE;
	uint32_t count;

	if (heap->roots.items[span->root].extras != PA_COUNT_BYTES)
		return false;
	if (slot % PA_SYSTEM_PAGE == 0)
		at = slot - page + 2 * PA_SYSTEM_PAGE + page / PA_SYSTEM_PAGE * PA_WORD;
	return view_read(view, at, &count, sizeof(count)) && count != 0 && (count & 1) == 0;
}

/* Take the last slots for free, as many as are: the core lacks the list. */
static void guess_free(struct adding *adding, const struct pa_span *span, uint32_t left)
{
	heap_damage_note(&adding->heap->absent, span->start);
	for (uint32_t i = span->slots; i-- > 0 && left;) {
		uint64_t bit = UINT64_C(1) << i % 64;

		left -= (adding->free[i / 64] & bit) == 0;
		adding->free[i / 64] |= bit;
	}
}

/* Set the bits of free slots, as the span lists them. */
static void read_free(struct adding *adding, const struct pa_span *span)
{
	struct pa_heap *heap = adding->heap;
	uint32_t left = span->slots - span->allocated;
	uint64_t slot = span->head, last = 0;
	bool absent = false;

	memset(adding->free, 0, sizeof(adding->free));
	while (slot) {
		uint64_t offset = slot - span->start, number = offset / span->slot_size, link;

		if (offset % span->slot_size != 0 || number >= span->slots) {
			heap_damage_note(last ? &heap->lists.links : &heap->lengths,
					 last ? last : span->metadata);
			return;
		}
		if (adding->free[number / 64] >> number % 64 & 1) {
			heap_damage_note(&heap->lists.twice, slot);
			return;
		}
		adding->free[number / 64] |= UINT64_C(1) << number % 64;
		left -= left > 0;
		last = slot;
		if (!pa_read_link(&adding->view, slot, &link, &absent))
			break;
		slot = link ? (span->start & -(uint64_t)PA_SUPER_PAGE) |
				       (link & (PA_SUPER_PAGE - 1))
			    : 0;
	}
	if (absent)
		guess_free(adding, span, left);
	else if (slot)
		heap_damage_note(&heap->lists.links, slot);
	else if (left)
		heap_damage_note(&heap->counts, span->start);
}

static enum block_state state_of(struct adding *adding, const struct pa_span *span, uint32_t number)
{
	uint64_t slot = span->start + number * span->slot_size;

	if (adding->free[number / 64] >> number % 64 & 1)
		return BLOCK_FREE;
	if (pa_find_cached(adding->heap, slot))
		return BLOCK_CACHED;
	return pa_is_quarantined(adding->heap, &adding->counts, span, slot) ? BLOCK_FREE
									    : BLOCK_USED;
}

static uint64_t size_of(const struct pa_heap *heap, const struct pa_span *span)
{
	uint64_t size = span->raw_size ? span->raw_size : span->slot_size;
	uint64_t extras = heap->roots.items[span->root].extras;

	return size > extras ? size - extras : size;
}

static struct error *add_span(struct adding *adding, const struct pa_span *span)
{
	uint64_t size = size_of(adding->heap, span);
	uint64_t end = span->start + span->slots * span->slot_size;

	/* Empty ones are given to the system, with their lists, when there are too many. */
	if (span->allocated == 0)
		return block_sink_add(adding->sink,
				      (struct block){ span->start, span->bytes, BLOCK_FREE });
	read_free(adding, span);
	for (uint32_t i = 0; i < span->slots; i++)
		TRY(block_sink_add(adding->sink,
				   (struct block){ span->start + i * span->slot_size, size,
						   state_of(adding, span, i) }));
	if (pa_span_end(span) - end < span->slot_size)
		return NULL;
	return block_sink_add(adding->sink,
			      (struct block){ end, pa_span_end(span) - end, BLOCK_FREE });
}

struct error *pa_add_blocks(struct pa_heap *heap, arena_number first, struct block_sink *sink)
{
	_cleanup_(free) struct adding *adding = calloc(1, sizeof(*adding));

	TRY_MEMORY(adding);
	adding->heap = heap;
	adding->sink = sink;
	adding->view.image = adding->counts.image = heap->context.image;
	for (size_t i = 0; i < heap->spans.count; i++) {
		const struct pa_span *span = &heap->spans.items[i];

		TRY(block_sink_region(sink, span->start, pa_span_end(span), first + span->root));
		TRY(add_span(adding, span));
		if (i % SPANS_STEP == 0)
			TRY(progress_check(heap->context.progress,
					   (uint64_t)SPANS_STEP << PA_PAGE_SHIFT));
	}
	return NULL;
}
