/*
 * The variables of modules: where collectors have theirs.
 */
#ifndef ALLOCATORS_BOEHM_DATA_H
#define ALLOCATORS_BOEHM_DATA_H

#include "allocators/boehm/boehm.h"

/*
 * Call visit for each word that is not 0 of the writable data in [start, end), by address, until it
 * returns an error. *cursor, 0 at first, serves ranges that come by address.
 */
struct error *boehm_visit_data(uint64_t start, uint64_t end, const struct image *image,
			       size_t *cursor,
			       struct error *(*visit)(void *data, uint64_t where, uint64_t word),
			       void *data);

/* The same for the module that the collector's variables are in. */
static inline struct error *boehm_visit_own_data(
	const struct collector *collector, const struct image *image,
	struct error *(*visit)(void *data, uint64_t where, uint64_t word), void *data)
{
	size_t cursor = 0;

	return boehm_visit_data(collector->start, collector->end, image, &cursor, visit, data);
}

#endif
