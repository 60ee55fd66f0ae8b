/*
 * Finding arenas: by the shape of memory, without symbols.
 *
 * The bins of an arena are 127 pairs of pointers, and an empty one points at itself: at A stand two
 * words A - 16. The last one is never used, so the end of such a run is certain. Behind it come the
 * bitmap of bins and the ring of all arenas. If the ring leads back to the arena, the find is
 * confirmed, and the distance of the bins from the start of the arena gives the layout.
 */
#pragma once

#include "allocators/glibc/glibc.h"

/*
 * Fill in arenas and parameters. A process without glibc's malloc has none, and home is 0. With a
 * home and no arena, malloc was never called.
 */
struct error *glibc_find_arenas(struct glibc_heap *heap);

/*
 * Add the arenas that no main arena leads to, with a finding: those at the head of their own heaps.
 * The end of a kernel's core, with libc's data, may have been cut off, or the ring be damaged.
 * Without any main arena or home, also add the main heap if its first chunk is a thread's cache at
 * the start of a mapping, as it is in nearly every process.
 */
struct error *glibc_find_orphans(struct glibc_heap *heap);

/* Fill in the subheaps, once all arenas were added. */
struct error *glibc_complete_arenas(struct glibc_heap *heap);

struct error *glibc_add_arena(struct glibc_heap *heap, struct glibc_arena arena);

/* The arena at address by its bins alone, of whatever layout fits; not a main one. */
bool glibc_read_arena(struct view *view, uint64_t address, struct glibc_arena *ret);

/* True if the arena at address was added. */
bool glibc_knows_arena(const struct glibc_heap *heap, uint64_t address);

/* A layout for an arena that is not in the core. */
const struct arena_layout *glibc_any_layout(unsigned int word);
