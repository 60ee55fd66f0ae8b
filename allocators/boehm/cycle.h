/*
 * How often a collector has collected, which tells whether a block was swept since, and whether it
 * was about to when the dump was taken.
 */
#ifndef ALLOCATORS_BOEHM_CYCLE_H
#define ALLOCATORS_BOEHM_CYCLE_H

#include "allocators/boehm/boehm.h"

/* Fill in the cycle and whether a collection is under way. */
void boehm_find_cycle(struct collector *collector, const struct heap_context *context);

#endif
