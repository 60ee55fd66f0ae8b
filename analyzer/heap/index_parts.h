/*
 * The parts of the index, for code that looks up many addresses.
 */
#pragma once

#include "analyzer/base/array.h"
#include "analyzer/heap/index.h"
#include "analyzer/heap/sink.h"

enum { LINE_WORDS = 7, LINE_BITS = LINE_WORDS * 64 };

/*
 * A cache line of bits, one for each unit of the region. sums has, in its lower half, the number of
 * all bits in the lines before, and above it those in the first two, four and six words of this
 * one, SUM_BITS for each; the uppermost bit is line_is_uneven().
 */
struct line {
	uint64_t bits[LINE_WORDS];
	uint64_t sums;
};

enum { SUM_BITS = 10 };
static const uint64_t LINE_UNEVEN = UINT64_C(1) << 63;

/* The layout of each region, by its number. */
struct region_layout {
	size_t first_line, lines; /* no lines: it has one allocation at most */
	/*
	 * The fewest bytes between the end of an allocation and the start of the next one, if no
	 * more than a unit: then the bits tell ends, too, but in lines where there are more bytes
	 * in between. Else GAPS_VARY.
	 */
	unsigned int gap;
};

enum { GAPS_VARY = (1 << MOST_SHIFT) + 1 };

/*
 * Narrows the search for a region by address: one of the bounds is cut into stretches of equal
 * size, no more than it has regions, and for each, last has the last region that starts at or below
 * its start.
 */
struct region_guide {
	unsigned int shift;   /* of bytes to stretches */
	ARRAY(uint32_t) last; /* one more than stretches */
};

/* A lookup in steps, so that several can be under way: each step fetches the next one's memory. */
struct lookup {
	const struct heap_region *region; /* NULL: in none */
	const struct line *line;	  /* NULL: no bits; the last one */
	uint64_t offset;		  /* of the address in the region */
	unsigned int gap;		  /* of the region */
};

/* Begin with up to MOST_ADDRESSES lookups: what they need next is fetched. *hint is 0 at first. */
void lookups_begin(const struct allocation_index *index, const uint64_t *addresses, size_t count,
		   size_t *hint, struct lookup *ret);

/*
 * End them, as allocation_find_many() does if fetch, so that extents are at hand. The result has a
 * bit for each address that is in the unit below an allocation, or may be: see
 * allocation_stale_links().
 */
typedef uint64_t (*lookups_end_function)(const struct allocation_index *index,
					 const struct lookup *lookups, size_t count, bool fetch,
					 allocation_id *ret);

/* Number 0 runs anywhere, 1 counts bits; NULL: not on this processor. */
lookups_end_function lookups_end_kind(unsigned int number);

struct allocation_index {
	struct block_sink *sink; /* extents, regions, claims, large sizes */
	const struct extent *extents;
	const struct heap_region *regions;
	size_t region_count, count;
	struct bitmap used, cached;
	struct bitmap traits[BLOCK_TRAITS]; /* without words: none has it */
	ARRAY(struct line) lines;	    /* of all regions, and one more */
	ARRAY(struct region_layout) layouts;
	struct heap_bounds bounds;
	struct region_guide guides[2]; /* of the bounds */
	unsigned int least_shift;      /* of the regions */
	stale_link_test stale_links;   /* may be NULL */
	const void *stale_link_data;
	bool links_lead_anywhere;
	rounding_test rounding; /* may be NULL */
	const void *rounding_data;
	lookups_end_function lookups_end; /* for the processor at hand */
};

static inline const struct region_layout *region_layout(const struct allocation_index *index,
							size_t region)
{
	return index->layouts.items + region;
}

/* The number of the only region that may hold the address. */
static inline size_t find_region(const struct allocation_index *index, uint64_t address)
{
	size_t low = 0, high = index->region_count;

	for (int i = 0; i < 2; i++) {
		const struct region_guide *guide = &index->guides[i];
		uint64_t offset = address - index->bounds.start[i];

		if (offset < index->bounds.size[i]) {
			const uint32_t *last = guide->last.items + (offset >> guide->shift);

			low = last[0];
			high = last[1] + 1;
			break;
		}
	}
	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (index->regions[middle].start <= address)
			low = middle;
		else
			high = middle;
	}
	return low;
}

static inline bool region_holds(const struct heap_region *region, uint64_t address)
{
	return address - region->start < region->end - region->start;
}

/* True if bytes in the line's range are in no allocation, besides the region's gaps. */
static inline bool line_is_uneven(const struct line *line)
{
	return line->sums & LINE_UNEVEN;
}

/* How many bits are set in the words up to that of bit, less the one itself. */
static inline uint64_t line_sum(const struct line *line, unsigned int bit)
{
	/* The sum of the first word's pair is 0. */
	uint64_t sums = line->sums >> 32 << SUM_BITS;

	return (uint32_t)line->sums + (sums >> (bit / 128 * SUM_BITS) & ((1 << SUM_BITS) - 1));
}

/*
 * Count the set bits: with the processor's instruction, in functions compiled for processors that
 * have it, else without.
 */
static inline __attribute__((always_inline)) unsigned int count_bits(uint64_t word,
								     bool by_instruction)
{
	return by_instruction ? (unsigned int)__builtin_popcountll(word) : bits_count(word);
}

/* How many bits there are up to that one, in the line and those before. */
static inline __attribute__((always_inline)) uint64_t line_rank(const struct line *line,
								unsigned int bit,
								bool by_instruction)
{
	unsigned int word = bit / 64;
	/* The first word of the pair counts in full if this is the second. */
	uint64_t second = -(uint64_t)(word & 1);

	return line_sum(line, bit) + count_bits(line->bits[word & ~1U] & second, by_instruction) +
	       count_bits(line->bits[word] << (63 - bit % 64), by_instruction);
}

/* The bit behind that one; it may be the next line's. */
static inline uint64_t line_next_bit(const struct line *line, unsigned int bit)
{
	bool is_last = bit == LINE_BITS - 1;
	unsigned int next = is_last ? 0 : bit + 1;

	return (line + is_last)->bits[next / 64] >> (next % 64) & 1;
}

/* The starts among a row of units, 32 or 64. */
struct window {
	uint64_t starts;    /* a bit for each unit */
	uint64_t nexts;	    /* a bit for each: the unit behind it is a start */
	uint64_t next_rank; /* within the region, of the first start */
	bool is_uneven;	    /* ends are not known from the bits */
};

/*
 * The window of count units of the region from unit on, a multiple of count. The lines extend as
 * far.
 */
static inline __attribute__((always_inline)) struct window index_window(
	const struct allocation_index *index, const struct region_layout *layout, uint64_t unit,
	unsigned int count, bool by_instruction)
{
	const struct line *line = index->lines.items + layout->first_line + unit / LINE_BITS;
	unsigned int bit = unit % LINE_BITS;
	uint64_t bits = line->bits[bit / 64] >> (bit % 64) & UINT64_MAX >> (64 - count);

	return (struct window){
		bits,
		bits >> 1 | line_next_bit(line, bit + count - 1) << (count - 1),
		line_rank(line, bit, by_instruction) - (bits & 1),
		layout->gap == GAPS_VARY || line_is_uneven(line),
	};
}
