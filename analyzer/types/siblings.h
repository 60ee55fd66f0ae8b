/*
 * Which type leaked allocations look like, to which no variable leads.
 *
 * A leaked allocation looks like a type if allocations of its size that are not leaked are of that
 * type, and its words are what the members of the type should be: pointers that lead to what has
 * room for what they point to, and numbers that are no pointers. Where several types fit, or as
 * many others of that size without a type look the same, it looks like none. Of structures that end
 * in an array of any size, those of all sizes count, and what stands in the array, too.
 *
 * Where held ones have something else in place of a pointer, as where code marks what it visited,
 * so may leaked ones. Of several types that fit, those do not count of which a pointer is null that
 * hardly any held one has null.
 *
 * What begins with text, whatever stands behind that, is taken for an array of characters where
 * others of its size are, and no structure of that size begins with text.
 *
 * An array of structures or pointers is what others of their size, or of any, are, if its elements
 * look like theirs. An array of pointers may be no structure of nothing but pointers as well.
 *
 * Where all its pointers are null, its words say little; then all others of its size must be of
 * that type. Of arrays of numbers the size is all that speaks.
 *
 * What a leaked one looks like says what its pointers lead to, if that leaked, too, has no other
 * name, and nothing in it speaks against it. Where pointers to its own type lead to what is none of
 * it, they are no links of that type, but of a list of all that the program allocates: then none
 * looks like it.
 */
#pragma once

#include "analyzer/base/bitmap.h"
#include "analyzer/types/typing.h"

enum { SAMPLED_WORDS_OF_SIBLINGS = 32 };

/* Facts on the first words of some of these. */
struct sibling_words {
	uint32_t sampled;
	uint32_t texts;	 /* of these, what begins with text */
	uint64_t odd[3]; /* a bit for each: one, two, three or more lead to what they should not */
	uint16_t filled[SAMPLED_WORDS_OF_SIBLINGS]; /* in how many a pointer is not null */
};

/* Allocations of one type and size that are not leaked. */
struct sibling_type {
	type_number type;
	/* in bytes; ANY_SIZE: it ends in an array of any size; or ANY_ARRAY */
	uint64_t size;
	uint64_t count;
	uint64_t strangers;    /* of that size, without a type, that look the same; of a sample */
	uint64_t compared;     /* of those without a type, to know whether there are others */
	allocation_id example; /* the first */
	struct sibling_words words;
	/* Pointers to its own type in leaked ones: to what may be of it, and to what is not. */
	uint32_t led, misled;
	bool is_by_link; /* by pointers of other leaked ones, of which example is one */
	bool is_text;	 /* arrays of characters that begin with text */
	bool is_array;	 /* the same, or arrays of structures or pointers */
	uint64_t others; /* of its size that are not of the type; known if it is wanted alone */
	bool is_wanted;	 /* a leaked one looks like it */
	bool is_wanted_alone; /* the same, if all of its size are of the type */
};

enum { ANY_SIZE = 0 };

/* The size of arrays of any. */
static const uint64_t ANY_ARRAY = UINT64_MAX;

struct siblings;

/*
 * Set *ret if any allocation, leaked or not, may have a likely type; to check for leaks takes
 * longer. The typing may be NULL.
 */
struct error *siblings_expect(struct typing *typing, struct memory_account *account, bool *ret);

/* The typing may be NULL; it may be of no more than what names leaks. Needs its input. */
struct error *siblings_create(struct typing *typing, const struct bitmap *leaked,
			      struct memory_account *account, struct siblings **ret);
void siblings_destroy(struct siblings *siblings);
DEFINE_CLEANUP(siblings_destroy, struct siblings *)

/* The likely type of a leaked allocation; NULL: none. Siblings may be NULL: there are none. */
const struct sibling_type *siblings_of(const struct siblings *siblings, allocation_id id);

/* Like siblings_of(), as a type of that allocation. */
bool siblings_typed(const struct siblings *siblings, allocation_id id, struct typed *ret);

/* How many leaked allocations look like something. */
size_t siblings_count(const struct siblings *siblings);

/*
 * True if the types of all allocations would likely give the same names; false only if the typing
 * is partial.
 */
bool siblings_suffice(const struct siblings *siblings);
