/*
 * The objects of a collector, and what became of each.
 *
 * A collection marks what is reachable, and leaves it to later allocations to sweep: to put what is
 * not marked on lists of free objects. So an object that is on no list is in use if its block was
 * swept since the last collection, as those taken from the lists are not marked, or if it is
 * marked. Otherwise it is dead: known to be garbage, and not usable yet.
 */
#ifndef ALLOCATORS_BOEHM_OBJECTS_H
#define ALLOCATORS_BOEHM_OBJECTS_H

#include "allocators/boehm/boehm.h"
#include "allocators/boehm/calibrate.h"

enum object_state {
	OBJECT_USED,
	OBJECT_FREE,
	OBJECT_CACHED,
	OBJECT_DEAD,
	OBJECT_UNDECIDED, /* used or dead, as there are no marks to tell */
};

/* The state of the block's slot-th object, of whose marks marks are. */
enum object_state boehm_object_state(const struct collector *collector,
				     const struct boehm_block *block, const struct marks *marks,
				     uint64_t slot);

/* Report all blocks and objects of the collector; count the undecided ones. */
struct error *boehm_add_objects(struct collector *collector, const struct heap_context *context,
				arena_number arena, struct block_sink *sink);

#endif
