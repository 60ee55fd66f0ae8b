/*
 * Finding arenas: by the shape of memory, without symbols.
 *
 * The bins of an arena are 127 pairs of pointers, and an empty one points at
 * itself: at A stand two words A - 16. The last one is never used, so the end
 * of such a run is certain. Behind it come the bitmap of bins and the ring of
 * all arenas; that the ring closes at the arena confirms the find, and how far
 * above its beginning the bins are tells the layout.
 */
#ifndef ALLOCATORS_GLIBC_ARENAS_H
#define ALLOCATORS_GLIBC_ARENAS_H

#include "allocators/glibc/glibc.h"

/*
 * Fill in arenas, parameters and subheaps. None is found in a process without
 * glibc's malloc; then home is 0. With a home and no arena, malloc was never
 * called.
 */
struct error *glibc_find_arenas(struct glibc_heap *heap);

#endif
