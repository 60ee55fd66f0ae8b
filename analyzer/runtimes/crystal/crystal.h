/*
 * Programs written in Crystal: which allocations are their objects, what these hold, their fibers.
 *
 * An object begins with the number of its type (types.h), and was allocated for the type's size,
 * with or without pointers. Other memory may look like that by chance, such as the elements of an
 * array of numbers; an object's buffer is no object.
 */
#pragma once

#include "allocators/boehm/rounding.h"
#include "analyzer/runtimes/crystal/types.h"
#include "analyzer/runtimes/runtimes.h"

extern const struct runtime runtime_crystal;

struct crystal;

/* The program's objects, which must be known. */
struct crystal *crystal_of(const struct runtimes *runtimes);

/* The number of the allocation's type; 0: it is no object. */
uint32_t crystal_type_of(const struct crystal *crystal, allocation_id id);

/*
 * The classes of Crystal's library that hold buffers: memory without a type number.
 *
 *	String  | id | bytes | characters | text ... 0 |
 *	Array   | id | size | capacity | offset | elements |
 *	Deque   | id | start | size | capacity | elements |
 *	Hash    | id | first | entries | indices | size | deleted | how indexed |
 *
 * The elements of an array that was shifted begin before where it points. A hash has twice as many
 * indices as it has room for entries; without any, it is searched from end to end. A Set is a Hash.
 * All are of Crystal 1.0 to 1.21, src/{string,array,deque,hash}.cr.
 */
enum { STRING_HEADER = 12 }; /* bytes before a String's text */

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

/* True if the collector returns that size for a request of wanted bytes. */
static inline bool crystal_size_fits(uint64_t size, uint64_t wanted)
{
	return boehm_rounds_to(size, wanted, 1);
}

/*
 * The size of each of capacity elements, at least one, in a buffer of that size. The collector
 * gives up to 16 bytes more than asked for; elements of a word or more are whole words, smaller
 * ones powers of two.
 */
uint64_t crystal_element_size(uint64_t size, uint64_t capacity);

/* True if the allocation is a String. */
bool crystal_is_string(const struct runtime_context *context, allocation_id id);

/* The buffers of the object, if it is such a container; returns their count. */
size_t crystal_find_buffers(const struct runtime_context *context, allocation_id object,
			    enum crystal_container container,
			    struct crystal_buffer ret[static CRYSTAL_BUFFERS]);

/*
 * True if the object may be such a container: it has at most as many elements as room, and a buffer
 * with that room.
 */
bool crystal_may_be(const struct runtime_context *context, allocation_id object,
		    enum crystal_container container);

/* Visit the numbers of an object that is a container. */
struct error *crystal_visit_container(const struct runtime_context *context, allocation_id object,
				      const struct structure_visitor *visitor);

/* The buffers of an object of the program; returns their count. */
size_t crystal_buffers_of(struct crystal *crystal, allocation_id id,
			  struct crystal_buffer ret[static CRYSTAL_BUFFERS]);

/* "the elements of the Array(Foo)"; lives as long as crystal, or is NULL. */
const char *crystal_phrase(struct crystal *crystal, const char *part, uint64_t object);

/* True if a function of the program begins at address. */
bool crystal_is_function(const struct crystal *crystal, uint64_t address);

/*
 * Remove closure data from the objects: the variables that a block captured, without a type number.
 *
 * The holder of a Proc holds a pair, | function | closure data |, and nothing else refers to
 * closure data but that of blocks within the block. An object, too, may stand beside a function: in
 * ->object.method, and in what C is given to call back. But then other memory holds the object as
 * well, or the function is a method.
 */
struct error *crystal_drop_closures(const struct runtime_context *context,
				    const struct crystal_types *types, struct bitmap *objects);

/*
 * Add the program's fibers, recognised by shape; no symbols are needed. A class Fiber begins as
 * below in all versions from 1.0 to 1.21. Its other fields differ between versions, and are found
 *by what most such objects agree on.
 *
 *	| type id | stack top | resumable | stack | ... | stack bottom |
 *
 *	stack          stack top               stack bottom
 *	| not in use   | saved registers | frames ... |
 *
 * A fiber that waits has all its registers saved at the stack top. One that has ended is no longer
 * on the list of all fibers, and its stack may be used by another: it is left out.
 *
 * *ret_type is the type id that all have, 0 if there are none.
 */
struct error *crystal_find_fibers(const struct runtime_context *context, struct fibers *fibers,
				  uint32_t *ret_type);

/* Visit the words by which the object at address is a fiber. */
struct error *crystal_visit_fiber(uint64_t address, const struct structure_visitor *visitor);

/* The registers that a waiting fiber saved; false if they are not in the dump. */
bool crystal_fiber_registers(const struct image *image, const struct fiber *fiber,
			     struct frame_state *ret);

/*
 * Memory without a type number, by the member that holds it: "TCPSocket@in_buffer".
 *
 * Where nine in ten of the allocations to which a member of a class refers are no objects, these
 * are parts, named after it; so are those to which elements of a container's buffer refer,
 * "Array(Slice(UInt8))@buffer[]", and what parts refer to in turn, "Scribble@pages[]". Of several
 * that hold an allocation, what refers to its start comes first, then the member with more parts.
 *
 * The numbers of parts follow those of types.
 */
struct crystal_parts;

/* The objects are known, and borrowed. */
struct error *crystal_parts_create(struct crystal *crystal, const struct runtime_context *context,
				   const struct bitmap *objects, struct crystal_types *types,
				   struct crystal_parts **ret);
void crystal_parts_destroy(struct crystal_parts *parts);

bool crystal_parts_find(const struct crystal_parts *parts, allocation_id id,
			struct object_part *ret);

bool crystal_parts_have(const struct crystal_parts *parts, uint64_t number);

/*
 * "held by TCPSocket@in_buffer", or "held by TCPSocket+0x60" where debug information does not name
 * the member; NULL only if memory is short. Lives as long as the parts.
 */
#define HELD_BY "held by "
const char *crystal_part_name(struct crystal_parts *parts, uint64_t number);
