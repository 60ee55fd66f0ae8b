/*
 * Programs written in Rust: which allocations are values behind "dyn", and which are buffers of Vec
 * and String or hash tables, without debug information.
 *
 * A reference to a value behind "dyn" is two words, the second of which is a vtable that the
 * compiler makes for a type and a trait, read-only once it is relocated:
 *
 *	| value | vtable |	vtable: | drop, or 0 | size | alignment | methods ... |
 *
 * A Vec or String is three words, in an order that the compiler chooses, the same for all of a
 * program:
 *
 *	| capacity | address of the elements | length |
 *
 * Three words like that may be anything. So a kind of place, the words at one offset of allocations
 * of one size, or each so many bytes in a larger one, is judged as a whole: see buffers.c. All is
 * of rustc 1.57 to 1.95, compiler/rustc_ty_utils and library/alloc; RawVec's fields are private and
 * their order is not promised.
 */
#pragma once

#include "analyzer/base/address_map.h"
#include "analyzer/base/array.h"
#include "analyzer/runtimes/runtimes.h"

extern const struct runtime runtime_rust;

/* A word that is the start of an allocation in use, in another one. */
struct rust_reference {
	allocation_id holder, target;
	struct memory_range range; /* of the target */
	uint64_t address, offset;  /* of the word, and in the holder */
	uint64_t holder_size;
	const uint8_t *bytes; /* of the holder, size of them in a row */
	uint64_t size;
};

/* The word that stands so many words behind the reference, or before it; false: none is there. */
bool rust_word_beside(const struct rust_reference *reference, int words, uint64_t *ret);

/* Call visit for the references in each used allocation, by address, until it fails. */
struct error *rust_visit_references(const struct runtime_context *context,
				    struct error *(*visit)(void *data,
							   const struct rust_reference *reference),
				    void *data);

/* ---- vtables.c */

struct rust_vtable {
	uint64_t address;
	uint64_t drop, size, alignment;
	uint64_t references; /* to allocations beside its address */
	uint64_t fitting;    /* of these, to what is as large as the value, or with two counts */
	uint32_t first;	     /* the number of the first one of the same type */
	char *name;	     /* of the type, or where the vtable is */
	bool is_named;
	bool is_right;
};

struct rust_values {
	ARRAY(struct rust_vtable) vtables;
	struct address_map numbers; /* of vtables, by address; those that are none have NO_VTABLE */
};

enum { NO_VTABLE = UINT32_MAX - 1 };

/*
 * All members are zero but for memory accounts. Finds all, and their names, which debug keeps; a
 * class is the first vtable of a type.
 */
struct error *rust_find_values(const struct runtime_context *context, struct debug *debug,
			       struct rust_values *ret, struct object_classes *ret_classes);
void rust_values_release(struct rust_values *values);

/* ---- buffers.c */

enum rust_role {
	RUST_NO_BUFFER,
	RUST_ELEMENTS, /* of a Vec, or of a VecDeque, whose third word may be another */
	RUST_TEXT,
	RUST_COUNTED_ELEMENTS, /* of a Vec */
};

/* Offsets of capacity and length, in words from that of the address. */
struct rust_layout {
	int8_t capacity, length;
};

struct rust_buffers {
	struct rust_layout layout; /* zeros: not known, there are no buffers */
	ARRAY(uint8_t) roles;	   /* by allocation */
};

/* Offset of the first of the three words, in words from that of the address. */
static inline int rust_layout_start(struct rust_layout layout)
{
	int start = layout.capacity < layout.length ? layout.capacity : layout.length;

	return start < 0 ? start : 0;
}

/* True if that many elements of some size fill the allocation, and no more are in use. */
bool rust_may_be_buffer(const struct allocation_index *index, struct memory_range range,
			uint64_t capacity, uint64_t length);

/* Like rust_may_be_buffer(), for bytes of text. */
bool rust_may_be_text(const struct allocation_index *index, struct memory_range range,
		      uint64_t capacity, uint64_t length);

struct error *rust_find_buffers(const struct runtime_context *context, struct rust_buffers *ret);

/* ---- tables.c */

/*
 * A HashMap or HashSet: hashbrown's RawTable, of 0.9 to 0.16. Elements stand in front of the
 *control bytes, one for each place, of which the first come again at the end:
 *
 *	| mask | address of control bytes | room left | count |, or with the mask behind the address
 *
 *	| ... element 1 | element 0 | control bytes | the first 16 again |
 *
 * The mask is a power of two less one. A control byte is 0xff if the place is empty, 0x80 if its
 * element was removed, else seven bits of its hash. Count and room left are as these say, and all
 * of it fills the allocation: so no table is a guess.
 */
struct rust_table {
	allocation_id id;
	uint64_t count, capacity; /* of elements */
	uint64_t header;	  /* the address of the four words */
	uint64_t rank;		  /* of several, the least */
};

struct rust_tables {
	ARRAY(struct rust_table) list; /* by id */
};

struct error *rust_find_tables(const struct runtime_context *context, struct rust_tables *ret);

/* NULL: it is none. */
const struct rust_table *rust_table_of(const struct rust_tables *tables, allocation_id id);

struct rust {
	struct object_space space;
	struct rust_values values;
	struct rust_buffers buffers;
	struct rust_tables tables;
};
