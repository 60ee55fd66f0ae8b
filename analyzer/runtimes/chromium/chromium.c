/*
 * V8 and Blink in Chromium and in what is made of it: whose memory is whose, and what holds
 * allocations for them.
 *
 * Both have objects in cages of 4 GiB, which refer to each other by 4 bytes. What is outside of its
 * cage an object has by a number in a table (src/sandbox/external-pointer-table.h,
 * trusted-pointer-table.h, code-pointer-table.h, cppheap-pointer-table.h of V8). A table is pieces
 * of 64 KiB, and its first one can only be read. A word is:
 *
 *	| tag | address |	of an allocation, or of an object of V8, whose lowest bit is set
 *	| address | tag |	of an object of Blink, or of code in V8's heap
 *
 * So references from Blink and V8 to allocations are addresses but for the tags.
 */
#include "allocators/partition_alloc/partition_alloc.h"
#include "analyzer/base/keep.h"
#include "analyzer/base/sort.h"
#include "analyzer/runtimes/runtime.h"

enum {
	WORD = 8,
	TAG_BITS = 16,
	PIECE = 64 << 10,
	PIECE_WORDS = PIECE / WORD,
	MOST_CAGES = 16,
	OBJECT = 1, /* the lowest bit of an address of V8's */
};

static const uint64_t CAGE = UINT64_C(1) << 32, ADDRESS = (UINT64_C(1) << 48) - 1;

struct cage {
	uint64_t start;
	bool has_objects; /* of V8, as addresses say */
};

struct search {
	struct object_space *space;
	struct cage cages[MOST_CAGES];
	size_t cage_count;
};

static bool is_memory(const struct search *search, uint64_t address)
{
	const struct region *region = image_find(search->space->image, address);

	return region && region->rights;
}

/* Only memory that is no allocation's and no file's is a cage. */
static void note_cage(struct search *search, uint64_t address, bool is_object)
{
	const struct object_space *space = search->space;
	uint64_t start = address & -CAGE;
	size_t i = 0;

	if (allocation_find(space->index, address) != NO_ALLOCATION ||
	    program_find_module(space->program, address))
		return;
	while (i < search->cage_count && search->cages[i].start != start)
		i++;
	if (i == MOST_CAGES)
		return;
	if (i == search->cage_count)
		search->cages[search->cage_count++] = (struct cage){ .start = start };
	search->cages[i].has_objects |= is_object;
}

/* Read a word of a table; returns whether its tag is before the address, which there is. */
static bool read_word(struct search *search, uint64_t word)
{
	if (word <= ADDRESS)
		return false;
	if (is_memory(search, word & ADDRESS)) {
		if (word & OBJECT)
			note_cage(search, word & ADDRESS, true);
		return true;
	}
	if (is_memory(search, word >> TAG_BITS))
		note_cage(search, word >> TAG_BITS, false);
	return false;
}

static bool is_piece(const struct region *region)
{
	return region->bytes && region->start % PIECE == 0 &&
	       (region->end - region->start) % PIECE == 0;
}

/* True if the region follows the first piece of a table, which can only be read, or another. */
static bool is_table(const struct search *search, const struct region *region)
{
	const struct region *before = region - 1;
	const struct object_space *space = search->space;
	size_t count = space->ranges.count;

	if (region == space->image->regions || before->end != region->start || !is_piece(region) ||
	    !(region->rights & RIGHT_WRITE) || region->mapping)
		return false;
	return (count && space->ranges.items[count - 1].range.end == region->start) ||
	       (is_piece(before) && before->end - before->start == PIECE &&
		before->rights == RIGHT_READ && !before->mapping);
}

static struct error *find_tables(struct search *search)
{
	struct object_space *space = search->space;

	list_for_each(region, space->image->regions, space->image->region_count) {
		uint64_t words[PIECE_WORDS];
		bool has_tags = false;

		if (!is_table(search, region))
			continue;
		memcpy(words, region->bytes, sizeof(words));
		for (size_t i = 0; i < PIECE_WORDS; i++)
			has_tags |= read_word(search, words[i]);
		if (has_tags)
			space->tag_bits = ~ADDRESS;
		TRY(array_append(&space->ranges,
				 (struct named_range){ { region->start, region->end },
						       "V8's pointer tables" }));
	}
	return NULL;
}

/* V8's cage begins with what is only read, or objects there have its bit. */
static const char *name_cage(const struct search *search, const struct cage *cage)
{
	const struct region *region = image_find(search->space->image, cage->start);

	return cage->has_objects || (region && region->bytes && !(region->rights & RIGHT_WRITE))
		       ? "V8's heap"
		       : "Blink's heap";
}

static struct error *name_cages(struct search *search)
{
	struct object_space *space = search->space;

	list_for_each(region, space->image->regions, space->image->region_count)
		list_for_each(cage, search->cages, search->cage_count)
			if (region->start - cage->start < CAGE && region->bytes && !region->mapping)
				TRY(array_append(
					&space->ranges,
					(struct named_range){ { region->start, region->end },
							      name_cage(search, cage) }));
	return NULL;
}

DEFINE_COMPARE(compare_ranges, struct named_range, ASCENDING(range.start))

static bool has_partitions(const struct object_space *space)
{
	for (size_t i = 0; i < heaps_arena_count(space->heaps); i++)
		if (heaps_arena_allocator(space->heaps, (arena_number)i) ==
		    &allocator_partition_alloc)
			return true;
	return false;
}

static struct error *open_space(struct object_space *space, bool *ret)
{
	struct search search = { .space = space };

	if (!has_partitions(space))
		return NULL;
	TRY(find_tables(&search));
	TRY(name_cages(&search));
	array_sort(&space->ranges, compare_ranges);
	array_keep(&space->ranges, range, last, !last || range->range.start >= last->range.end);
	*ret = space->ranges.count > 0;
	return NULL;
}

const struct runtime runtime_chromium = {
	.name = "chromium",
	.open = open_space,
	.leaks_note =
		"V8 and Blink are loaded: their objects are not counted as allocations, and hold what they refer to until they are collected",
};
