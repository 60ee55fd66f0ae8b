/*
 * The page map (pagemap.h) and spans (span.h).
 *
 * A page map has one level of nodes above its leaves or none. A leaf has the class of each page, in
 * one or two bytes, then a word for each with the address of its Span, whose upper 16 bits may have
 * the class again.
 *
 * A span of objects is named at each of its pages, others at their first and last. Pages may name
 * what was there before, so a span counts where it is named at its own first page, unless its Span
 * is on the list of free ones. Free objects of a span are bits where there are few objects. Where
 * there are many, some are numbers in the Span, and the others are in a list of objects: each has
 * the number of the next one, then numbers of further free objects. Numbers count 8 bytes. A span
 * of one object need not count it: it is handed out, or the span would not be there.
 */
#include "allocators/google_tcmalloc/google_tcmalloc.h"

#include "analyzer/base/sort.h"
#include "analyzer/heap/sink.h"
#include "analyzer/image/view.h"

enum {
	ELEMENTS_MOST = 400,
	MATCHES_WANTED = 2,
	MATCHES_MOST = 64,
	MISSES_MOST = 8,
	MISSES_EACH = 8,
	SCORED_MOST = 1 << 10,
	SCORED_PAGES = 1 << 14,
	PROGRESS_STEP = 1 << 16,
	SPANS_STEP = 4096,
	SMALL_PAGES_MASK = 63,
	UNUSED_MOST = 1 << 22,
	LIST_END = UINT16_MAX,
};

static const uint64_t SPAN_MASK = (UINT64_C(1) << ADDRESS_BITS) - 1;
static const uint64_t UPPER_FLAGS = UINT64_C(0xfff) << 52;

struct span_bytes {
	uint8_t bytes[MOST_SPAN_WORDS * WORD];
};

static uint64_t word_of(const struct span_bytes *span, unsigned int offset)
{
	uint64_t word;

	memcpy(&word, span->bytes + offset, sizeof(word));
	return word;
}

static unsigned int half_of(const struct span_bytes *span, unsigned int offset)
{
	uint16_t half;

	memcpy(&half, span->bytes + offset, sizeof(half));
	return half;
}

static uint64_t first_page(const struct google_tcmalloc *tc, const struct span_bytes *span)
{
	uint64_t word = word_of(span, tc->layout->page);

	return tc->layout->has_flags ? word & ((UINT64_C(1) << (ADDRESS_BITS - tc->page_shift)) - 1)
				     : word;
}

/* True if it is large or sampled, by its flags. */
static bool is_large(const struct google_tcmalloc *tc, const struct span_bytes *span)
{
	uint64_t word = word_of(span, tc->layout->page);

	if (!tc->layout->has_flags)
		return false;
	return tc->layout->flags_follow ? (word >> (ADDRESS_BITS - tc->page_shift) & 3) != 0
					: (word & UPPER_FLAGS) != 0;
}

static uint64_t page_count(const struct google_tcmalloc *tc, const struct span_bytes *span)
{
	const struct span_layout *layout = tc->layout;

	if (!layout->has_flags)
		return word_of(span, layout->pages);
	if (is_large(tc, span))
		return word_of(span, layout->large);
	if (layout->count_follows)
		return word_of(span, layout->page) >> (ADDRESS_BITS - tc->page_shift + 3) &
		       SMALL_PAGES_MASK;
	return word_of(span, layout->pages) & SMALL_PAGES_MASK;
}

/* Read the Span at address, if it may be one. */
static bool read_span(const struct google_tcmalloc *tc, struct view *view, uint64_t address,
		      struct span_bytes *ret)
{
	uint64_t pages;

	if (address < PAGE || address % WORD != 0 ||
	    !view_read(view, address + tc->links, ret->bytes, tc->layout->size))
		return false;
	pages = page_count(tc, ret);
	return pages > 0 && pages >> (ADDRESS_BITS - 12) == 0 &&
	       first_page(tc, ret) >> (ADDRESS_BITS - 12) == 0;
}

static uint64_t leaf_length(const struct google_tcmalloc *tc)
{
	return UINT64_C(1) << tc->leaf_bits;
}

static uint64_t leaf_spans(const struct google_tcmalloc *tc, uint64_t leaf)
{
	return leaf + leaf_length(tc) * tc->class_bytes;
}

static uint64_t leaf_end(const struct google_tcmalloc *tc, uint64_t leaf)
{
	return leaf_spans(tc, leaf) + leaf_length(tc) * WORD;
}

bool google_leaf_at(struct google_tcmalloc *tc, const struct image *image, uint64_t address,
		    struct budget *steps, uint64_t *ret_number)
{
	struct view view = { image }, spans = { image };
	const uint64_t start = leaf_spans(tc, address), end = leaf_end(tc, address);
	uint64_t word, last = 0, at = start;
	unsigned int matches = 0, misses = 0;

	for (unsigned int i = 0; i < ELEMENTS_MOST && matches < MATCHES_MOST; i++, at += WORD) {
		struct span_bytes span;
		uint64_t page;

		at = find_word(&view, at, end, WORD, &word);
		if (at >= end || !budget_take(steps))
			break;
		word &= SPAN_MASK;
		if (word == last)
			continue;
		last = word;
		page = read_span(tc, &spans, word, &span) ? first_page(tc, &span) : 0;
		if (page && (page & (leaf_length(tc) - 1)) == (at - start) / WORD &&
		    (matches == 0 || page >> tc->leaf_bits == *ret_number)) {
			*ret_number = page >> tc->leaf_bits;
			matches++;
		} else if (++misses > MISSES_MOST && matches * MISSES_EACH < misses) {
			return false;
		}
	}
	return matches >= MATCHES_WANTED;
}

/* The free objects of a span. */
struct free_objects {
	const struct google_tcmalloc *tc;
	struct view *view;
	uint64_t start, bytes, count; /* of objects */
	uint64_t found;
	uint64_t *bits; /* one for each */
	bool is_wrong;	/* numbers that none has, or some twice */
	bool is_absent; /* objects with numbers are */
};

static void take_number(struct free_objects *free, uint64_t number)
{
	uint64_t offset = number << 3, object = offset / free->bytes;
	uint64_t bit = UINT64_C(1) << object % 64;

	if (offset % free->bytes != 0 || object >= free->count ||
	    (free->bits[object / 64] & bit) != 0) {
		free->is_wrong = true;
		return;
	}
	free->bits[object / 64] |= bit;
	free->found++;
}

/* The numbers of free objects that one of them has. */
static bool take_host(struct free_objects *free, uint64_t *number, unsigned int embedded)
{
	uint64_t address = free->start + (*number << 3);
	uint16_t half = 0;

	take_number(free, *number);
	for (unsigned int i = 1; i <= embedded && !free->is_wrong; i++) {
		if (!view_read(free->view, address + 2 * (uint64_t)i, &half, sizeof(half)))
			return false;
		take_number(free, half);
	}
	if (!view_read(free->view, address, &half, sizeof(half)))
		return false;
	*number = half;
	return true;
}

static void read_list(struct free_objects *free, const struct span_bytes *span)
{
	const struct span_layout *layout = free->tc->layout;
	unsigned int cached = span->bytes[layout->cached] & layout->cached_mask;
	unsigned int embedded = half_of(span, layout->embedded);
	unsigned int most = (unsigned int)(free->bytes / 2 - 1);
	uint64_t number = half_of(span, layout->list);

	if (layout->objects + 2 * cached > layout->size || embedded > most) {
		free->is_wrong = true;
		return;
	}
	for (unsigned int i = 0; i < cached; i++)
		take_number(free, half_of(span, layout->objects + 2 * i));
	for (; number != LIST_END && !free->is_wrong; embedded = most)
		if (!take_host(free, &number, embedded)) {
			free->is_absent = true;
			return;
		}
}

static void read_bitmap(struct free_objects *free, const struct span_bytes *span)
{
	for (uint64_t i = 0; i < free->tc->layout->bitmap_words; i++) {
		uint64_t word = word_of(span, free->tc->layout->objects + (unsigned int)i * WORD);
		uint64_t rest = free->count > i * 64 ? free->count - i * 64 : 0;

		if (rest < 64 && word >> rest != 0)
			free->is_wrong = true;
		else if (rest > 0)
			free->bits[i] = word;
		free->found += (uint64_t)__builtin_popcountll(word);
	}
}

/* Set the bits of free objects of the span, which are 0 before. */
static void read_free(struct free_objects *free, const struct span_bytes *span)
{
	const struct google_tcmalloc *tc = free->tc;
	uint64_t few = 64 * (uint64_t)tc->layout->bitmap_words;

	if (free->count == 1)
		return;
	if (free->bytes * few >= UINT64_C(1) << tc->page_shift)
		read_bitmap(free, span);
	else
		read_list(free, span);
}

/* The class of the number-th page of the leaf. */
static unsigned int class_at(const struct google_tcmalloc *tc, struct view *view, uint64_t leaf,
			     uint64_t number)
{
	uint16_t class = 0;

	return view_read(view, leaf + number * tc->class_bytes, &class, tc->class_bytes) ? class
											 : 0;
}

/* True if those and the span's count of used ones are all. */
static bool are_all(const struct free_objects *free, const struct span_bytes *span)
{
	return free->count == 1 || free->is_absent ||
	       free->found + half_of(span, free->tc->layout->allocated) == free->count;
}

/* 1 if the span makes sense, -1 if not, 0 if it cannot tell. */
static int score_span(const struct google_tcmalloc *tc, struct view *view,
		      const struct span_bytes *span, uint64_t start, unsigned int class,
		      uint64_t *bits, struct budget *steps)
{
	struct free_objects free = { .tc = tc, .view = view, .start = start, .bits = bits };

	if (class >= MOST_CLASSES || tc->classes[class] == 0)
		return -1;
	free.bytes = tc->classes[class];
	free.count = (page_count(tc, span) << tc->page_shift) / free.bytes;
	if (free.count == 0 || free.count >= MOST_OBJECTS || !budget_take_many(steps, free.count))
		return -1;
	memset(bits, 0, (free.count + 63) / 64 * 8);
	read_free(&free, span);
	if (free.is_wrong || !are_all(&free, span))
		return -1;
	return free.count > 1;
}

int64_t google_leaf_score(const struct google_tcmalloc *tc, const struct image *image,
			  uint64_t leaf, uint64_t number, struct budget *steps)
{
	struct view view = { image }, spans = { image }, objects = { image };
	const uint64_t start = leaf_spans(tc, leaf), end = leaf_end(tc, leaf);
	uint64_t *bits = malloc(MOST_OBJECTS / 8), word, at = start;
	int64_t score = 0;

	for (unsigned int i = 0; bits && i < SCORED_PAGES; i++, at += WORD) {
		struct span_bytes span;
		unsigned int class;
		uint64_t page;

		at = find_word(&view, at, end, WORD, &word);
		if (at >= end || score >= SCORED_MOST || score <= -SCORED_MOST)
			break;
		page = number << tc->leaf_bits | (at - start) / WORD;
		class = class_at(tc, &objects, leaf, (at - start) / WORD);
		if (class == 0 || !read_span(tc, &spans, word & SPAN_MASK, &span) ||
		    first_page(tc, &span) != page)
			continue;
		score +=
			score_span(tc, &objects, &span, page << tc->page_shift, class, bits, steps);
	}
	free(bits);
	return score;
}

/* A walk of the page map. */
struct reading {
	struct google_tcmalloc *tc;
	const struct heap_context *context;
	struct view nodes, spans, classes;
	struct budget budget; /* bytes of leaves that the dump may hold */
	uint64_t steps;
};

static struct error *add_span(struct reading *reading, uint64_t leaf, uint64_t page, uint64_t word)
{
	struct google_tcmalloc *tc = reading->tc;
	struct span_bytes bytes;
	struct google_span span = { .start = page << tc->page_shift, .metadata = word };

	if (!read_span(tc, &reading->spans, word, &bytes) || first_page(tc, &bytes) != page)
		return NULL;
	span.bytes = page_count(tc, &bytes) << tc->page_shift;
	span.class = class_at(tc, &reading->classes, leaf, page & (leaf_length(tc) - 1));
	span.is_free = tc->layout->has_location && (bytes.bytes[7] >> 4 & 3) != 0;
	if (span.class == 0 && !span.is_free && (!tc->layout->has_flags || is_large(tc, &bytes)))
		span.sample = word_of(&bytes, tc->layout->sample);
	return array_append(&tc->spans, span);
}

static struct error *read_leaf(struct reading *reading, uint64_t leaf, uint64_t number)
{
	struct google_tcmalloc *tc = reading->tc;
	const uint64_t start = leaf_spans(tc, leaf), end = leaf_end(tc, leaf);
	uint64_t word, last = 0;

	if (leaf % WORD != 0 || leaf >> ADDRESS_BITS ||
	    !is_anonymous_memory(reading->context->image, leaf) ||
	    !budget_take_many(&reading->budget, end - leaf))
		return NULL;
	TRY(array_append(&tc->leaves, (struct memory_range){ leaf, end }));
	for (uint64_t at = start; (at = find_word(&reading->nodes, at, end, WORD, &word)) < end;
	     at += WORD) {
		if (++reading->steps % PROGRESS_STEP == 0)
			TRY(progress_check(reading->context->progress, 0));
		if (word == last)
			continue;
		last = word;
		TRY(add_span(reading, leaf, number << tc->leaf_bits | (at - start) / WORD,
			     word & SPAN_MASK));
	}
	return NULL;
}

static struct error *read_node(struct reading *reading, uint64_t node, uint64_t number)
{
	const struct google_tcmalloc *tc = reading->tc;
	const uint64_t end = node + leaf_length(tc) * WORD; /* a node is as long as a leaf */
	uint64_t leaf;

	if (!tc->has_nodes)
		return read_leaf(reading, node, number);
	if (node % WORD != 0 || node >> ADDRESS_BITS ||
	    !is_anonymous_memory(reading->context->image, node) ||
	    !budget_take_many(&reading->budget, end - node))
		return NULL;
	for (uint64_t at = node; (at = find_word(&reading->classes, at, end, WORD, &leaf)) < end;
	     at += WORD)
		TRY(read_leaf(reading, leaf, number << tc->leaf_bits | (at - node) / WORD));
	return NULL;
}

static struct error *read_page_map(struct reading *reading)
{
	struct google_tcmalloc *tc = reading->tc;
	unsigned int below = tc->page_shift + tc->leaf_bits * (tc->has_nodes ? 2 : 1);
	struct view root = { reading->context->image };
	uint64_t end = tc->root + ((uint64_t)WORD << (ADDRESS_BITS - below)), node;

	end = MIN(end, tc->module->end);
	for (uint64_t at = tc->root; (at = find_word(&root, at, end, WORD, &node)) < end;
	     at += WORD)
		TRY(read_node(reading, node, (at - tc->root) / WORD));
	return NULL;
}

/* A search for the lists of Spans that are not in use. */
struct unused_search {
	const struct google_tcmalloc *tc;
	struct view view;
	ARRAY(struct memory_range) unused;
	struct budget budget;
	uint64_t least, most; /* the Spans lie there */
};

/*
 * A variable leads to the first unused Span, the first word of each to the next one, and that of
 * the last is 0. Lists of Spans in use are rings.
 */
static struct error *look_for_unused(void *data, uint64_t where, uint64_t word)
{
	struct unused_search *search = data;
	size_t before = search->unused.count;
	uint64_t span = word;

	(void)where;
	while (span >= search->least && span <= search->most && span % WORD == 0 &&
	       budget_take(&search->budget)) {
		TRY(array_append(&search->unused, (struct memory_range){ span, span }));
		if (!view_word(&search->view, span, &span))
			span = 1;
	}
	if (span != 0)
		search->unused.count = before;
	return NULL;
}

DEFINE_COMPARE(compare_unused, struct memory_range, ASCENDING(start))

/* Leave out spans that pages name still, but that are not in use. */
static void drop_unused(struct google_tcmalloc *tc, struct unused_search *search)
{
	size_t kept = 0;

	array_sort(&search->unused, compare_unused);
	array_for_each(span, &tc->spans) {
		const struct memory_range *unused = LIST_LAST(
			search->unused.items, search->unused.count, start, span->metadata);

		if (span->class == 0 && unused && unused->start == span->metadata)
			continue;
		tc->spans.items[kept++] = *span;
	}
	tc->spans.count = kept;
}

static struct error *find_unused(struct google_tcmalloc *tc, const struct heap_context *context)
{
	struct unused_search search = {
		.tc = tc, .view = { context->image }, .budget = { UNUSED_MOST }, .least = UINT64_MAX
	};
	struct error *error;

	search.unused.memory.account = context->account;
	array_for_each(span, &tc->spans) {
		search.least = MIN(search.least, span->metadata);
		search.most = MAX(search.most, span->metadata);
	}
	error = module_visit_words(context->image, tc->module, look_for_unused, &search);
	if (!error)
		drop_unused(tc, &search);
	array_release(&search.unused);
	return error;
}

static bool is_valid(const struct google_tcmalloc *tc, const struct google_span *span)
{
	return span->bytes <= (UINT64_C(1) << ADDRESS_BITS) - span->start &&
	       (span->class == 0 ||
		(span->class < MOST_CLASSES && tc->classes[span->class] > 0 &&
		 span_object_count(tc, span) > 0 && span_object_count(tc, span) < MOST_OBJECTS));
}

DEFINE_COMPARE(compare_spans, struct google_span, ASCENDING(start), ASCENDING(metadata))

/* Sort, and leave out what cannot be. */
static void check_spans(struct google_tcmalloc *tc)
{
	uint64_t end = 0;
	size_t kept = 0;

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
		tc->class_count = MAX(tc->class_count, span->class + 1);
		tc->spans.items[kept++] = *span;
	}
	tc->spans.count = kept;
}

struct error *google_read_spans(struct google_tcmalloc *tc, const struct heap_context *context)
{
	struct reading reading = {
		.tc = tc,
		.context = context,
		.nodes = { context->image },
		.spans = { context->image },
		.classes = { context->image },
		.budget = { image_held_bytes(context->image) },
	};

	TRY(read_page_map(&reading));
	TRY(find_unused(tc, context));
	check_spans(tc);
	return NULL;
}

struct error *google_visit_memory(const struct image *image, uint64_t start, uint64_t end,
				  struct error *(*visit)(void *data, uint64_t start, uint64_t end),
				  void *data)
{
	size_t first = LIST_ABOVE(image->regions, image->region_count, end, start);

	for (size_t i = first; i < image->region_count && image->regions[i].start < end; i++) {
		const struct region *region = &image->regions[i];
		uint64_t from = MAX(region->start, start);

		if (is_anonymous_memory(image, from))
			TRY(visit(data, from, MIN(region->end, end)));
	}
	return NULL;
}

struct gaps {
	struct google_tcmalloc *tc;
	size_t count; /* of spans, but for free pages */
};

/* Add what is no metadata, as free pages. */
static struct error *add_gap(struct google_tcmalloc *tc, uint64_t start, uint64_t end)
{
	const struct memory_range *ranges = tc->metadata.items;
	size_t count = tc->metadata.count, i = LIST_ABOVE(ranges, count, end, start);

	while (start < end) {
		uint64_t next = i < count ? MIN(ranges[i].start, end) : end;

		if (start < next) {
			TRY(array_append(&tc->spans, (struct google_span){ .start = start,
									   .bytes = next - start,
									   .is_free = true }));
			tc->bytes += next - start;
		}
		start = i < count ? ranges[i++].end : end;
	}
	return NULL;
}

static struct error *add_gaps(void *data, uint64_t start, uint64_t end)
{
	struct gaps *gaps = data;
	const struct google_tcmalloc *tc = gaps->tc;
	size_t i = LIST_ABOVE(tc->spans.items, gaps->count, start, start);

	if (i > 0)
		start = MAX(start, span_end(&tc->spans.items[i - 1]));
	while (start < end) {
		const struct google_span span =
			i < gaps->count ? tc->spans.items[i] : (struct google_span){ end, 0 };

		TRY(add_gap(gaps->tc, start, MIN(span.start, end)));
		start = span_end(&span);
		i++;
	}
	return NULL;
}

struct error *google_find_free_pages(struct google_tcmalloc *tc, const struct image *image)
{
	struct gaps gaps = { tc, tc->spans.count };
	uint64_t end = 0;

	for (size_t i = 0; i < gaps.count; i++) {
		uint64_t start = reserved_start(tc->spans.items[i].start);

		if (start < end)
			continue;
		end = start + RESERVED;
		TRY(google_visit_memory(image, start, end, add_gaps, &gaps));
	}
	array_sort(&tc->spans, compare_spans);
	return NULL;
}

const struct google_span *google_find_span(const struct google_tcmalloc *tc, uint64_t address)
{
	const struct google_span *span =
		LIST_LAST(tc->spans.items, tc->spans.count, start, address);

	return span && address < span_end(span) ? span : NULL;
}

struct adding {
	struct google_tcmalloc *tc;
	struct block_sink *sink;
	struct view view, spans;
	uint64_t free[MOST_OBJECTS / 64]; /* a bit for each object of the span */
	uint64_t cached[MOST_OBJECTS / 64];
};

/* Set the bits of the span's objects that are in caches. */
static void take_cached(struct adding *adding, const struct google_span *span)
{
	const struct google_tcmalloc *tc = adding->tc;
	const struct cached_object *cached = tc->cached.items;
	uint64_t bytes = tc->classes[span->class], objects = span_object_count(tc, span);
	size_t count = tc->cached.count;

	memset(adding->cached, 0, (objects + 63) / 64 * 8);
	for (size_t i = BISECT(j, 0, count, cached[j].address < span->start);
	     i < count && cached[i].address < span->start + objects * bytes; i++) {
		uint64_t number = (cached[i].address - span->start) / bytes;
		uint64_t bit = UINT64_C(1) << number % 64;

		if (cached[i].kind >= CACHE_TRANSFER)
			adding->free[number / 64] |= bit;
		else
			adding->cached[number / 64] |= bit & ~adding->free[number / 64];
	}
}

static struct error *add_objects(struct adding *adding, const struct google_span *span)
{
	struct google_tcmalloc *tc = adding->tc;
	struct span_bytes bytes;
	struct free_objects free = { .tc = tc,
				     .view = &adding->view,
				     .start = span->start,
				     .bytes = tc->classes[span->class],
				     .count = span_object_count(tc, span),
				     .bits = adding->free };

	memset(adding->free, 0, (free.count + 63) / 64 * 8);
	if (read_span(tc, &adding->spans, span->metadata, &bytes))
		read_free(&free, &bytes);
	if (free.is_wrong)
		heap_damage_note(&tc->lists, span->start);
	else if (free.is_absent)
		heap_damage_note(&tc->absent, span->start);
	else if (!are_all(&free, &bytes))
		heap_damage_note(&tc->counts, span->start);
	take_cached(adding, span);
	for (uint64_t i = 0; i * 64 < free.count; i++)
		adding->free[i] = ~(adding->free[i] | adding->cached[i]);
	return block_sink_add_row(adding->sink, span->start, free.bytes, adding->free,
				  adding->cached, free.count);
}

/* A sampled allocation is as large as it would be otherwise. */
static uint64_t large_bytes(struct adding *adding, const struct google_span *span)
{
	const struct google_tcmalloc *tc = adding->tc;
	struct google_sample sample;

	if (!google_read_sample(tc, &adding->view, span, &sample))
		return span->bytes;
	if (sample.bytes)
		return sample.bytes;
	for (unsigned int i = 1; i < MOST_CLASSES && tc->classes[i] > tc->classes[i - 1]; i++)
		if (tc->classes[i] >= sample.wanted)
			return MIN(tc->classes[i], span->bytes);
	return span->bytes;
}

static struct error *add_block(struct adding *adding, const struct google_span *span)
{
	struct block block = { span->start, span->bytes, span->is_free ? BLOCK_FREE : BLOCK_USED };

	if (span->class > 0 && !span->is_free)
		return add_objects(adding, span);
	if (!span->is_free)
		block.size = large_bytes(adding, span);
	return block_sink_add(adding->sink, block);
}

struct error *google_add_blocks(struct google_tcmalloc *tc, const struct heap_context *context,
				arena_number arena, struct block_sink *sink)
{
	_cleanup_(free) struct adding *adding = calloc(1, sizeof(*adding));

	TRY_MEMORY(adding);
	adding->tc = tc;
	adding->sink = sink;
	adding->view.image = adding->spans.image = context->image;
	for (size_t i = 0; i < tc->spans.count; i++) {
		const struct google_span *span = &tc->spans.items[i];

		TRY(block_sink_stretch(sink, span->start, span_end(span), arena));
		TRY(add_block(adding, span));
		if (i % SPANS_STEP == 0)
			TRY(progress_check(context->progress,
					   (uint64_t)SPANS_STEP << tc->page_shift));
	}
	return NULL;
}
