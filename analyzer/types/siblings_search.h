/*
 * The implementation of struct siblings, for the files that build it.
 *
 *	siblings.c  which type leaked allocations look like
 *	sibling_arrays.c  the same of arrays
 *	sibling_silence.c  those whose words say nothing
 *	unseen.c    whether types that were not seen may name them better
 */
#pragma once

#include "analyzer/types/siblings.h"
#include "analyzer/types/typing_parts.h"

enum { LEAST_SIBLINGS = 3 };

struct sibling_types {
	HASH_TABLE(struct sibling_type);
};

struct siblings {
	struct sibling_types types; /* by size once they are found */
	ARRAY(uint32_t) numbers;    /* by allocation: of its type, plus 1, and IS_ALONE; or 0 */
	size_t count;
	bool suffice;
};

enum { MOST_SIBLING_TYPES = 1 << 16 };

/*
 * Held ones that say as little as a leaked one whose pointers are null, and where all is zero: of a
 * type, of others, of none.
 */
struct silent_counts {
	uint32_t of_type[2], others[2], unknown[2];
	uint32_t compared;
	bool is_wanted; /* a leaked one may be of the type */
};

/* The types to look for, in which allocations. */
struct sibling_search {
	struct typing *typing;
	const struct bitmap *leaked; /* NULL: it is not asked what leaked */
	struct siblings *siblings;
	struct sibling_types *types;
	struct address_map sizes; /* of leaked ones without a type */
	ARRAY(type_number) plain; /* structures of nothing but pointers, once they are asked for */
	bool has_plain;
	ARRAY(struct silent_counts) silent; /* by type; none, if no leaked one is silent */
	type_number character; /* that stands for all of its kind; NO_TYPE: none was seen */
};

struct sibling_range {
	size_t first, end;
};

/* The types of that size, once they are sorted. */
struct sibling_range siblings_of_size(const struct sibling_types *types, uint64_t size);

enum resemblance {
	UNLIKE,
	LIKE_IF_ALONE, /* nothing speaks against it, and nothing for it */
	LIKE,
};

struct error *siblings_compare(struct sibling_search *search, allocation_id id,
			       const struct sibling_type *type, enum resemblance *ret);

/* ---- sibling_arrays.c */

/* True if held arrays of the type may tell of leaked ones. */
bool siblings_may_be_array(struct typing *typing, type_number type);

/* Set *ret if the allocation may be a structure of nothing but pointers rather than an array. */
struct error *siblings_may_be_plain(struct sibling_search *search, allocation_id id, bool *ret);

/* Like siblings_compare(), for arrays. */
struct error *siblings_compare_array(struct sibling_search *search, allocation_id id,
				     const struct sibling_type *type, enum resemblance *ret);

/* ---- sibling_silence.c */

/* Set *ret if types of that size may be silent in the leaked one, and mark these. */
struct error *siblings_want_silent(struct sibling_search *search, allocation_id id,
				   struct sibling_range range, bool *ret);

/* Count a held one of the size of the type of that number, if that is wanted. */
struct error *siblings_count_silent(struct sibling_search *search, allocation_id id, size_t number);

/* The number of the type that nearly all have that say as little; 0: none. */
struct error *siblings_settle_silent(struct sibling_search *search, allocation_id id,
				     uint32_t *ret_number);

/* ---- sibling_links.c */

/* Follow pointers from what looks like a type to leaked allocations that look like nothing yet. */
struct error *siblings_follow(struct sibling_search *search);

/* ---- unseen.c */

/*
 * If only a part of the heap has types: check whether leaked allocations look like another type of
 * their size, of which no allocation is known, although some without a type look like it, too.
 */
struct error *siblings_find_unseen(struct sibling_search *search, bool *ret_suffice);
