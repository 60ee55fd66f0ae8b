/*
 * The implementation of struct typing, for the files that build it.
 *
 *	typing.c     what was found, and its names
 *	fit.c        whether memory looks like a value of a type, and how well it fits a block
 *	follow.c     what a typed pointer leads to
 *	sources.c    all pointers of what has a type, on and on
 *	contexts.c   by which members of which variable
 *	ahead.c      has memory fetched for that
 *	objects.c    objects of C++ classes, by their vtables, and of runtimes
 *	nodes.c      what links of containers lead to, which say less than the container's name
 *	rust.c       the same of Rust's library: elements, hash tables, what is behind "dyn"
 *	erased.c     what std::function and std::any hold
 *	statements.c what the user says of allocations
 *	infer.c      what a "void *", a union or a header leads to: see inference.h
 *	buffers.c    text and numbers that a number beside their pointer counts
 *	tags.c       what the tag beside a union says of it
 *	containing.c structures that end in text, by pointers to the text
 *	inside.c     what stands in blocks that a "char *" or "void *" leads into
 */
#pragma once

#include "analyzer/base/address_map.h"
#include "analyzer/image/view.h"
#include "analyzer/types/casts.h"
#include "analyzer/types/typing.h"

enum {
	FIT_BITS = 4,
	TYPE_SHIFT = FIT_BITS + 1, /* the bit between says that it was inferred */
	IS_INFERRED = 1 << FIT_BITS,
	NO_CONTEXT = 0,
	NODE_HEADERS = 6,
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

/* A step in 6 bytes, because there is one for each allocation: see typing_step(). */
struct short_step {
	uint32_t number; /* of what leads there: an allocation, or one of origins or far_steps */
	uint16_t place;	 /* the offset plus AT_START; BY_ORIGIN; BY_FAR_STEP; or 0 */
} __attribute__((packed));

/* The facts about an allocation, together: one cache miss. */
struct known_allocation {
	uint32_t type; /* and whether it was inferred, and fit: see typing_decode() */
	struct short_step step;
} __attribute__((packed));

/* malloc's rounding adds less than this. */
enum { MALLOC_UNIT = 16 };

enum { BY_ORIGIN = 1, BY_FAR_STEP, AT_START };

/* A pointer that is in no allocation. */
struct origin {
	uint64_t address;
	type_number type : 31; /* of the value that it is a part of; NO_TYPE: it is in a register */
	bool led_to_other : 1; /* its target turned out to have another type */
	uint32_t offset;       /* in that value */
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

/* How many values of each type are known to stand in each block. */
struct region_count {
	uint64_t key; /* see region_key() */
	uint32_t count;
};

struct region_values {
	HASH_TABLE(struct region_count);
};

static inline uint64_t region_key(allocation_id in, type_number type)
{
	return (uint64_t)in << 32 | type;
}

/* A value within a block that may be the header of something larger, whose tag says what. */
struct headed {
	uint64_t address;
	uint64_t room; /* up to the next one, or the end of the block */
	type_number type;
	allocation_id in;
	struct kept_step step; /* to it */
	uint32_t context;
	uint32_t tag;
};

/* The target, within a block, of a "void *" or a member of a union. */
struct inner {
	uint64_t address;
	uint64_t slot_address; /* of the pointer, which is of a value of the type, at offset */
	type_number type;
	uint32_t offset;
	allocation_id in;
	struct kept_step step; /* to it */
	uint32_t context;
	bool is_known; /* its type was found */
};

/* A block that a "char *" or "void *" leads into; what stands there only code knows. */
struct entered {
	allocation_id id;
	uint32_t context;
	struct kept_step step;
};

/* Targets of pointers in allocations that are followed soon: see ahead.c. */
struct targets_ahead {
	size_t count;
	uint64_t words[MOST_ADDRESSES + 1];
	allocation_id ids[MOST_ADDRESSES];
};

/* The last reads and lookups: the same and neighbouring addresses are found faster. */
struct last_used {
	struct view view;
	size_t hint;
	struct heap_bounds bounds;
	struct found_address {
		uint64_t address; /* 0: none */
		allocation_id id;
	} found[256];
	struct targets_ahead ahead;
};

static inline struct found_address *found_place(struct last_used *last, uint64_t address)
{
	return &last->found[(address >> 4) % 256];
}

/* How many pointers of a slot were followed, in values of a context: see typing_input.leaked. */
struct followed {
	uint64_t key; /* a hash of both */
	uint32_t count;
};

struct typing {
	struct typing_input input;
	struct last_used *last; /* which changes whenever something is read */
	const struct type_table *table;
	const struct data_type *types; /* of the table, by number */
	unsigned int word;	       /* bytes of one */
	unsigned int header; /* before what pointers to allocations lead to; 0 but while calls of a
				wrapper that adds it are compared */
	struct slot_table slots;
	const char *limit;			/* the first that was reached: see typing_limit() */
	type_number character;			/* "char"; NO_TYPE: there is none */
	type_number node_headers[NODE_HEADERS]; /* NO_TYPE: there is none */
	bool has_rust;				/* types of Rust's library */
	bool has_erased;			/* std::function or std::any */
	bool has_telling_headers;		/* of libc++: see nodes.c */
	bool is_partial;			/* pointers were left out */
	size_t count;				/* of allocations that have a type */
	ARRAY(struct known_allocation) allocations; /* by id */
	struct bitmap reached;			    /* those with a type or a step */
	ARRAY(struct kept_step) far_steps;	    /* from far behind the start of an allocation */
	ARRAY(struct origin) origins;
	struct region_values values;
	ARRAY(struct type_statement) statements; /* by allocation */
	/* The following are released when all is typed. */
	ARRAY(uint32_t) contexts; /* by allocation */
	HASH_TABLE(struct context) paths;
	ARRAY(allocation_id) queue; /* whose pointers are to be followed */
	size_t queued_from;
	size_t sorted_to;     /* of the queue, as far as that was worth it: see sources.c */
	struct bitmap sorted; /* for that */
	HASH_TABLE(struct followed) followed; /* empty: all pointers are */
	ARRAY(struct place) places;	      /* the same */
	struct address_map known;	      /* places and headed ones, by a hash */
	struct address_map variables; /* by their addresses: static structures, and their types */
	struct address_map nodes; /* types of what links lead to, by a hash of where they stand */
	ARRAY(struct headed) headed;
	ARRAY(struct entered) entered;
	ARRAY(struct headed) opaque; /* what variables lead to, and the types that they say */
	ARRAY(struct inner) inner;
	HASH_TABLE(struct origin) region_slots; /* that led to allocations, by address */
};

/* ---- ahead.c */

/* Let the processor fetch what the next allocations of the queue will need. */
void typing_fetch_ahead(const struct typing *typing);

/* ---- typing.c */

static inline const struct data_type *typing_type(const struct typing *typing, type_number number)
{
	return &typing->types[number];
}

static inline bool is_aggregate(const struct data_type *type)
{
	return type->kind == TYPE_STRUCTURE || type->kind == TYPE_UNION;
}

static inline enum type_fit known_fit(const struct typing *typing, allocation_id id)
{
	return (enum type_fit)(typing->allocations.items[id].type & ((1 << FIT_BITS) - 1));
}

static inline type_number known_type(const struct typing *typing, allocation_id id)
{
	return typing->allocations.items[id].type >> TYPE_SHIFT;
}

/* True if it waits for its turn: see typing_let_wait(). */
static inline bool is_waiting(const struct typing *typing, allocation_id id)
{
	return (typing->allocations.items[id].type & ((1 << TYPE_SHIFT) - 1)) == IS_INFERRED;
}

static inline bool has_step(const struct typing *typing, allocation_id id)
{
	return typing->allocations.items[id].step.place != 0;
}

struct kept_step typing_step(const struct typing *typing, allocation_id id);
struct error *typing_set_step(struct typing *typing, allocation_id id, struct kept_step step);

/* The pointer that the step is; false: it is in a register, or there is no step. */
bool typing_read_step(const struct typing *typing, struct kept_step step, uint64_t *ret);

static inline struct memory_range range_of(const struct typing *typing, allocation_id id)
{
	return allocation_range_near(typing->input.index, id, &typing->last->hint);
}

static inline allocation_id find_used(const struct typing *typing, uint64_t address)
{
	struct found_address *found = found_place(typing->last, address);
	allocation_id id = found->id;

	if (!heap_bounds_hold(&typing->last->bounds, address))
		return NO_ALLOCATION;
	if (found->address != address) {
		allocation_find_many(typing->input.index, &address, 1, &typing->last->hint, &id);
		*found = (struct found_address){ address, id };
	}
	return id != NO_ALLOCATION && bitmap_get(allocation_used(typing->input.index), id)
		       ? id
		       : NO_ALLOCATION;
}

static inline bool read_bytes(const struct typing *typing, uint64_t address, void *ret, size_t size)
{
	return view_read(&typing->last->view, address, ret, size);
}

static inline bool read_word(const struct typing *typing, uint64_t address, uint64_t *ret)
{
	return view_word(&typing->last->view, address, ret);
}

/* More than that is left without a type: "more than N WHAT". */
static inline void typing_reach_limit(struct typing *typing, const char *what)
{
	if (!typing->limit)
		typing->limit = what;
}

/* Decode an allocation's type; false: no more than its size is known. */
bool typing_decode(const struct typing *typing, uint32_t kept, struct typed *ret);

/* Find all types. What it worked with is there until typing_release_work(). */
struct error *typing_find_all(struct typing *typing);
void typing_release_work(struct typing *typing);

/* One more value of the type stands in the block. */
struct error *typing_count_value(struct typing *typing, allocation_id in, type_number number);

/* ---- statements.c */

bool typing_is_denied(const struct typing *typing, allocation_id id, type_number number);

/* ---- fit.c */

/* How a value of a type would look in memory: what speaks against it, and for it. */
struct conformity {
	bool is_violated;
	bool has_tail;	    /* its last member is an array of any size */
	uint32_t confirmed; /* pointers that lead to what they should */
	uint32_t vague;	    /* of these, "void *" and members of unions, which may lead anywhere */
	uint32_t exact;	    /* to what is just as large */
	uint32_t known;	    /* to what is known to be of the type that they say */
	uint32_t functions; /* to code */
	uint32_t doubtful;  /* to what is larger; elements of the tail that violate it */
};

/*
 * True if it is the link of a list or tree: only a few pointers to its own type; or a union of such
 * a pointer and a filler.
 */
bool typing_is_link(const struct typing *typing, type_number number);

/* True if the rest of the range is only malloc's rounding, or that of the smallest chunk. */
bool is_just_as_large(const struct typing *typing, struct memory_range range, uint64_t size);

/* True if text is at that address: printable bytes up to a zero, or of some length. */
bool is_text(const struct typing *typing, uint64_t address);

/* True if text is there in the block, and ends with it, except for malloc's rounding. */
bool is_filled_with_text(const struct typing *typing, struct memory_range range, uint64_t address);

/* The last member if it may be of any size: where it begins, and the type of its elements. */
bool type_find_tail(const struct typing *typing, type_number number, uint64_t *ret_offset,
		    type_number *ret_element);

/*
 * How many bytes text takes, from the start of the structure at the address on, if that ends in
 * characters and text begins there: the text may be longer than they are. 0: there is none.
 */
uint64_t typing_text_at_end(const struct typing *typing, uint64_t address, type_number number);

/* True if a word of the range refers to a used allocation. */
bool typing_refers_to_heap(const struct typing *typing, struct memory_range range);

/* How many bytes short text takes that begins there, with its zero; 0: there is none. */
uint64_t typing_text_size(const struct typing *typing, uint64_t address, uint64_t most);

/* True if a structure begins with all members of another one, or with a member of that type. */
bool type_begins_with(const struct typing *typing, type_number number, type_number header);

struct error *typing_conforms(struct typing *typing, uint64_t address, type_number number,
			      struct conformity *ret);

/* Like typing_conforms(), but those of the first words that have a bit in odd may hold anything. */
struct error *typing_conforms_but(struct typing *typing, uint64_t address, type_number number,
				  uint64_t odd, struct conformity *ret);

/* Bits of the first words that are numbers as wide as a pointer, and so may be one in disguise. */
uint64_t typing_wide_numbers(const struct typing *typing, type_number number);

/* Bits of the first words of a value. */
struct pointer_words {
	uint64_t filled; /* pointers that are not null, but for those to its own type */
	uint64_t odd;	 /* pointers that do not lead to what they should */
};

struct error *typing_read_pointers(struct typing *typing, uint64_t address, type_number number,
				   struct pointer_words *ret);

/*
 * How much of a structure the block begins with if it has not all of it: what stands behind that is
 * something else. 0: it does not look like it.
 */
struct error *typing_find_cut(struct typing *typing, struct memory_range range, type_number number,
			      uint64_t *ret);

/*
 * Like typing_conforms(), for the tail of the structure, whose last member is an array of any size.
 */
struct error *typing_conforms_behind(struct typing *typing, struct memory_range range,
				     type_number number, struct conformity *ret);

/* Set ret to whether the targets of a value's pointers look like their types, too. */
struct error *typing_conforms_led_to(struct typing *typing, uint64_t address, type_number number,
				     struct conformity *ret);

/* Set *ret if a pointer to a structure in the value points to text instead. */
struct error *typing_leads_to_text(struct typing *typing, uint64_t address, type_number number,
				   bool *ret);

/*
 * Test whether the range looks like an array of pointers of that type, each null or with a target
 * that looks like its type; the last ones may never have been written.
 */
struct error *typing_conforms_pointers(struct typing *typing, struct memory_range range,
				       type_number pointer, struct conformity *ret);

/* True if a pointer of the structure points behind it in the same block. */
bool typing_points_behind(struct typing *typing, struct memory_range range, type_number number);

/*
 * How the range fits one value, with a tail or without, or with its pointers' target behind it;
 * else FIT_NONE.
 */
enum type_fit typing_fit_of_one(struct typing *typing, struct memory_range range,
				type_number number);

struct error *typing_find_fit(struct typing *typing, struct memory_range range, type_number number,
			      enum type_fit *ret);

/* Set *ret if the first structures of the range look like that; others may follow them. */
struct error *typing_begins_as_array(struct typing *typing, struct memory_range range,
				     type_number number, bool *ret);

/* ---- contexts.c */

/* The context of what is one way on from another; NO_CONTEXT if there are too many. */
uint32_t typing_enter_context(struct typing *typing, uint32_t parent, uint64_t way, uint32_t place);

/* Like typing_enter_context(), for the target of a value's slot. */
uint32_t typing_enter_slot(struct typing *typing, uint32_t context, const struct slot *slot);

/* ---- follow.c */

/* A pointer in memory: where it stands, and what it is to point to. */
struct pointer {
	allocation_id from; /* or NO_ALLOCATION */
	uint64_t offset;    /* in it */
	uint64_t address, value;
	allocation_id to; /* used allocation with the value, or NO_ALLOCATION */
	type_number target;
	uint32_t context; /* of what it leads to */
	type_number type; /* of the value that it is a part of, or NO_TYPE; and where in it */
	uint32_t part;
	bool is_choice;
	bool is_table;	   /* it leads into the middle of a hash table */
	bool has_rivals;   /* another pointer may stand there */
	bool is_in_region; /* of from, whose own type does not tell what stands there */
	bool is_doubtful;  /* it may stand behind all that the program asked for */
};

/* Give the pointer's target the type that it points to, if that fits better than the known one. */
struct error *typing_follow(struct typing *typing, const struct pointer *pointer);

/*
 * Like typing_follow(), for a pointer to the start of an allocation without a type: note the type
 * without a fit, and compare memory with it when its turn in the queue comes, or another pointer
 * says something else.
 */
struct error *typing_let_wait(struct typing *typing, const struct pointer *pointer);
struct error *typing_end_wait(struct typing *typing, allocation_id id);

/* The allocation is of the type; its own pointers are to be followed. */
struct error *typing_set(struct typing *typing, allocation_id id, type_number number,
			 enum type_fit fit, bool is_inferred);

/* The value in a block has that type, not only its header's; so has the block. */
struct error *typing_add_region(struct typing *typing, const struct headed *headed,
				type_number number);

/* The allocation is of the type, which nothing but itself says; the way tells its context. */
struct error *typing_begin_at(struct typing *typing, allocation_id id, type_number number,
			      enum type_fit fit, uint64_t way, bool is_inferred);

/* Give allocations the types that the user stated. */
struct error *typing_set_stated(struct typing *typing);

/* ---- sources.c */

/* Follow the pointers of all variables, or of what was set since. */
struct error *typing_follow_variables(struct typing *typing);
struct error *typing_follow_queue(struct typing *typing);

/* ---- objects.c */

/* Give objects of C++ classes, and of runtimes, the types of these. */
struct error *typing_set_objects(struct typing *typing);

/* True if the user or a runtime states the allocation's type: no other evidence counts then. */
bool typing_is_settled(const struct typing *typing, allocation_id id);

/* ---- nodes.c */

/* A pointer in a value of a type: its offset there, where it stands, and the address in it. */
struct link {
	type_number whole;
	uint32_t offset;
	uint64_t address, value;
};

struct linked {
	type_number target; /* at first: what the pointer is declared with */
	bool is_told;	    /* by a word beside it, though its declaration leaves it open */
	uint64_t inside;    /* it leads nowhere: a value of the target begins there; 0: it does */
	bool is_table;	    /* it leads into the middle of a hash table of these: see rust.c */
};

void typing_find_node_headers(struct typing *typing);

/*
 * Find the target of a pointer: the declared one, unless that is only the header of a container's
 * nodes, or the bytes of a Vec's elements, or depends on words beside the pointer.
 */
struct error *typing_find_node(struct typing *typing, const struct link *link, struct linked *ret);

/* The number-th argument of a template, and how long it is; 0: there is none. */
size_t typing_find_argument(const char *arguments, size_t number, const char **ret);

/* The member, or element of an array, that the word at that offset is part of; NO_TYPE: none. */
type_number typing_enter(const struct typing *typing, type_number number, uint64_t *offset);

/* ---- erased.c */

/* True if it is the name of a holder whose own type does not tell that of its value. */
bool type_is_erased(const char *name);

/* Like typing_find_node(), for pointers that may be in such a holder. */
struct error *typing_find_erased(struct typing *typing, const struct link *link,
				 struct linked *ret);

/* ---- rust.c */

/* True if it is the name of a type that only Rust's library has. */
bool type_is_of_rust(const char *name);

/* Like typing_find_node(), for pointers of Rust's library. */
struct error *typing_find_in_rust(struct typing *typing, const struct link *link,
				  struct linked *ret);

/* ---- buffers.c */

/*
 * True if numbers beside a pointer to characters say how many its target has; or, beside a pointer
 * to numbers of any size, that its target is a buffer as large as the block: stale pointers may be
 * behind its used part.
 */
bool typing_is_counted(const struct typing *typing, struct memory_range range,
		       const struct link *link, const struct data_type *element);

/* True if a number beside a pointer says that its target has as many structures as it has room for.
 */
bool typing_are_counted(const struct typing *typing, struct memory_range range,
			const struct link *link, uint64_t size);

/*
 * Narrow the range of a pointer's target to the elements that are used, if a number beside the
 * pointer says how many these are, and another one how many the block has room for.
 */
bool typing_find_counted(const struct typing *typing, const struct link *link, type_number element,
			 struct memory_range *ret);

/* ---- tags.c */

/* The type of the number that covers the offset in a value of the type; NO_TYPE: none does. */
type_number typing_number_at(const struct typing *typing, type_number whole, uint64_t offset);

/*
 * The member of the union around a slot that the enumerator in its tag names, as "cm_for" names
 * "For". The slot is of a value of the type, and its pointer stands at the address. NULL: none.
 */
const struct type_member *tag_names(const struct typing *typing, type_number whole,
				    const struct slot *slot, uint64_t address);

/* The common identity of unions of one member, or headers of one type, with the same tag. */
struct ballot {
	uint64_t hash;	    /* 0: it counts for nothing */
	type_number header; /* NO_TYPE: it is a union's */
};

/* The target of a union, or the type of a header, that was found. */
struct vote {
	struct ballot ballot;
	type_number type; /* that most are of */
	size_t count, all;
};

struct voted_header {
	type_number type;
	bool is_told; /* its tags tell types apart */
};

struct votes {
	HASH_TABLE(struct vote) all;
	ARRAY(struct voted_header) headers;
};

void votes_release(struct votes *votes);
struct ballot ballot_of_header(const struct typing *typing, type_number header, uint64_t address);
struct error *votes_add(struct votes *votes, struct ballot ballot, type_number type, size_t count);

/*
 * The type that all votes, or nearly all of headers, are for; NO_TYPE: they are too few, or differ.
 * The tag proves the type if it belongs to a header whose tags tell types apart.
 */
type_number votes_elect(const struct votes *votes, struct ballot ballot, bool *ret_is_told);

/* True if the tag at the address, of a header whose tags tell types apart, is another type's. */
bool votes_refute(const struct typing *typing, const struct votes *votes, uint64_t address,
		  type_number type);

/* ---- inside.c */

/* Give blocks entered the types of structures that end in the text that was led to. */
struct error *typing_find_containing(struct typing *typing);

/* Find values in the blocks entered, of the types that code takes what is in them for. */
struct error *typing_search_inside(struct typing *typing, const struct casts *casts);

/* ---- infer.c */

struct error *typing_infer(struct typing *typing);
