/*
 * What a collector uses an address for, in words.
 */
#ifndef ALLOCATORS_BOEHM_TELL_H
#define ALLOCATORS_BOEHM_TELL_H

#include "allocators/boehm/boehm.h"

/* Of bookkeeping, or of what is free; false if there is nothing to say. */
bool boehm_tell_address(const struct boehm_heap *heap, uint64_t address, char *ret, size_t size);

/* Of the used object that starts there. */
bool boehm_tell_object(const struct boehm_heap *heap, uint64_t address, char *ret, size_t size);

#endif
