/*
 * What malloc_trim(0) gives back of an arena: whole pages within free chunks, and the end of the
 * main heap.
 *
 * The rules are those of mtrim() and systrim() in malloc/malloc.c: fast bins are merged with what
 * is free beside them, threads' caches are left alone, a free chunk keeps the page that its six
 * words of links reach into, and top keeps a chunk of the least size. The tops of other arenas stay
 * as they are.
 */
#ifndef ALLOCATORS_GLIBC_SPARE_H
#define ALLOCATORS_GLIBC_SPARE_H

#include "allocators/glibc/glibc.h"

void glibc_find_spare(const struct glibc_heap *heap, const struct allocation_index *index,
		      void (*visit)(void *data, const struct spare *spare), void *data);

#endif
