/*
 * The layouts of the classes of Crystal's library that hold buffers: memory without a type number.
 *
 *	String  | id | bytes | characters | text ... 0 |
 *	Array   | id | size | capacity | offset | elements |
 *	Deque   | id | start | size | capacity | elements |
 *	Hash    | id | first | entries | indices | size | deleted | how indexed
 * |
 *
 * The elements of an array that was shifted begin before where it points. A hash has twice as many
 * indices as it has room for entries; without any, it is searched from end to end. A Set is a Hash.
 * All are of Crystal 1.0 to 1.21, src/{string,array,deque,hash}.cr.
 */
#ifndef ANALYZER_RUNTIMES_CRYSTAL_LAYOUTS_H
#define ANALYZER_RUNTIMES_CRYSTAL_LAYOUTS_H

#include "analyzer/heap/index.h"
#include "analyzer/image/image.h"

enum crystal_container {
	CONTAINER_NONE,
	CONTAINER_ARRAY,
	CONTAINER_DEQUE,
	CONTAINER_HASH,
	CONTAINER_UNKNOWN, /* perhaps one of these */
};

enum crystal_role {
	ROLE_ARRAY_ELEMENTS,
	ROLE_DEQUE_ELEMENTS,
	ROLE_HASH_ENTRIES,
	ROLE_HASH_INDICES,
};

/* A buffer that an object holds. */
struct crystal_buffer {
	allocation_id id;
	enum crystal_role role;
	uint64_t used, capacity; /* elements, or entries */
};

enum { CRYSTAL_BUFFERS = 2 };

/* Whether the collector gives an allocation of that size for wanted bytes. */
bool crystal_size_fits(uint64_t size, uint64_t wanted);

/* Whether the allocation is a String. */
bool crystal_is_string(const struct image *image, const struct allocation_index *index,
		       allocation_id id);

/*
 * The buffers of the object in the allocation that is said to be such a container; returns how many
 * there are.
 */
size_t crystal_find_buffers(const struct image *image, const struct allocation_index *index,
			    allocation_id object, enum crystal_container container,
			    struct crystal_buffer ret[static CRYSTAL_BUFFERS]);

/*
 * Whether the object in the allocation may be such a container: as many elements as it has room for
 * at most, and a buffer with that room.
 */
bool crystal_may_be(const struct image *image, const struct allocation_index *index,
		    allocation_id object, enum crystal_container container);

#endif
