/*
 * The blocks of a collector: from its bottom indexes to the table of blocks.
 */
#ifndef ALLOCATORS_BOEHM_BLOCKS_H
#define ALLOCATORS_BOEHM_BLOCKS_H

#include "allocators/boehm/boehm.h"

/* Where a bottom_index has what follows its slots. */
static inline uint64_t index_slots(const struct boehm_geometry *geometry)
{
	return UINT64_C(1) << geometry->log_index;
}

static inline uint64_t index_upward(const struct boehm_geometry *geometry)
{
	return 8 * index_slots(geometry); /* asc_link */
}

static inline uint64_t index_downward(const struct boehm_geometry *geometry)
{
	return index_upward(geometry) + 8; /* desc_link */
}

static inline uint64_t index_key(const struct boehm_geometry *geometry)
{
	return index_upward(geometry) + 16;
}

static inline uint64_t index_size(const struct boehm_geometry *geometry)
{
	return index_upward(geometry) + 32;
}

/* The next one whose key is the same in its low bits, or GC_all_nils. */
static inline uint64_t index_hash_link(const struct boehm_geometry *geometry)
{
	return index_upward(geometry) + 24;
}

/* How far a key is shifted to be the address that the first slot is for. */
static inline unsigned int key_shift(const struct boehm_geometry *geometry)
{
	return geometry->log_block + geometry->log_index;
}

/*
 * Whether a bottom_index is at address, as its key and its links to others have it: what those lead
 * to is not looked at yet.
 */
bool boehm_is_index(struct view *view, const struct boehm_geometry *geometry, uint64_t address);

/* Whether the first slots of the index that are used lead to headers. */
bool boehm_leads_to_blocks(struct view *view, const struct boehm_geometry *geometry,
			   uint64_t address);

/*
 * Read all blocks, from the lowest index on. *ret_sound: there are blocks in use, and next to
 * nothing that makes no sense.
 */
struct error *boehm_read_blocks(struct collector *collector, const struct heap_context *context,
				bool *ret_sound);

/* The block that holds address, or NULL. *hint is 0 at first. */
const struct boehm_block *boehm_find_block(const struct collector *collector, uint64_t address,
					   size_t *hint);

/* The block of the object that starts at address, or NULL. */
static inline const struct boehm_block *boehm_find_object(const struct collector *collector,
							  uint64_t address, size_t *hint,
							  uint64_t *ret_number)
{
	const struct boehm_block *block = boehm_find_block(collector, address, hint);
	uint64_t slot;

	if (!block || is_free(block) || (address - block->start) % block->size != 0)
		return NULL;
	slot = (address - block->start) / block->size;
	if (slot >= object_slots(collector, block))
		return NULL;
	*ret_number = block->first + slot;
	return block;
}

#endif
