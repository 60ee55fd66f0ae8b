/*
 * What malloc itself uses an address for, in words.
 */
#ifndef ALLOCATORS_GLIBC_TELL_H
#define ALLOCATORS_GLIBC_TELL_H

#include "allocators/glibc/glibc.h"

/*
 * What follows "it is" for an address in an arena or in the head of a heap, or for a free block
 * that starts at address. False if it is neither.
 */
bool glibc_tell_address(const struct glibc_heap *heap, uint64_t address, char *ret, size_t size);

#endif
