/*
 * Which type each allocation is of, by the debug information of the program.
 *
 * What is known for certain comes first: variables and their types. Each pointer in them leads to
 * an allocation, which is of the type that it points to if that fits; its pointers lead on. The
 * step that led to each allocation first is kept, so that it can be said why.
 *
 *	static struct table *table  ->  struct table  ->  .rows: struct row[]  ->  .next: struct row
 *
 * How well a type fits is kept, too: what fits better displaces what fits worse, and size alone
 * makes no array.
 *
 * The user may state the type of an allocation, which then leads on as a variable does, or deny it.
 */
#pragma once

#include "analyzer/base/progress.h"
#include "analyzer/heap/index.h"
#include "analyzer/program/debug/type_table.h"

/* From the worst on. */
enum type_fit {
	FIT_NONE,
	FIT_REGION, /* a value somewhere in it, as in the block of a pool */
	FIT_PART,   /* the first members of a value, and something else behind them */
	FIT_PREFIX, /* a value, and something else behind it */
	FIT_ARRAY,
	FIT_TABLE, /* values in a hash table of Rust */
	FIT_TAIL,  /* a structure whose last member is an array of any size */
	FIT_ONE,
	FIT_LIKE,	/* as siblings do (siblings.h); no allocation is kept as that */
	FIT_LIKE_ARRAY, /* the same, as an array */
	FITS
};

struct typed {
	type_number type; /* of the value, or of each element */
	enum type_fit fit;
	bool is_inferred; /* by code, tags and contents: no declaration says so */
	bool is_stated;	  /* by the user */
};

/* True if its values are inside of it, rather than at its start. */
static inline bool typed_is_within(struct typed typed)
{
	return typed.fit == FIT_REGION || typed.fit == FIT_TABLE;
}

/* True if it is only likely. */
static inline bool typed_is_like(struct typed typed)
{
	return typed.fit == FIT_LIKE || typed.fit == FIT_LIKE_ARRAY;
}

/* The user's statement about an allocation. */
struct type_statement {
	allocation_id id;
	type_number type;
	bool is_denied; /* it is not of the type */
};

/* Changes that a statement made to other allocations. */
struct type_changes {
	uint64_t typed;	  /* have a type that they did not have */
	uint64_t untyped; /* have none any more */
};

/* The pointer that led to an allocation. */
struct type_step {
	allocation_id from; /* which holds it; NO_ALLOCATION: none does */
	uint64_t address;   /* where it stands; in a register: the frame of its function */
	bool is_in_register;
	bool led_to_other; /* the type of the allocation is not the one that it points to */
};

struct classes;
struct runtimes;

struct typing_input {
	const struct image *image;
	const struct allocation_index *index;
	struct debug *debug;
	struct classes *classes;	 /* NULL: no vtables are known */
	const struct runtimes *runtimes; /* whose objects were looked for; or NULL */
	const struct type_table *types;
	/*
	 * Only what names these is looked for: of each member, by each path from a variable, only
	 * so many pointers are followed as tell what it leads to. NULL: the types of all are.
	 */
	const struct bitmap *leaked;
	struct memory_account *account;
	struct progress *progress;
};

struct typing;

/* All of the input is borrowed and outlives the typing. */
struct error *typing_create(const struct typing_input *input, struct typing **ret);
void typing_destroy(struct typing *typing);
DEFINE_CLEANUP(typing_destroy, struct typing *)

/*
 * Find all types anew, with this and all earlier statements; of one allocation the last one of a
 * type counts, and to deny that type withdraws it. A structure is no larger than the allocation.
 * After an error, all is as before.
 */
struct error *typing_state(struct typing *typing, const struct type_statement *statement,
			   struct type_changes *ret);

/* True if the user stated the allocation's type. */
bool typing_is_stated(const struct typing *typing, allocation_id id);

const struct type_table *typing_types(const struct typing *typing);

/* False: nothing is known of it. */
bool typing_of(const struct typing *typing, allocation_id id, struct typed *ret);

/*
 * As "struct conn", "struct conn[]", "block, beginning with struct conn",
 * "part of struct conn", "block with struct conn", "hash table of conn", "probably struct conn";
 * lives as long as struct debug. NULL: memory is short.
 */
const char *typing_name(const struct typing *typing, struct typed typed);

/*
 * True if that is its name, or "conn" is for "struct conn"; a likely type has the name of the type.
 */
bool typed_has_name(const struct typing *typing, struct typed typed, const char *name);

/* How many values of the type pointers with types lead to within that allocation. */
uint32_t typing_values_in(const struct typing *typing, allocation_id id, type_number number);

/* False: nothing with a type led to it. It may have led to what has no type itself. */
bool typing_step_to(const struct typing *typing, allocation_id id, struct type_step *ret);

/*
 * A hash table of Rust: elements downwards from control, where a byte for each says whether it is
 * there.
 *
 *	| room | element count - 1 | ... | element 1 | element 0 | count bytes | bytes again |
 *	                                                         control
 */
struct hash_table {
	uint64_t control;
	uint64_t count; /* a power of two */
};

enum { TABLE_EMPTY = 0x80 }; /* set in the byte of an element that is not there */

/* The table that fills the range, of elements of that size; false: none does. */
bool hash_table_of(const struct allocation_index *index, struct memory_range range,
		   uint64_t element_size, struct hash_table *ret);

/* Why some allocations have no type that more time would find, as "more than ..."; or NULL. */
const char *typing_limit(const struct typing *typing);

/* How many allocations have a type. */
size_t typing_count(const struct typing *typing);

/* True if pointers were skipped because their members had led to enough. */
bool typing_is_partial(const struct typing *typing);
