/*
 * What is behind struct typing, for the files that make it.
 *
 *	typing.c     what was found, and its names
 *	fit.c        whether memory looks like a value of a type, and how well it fits a block
 *	follow.c     from each typed pointer to what it leads to, on and on
 *	infer.c      what only "void *", a union or a header lead to, group by group
 */
#ifndef ANALYZER_TYPES_TYPING_PARTS_H
#define ANALYZER_TYPES_TYPING_PARTS_H

#include "analyzer/base/address_map.h"
#include "analyzer/types/casts.h"
#include "analyzer/types/typing.h"

enum {
	FIT_BITS = 3,
	TYPE_SHIFT = FIT_BITS + 1, /* the bit between says that it was inferred */
	IS_INFERRED = 1 << FIT_BITS,
	NO_CONTEXT = 0,
};

#define OF_VARIABLE (UINT64_C(1) << 63)
#define OF_ELEMENT  (UINT64_C(1) << 32)

/*
 * How an allocation was led to: by the word at offset in an allocation, or by that number of
 * origins. All zeros is none, so what nothing leads to takes no memory.
 */
struct kept_step {
	uint32_t from;	 /* id plus FROM_ALLOCATION, FROM_ORIGIN, or 0 */
	uint32_t offset; /* in words; or number */
};

enum { FROM_ORIGIN = 1, FROM_ALLOCATION = 2 };

/* A pointer that is in no allocation. */
struct origin {
	uint64_t address;
	type_number type; /* of the value that it is a part of; NO_TYPE: it is in a register */
	uint32_t offset;  /* in that */
};

/*
 * The members on the way from a variable to an allocation. A member that comes again goes back to
 * where it came first, so that all nodes of a list or tree have one context.
 */
struct context {
	uint64_t way;	/* of a slot; the first: OF_VARIABLE and its address */
	uint32_t place; /* a member, or ELEMENT_OF() one; NO_MEMBER: it is the first */
	uint32_t parent;
	uint32_t depth;
};

/* Memory that has a type and is no allocation: outside of the heap, or within one. */
struct place {
	uint64_t address;
	type_number type;
	allocation_id in; /* or NO_ALLOCATION */
	uint32_t context;
};

/* A value within a block that may be the header of something larger, whose tag says what. */
struct headed {
	uint64_t address;
	uint64_t room; /* up to the next one, or the end of the block */
	type_number type;
	allocation_id in;
	uint32_t context;
	uint32_t tag;
};

struct typing {
	struct typing_input input;
	struct type_table *table;
	struct slot_table slots;
	const char *limit;     /* the first that was reached: see typing_limit() */
	type_number character; /* "char"; NO_TYPE: there is none */
	size_t count;	       /* of allocations that have a type */
	ARRAY(uint32_t) types; /* by allocation: type, whether it was inferred, and fit */
	ARRAY(struct kept_step) steps;
	ARRAY(struct origin) origins;
	/* The following are released when all is typed. */
	ARRAY(uint32_t) contexts; /* by allocation */
	HASH_TABLE(struct context) paths;
	ARRAY(allocation_id) queue; /* whose pointers are to be followed */
	size_t queued_from;
	ARRAY(struct place) places; /* the same */
	struct address_map known;   /* places and headed ones, by a hash */
	ARRAY(struct headed) headed;
};

/* ---- typing.c */

static inline const struct data_type *typing_type(const struct typing *typing, type_number number)
{
	return type_get(typing->table, number);
}

static inline bool is_aggregate(const struct data_type *type)
{
	return type->kind == TYPE_STRUCTURE || type->kind == TYPE_UNION;
}

static inline enum type_fit known_fit(const struct typing *typing, allocation_id id)
{
	return (enum type_fit)(typing->types.items[id] & ((1 << FIT_BITS) - 1));
}

static inline type_number known_type(const struct typing *typing, allocation_id id)
{
	return typing->types.items[id] >> TYPE_SHIFT;
}

static inline bool has_step(const struct typing *typing, allocation_id id)
{
	return typing->steps.items[id].from != 0;
}

static inline struct memory_range range_of(const struct typing *typing, allocation_id id)
{
	uint64_t start = allocation_start(typing->input.index, id);

	return (struct memory_range){ start, start + allocation_size(typing->input.index, id) };
}

static inline allocation_id find_used(const struct typing *typing, uint64_t address)
{
	allocation_id id = allocation_find(typing->input.index, address);

	return id != NO_ALLOCATION && allocation_state(typing->input.index, id) == BLOCK_USED
		       ? id
		       : NO_ALLOCATION;
}

/* More than that is left without a type: "more than N WHAT". */
static inline void typing_reach_limit(struct typing *typing, const char *what)
{
	if (!typing->limit)
		typing->limit = what;
}

/* ---- fit.c */

/* How a value of a type would look in memory: what speaks against it, and for it. */
struct conformity {
	bool is_violated;
	bool has_tail;	    /* its last member is an array of any size */
	uint32_t confirmed; /* pointers that lead to what they should */
	uint32_t exact;	    /* of these, to what is just as large */
	uint32_t doubtful;  /* to what is larger; elements of the tail that violate it */
};

/* Whether nothing is left of the range but what malloc rounds, or the smallest chunk has. */
bool is_just_as_large(struct memory_range range, uint64_t size);

/* Whether text stands at that address: printable bytes up to a zero, or of some length. */
bool is_text(const struct typing *typing, uint64_t address);

/* Whether text stands there in the block, which ends with it but for what malloc rounds. */
bool is_filled_with_text(const struct typing *typing, struct memory_range range, uint64_t address);

/* The last member if it may be of any size: where it begins, and the type of its elements. */
bool type_find_tail(const struct typing *typing, type_number number, uint64_t *ret_offset,
		    type_number *ret_element);

/* Whether a structure begins with all members of another one, or with a member of that type. */
bool type_begins_with(const struct typing *typing, type_number number, type_number header);

struct error *typing_conforms(struct typing *typing, uint64_t address, type_number number,
			      struct conformity *ret);

/*
 * How much of a structure the block begins with if it has not all of it: what stands behind that is
 * something else. 0: it does not look like it.
 */
struct error *typing_find_cut(struct typing *typing, struct memory_range range, type_number number,
			      uint64_t *ret);

/* The same of what stands behind the structure, whose last member is an array of any size. */
struct error *typing_conforms_behind(struct typing *typing, struct memory_range range,
				     type_number number, struct conformity *ret);

/*
 * Whether it may be one value, with a tail or without, or with what it points to behind it; else
 * FIT_NONE.
 */
enum type_fit typing_fit_of_one(struct typing *typing, struct memory_range range,
				type_number number);

struct error *typing_find_fit(struct typing *typing, struct memory_range range, type_number number,
			      enum type_fit *ret);

/* ---- follow.c */

/* The allocation is of the type; its own pointers are to be followed. */
struct error *typing_set(struct typing *typing, allocation_id id, type_number number,
			 enum type_fit fit, bool is_inferred);

/* What stands in a block is known to be of that type, not only its header; so is the block. */
struct error *typing_add_region(struct typing *typing, const struct headed *headed,
				type_number number);

/* Follow the pointers of all variables, or of what was set since. */
struct error *typing_follow_variables(struct typing *typing);
struct error *typing_follow_queue(struct typing *typing);

/* ---- infer.c */

struct error *typing_infer(struct typing *typing);

#endif
