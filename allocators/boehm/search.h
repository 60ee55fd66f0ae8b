/*
 * Finding collectors.
 *
 * A collector has its variables in the data of a module: GC_arrays, with pointers to the bottom
 * indexes. So the writable data of modules is searched for a word that leads to one, which is known
 * by its links and key, and by the headers it leads to, which name the very block that they stand
 * for. Heaps are not searched: a process without a collector pays for its modules' data only.
 */
#ifndef ALLOCATORS_BOEHM_SEARCH_H
#define ALLOCATORS_BOEHM_SEARCH_H

#include "allocators/boehm/boehm.h"

/* Add all collectors of the process to the heap, their blocks known. */
struct error *boehm_search(struct boehm_heap *heap);

#endif
