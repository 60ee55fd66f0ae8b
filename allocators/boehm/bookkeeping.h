/*
 * What memory a collector uses for itself: headers, indexes, lists, stacks for marking. Pointers in
 * there hold nothing.
 */
#ifndef ALLOCATORS_BOEHM_BOOKKEEPING_H
#define ALLOCATORS_BOEHM_BOOKKEEPING_H

#include "allocators/boehm/boehm.h"

/* Find the headers that are free: they still name blocks. */
struct error *boehm_find_spares(struct collector *collector, const struct heap_context *context);

struct error *boehm_claim_bookkeeping(const struct collector *collector,
				      const struct heap_context *context, struct block_sink *sink);

/* Add to ranges all memory that the collector got from the system. */
struct error *boehm_add_owned(const struct collector *collector, struct range_list *ranges);

#endif
