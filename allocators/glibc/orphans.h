/*
 * Heaps that no main arena leads to: as the end of a kernel's core, where libc's data stands, was
 * cut off, or as a ring of arenas is damaged.
 */
#ifndef ALLOCATORS_GLIBC_ORPHANS_H
#define ALLOCATORS_GLIBC_ORPHANS_H

#include "allocators/glibc/glibc.h"

/*
 * Add the arenas that stand at the head of their own heaps and were not added yet, with a finding.
 * Without any main arena or home, also add the main heap if its first chunk is a thread's cache at
 * the start of a mapping, as it is in nearly every process.
 */
struct error *glibc_find_orphans(struct glibc_heap *heap);

#endif
