#include "analyzer/base/budget.h"
#include "analyzer/base/keep.h"
#include "analyzer/base/list.h"
#include "analyzer/runtimes/rust/rust.h"

#include "analyzer/base/macros.h"
#include "analyzer/base/sort.h"
#include "analyzer/heap/word_filter.h"

#include <string.h>

enum {
	EMPTY = 0xff,
	REMOVED = 0x80,
	LEAST_ELEMENTS = 4, /* places in the smallest table */
	MOST_BESIDE = 3,    /* words between the one for the control bytes and the last */
	MOST_READ = 16,	    /* times the size of the core, of control bytes */
};

/* How many control bytes are compared at once; by processor and release. */
static const uint64_t groups[] = { 16, 8 };

/* Offsets of mask, room left and count, in words from the address of the control bytes. */
static const struct {
	int8_t mask, left, count;
} layouts[] = { { 1, 2, 3 }, { -1, 1, 2 } };

struct table_search {
	const struct runtime_context *context;
	struct rust_tables *tables;
	struct budget budget; /* bytes that may still be read */
	size_t hint;
};

/* The four words of a table. */
struct header {
	uint64_t control, places, left, count;
};

/* So many elements go into it before it grows. */
static uint64_t capacity_of(uint64_t places)
{
	return places <= 8 ? places - 1 : places / 8 * 7;
}

static bool is_header(const struct header *header)
{
	return header->places >= LEAST_ELEMENTS && (header->places & (header->places - 1)) == 0 &&
	       header->left <= capacity_of(header->places) &&
	       header->count <= capacity_of(header->places) - header->left;
}

/* True if that many elements of one size, and control bytes, fill the allocation. */
static bool is_filled(const struct table_search *search, struct memory_range range,
		      const struct header *header, uint64_t group)
{
	uint64_t size = range.end - range.start, before = header->control - range.start;
	uint64_t element = before / header->places;

	return header->places + group <= size && before <= size - header->places - group &&
	       before % group == 0 && element > 0 &&
	       (element * header->places + group - 1) / group * group == before &&
	       allocation_fits(search->context->index, range, before + header->places + group,
			       false);
}

/* The first bytes come again at the end, those between are of no place. */
static bool is_repeated(const uint8_t *bytes, uint64_t places, uint64_t group)
{
	uint64_t repeated = places < group ? places : group;

	for (uint64_t i = places; i < group; i++)
		if (bytes[i] != EMPTY)
			return false;
	return memcmp(bytes, bytes + MAX(places, group), repeated) == 0;
}

/*
 * True if the control bytes have as many elements as the header says, and as many removed ones as
 * it lacks room for.
 */
static bool is_counted(const uint8_t *bytes, const struct header *header)
{
	uint64_t count = 0, removed = 0;

	for (uint64_t i = 0; i < header->places; i++) {
		count += bytes[i] < REMOVED;
		removed += bytes[i] == REMOVED;
		if (bytes[i] > REMOVED && bytes[i] != EMPTY)
			return false;
	}
	return count == header->count &&
	       count + removed + header->left == capacity_of(header->places);
}

static bool is_table(struct table_search *search, struct memory_range range,
		     const struct header *header)
{
	uint64_t known;
	const uint8_t *bytes = image_bytes(search->context->image, header->control, &known);

	for (size_t i = 0; bytes && i < COUNT_OF(groups); i++) {
		if (!is_filled(search, range, header, groups[i]) ||
		    known < header->places + groups[i] ||
		    !is_repeated(bytes, header->places, groups[i]))
			continue;
		if (budget_take_many(&search->budget, header->places) && is_counted(bytes, header))
			return true;
	}
	return false;
}

/*
 * A header that was moved leaves a copy behind. Those in free memory do not count, and those on a
 * stack less than others, the lower the less.
 */
static struct error *add_table(struct table_search *search, allocation_id id,
			       const struct header *header, uint64_t address)
{
	const struct allocation_index *index = search->context->index;
	allocation_id holder = allocation_find(index, address);
	struct rust_table table = {
		.id = id,
		.count = header->count,
		.capacity = header->count + header->left,
		.header = address,
		.rank = holder == NO_ALLOCATION ? UINT64_MAX - address : address,
	};

	if (holder != NO_ALLOCATION && allocation_state(index, holder) != BLOCK_USED)
		return NULL;
	return array_append(&search->tables->list, table);
}

/* The word at address, the at-th of count, leads to the middle of an allocation. */
static struct error *look_at(struct table_search *search, const uint8_t *words, uint64_t at,
			     uint64_t count, uint64_t address)
{
	const struct allocation_index *index = search->context->index;
	uint64_t around[2 * MOST_BESIDE + 1] = { 0 };

	for (int i = -MOST_BESIDE; i <= MOST_BESIDE; i++)
		if (at + (uint64_t)i < count)
			memcpy(&around[i + MOST_BESIDE], words + 8 * (at + (uint64_t)i), 8);
	for (size_t i = 0; i < COUNT_OF(layouts); i++) {
		const uint64_t *word = &around[MOST_BESIDE];
		struct header header = { word[0], word[layouts[i].mask] + 1, word[layouts[i].left],
					 word[layouts[i].count] };
		struct memory_range range;
		allocation_id id;

		if (!is_header(&header))
			continue;
		id = allocation_find(index, header.control);
		if (id == NO_ALLOCATION || allocation_state(index, id) != BLOCK_USED)
			continue;
		range = allocation_range_near(index, id, &search->hint);
		if (is_table(search, range, &header))
			return add_table(search, id, &header,
					 address + (uint64_t)(layouts[i].mask < 0 ? -8 : 0));
	}
	return NULL;
}

static struct error *search_piece(struct table_search *search, const struct word_filter *filter,
				  uint64_t address, const uint8_t *bytes, uint64_t count)
{
	for (uint64_t i = 0; i < count; i += FILTER_WORDS) {
		uint64_t left = count - i;
		uint64_t mask = word_filter_mask(filter, bytes + 8 * i, MIN(left, FILTER_WORDS));

		for (; mask; mask &= mask - 1) {
			uint64_t at = i + (uint64_t)__builtin_ctzll(mask);

			TRY(look_at(search, bytes, at, count, address + 8 * at));
		}
	}
	return NULL;
}

DEFINE_COMPARE(compare_tables, struct rust_table, ASCENDING(id), ASCENDING(rank))

/* All that may hold a header: what can be written, on the heap or not. */
struct error *rust_find_tables(const struct runtime_context *context, struct rust_tables *ret)
{
	const struct image *image = context->image;
	const struct word_filter filter = word_filter_for(allocation_bounds(context->index), 8);
	struct table_search search = { context, ret, { image->size * MOST_READ }, 0 };

	list_for_each(region, image->regions, image->region_count) {
		uint64_t size;
		const uint8_t *bytes = image_bytes(image, region->start, &size);

		if (!bytes || !(region->rights & RIGHT_WRITE))
			continue;
		size = MIN(size, region->end - region->start);
		TRY(search_piece(&search, &filter, region->start, bytes, size / 8));
	}
	if (ret->list.count)
		SORT(ret->list.items, ret->list.count, compare_tables);
	array_keep(&ret->list, table, last, !last || table->id != last->id);
	return NULL;
}

const struct rust_table *rust_table_of(const struct rust_tables *tables, allocation_id id)
{
	size_t first = 0, end = tables->list.count;

	while (first < end) {
		size_t middle = first + (end - first) / 2;

		if (tables->list.items[middle].id < id)
			first = middle + 1;
		else
			end = middle;
	}
	return first < tables->list.count && tables->list.items[first].id == id
		       ? &tables->list.items[first]
		       : NULL;
}
