/*
 * The rings of bins: where they lead back to, without following any of them twice.
 */
#pragma once

#include "allocators/glibc/glibc.h"

/*
 * The ring of a bin, with its head in an arena, and up to millions of chunks. A search for the head
 * leaves a memo on its way, at one chunk of 64 or so; the next search ends there. A ring without a
 * head leaves memos as well. They are of a fixed size, and take memory only as they are used.
 */
struct glibc_ring_memo;

/* NULL if memory is short: then searches take longer. */
struct glibc_ring_memo *glibc_ring_memo_create(void);
void glibc_ring_memo_free(struct glibc_ring_memo *memo);

/* The first address on the ring that is a head; 0 if it leads to none. */
uint64_t glibc_ring_head(const struct glibc_heap *heap, uint64_t chunk,
			 bool (*is_head)(const struct glibc_heap *heap, uint64_t address));
