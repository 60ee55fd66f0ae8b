/*
 * What a collector marks with: stacks of { address, descriptor }, which still hold addresses when
 * it is done, and threads of its own, which have more of them on their stacks.
 */
#ifndef ALLOCATORS_BOEHM_MARKING_H
#define ALLOCATORS_BOEHM_MARKING_H

#include "allocators/boehm/boehm.h"

/* GC_mark_state, which is 0 unless it collects; false if that is not found, as before 8.2. */
bool boehm_mark_state(const struct collector *collector, const struct heap_context *context,
		      uint32_t *ret);

/* Claim them: they hold nothing. */
struct error *boehm_claim_marking(const struct collector *collector,
				  const struct heap_context *context, struct block_sink *sink);

#endif
