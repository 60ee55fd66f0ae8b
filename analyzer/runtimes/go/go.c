/*
 * Go's runtime: what its heap, the stacks of goroutines in it and its tables of pages are.
 *
 * runtime.mheap_, src/runtime/mheap.go and mpagealloc.go, of 64-bit machines, is found without
 * symbols: of the five tables that begin it, the room is always the same. What follows has other
 * offsets in each version, and is found by what it leads to.
 *
 *	mheap_	| 5 slices of summaries | 8,192 tables of chunks | ...
 *		| ranges in use: slice, bytes | ... | all spans: slice | ... | map of arenas | ...
 *	span	| 3 links | start | pages | ... | sweep, division, count | class, state | size of
 *elements arena	| ... | span of each page | ...		at most 64 MiB
 *
 * All that the heap ever had is in the ranges. Pages that no span in use has are free.
 */
#include "analyzer/base/array.h"
#include "analyzer/base/list.h"
#include "analyzer/base/macros.h"
#include "analyzer/base/sort.h"
#include "analyzer/heap/unsupported.h"
#include "analyzer/runtimes/go/profile.h"
#include "analyzer/runtimes/module_data.h"
#include "analyzer/runtimes/runtime.h"

#include <elf.h>
#include <stdlib.h>

#define ADDRESSES (UINT64_C(1) << 48) /* no heap is above */

enum {
	LEVELS = 5,
	FIRST_BITS = 14, /* of the room of the first summary; others have 3 more each */
	SLICE = 24,
	CHUNK_TABLES = 1 << 13,
	CHUNK_TABLE_SIZE = 1 << 20,
	REACH = 4 << 10, /* distance searched within mheap_ for one field behind another */
	MOST_RANGES = 1 << 12,
	MOST_SPANS = 1 << 24,
	MOST_TABLES = 1 << 14, /* looked at one by one: for 512 GiB of heap */
	CHECKED_SPANS = 16,
	PAGE_BITS = 13,
	RANGE_ALIGNMENT = 4 << 20,
	ARENA_BITS = 26,
	SPAN_START = 24,
	SPAN_PAGES = 32,
	SPAN_SIZE = 128, /* bytes read of it */
};
enum { STATE_IN_USE = 1, STATE_MANUAL = 2 };

static const char OBJECTS[] = "Go's heap: objects", STACKS[] = "Go's heap: stacks",
		  WORK[] = "Go's heap: of the collector", FREE[] = "Go's heap: free",
		  RESERVED[] = "Go's heap: reserved", TABLES[] = "Go's tables of pages";

struct slice {
	uint64_t start, count, room;
};

/* Offsets of the fields of a span; the size of its objects is 5 bytes behind its state. */
struct layout {
	size_t first, count, count_size, bits, state;
};

static const struct layout layouts[] = {
	{ 48, 56, sizeof(uint64_t), 72, 99 },  /* 1.14 to 1.20 */
	{ 48, 56, sizeof(uint64_t), 72, 107 }, /* 1.21 */
	{ 48, 50, sizeof(uint16_t), 64, 99 },  /* from 1.22 on */
};

/* A span of objects. */
struct span {
	struct memory_range range;
	uint64_t size;	/* of an object */
	uint64_t count; /* of objects */
	uint64_t first; /* all before are in use */
	uint64_t bits;	/* where the others have a bit if they are */
};

struct go {
	struct object_space space;
	uint64_t heap;			   /* mheap_, behind its lock */
	ARRAY(struct memory_range) in_use; /* by address */
	struct slice spans;
	const struct layout *layout; /* its offset in a span */
	uint64_t known, known_span;  /* a page that a span has */
	ARRAY(struct span) objects;
	size_t heap_ranges; /* the first ones, until all are sorted */
};

static bool read_slice(const struct image *image, uint64_t place, uint64_t most, struct slice *ret)
{
	return image_read(image, place, ret, sizeof(*ret)) && ret->start != 0 && ret->count > 0 &&
	       ret->count <= ret->room && ret->room <= most;
}

/* True if the word is the capacity of the first summary, and the others follow. */
static bool is_room(struct view *view, uint64_t place, uint64_t word, void *data)
{
	if (word != UINT64_C(1) << FIRST_BITS)
		return false;
	for (unsigned int i = 1; i < LEVELS; i++)
		if (!view_word(view, place + (uint64_t)i * SLICE, &word) ||
		    word != UINT64_C(1) << (FIRST_BITS + 3 * i))
			return false;
	return true;
}

/* Read what the slice at place has, if it is the one of ranges, and the bytes in them follow. */
static struct error *read_ranges(struct go *go, uint64_t place)
{
	uint64_t total, sum = 0, last = 0;
	struct memory_range range;
	struct slice slice;

	if (!read_slice(go->space.image, place, MOST_RANGES, &slice) ||
	    !image_read_u64(go->space.image, place + SLICE, &total))
		return NULL;
	for (uint64_t i = 0; i < slice.count; i++, last = range.end) {
		if (!image_read(go->space.image, slice.start + i * sizeof(range), &range,
				sizeof(range)) ||
		    range.start < last || range.end <= range.start || range.end > ADDRESSES ||
		    (range.start | range.end) % RANGE_ALIGNMENT != 0) {
			go->in_use.count = 0;
			return NULL;
		}
		TRY(array_append(&go->in_use, range));
		sum += range.end - range.start;
	}
	if (sum != total)
		go->in_use.count = 0;
	return NULL;
}

/* Read what a span has; false if it is none. */
static bool read_span(const struct go *go, uint64_t span, uint8_t bytes[static SPAN_SIZE],
		      struct memory_range *ret)
{
	uint64_t pages;
	size_t number;

	if (!image_read(go->space.image, span, bytes, SPAN_SIZE))
		return false;
	memcpy(&ret->start, bytes + SPAN_START, sizeof(ret->start));
	memcpy(&pages, bytes + SPAN_PAGES, sizeof(pages));
	number = LIST_ABOVE(go->in_use.items, go->in_use.count, end, ret->start);
	if (number == go->in_use.count || ret->start < go->in_use.items[number].start ||
	    ret->start % (1 << PAGE_BITS) != 0 || pages == 0 ||
	    pages > (go->in_use.items[number].end - ret->start) >> PAGE_BITS)
		return false;
	ret->end = ret->start + (pages << PAGE_BITS);
	return true;
}

static bool has_span(const struct go *go, uint64_t number, uint8_t bytes[static SPAN_SIZE],
		     struct memory_range *ret, uint64_t *ret_span)
{
	return image_read_u64(go->space.image, go->spans.start + number * sizeof(uint64_t),
			      ret_span) &&
	       read_span(go, *ret_span, bytes, ret);
}

/* A processor of Go keeps some in stock (mspancache): those were not used yet. */
static bool is_unused(const struct go *go, uint64_t span)
{
	uint64_t words[2];

	return image_read(go->space.image, span + SPAN_START, words, sizeof(words)) && !words[0] &&
	       !words[1];
}

/* One in eight may be damaged. */
static bool are_spans(struct go *go, uint64_t place)
{
	uint8_t bytes[SPAN_SIZE];
	struct memory_range range;
	uint64_t used = 0, wrong = 0, i;

	if (!read_slice(go->space.image, place, MOST_SPANS, &go->spans))
		return false;
	for (i = 0; i < go->spans.count && i < CHECKED_SPANS; i++) {
		uint64_t span = 0;

		if (has_span(go, i, bytes, &range, &span))
			used++;
		else if (!is_unused(go, span))
			wrong++;
	}
	return used > i / 8 && wrong <= i / 8;
}

static bool read_objects(const struct layout *layout, const uint8_t bytes[static SPAN_SIZE],
			 struct memory_range range, struct span *ret)
{
	*ret = (struct span){ .range = range };
	memcpy(&ret->size, bytes + layout->state + 5, sizeof(ret->size));
	memcpy(&ret->count, bytes + layout->count, layout->count_size);
	memcpy(&ret->first, bytes + layout->first, layout->count_size);
	memcpy(&ret->bits, bytes + layout->bits, sizeof(ret->bits));
	return bytes[layout->state] == STATE_IN_USE && ret->size > 0 && ret->count > 0 &&
	       ret->first <= ret->count && ret->bits != 0 &&
	       ret->count <= (range.end - range.start) / ret->size;
}

/* The layout that most spans have. False: no span has any. */
static bool find_layout(struct go *go)
{
	size_t most = 0;

	for (size_t i = 0; i < COUNT_OF(layouts); i++) {
		size_t found = 0;

		for (uint64_t j = 0; j < go->spans.count; j++) {
			uint8_t bytes[SPAN_SIZE];
			struct memory_range range;
			uint64_t address;
			struct span span;

			found += has_span(go, j, bytes, &range, &address) &&
				 read_objects(&layouts[i], bytes, range, &span);
		}
		if (found > most)
			go->layout = &layouts[i];
		most = found > most ? found : most;
	}
	return most > 0;
}

/* *ret_place: where the spans are. */
static bool find_spans(struct go *go, uint64_t place, uint64_t *ret_place)
{
	for (uint64_t end = place + REACH; place < end; place += sizeof(uint64_t)) {
		if (!are_spans(go, place))
			continue;
		*ret_place = place;
		return find_layout(go);
	}
	return false;
}

/* Add a span to those of objects, if it is one; what it is used for, NULL: nothing. */
static struct error *add_span(struct go *go, const uint8_t bytes[static SPAN_SIZE],
			      struct memory_range range, const char **ret)
{
	struct span span;
	bool has_objects = read_objects(go->layout, bytes, range, &span);

	switch (bytes[go->layout->state]) {
	case STATE_IN_USE:
		*ret = OBJECTS;
		return has_objects ? array_append(&go->objects, span) : NULL;
	case STATE_MANUAL:
		*ret = span.size ? STACKS : WORK;
		return NULL;
	default:
		*ret = NULL;
		return NULL;
	}
}

DEFINE_COMPARE(compare_ranges, struct named_range, ASCENDING(range.start))
DEFINE_COMPARE(compare_objects, struct span, ASCENDING(range.start))

/* Add a range of the heap, behind all others of it. */
static struct error *add(struct go *go, uint64_t start, uint64_t end, const char *name)
{
	size_t count = go->space.ranges.count;

	if (start >= end)
		return NULL;
	if (count > 0 && go->space.ranges.items[count - 1].range.end == start &&
	    go->space.ranges.items[count - 1].name == name) {
		go->space.ranges.items[count - 1].range.end = end;
		return NULL;
	}
	return array_append(&go->space.ranges, (struct named_range){ { start, end }, name });
}

/* Divide each range in use among the spans, which are sorted, and what is free. */
static struct error *divide(struct go *go, const struct named_range *spans, size_t count)
{
	size_t i = 0;

	array_for_each(whole, &go->in_use) {
		uint64_t at = whole->start;

		for (; i < count && spans[i].range.start < whole->end; i++) {
			if (spans[i].range.start < at)
				continue;
			TRY(add(go, at, spans[i].range.start, FREE));
			TRY(add(go, spans[i].range.start, spans[i].range.end, spans[i].name));
			at = spans[i].range.end;
		}
		TRY(add(go, at, whole->end, FREE));
	}
	return NULL;
}

static struct error *add_heap(struct go *go)
{
	_cleanup_(array_release) ARRAY(struct named_range)
		spans = { .memory.account = go->space.ranges.memory.account };

	for (uint64_t i = 0; i < go->spans.count; i++) {
		uint8_t bytes[SPAN_SIZE];
		struct named_range span;
		uint64_t address;

		if (!has_span(go, i, bytes, &span.range, &address))
			continue;
		TRY(add_span(go, bytes, span.range, &span.name));
		if (!span.name)
			continue;
		go->known = span.range.start;
		go->known_span = address;
		TRY(array_append(&spans, span));
	}
	array_sort(&spans, compare_ranges);
	array_sort(&go->objects, compare_objects);
	TRY(divide(go, spans.items, spans.count));
	go->heap_ranges = go->space.ranges.count;
	return NULL;
}

/* Add memory of which nothing was added yet; that of the heap was first. */
static struct error *add_other(struct go *go, uint64_t start, uint64_t end, const char *name)
{
	size_t first = LIST_ABOVE(go->space.ranges.items, go->heap_ranges, range.end, start);

	if (start >= end || go->space.ranges.count - go->heap_ranges == MOST_TABLES ||
	    (first < go->heap_ranges && go->space.ranges.items[first].range.start < end))
		return NULL;
	for (size_t i = go->heap_ranges; i < go->space.ranges.count; i++)
		if (start < go->space.ranges.items[i].range.end &&
		    end > go->space.ranges.items[i].range.start)
			return NULL;
	return array_append(&go->space.ranges, (struct named_range){ { start, end }, name });
}

static struct error *add_table(struct go *go, uint64_t start, uint64_t size)
{
	return add_other(go, start, start + size, TABLES);
}

/* The place in the arenas that a map has where the arena of address is. */
static uint64_t map_place(const struct go *go, uint64_t map, uint64_t address)
{
	/* arenaBaseOffset: negative addresses come first on x86-64. */
	const uint64_t lowest = go->space.image->arch->machine == EM_X86_64 ? ADDRESSES / 2 : 0;

	return map + ((address + lowest) >> ARENA_BITS) * sizeof(uint64_t);
}

/*
 * The offset of an arena's table of spans: up to 1.21, bits for its words precede it. 0: not found.
 */
static uint64_t end_of_arena(const struct go *go, uint64_t arena)
{
	static const uint64_t places[] = { 0, (1 << 20) + (1 << 14), 2 << 20 };
	const uint64_t size = UINT64_C(1) << (ARENA_BITS - PAGE_BITS + 3);
	uint64_t page = (go->known % (UINT64_C(1) << ARENA_BITS)) >> PAGE_BITS, span;

	for (size_t i = 0; i < COUNT_OF(places); i++)
		if (image_read_u64(go->space.image, arena + places[i] + page * sizeof(span),
				   &span) &&
		    span == go->known_span)
			return places[i] + size;
	return 0;
}

/* Add the map of arenas and what it leads to, if the word at place leads to it. */
static struct error *add_arenas(struct go *go, uint64_t place, bool *ret_found)
{
	const uint64_t step = UINT64_C(1) << ARENA_BITS;
	uint64_t map, arena, end;

	*ret_found = false;
	if (!image_read_u64(go->space.image, place, &map) ||
	    !image_read_u64(go->space.image, map_place(go, map, go->known), &arena))
		return NULL;
	end = end_of_arena(go, arena);
	if (end == 0)
		return NULL;
	*ret_found = true;
	TRY(add_table(go, map, (ADDRESSES >> ARENA_BITS) * sizeof(uint64_t)));
	array_for_each(range, &go->in_use)
		for (uint64_t at = range->start & ~(step - 1); at < range->end; at += step)
			if (image_read_u64(go->space.image, map_place(go, map, at), &arena) &&
			    arena) {
				TRY(add_table(go, arena, end));
				TRY(add_other(go, range->end, at + step, RESERVED));
			}
	return NULL;
}

static struct error *add_tables(struct go *go, uint64_t place)
{
	struct slice slice;
	bool found = false;

	for (uint64_t i = 0; i < LEVELS; i++)
		if (image_read(go->space.image, go->heap + i * SLICE, &slice, sizeof(slice)))
			TRY(add_table(go, slice.start, slice.room * sizeof(uint64_t)));
	for (uint64_t i = 0; i < CHUNK_TABLES; i++) {
		uint64_t table;

		if (image_read_u64(go->space.image,
				   go->heap + (uint64_t)LEVELS * SLICE + i * sizeof(table),
				   &table) &&
		    table)
			TRY(add_table(go, table, CHUNK_TABLE_SIZE));
	}
	TRY(add_table(go, go->spans.start, go->spans.room * sizeof(uint64_t)));
	for (uint64_t at = place; at < place + REACH && !found; at += sizeof(uint64_t))
		TRY(add_arenas(go, at, &found));
	return NULL;
}

static struct error *find_all(struct go *go)
{
	uint64_t place = go->heap + (uint64_t)LEVELS * SLICE + CHUNK_TABLES * sizeof(uint64_t);
	uint64_t end = place + REACH;

	for (; place < end && go->in_use.count == 0; place += sizeof(uint64_t))
		TRY(read_ranges(go, place));
	if (go->in_use.count == 0 || !find_spans(go, place, &place))
		return NULL;
	TRY(add_heap(go));
	TRY(add_tables(go, place));
	array_sort(&go->space.ranges, compare_ranges);
	return NULL;
}

static void release(struct object_space *space)
{
	struct go *go = (struct go *)space;

	arrays_release(&go->in_use, &go->objects);
}

static struct error *open_space(struct object_space *space, bool *ret)
{
	struct go *go = (struct go *)space;

	arrays_use(space->account, &go->in_use, &go->objects);
	list_for_each(module, space->program->modules, space->program->module_count) {
		uint64_t room = module_is_in_go(space->image, module)
					? module_data_search_in(space->image, module, is_room, NULL)
					: 0;

		if (!room || *ret)
			continue;
		release(space);
		space->ranges.count = 0;
		go->heap = room - 2 * sizeof(uint64_t);
		TRY(find_all(go));
		*ret = go->space.ranges.count > 0;
	}
	return NULL;
}

/* True if the place in a span has no object, or one that the last collection freed. */
static bool is_free(const struct go *go, const struct span *span, uint64_t place)
{
	uint64_t number = (place - span->range.start) / span->size;
	uint8_t bits;

	if (number >= span->count)
		return true;
	return number >= span->first &&
	       image_read(go->space.image, span->bits + number / 8, &bits, 1) &&
	       !(bits >> number % 8 & 1);
}

/* Objects that nothing refers to any more are in use until the next collection. */
static bool is_link(const struct object_space *space, allocation_id source, allocation_id target,
		    uint64_t word, uint64_t place)
{
	const struct go *go = (const struct go *)space;
	size_t number;

	if (source != NO_ALLOCATION)
		return false;
	number = LIST_ABOVE(go->space.ranges.items, go->space.ranges.count, range.end, place);
	if (number == go->space.ranges.count || place < go->space.ranges.items[number].range.start)
		return false;
	if (go->space.ranges.items[number].name == FREE)
		return true;
	number = LIST_ABOVE(go->objects.items, go->objects.count, range.end, place);
	return number < go->objects.count && place >= go->objects.items[number].range.start &&
	       is_free(go, &go->objects.items[number], place);
}

DECLARE_SLOTS(runtime_calls, go, find_exception);

const struct runtime runtime_go = {
	.name = "go",
	.own_code = "runtime.",
	.noting = &go_noting,
	.calls = &(const struct runtime_calls){ .find_exception = go_find_exception },
	.space_size = sizeof(struct go),
	.open = open_space,
	.release = release,
	.is_link = is_link,
};
