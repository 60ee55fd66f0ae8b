/*
 * Heaps whose main arena is not in the core, as the end of a kernel's core, where libc's data
 * stands, was cut off.
 */
#ifndef ALLOCATORS_GLIBC_ORPHANS_H
#define ALLOCATORS_GLIBC_ORPHANS_H

#include "allocators/glibc/glibc.h"

/*
 * Add the arenas that stand at the head of their own heaps, and the main heap if its first chunk is
 * a thread's cache at the start of a mapping, as it is in nearly every process. What was found is
 * reported as incomplete.
 */
struct error *glibc_find_orphans(struct glibc_heap *heap);

/* Add the arenas that head their own heaps and are in no ring, with a finding. */
struct error *glibc_find_unlisted(struct glibc_heap *heap);

#endif
