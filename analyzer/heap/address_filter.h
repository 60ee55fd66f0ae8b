/*
 * Finds the bytes of memory that may be one of many addresses.
 *
 * Nearly all that is looked at is none of them, and fails by three of its bytes, the upper ones of
 * an address. These are compared for 32 places at once: their nibbles are looked up in tables,
 * which tell of eight groups of addresses which have such a nibble there.
 *
 *	byte    0    1    2    3    4    5
 *	        .    .    .    in   in   in	some group of addresses
 *
 * Of what is left, a bit for each hash of an address tells.
 */
#pragma once

#include "analyzer/base/cleanup.h"
#include "analyzer/base/memory.h"

#include <stdbool.h>
#include <stdint.h>

enum {
	FILTERED = 64, /* places that are looked at together */
	ADDRESS_BYTES = 6,
	UPPER_BYTES = 3,		  /* that are compared */
	FILTER_AHEAD = ADDRESS_BYTES - 1, /* bytes read behind those places */
};

struct address_filter {
	uint64_t first, last; /* of the addresses */
	struct memory bits;   /* uint64_t */
	unsigned int shift;   /* of a hash */
	unsigned int group;   /* addresses that differ from this bit on are in other groups */
	/* Groups, as bits, that have the nibble there: the low, the high. */
	uint8_t nibbles[UPPER_BYTES][2][16];
	void (*look)(const struct address_filter *filter, const uint8_t *bytes, size_t count,
		     uint64_t *ret);
};

/* An empty filter, for up to count addresses. */
struct error *address_filter_init(struct address_filter *filter, size_t count,
				  struct memory_account *account);
void address_filter_deinit(struct address_filter *filter);
DEFINE_DEINIT(address_filter_deinit, struct address_filter)

void address_filter_add(struct address_filter *filter, uint64_t address);

/* Make addresses near this one pass the first test, too. */
void address_filter_pass(struct address_filter *filter, uint64_t address);

static inline size_t address_filter_slot(const struct address_filter *filter, uint64_t address)
{
	return (size_t)((address * UINT64_C(0x9e3779b97f4a7c15)) >> filter->shift);
}

/* False if it is certain that the address is none of them. */
static inline bool address_filter_may_have(const struct address_filter *filter, uint64_t address)
{
	const uint64_t *words = filter->bits.bytes;
	size_t slot;

	if (address - filter->first > filter->last - filter->first)
		return false;
	slot = address_filter_slot(filter, address);
	return words[slot / 64] >> (slot % 64) & 1;
}

/*
 * For each of count times FILTERED places in a row whether the six bytes there may be an address
 * that was let pass, as masks. FILTER_AHEAD bytes behind the places are read as well.
 */
static inline void address_filter_look(const struct address_filter *filter, const uint8_t *bytes,
				       size_t count, uint64_t *ret)
{
	filter->look(filter, bytes, count, ret);
}

/* Like address_filter_look(), without vector instructions, for processors that lack them. */
void address_filter_look_plainly(const struct address_filter *filter, const uint8_t *bytes,
				 size_t count, uint64_t *ret);
