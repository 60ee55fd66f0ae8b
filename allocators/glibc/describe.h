/*
 * The slots of the allocator's contract that say what malloc uses memory for; see allocator.h.
 */
#pragma once

#include "allocators/glibc/glibc.h"

/* A chunk as malloc counts it: from its own head to the next one's. A mapped one is its mapping. */
struct memory_range glibc_extent(const struct heap *base, size_t number, struct block block,
				 const struct free_kind *kind);
bool glibc_keeps(const struct heap *base, struct block block);
size_t glibc_holds(const struct heap *base, uint64_t address);
bool glibc_reserved(const struct heap *base, size_t number, struct memory_range *ret);
unsigned int glibc_stale_links(const struct heap *base, const struct allocation_index *index,
			       uint64_t start, const uint64_t words[4]);
void glibc_visit_spare(const struct heap *base, const struct allocation_index *index,
		       void (*visit)(void *data, const struct spare *spare), void *data);
bool glibc_tell(const struct heap *base, uint64_t address, char *ret, size_t size);

/* Claim the bytes that malloc leaves out to align a main heap: they count as the arena's. */
struct error *glibc_claim_padding(const struct glibc_heap *heap, struct block_sink *sink);
