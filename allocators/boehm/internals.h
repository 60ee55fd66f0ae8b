/*
 * The collector's own objects: it keeps disappearing links, finalizers, tables of them, threads and
 * the lists of own kinds in its heap, as objects like those of the program. They are known by what
 * is in them.
 */
#ifndef ALLOCATORS_BOEHM_INTERNALS_H
#define ALLOCATORS_BOEHM_INTERNALS_H

#include "allocators/boehm/boehm.h"

enum internal {
	INTERNAL_NONE,
	INTERNAL_LINK,
	INTERNAL_FINALIZER,
	INTERNAL_TABLE, /* of either */
	INTERNAL_THREAD,
	INTERNAL_LISTS,
};

/* What the used object that starts at address is to the collector. */
enum internal boehm_internal(const struct collector *collector, const struct image *image,
			     uint64_t address);

#endif
