/*
 * The page map (pagemap.h, TCMalloc_PageMap2) and spans (span.h).
 *
 * A span in use for objects is named at each of its pages, others at their first and last only.
 * Pages inside may name what was there before, so a span counts where it is named at its own first
 * page. A span of objects says how many are handed out, and lists the others.
 */
#include "allocators/tcmalloc/tcmalloc.h"

#include "analyzer/base/budget.h"
#include "analyzer/base/sort.h"
#include "analyzer/heap/sink.h"

enum {
	ELEMENTS_MOST = 400,
	MATCHES_WANTED = 2,
	MATCHES_MOST = 64,
	MISSES_MOST = 8,
	MISSES_EACH = 8,
	PROGRESS_STEP = 1 << 16,
	SPANS_STEP = 4096,
};

/* log2 of possible page sizes, the usual ones first. */
static const unsigned int page_shifts[] = { 13, 12, 15, 14, 16, 17, 18 };
enum { PAGE_SHIFTS = COUNT_OF(page_shifts) };

static bool read_span(struct view *view, uint64_t address, struct span_words *ret)
{
	return address >= PAGE && address % image_word_size(view->image) == 0 &&
	       read_span_words(view, address, ret) && ret->length > 0 &&
	       ret->length >> (ADDRESS_BITS - 12) == 0 && ret->start >> (ADDRESS_BITS - 12) == 0;
}

bool tcmalloc_is_leaf(struct view *view, struct view *spans, unsigned int leaf_bits,
		      uint64_t address, uint64_t *ret_upper)
{
	uint64_t mask = (UINT64_C(1) << leaf_bits) - 1, size = image_word_size(view->image);
	uint64_t end = address + size * (mask + 1);
	uint64_t at = address, word, last = 0;
	unsigned int matches = 0, misses = 0;

	for (unsigned int i = 0; i < ELEMENTS_MOST && matches < MATCHES_MOST; i++, at += size) {
		struct span_words span;

		at = find_word(view, at, end, size, &word);
		if (at >= end)
			break;
		if (word == last)
			continue;
		last = word;
		if (read_span(spans, word, &span) && (span.start & mask) == (at - address) / size &&
		    (matches == 0 || span.start >> leaf_bits == *ret_upper)) {
			*ret_upper = span.start >> leaf_bits;
			matches++;
		} else if (++misses > MISSES_MOST && matches * MISSES_EACH < misses) {
			return false;
		}
	}
	return matches >= MATCHES_WANTED;
}

/* A walk of the page map. */
struct reading {
	struct tcmalloc *tc;
	const struct heap_context *context;
	struct view nodes, spans;
	struct budget budget; /* bytes of leaves that the dump may hold */
	uint64_t steps;
};

static struct error *read_leaf(struct reading *reading, uint64_t leaf, uint64_t upper)
{
	struct tcmalloc *tc = reading->tc;
	const uint64_t size = tc->word, bytes = size << tc->leaf_bits;
	uint64_t word, last = 0;

	if (leaf % size != 0 || leaf > UINT64_MAX - bytes ||
	    !is_anonymous_memory(reading->context->image, leaf) ||
	    !budget_take_many(&reading->budget, bytes))
		return NULL;
	TRY(array_append(&tc->leaves, (struct memory_range){ leaf, leaf + bytes }));
	for (uint64_t at = leaf;
	     (at = find_word(&reading->nodes, at, leaf + bytes, size, &word)) < leaf + bytes;
	     at += size) {
		uint64_t page = upper << tc->leaf_bits | (at - leaf) / size;
		struct span_words span;

		if (++reading->steps % PROGRESS_STEP == 0)
			TRY(progress_check(reading->context->progress, 0));
		if (word == last)
			continue;
		last = word;
		if (read_span(&reading->spans, word, &span) && span.start == page)
			TRY(array_append(&tc->spans, (struct tcmalloc_span){
							     span.start, span.length, word,
							     span.objects, (uint32_t)span.bits }));
	}
	return NULL;
}

/* Read spans, whose start and size are in pages still. */
static struct error *read_page_map(struct tcmalloc *tc, const struct heap_context *context)
{
	struct reading reading = {
		.tc = tc,
		.context = context,
		.nodes = { context->image },
		.spans = { context->image },
		.budget = { image_held_bytes(context->image) },
	};
	struct view root = { context->image };
	uint64_t end = tc->root + tcmalloc_root_bytes(tc), leaf;

	end = MIN(end, tc->module->end);
	for (uint64_t at = tc->root; (at = find_word(&root, at, end, tc->word, &leaf)) < end;
	     at += tc->word)
		TRY(read_leaf(&reading, leaf, (at - tc->root) / tc->word));
	return NULL;
}

/* True if the first free object is where an object of the span may begin. */
static bool fits_objects(const struct tcmalloc *tc, const struct tcmalloc_span *span)
{
	uint64_t offset = span->objects - (span->start << tc->page_shift);

	return offset < span->bytes << tc->page_shift &&
	       offset % tc->classes[span_class(span)] == 0;
}

static bool is_of_objects(const struct tcmalloc *tc, const struct tcmalloc_span *span)
{
	return span_location(span) == SPAN_IN_USE && span_class(span) > 0 &&
	       span_class(span) < tc->class_count;
}

/* How many spans' free objects fit the size of pages, less those that do not. */
static int64_t vote(const struct tcmalloc *tc)
{
	int64_t votes = 0;

	array_for_each(span, &tc->spans)
		if (is_of_objects(tc, span) && span->objects)
			votes += fits_objects(tc, span) ? 1 : -1;
	return votes;
}

/* True if the span's fields are consistent. */
static bool is_valid(const struct tcmalloc *tc, const struct tcmalloc_span *span)
{
	return span->bytes <= (UINT64_C(1) << ADDRESS_BITS) - span->start &&
	       span_location(span) <= SPAN_RETURNED &&
	       (span_location(span) != SPAN_IN_USE ||
		(span_class(span) < tc->class_count &&
		 (span_class(span) == 0 || span_object_count(tc, span) < MOST_OBJECTS)));
}

DEFINE_COMPARE(compare_spans, struct tcmalloc_span, ASCENDING(start), ASCENDING(metadata))

/* Turn pages into bytes, and leave out what cannot be. */
static void check_spans(struct tcmalloc *tc)
{
	uint64_t end = 0;
	size_t kept = 0;

	array_for_each(span, &tc->spans) {
		span->start <<= tc->page_shift;
		span->bytes <<= tc->page_shift;
	}
	array_sort(&tc->spans, compare_spans);
	array_for_each(span, &tc->spans) {
		if (!is_valid(tc, span)) {
			heap_damage_note(&tc->misfits, span->metadata);
			continue;
		}
		if (span->start < end) {
			heap_damage_note(&tc->overlaps, span->metadata);
			continue;
		}
		end = span_end(span);
		tc->bytes += span->bytes;
		tc->spans.items[kept++] = *span;
	}
	tc->spans.count = kept;
}

struct error *tcmalloc_read_spans(struct tcmalloc *tc, const struct heap_context *context,
				  bool *ret)
{
	*ret = false;
	for (unsigned int i = 0; i < PAGE_SHIFTS && !*ret; i++) {
		if ((address_bits(tc) - page_shifts[i] + 1) / 2 != tc->leaf_bits)
			continue;
		tc->page_shift = page_shifts[i];
		tc->spans.count = 0;
		tc->leaves.count = 0;
		TRY(read_page_map(tc, context));
		*ret = vote(tc) > 0;
	}
	if (*ret)
		check_spans(tc);
	return NULL;
}

const struct tcmalloc_span *tcmalloc_find_span(const struct tcmalloc *tc, uint64_t address)
{
	const struct tcmalloc_span *span =
		LIST_LAST(tc->spans.items, tc->spans.count, start, address);

	return span && address < span_end(span) ? span : NULL;
}

struct adding {
	struct tcmalloc *tc;
	struct block_sink *sink;
	struct view view, traces;
	uint64_t free[MOST_OBJECTS / 64]; /* a bit for each object of the span */
	uint64_t cached[MOST_OBJECTS / 64];
};

/*
 * Set the bits of free objects, as the span lists them; how many they are. False, with a note: the
 * list leads elsewhere.
 */
static bool read_free(struct adding *adding, const struct tcmalloc_span *span, uint64_t *ret_count)
{
	uint64_t bytes = adding->tc->classes[span_class(span)];
	uint64_t count = span_object_count(adding->tc, span), object = span->objects, last = 0;

	memset(adding->free, 0, (count + 63) / 64 * 8);
	for (*ret_count = 0; object; ++*ret_count) {
		uint64_t offset = object - span->start, number = offset / bytes;

		if (offset % bytes != 0 || number >= count) {
			heap_damage_note(last ? &adding->tc->lists.links : &adding->tc->lengths,
					 last ? last : span->start);
			return false;
		}
		if (adding->free[number / 64] >> number % 64 & 1) {
			heap_damage_note(&adding->tc->lists.twice, object);
			return false;
		}
		adding->free[number / 64] |= UINT64_C(1) << number % 64;
		last = object;
		if (!view_word(&adding->view, object, &object)) {
			heap_damage_note(&adding->tc->absent, span->start);
			return true;
		}
	}
	return true;
}

/* Set the bits of the span's objects that are in caches. */
static void take_cached(struct adding *adding, const struct tcmalloc_span *span)
{
	const struct tcmalloc *tc = adding->tc;
	const struct cached_object *cached = tc->cached.items;
	uint64_t bytes = tc->classes[span_class(span)], objects = span_object_count(tc, span);
	size_t count = tc->cached.count;

	memset(adding->cached, 0, (objects + 63) / 64 * 8);
	for (size_t i = BISECT(j, 0, count, cached[j].address < span->start);
	     i < count && cached[i].address < span->start + objects * bytes; i++) {
		uint64_t number = (cached[i].address - span->start) / bytes;
		uint64_t bit = UINT64_C(1) << number % 64;

		if (cached[i].cache == TRANSFER_CACHE)
			adding->free[number / 64] |= bit;
		else
			adding->cached[number / 64] |= bit & ~adding->free[number / 64];
	}
}

static struct error *add_objects(struct adding *adding, const struct tcmalloc_span *span)
{
	struct tcmalloc *tc = adding->tc;
	uint64_t bytes = tc->classes[span_class(span)], count = span_object_count(tc, span), free;

	if (read_free(adding, span, &free) && free + span_refcount(span) != count)
		heap_damage_note(&tc->counts, span->start);
	take_cached(adding, span);
	for (uint64_t i = 0; i * 64 < count; i++)
		adding->free[i] = ~(adding->free[i] | adding->cached[i]);
	return block_sink_add_row(adding->sink, span->start, bytes, adding->free, adding->cached,
				  count);
}

/* A sampled allocation is as large as it would be otherwise. */
static uint64_t large_bytes(struct adding *adding, const struct tcmalloc_span *span)
{
	const struct tcmalloc *tc = adding->tc;
	uint64_t wanted;

	if (!span_is_sampled(span) || !view_word(&adding->traces, span->objects, &wanted))
		return span->bytes;
	for (unsigned int i = 1; i < tc->class_count; i++)
		if (tc->classes[i] >= wanted)
			return tc->classes[i] < span->bytes ? tc->classes[i] : span->bytes;
	return span->bytes;
}

static struct error *add_span(struct adding *adding, const struct tcmalloc_span *span)
{
	struct block block = { span->start, span->bytes, BLOCK_FREE };

	if (span_location(span) == SPAN_IN_USE) {
		if (span_class(span) > 0)
			return add_objects(adding, span);
		block.size = large_bytes(adding, span);
		block.state = BLOCK_USED;
	}
	return block_sink_add(adding->sink, block);
}

struct error *tcmalloc_add_blocks(struct tcmalloc *tc, const struct heap_context *context,
				  arena_number arena, struct block_sink *sink)
{
	_cleanup_(free) struct adding *adding = calloc(1, sizeof(*adding));

	TRY_MEMORY(adding);
	adding->tc = tc;
	adding->sink = sink;
	adding->view.image = adding->traces.image = context->image;
	for (size_t i = 0; i < tc->spans.count; i++) {
		const struct tcmalloc_span *span = &tc->spans.items[i];

		TRY(block_sink_stretch(sink, span->start, span_end(span), arena));
		TRY(add_span(adding, span));
		if (i % SPANS_STEP == 0)
			TRY(progress_check(context->progress,
					   (uint64_t)SPANS_STEP << tc->page_shift));
	}
	return NULL;
}
