/*
 * Lookups of many addresses at once, compiled twice: for processors with an instruction that counts
 * bits, as x86-64 has had since 2008, and for others.
 */
#include "analyzer/heap/index_parts.h"

#include <assert.h>

static inline struct lookup find_line(const struct allocation_index *index, uint64_t address,
				      size_t *hint)
{
	const struct heap_region *region = &index->regions[*hint];
	const struct region_layout *layout;
	struct lookup lookup = { NULL };

	if (!region_holds(region, address)) {
		size_t number = find_region(index, address);

		region = &index->regions[number];
		if (!region_holds(region, address))
			return lookup;
		*hint = number;
	}
	lookup.region = region;
	lookup.offset = address - region->start;
	layout = region_layout(index, *hint);
	lookup.gap = layout->gap;
	/* There are no bits behind the last start, so it is the last allocation. */
	if ((lookup.offset >> region->shift) / LINE_BITS < layout->lines)
		lookup.line = index->lines.items + layout->first_line +
			      (lookup.offset >> region->shift) / LINE_BITS;
	return lookup;
}

/* The answer that the bits alone give for an address. */
struct answer {
	allocation_id id; /* the one that starts last at or below it, or none */
	bool is_certain;  /* it holds the address, or the id is none */
	bool may_be_header;
};

static inline __attribute__((always_inline)) struct answer ask_bits(const struct lookup *lookup,
								    bool by_instruction)
{
	const struct heap_region *region = lookup->region;
	uint64_t number, next, unit;
	unsigned int bit;

	if (!region || region->count == 0)
		return (struct answer){ NO_ALLOCATION, true, false };
	if (!lookup->line)
		return (struct answer){ region->first + region->count - 1, false, true };
	bit = (lookup->offset >> region->shift) % LINE_BITS;
	number = line_rank(lookup->line, bit, by_instruction);
	if (number == 0)
		return (struct answer){ NO_ALLOCATION, true, false };
	if (number == region->count || lookup->gap == GAPS_VARY || line_is_uneven(lookup->line))
		return (struct answer){ (allocation_id)(region->first + number - 1), false, true };
	next = line_next_bit(lookup->line, bit);
	unit = UINT64_C(1) << region->shift;
	return (struct answer){ next && (~lookup->offset & (unit - 1)) < lookup->gap
					? NO_ALLOCATION
					: (allocation_id)(region->first + number - 1),
				true, next };
}

/* The allocation if it reaches up to the address, else NO_ALLOCATION. */
static allocation_id check_end(const struct allocation_index *index, const struct lookup *lookup,
			       allocation_id id)
{
	const struct extent *extent = &index->extents[id];
	uint64_t offset = lookup->offset - ((uint64_t)extent->start << lookup->region->shift);

	if (offset < extent->size ||
	    (extent->size == LARGE_SIZE && offset < allocation_size(index, id)))
		return id;
	return NO_ALLOCATION;
}

void lookups_begin(const struct allocation_index *index, const uint64_t *addresses, size_t count,
		   size_t *hint, struct lookup *ret)
{
	const uint64_t address_bits = ~index->bounds.tag_bits;

	assert(count <= MOST_ADDRESSES);
	for (size_t i = 0; i < count; i++) {
		ret[i] = find_line(index, addresses[i] & address_bits, hint);
		__builtin_prefetch(ret[i].line);
	}
}

static inline __attribute__((always_inline)) uint64_t end_lookups(
	const struct allocation_index *index, const struct lookup *lookups, size_t count,
	bool fetch, allocation_id *ret, bool by_instruction)
{
	uint64_t uncertain = 0, headers = 0;

	for (size_t i = 0; i < count; i++) {
		struct answer answer = ask_bits(&lookups[i], by_instruction);

		ret[i] = answer.id;
		uncertain |= (uint64_t)!answer.is_certain << i;
		headers |= (uint64_t)answer.may_be_header << i;
		if (!answer.is_certain || (fetch && answer.id != NO_ALLOCATION))
			__builtin_prefetch(&index->extents[answer.id]);
	}
	for (; uncertain; uncertain &= uncertain - 1) {
		unsigned int i = (unsigned int)__builtin_ctzll(uncertain);

		ret[i] = check_end(index, &lookups[i], ret[i]);
	}
	return headers;
}

static uint64_t end_plainly(const struct allocation_index *index, const struct lookup *lookups,
			    size_t count, bool fetch, allocation_id *ret)
{
	return end_lookups(index, lookups, count, fetch, ret, false);
}

#ifdef __x86_64__
__attribute__((target("popcnt"))) static uint64_t end_by_counting(
	const struct allocation_index *index, const struct lookup *lookups, size_t count,
	bool fetch, allocation_id *ret)
{
	return end_lookups(index, lookups, count, fetch, ret, true);
}
#endif

lookups_end_function lookups_end_kind(unsigned int number)
{
	if (number == 0)
		return end_plainly;
#ifdef __x86_64__
	if (number == 1 && __builtin_cpu_supports("popcnt"))
		return end_by_counting;
#endif
	return NULL;
}

void allocation_find_many(const struct allocation_index *index, const uint64_t *addresses,
			  size_t count, size_t *hint, allocation_id *ret)
{
	struct lookup lookups[MOST_ADDRESSES];

	lookups_begin(index, addresses, count, hint, lookups);
	index->lookups_end(index, lookups, count, true, ret);
}
