/*
 * Every allocation of the dump, used and free, in order of address.
 *
 * An allocation is named by its rank in that order. So a set of allocations is a bitmap, a property
 * of all of them is an array, and a pointer is resolved by counting: for each region one bit per
 * unit, 16 bytes as a rule, marks where an allocation starts, and the allocation that may hold an
 * address is the number of bits at or below it, less one. 448 bits and the count of all before them
 * share a cache line. Most allocators leave as much between any two allocations of a region: then
 * the bits tell where these end, too.
 *
 *	region     |16|16|16|16|16|16|16|...
 *	starts       1  0  0  1  0  1  0       bits up to the fifth: 2,
 *	                                       so it is the second allocation
 *
 * It costs 8 bytes an allocation and 1/112 of the heap. There are no bits behind the last start of
 * a region, nor in one of a single allocation, and a new region begins behind each wide gap: large
 * allocations cost nothing. The index never changes once created.
 */
#pragma once

#include "analyzer/base/bitmap.h"
#include "analyzer/heap/block.h"
#include "analyzer/image/image.h"

struct allocation_index;

/* Make the index of all in the sink, which is left empty. */
struct error *allocation_index_create(struct block_sink *sink, struct allocation_index **ret);
void allocation_index_destroy(struct allocation_index *index);
DEFINE_CLEANUP(allocation_index_destroy, struct allocation_index *)

/* The sink that the index owns now. */
const struct block_sink *allocation_index_sink(const struct allocation_index *index);

size_t allocation_count(const struct allocation_index *index);

uint64_t allocation_start(const struct allocation_index *index, allocation_id id);
uint64_t allocation_size(const struct allocation_index *index, allocation_id id);

/* Prefetch what allocation_size() will need. */
void allocation_fetch_size(const struct allocation_index *index, allocation_id id);

enum block_state allocation_state(const struct allocation_index *index, allocation_id id);

/* Start and size at once, quicker for ids one after the other: *hint is 0 at first. */
struct memory_range allocation_range_near(const struct allocation_index *index, allocation_id id,
					  size_t *hint);

/* The allocation's range, given an address in it, which is faster. */
struct memory_range allocation_range_around(const struct allocation_index *index, allocation_id id,
					    uint64_t address);

/* The allocation, used or free, that holds address, or NO_ALLOCATION. */
allocation_id allocation_find(const struct allocation_index *index, uint64_t address);

/* The used allocation that begins at address, or NO_ALLOCATION. */
allocation_id allocation_used_at(const struct allocation_index *index, uint64_t address);

/*
 * The addresses of all heaps: nearly every word that is no pointer fails here. Two ranges, because
 * heaps are near the program and near the libraries, far apart.
 */
struct heap_bounds {
	uint64_t start[2], size[2];
	uint64_t tag_bits; /* that are not looked at; see arch.h */
};

struct heap_bounds allocation_bounds(const struct allocation_index *index);

static inline bool heap_bounds_hold(const struct heap_bounds *bounds, uint64_t address)
{
	address &= ~bounds->tag_bits;
	return address - bounds->start[0] < bounds->size[0] ||
	       address - bounds->start[1] < bounds->size[1];
}

/*
 * allocation_find() for up to MOST_ADDRESSES addresses, faster together, because the memory for
 * each is prefetched while others are looked up. *hint is 0 at first.
 */
enum { MOST_ADDRESSES = 64 };

void allocation_find_many(const struct allocation_index *index, const uint64_t *addresses,
			  size_t count, size_t *hint, allocation_id *ret);

/* The allocations in use, and those in a thread's cache. */
const struct bitmap *allocation_used(const struct allocation_index *index);
const struct bitmap *allocation_cached(const struct allocation_index *index);

/* The allocations with the trait; NULL if there are none, which costs no memory. */
const struct bitmap *allocation_having(const struct allocation_index *index,
				       enum block_trait trait);

/*
 * Finds stale links among the first words of a used block: its allocator wrote them while the block
 * was free, and the program has not overwritten them. They are no references. A mask, bit 0 for the
 * first word. A stale link into an allocation leads into the unit below another one, where that
 * one's header is.
 */
typedef unsigned int (*stale_link_test)(const void *data, const struct allocation_index *index,
					uint64_t start, const uint64_t words[4]);

/* Set before references are read: to find addresses, it does not look at these bits. */
void allocation_set_tag_bits(struct allocation_index *index, uint64_t tag_bits);

/* Give the allocations of the set the trait, too. */
struct error *allocation_add_trait(struct allocation_index *index, enum block_trait trait,
				   const struct bitmap *set, struct memory_account *account);

/*
 * Set once, before the index is used; data is borrowed. lead_anywhere: some may be in an allocation
 * elsewhere, too.
 */
void allocation_set_stale_links(struct allocation_index *index, stale_link_test test,
				const void *data, bool lead_anywhere);
bool allocation_stale_links_lead_anywhere(const struct allocation_index *index);
unsigned int allocation_stale_links(const struct allocation_index *index, uint64_t start,
				    const uint64_t words[4]);

/*
 * Used allocations that the allocator was working on for a thread: they count as being in that
 * thread's registers.
 */
size_t allocation_held_count(const struct allocation_index *index);
allocation_id allocation_held(const struct allocation_index *index, size_t number);

/*
 * True if the allocation in that range may have been made for wanted bytes, as its allocator
 * rounds; exactly: only as it nearly always rounds. Set once, as above; without, any rounding of
 * malloc fits.
 */
typedef bool (*rounding_test)(const void *data, struct memory_range range, uint64_t wanted,
			      bool exactly);
void allocation_set_rounding(struct allocation_index *index, rounding_test test, const void *data);
bool allocation_fits(const struct allocation_index *index, struct memory_range range,
		     uint64_t wanted, bool exactly);

/* All allocations start at multiples of this many bytes, a power of 2. */
uint64_t allocation_alignment(const struct allocation_index *index);

/* Regions by address. */
size_t heap_region_count(const struct allocation_index *index);
const struct heap_region *heap_region(const struct allocation_index *index, size_t number);
const struct heap_region *heap_region_find(const struct allocation_index *index, uint64_t address);

/* Ranges that allocators claim, including regions: by address, apart, not touching. */
size_t heap_claim_count(const struct allocation_index *index);
struct memory_range heap_claim(const struct allocation_index *index, size_t number);

/* The number of the first claim that ends above address; else their count. */
size_t heap_claim_above(const struct allocation_index *index, uint64_t address);

/* Release what was read of the allocations from first on, below end; see image_release(). */
static inline void allocations_release(const struct image *image,
				       const struct allocation_index *index, size_t first,
				       size_t end)
{
	size_t hint = 0;

	if (first < end)
		image_release(image, allocation_start(index, (allocation_id)first),
			      allocation_range_near(index, (allocation_id)(end - 1), &hint).end);
}

/*
 * Check now and then for the user's interruption in a loop over all ids: see progress_check_at().
 */
static inline struct error *allocations_check(const struct image *image,
					      const struct allocation_index *index,
					      struct progress *progress, size_t id, uint64_t *told)
{
	uint64_t before = *told;
	struct error *error = progress_check_at(progress, id, told);

	if (before < *told)
		image_advance(image, allocation_start(index, (allocation_id)before),
			      allocation_start(index, (allocation_id)*told));
	return error;
}
