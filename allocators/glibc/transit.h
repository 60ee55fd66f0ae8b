/*
 * Chunks that a thread inside of malloc held in its hands when the core was taken, in no list and
 * known by their chunk address only.
 */
#ifndef ALLOCATORS_GLIBC_TRANSIT_H
#define ALLOCATORS_GLIBC_TRANSIT_H

#include "allocators/glibc/glibc.h"

/*
 * Find out in which arenas a thread was at work: heap->arenas[].locked. Not if the process died
 * inside of malloc, or near it: there, the heap is damaged. If another thread's fault ended the
 * process, those at work had done no wrong.
 */
void glibc_find_work(struct glibc_heap *heap);

/* What is to be said of damage in it, besides what may have done it; or "". */
const char *glibc_tell_work(const struct glibc_arena *arena);

/* The same of damage in what is of no arena: a thread's cache. */
const char *glibc_tell_any_work(const struct glibc_heap *heap);

/* Let the sink hold the chunks that registers and inner frames name. */
struct error *glibc_hold_transit(struct glibc_heap *heap, struct block_sink *sink);

#endif
