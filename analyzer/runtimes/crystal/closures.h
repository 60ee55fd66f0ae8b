/*
 * Closure data: the variables that a block captured, without a type number.
 *
 * What holds a Proc holds a pair, | function | closure data |, and nothing else refers to closure
 * data, but that of blocks within the block. A function may be beside an object as well:
 * ->object.method is such a pair, and so is what C is given to call back. Then the object is held
 * by other memory, too, or the function is a method.
 */
#ifndef ANALYZER_RUNTIMES_CRYSTAL_CLOSURES_H
#define ANALYZER_RUNTIMES_CRYSTAL_CLOSURES_H

#include "analyzer/runtimes/crystal/types.h"

/* Clear those of the objects, allocations that look like one, that are none. */
struct error *crystal_drop_closures(const struct image *image, const struct allocation_index *index,
				    const struct crystal_types *types,
				    struct memory_account *account, struct bitmap *objects);

#endif
