/*
 * Free objects: for each kind and each size there is a list, linked by the first word of objects;
 * each thread has short ones of its own. GC_arrays has the heads of the first four kinds in a row,
 * followed by size_map, the granules that an object of so many bytes takes. Its numbers are the
 *same in all versions, so it is found by them.
 *
 *	objfreelist  aobjfreelist  uobjfreelist  auobjfreelist  size_map
 *	| 129 heads  | 129 heads   | 129 heads   | 129 heads    | 1 1 1 ... 2 2
 */
#include "allocators/boehm/boehm.h"

#include <inttypes.h>

enum {
	MOST_ARRAYS = 4, /* before gcj_freelists, by version */
	LEAST_ARRAYS = 2,
	LEAST_FILLED = 20, /* entries of an array that are never 0 */

	/* Words of a GC_Thread_Rep, by version. */
	SMALLEST_THREAD = 64,
	LARGEST_THREAD = 512,
	MOST_THREADS = 1 << 16,

	PROGRESS_STEP = 1 << 14, /* objects of a list */
	CHUNK = 1 << 10,	 /* blocks */
};

static const int ANY_KIND = -1;

/* TINY_FREELISTS: of a thread, for a kind. */
static uint64_t tiny_lists(const struct boehm_geometry *geometry)
{
	return geometry->word == sizeof(uint32_t) ? 33 : 25;
}

struct search {
	ARRAY(int32_t) links; /* see note_links() */
	struct collector *collector;
	const struct heap_context *context;
	struct view view;
	size_t hint;
	uint64_t steps;
	bool interrupted;
	struct error *error;
};

/* Show progress, at each object of a list; false: the user interrupts. */
static bool goes_on(struct search *search)
{
	if (++search->steps % PROGRESS_STEP == 0 && !progress_step(search->context->progress, 0))
		search->interrupted = true;
	return !search->interrupted;
}

bool boehm_is_size_map(struct view *view, const struct boehm_geometry *geometry, uint64_t address,
		       bool *ret_extra)
{
	const uint64_t size = geometry->word, unit = granule(geometry);
	uint64_t word, extra;

	if (!view_word(view, address, &word) || word != 1 ||
	    !view_word(view, address + size * unit, &word))
		return false;
	extra = word == 2;
	for (uint64_t i = 1; i + extra <= (tiny_lists(geometry) - 1) * unit; i++)
		if (!view_word(view, address + size * i, &word) ||
		    word != (i + extra + unit - 1) / unit)
			return false;
	*ret_extra = extra;
	return true;
}

static struct error *look_for_map(void *data, uint64_t where, uint64_t word)
{
	struct search *search = data;
	struct collector *collector = search->collector;

	if (word == 1 && !collector->size_map &&
	    boehm_is_size_map(&search->view, &collector->geometry, where, &collector->extra_byte))
		collector->size_map = where;
	return NULL;
}

/* The size of objects on the list of that number. */
static uint64_t list_size(const struct collector *collector, uint64_t number)
{
	return granule(&collector->geometry) * (number ? number : 1);
}

/* True if an object that starts at address may be on such a list. */
static bool fits_list(struct search *search, uint64_t address, uint64_t size, int kind,
		      uint64_t *ret_number)
{
	const struct boehm_block *block =
		boehm_find_object(search->collector, address, &search->hint, ret_number);

	return block && block->size == size && (kind == ANY_KIND || block->kind == kind);
}

/* The kinds in the order of their lists in GC_arrays. */
static const int list_kinds[] = { KIND_NORMAL, KIND_ATOMIC, KIND_UNCOLLECTABLE,
				  KIND_ATOMIC_UNCOLLECTABLE };

/* Count the heads at address that lead to objects of their list, and those that do not. */
static void count_heads(struct search *search, uint64_t address, size_t *ret_good, size_t *ret_bad)
{
	uint64_t heads = list_heads(search->collector);

	*ret_good = *ret_bad = 0;
	for (uint64_t i = 0; i < 4 * heads; i++) {
		uint64_t head = 0, number;
		bool known = view_word(&search->view, address + words(search->collector, i), &head);

		if (known && head == 0)
			continue;
		if (known && fits_list(search, head, list_size(search->collector, i % heads),
				       list_kinds[i / heads], &number))
			(*ret_good)++;
		else
			(*ret_bad)++;
	}
}

/* Find the heads: versions differ in the variables between them and size_map. */
static void find_heads(struct search *search)
{
	static const uint64_t gaps[] = { 0, 2, 3 }; /* words */
	struct collector *collector = search->collector;
	uint64_t size = 4 * list_heads(collector);
	size_t best_good = 0, best_bad = SIZE_MAX;

	for (size_t i = 0; i < COUNT_OF(gaps); i++) {
		uint64_t address = collector->size_map - words(collector, gaps[i] + size);
		size_t good, bad;

		count_heads(search, address, &good, &bad);
		if (bad > best_bad || (bad == best_bad && good <= best_good))
			continue;
		collector->freelists = address;
		best_good = good;
		best_bad = bad;
	}
	if (best_bad > best_good / 4 + 1)
		collector->freelists = 0;
}

/* The heads of a kind that GC_arrays has. */
static uint64_t heads_of(const struct collector *collector, int kind)
{
	uint64_t i = 0;

	while (list_kinds[i] != kind)
		i++;
	return collector->freelists + words(collector, i * list_heads(collector));
}

/* GC_obj_kinds begins with the heads of each kind. */
static struct error *look_for_kinds(void *data, uint64_t where, uint64_t word)
{
	static const uint64_t sizes[] = { 48, 32, 40, 0 }, narrow[] = { 28, 20, 24, 0 };
	struct search *search = data;
	struct collector *collector = search->collector;
	const bool is_narrow = collector->geometry.word == sizeof(uint32_t);
	uint64_t normal, uncollectable;

	if (collector->kinds || word != heads_of(collector, KIND_ATOMIC))
		return NULL;
	for (const uint64_t *size = is_narrow ? narrow : sizes; *size; size++) {
		if (!view_word(&search->view, where + *size, &normal) ||
		    normal != heads_of(collector, KIND_NORMAL) ||
		    !view_word(&search->view, where + 2 * *size, &uncollectable) ||
		    uncollectable != heads_of(collector, KIND_UNCOLLECTABLE))
			continue;
		collector->kinds = where;
		collector->kind_size = *size;
		return NULL;
	}
	return NULL;
}

/* The heads of a kind that the program made are a pointer-free object. */
static void count_kinds(struct search *search)
{
	struct collector *collector = search->collector;

	if (!collector->kinds)
		return;
	for (collector->kind_count = KIND_FIRST_OWN; collector->kind_count < MOST_KINDS;
	     collector->kind_count++) {
		const struct boehm_block *block;
		uint64_t heads, number;

		if (!view_word(&search->view, kind_entry(collector, collector->kind_count), &heads))
			return;
		block = boehm_find_object(collector, heads, &search->hint, &number);
		if (!block || block->kind != KIND_ATOMIC ||
		    block->size < words(collector, list_heads(collector)))
			return;
	}
}

/*
 * In a dump that does not fit into memory, following lists would read a page of the dump for each
 * object that the program freed, in any order. So all links are noted first, in order of address.
 *
 * A link is the distance of the next object in granules, or one of these: it must be read from the
 * dump, or it is 0.
 */
static const int32_t LINK_UNKNOWN = 0, LINK_END = INT32_MIN;

static int32_t make_link(int64_t unit, uint64_t object, uint64_t next)
{
	int64_t distance = (int64_t)(next - object);

	if (next == 0)
		return LINK_END;
	if (distance % unit != 0 || distance / unit <= INT32_MIN || distance / unit > INT32_MAX)
		return LINK_UNKNOWN;
	return (int32_t)(distance / unit);
}

static void note_block(struct search *search, const struct boehm_block *block)
{
	const int64_t unit = granule(&search->collector->geometry);

	for (uint64_t i = 0; i < object_slots(search->collector, block); i++) {
		uint64_t object = block->start + i * block->size, next;

		if (view_word(&search->view, object, &next))
			search->links.items[block->first + i] = make_link(unit, object, next);
	}
}

/* Note the links of all small objects; none, if the dump fits into memory. */
static struct error *note_links(struct search *search)
{
	const struct collector *collector = search->collector;
	const struct boehm_block *blocks = collector->blocks.items;
	const struct image *image = search->context->image;

	/* A damaged heap may seem to have more objects than there is room for. */
	if (image_fits(image) ||
	    collector->object_count > image->size / granule(&collector->geometry))
		return NULL;
	TRY(array_resize(&search->links, collector->object_count));
	/* From the last, because what comes next begins with the first. */
	for (size_t end = collector->blocks.count, start; end > 0; end = start) {
		start = end > CHUNK ? end - CHUNK : 0;
		for (size_t i = start; i < end; i++)
			if (is_small(collector, &blocks[i]))
				note_block(search, &blocks[i]);
		image_release(image, blocks[start].start, block_end(collector, &blocks[end - 1]));
		TRY(progress_check(search->context->progress, 0));
	}
	return NULL;
}

/* The first word of the object; false if it is not in the dump. */
static bool follow_link(struct search *search, uint64_t object, uint64_t number, uint64_t *ret)
{
	int32_t link = search->links.count ? search->links.items[number] : LINK_UNKNOWN;

	if (link == LINK_UNKNOWN)
		return view_word(&search->view, object, ret);
	*ret = link == LINK_END
		       ? 0
		       : object + (uint64_t)((int64_t)link * granule(&search->collector->geometry));
	return true;
}

/*
 * Put the objects of a list into set. One that is on a list already ends it: it is a ring, or two
 * lists have run together.
 */
static void walk_list(struct search *search, uint64_t head, uint64_t size, int kind,
		      struct bitmap *set)
{
	struct collector *collector = search->collector;
	uint64_t object = head, number;

	while (object && goes_on(search)) {
		if (!fits_list(search, object, size, kind, &number)) {
			if (collector->broken_lists++ == 0)
				findings_add(
					search->context->findings, FINDING_INCOMPLETE,
					"a list of free objects of size %" PRIu64
					" of the collector leads to %#" PRIx64
					", where none is: free ones behind it may count as used",
					size, object);
			return;
		}
		if (bitmap_get(&collector->listed, number) ||
		    bitmap_get(&collector->cached, number))
			return;
		bitmap_set(set, number);
		if (!follow_link(search, object, number, &object))
			return;
	}
}

static void walk_heads(struct search *search, uint64_t heads, int kind)
{
	for (uint64_t i = 0; i < list_heads(search->collector); i++) {
		uint64_t head;

		if (view_word(&search->view, heads + words(search->collector, i), &head))
			walk_list(search, head, list_size(search->collector, i), kind,
				  &search->collector->listed);
	}
}

static void walk_kinds(struct search *search)
{
	struct collector *collector = search->collector;

	for (size_t i = 0; i < 4; i++)
		walk_heads(search, heads_of(collector, list_kinds[i]), list_kinds[i]);
	for (size_t kind = KIND_FIRST_OWN; kind < collector->kind_count; kind++) {
		uint64_t heads;

		if (view_word(&search->view, kind_entry(collector, kind), &heads))
			walk_heads(search, heads, (int)kind);
	}
}

/* A small number in place of a thread's list counts allocations from the common lists. */
static bool is_counter(const struct collector *collector, uint64_t word)
{
	return word < block_bytes(collector);
}

/* True if the heads of a thread's lists can be at address. */
static bool is_thread_array(struct search *search, uint64_t address)
{
	size_t filled = 0, heads = 0;

	for (uint64_t i = 0; i < tiny_lists(&search->collector->geometry); i++) {
		uint64_t word, number;

		if (!view_word(&search->view, address + words(search->collector, i), &word))
			return false;
		filled += word != 0;
		if (is_counter(search->collector, word))
			continue;
		if (!fits_list(search, word, list_size(search->collector, i), ANY_KIND, &number))
			return false;
		heads++;
	}
	return filled >= LEAST_FILLED || heads >= 3;
}

static void walk_thread_array(struct search *search, uint64_t address)
{
	for (uint64_t i = 0; i < tiny_lists(&search->collector->geometry); i++) {
		uint64_t word, number;

		if (view_word(&search->view, address + words(search->collector, i), &word) &&
		    !is_counter(search->collector, word) &&
		    fits_list(search, word, list_size(search->collector, i), ANY_KIND, &number))
			walk_list(search, word, list_size(search->collector, i), ANY_KIND,
				  &search->collector->cached);
	}
}

/*
 * Walk a thread's lists if gcj_freelists is at address: its first entry is all ones, and the arrays
 * of other kinds are before it.
 */
static bool walk_thread(struct search *search, uint64_t address)
{
	const uint64_t size = words(search->collector, tiny_lists(&search->collector->geometry));
	uint64_t arrays = 0;

	while (arrays < MOST_ARRAYS && is_thread_array(search, address - (arrays + 1) * size))
		arrays++;
	if (arrays < LEAST_ARRAYS)
		return false;
	for (uint64_t i = 1; i <= arrays; i++)
		walk_thread_array(search, address - i * size);
	walk_thread_array(search, address);
	/* 7.4 with disclaim notifiers has one more behind. */
	if (is_thread_array(search, address + size))
		walk_thread_array(search, address + size);
	if (!search->error)
		search->error = array_append(
			&search->collector->thread_lists,
			(struct memory_range){ address - arrays * size, address + 2 * size });
	return true;
}

/* Look for a thread's lists in an object that may be a GC_Thread_Rep. */
static bool look_into(struct search *search, uint64_t object, uint64_t size)
{
	const unsigned int step = search->collector->geometry.word;

	for (uint64_t offset = 0; offset < size; offset += step) {
		uint64_t word;

		if (view_word(&search->view, object + offset, &word) &&
		    word == complement(search->collector, 0) &&
		    walk_thread(search, object + offset))
			return true;
	}
	return false;
}

/*
 * The variables hold the first thread, and GC_threads, with others: objects linked by their first
 * word.
 */
static struct error *look_for_threads(void *data, uint64_t where, uint64_t word)
{
	struct search *search = data;
	struct collector *collector = search->collector;

	if (word == complement(collector, 0)) {
		walk_thread(search, where);
		return NULL;
	}
	while (collector->threads.count < MOST_THREADS) {
		uint64_t number;
		const struct boehm_block *block =
			boehm_find_object(collector, word, &search->hint, &number);

		if (!block || block->kind != KIND_NORMAL ||
		    block->size < words(collector, SMALLEST_THREAD) ||
		    block->size > words(collector, LARGEST_THREAD) ||
		    !look_into(search, word, block->size))
			return NULL;
		TRY(array_append(&collector->threads, word));
		if (!view_word(&search->view, word, &word))
			return NULL;
	}
	return NULL;
}

static struct error *walk_lists(struct search *search)
{
	TRY(note_links(search));
	walk_kinds(search);
	TRY(boehm_visit_own_data(search->collector, search->context->image, look_for_threads,
				 search));
	if (search->error)
		return search->error;
	return search->interrupted ? error_create(ERROR_INTERRUPTED, "interrupted") : NULL;
}

struct error *boehm_read_lists(struct collector *collector, const struct heap_context *context)
{
	_cleanup_(array_release) struct search search = {
		.collector = collector,
		.context = context,
		.view = { context->image },
		.links = { .memory.account = context->account },
	};

	TRY(bitmap_init(&collector->listed, collector->object_count, context->account));
	TRY(bitmap_init(&collector->cached, collector->object_count, context->account));
	TRY(boehm_visit_own_data(collector, context->image, look_for_map, &search));
	if (collector->size_map)
		find_heads(&search);
	if (!collector->freelists) {
		findings_add(context->findings, FINDING_INCOMPLETE,
			     "the collector's lists of free objects were not found in %#" PRIx64
			     "-%#" PRIx64 ": free ones count as used",
			     collector->start, collector->end);
		return NULL;
	}
	TRY(boehm_visit_own_data(collector, context->image, look_for_kinds, &search));
	count_kinds(&search);
	return walk_lists(&search);
}
