/*
 * The kind of an allocation as one number that sorts and joins, and the kind's name.
 *
 * The first that is known of an allocation counts: its pattern, its class, its type by debug
 * information, its signature, its identity. Where nothing is, its size may stand in. What a
 * container of C++ has allocated is known by two of them: the pattern of a node and its type are
 * "std::map<int, Rule *> node".
 *
 *	63    60 59                                         0
 *	| none  | free for users, to tell these apart       |
 *	| size  | number (8 bits), size in bytes            |
 *	| sign. | signature                                 |
 *	| ident.| address of identity, number of its word   |
 *	| patt. | pattern (8 bits), size in bytes or 0      |
 *	| type  | type, pattern or 0 (8 bits), how it fits  |
 *
 * Addresses lose their upper bits, which repeat those below in any address that a processor takes.
 * A name has no address in it unless nothing better is known, so it is the same in each run.
 */
#pragma once

#include "analyzer/analysis/analysis.h"

typedef uint64_t kind_key;

/* The fact that a key is based on. */
enum known_by {
	BY_NOTHING,
	BY_SIZE,
	BY_SIGNATURE,
	BY_IDENTITY,
	BY_PATTERN,
	BY_TYPE,
	BY_MORE, /* tags from here to 15 are free for users */
};

enum { KIND_TAG_SHIFT = 60 };
#define KIND_UNKNOWN UINT64_C(0)
#define FIRST_KIND   (UINT64_C(1) << KIND_TAG_SHIFT) /* keys BY_NOTHING are below */

static inline kind_key kind_make(unsigned int tag, uint64_t value)
{
	return (uint64_t)tag << KIND_TAG_SHIFT | (value & (FIRST_KIND - 1));
}

static inline unsigned int kind_tag(kind_key key)
{
	return (unsigned int)(key >> KIND_TAG_SHIFT);
}

static inline uint64_t kind_value(kind_key key)
{
	return key & (FIRST_KIND - 1);
}

/* Build what kind_of() needs to know all of any allocation. */
struct error *kind_need(struct analysis *analysis);

/*
 * The kind of an allocation, without its size; KIND_UNKNOWN: nothing is known. Patterns may be
 * those of a part of the heap, or NULL: there are none. Needs STAGE_CLASSES.
 */
kind_key kind_of(const struct analysis *analysis, const struct patterns *patterns,
		 allocation_id id);

/*
 * Like kind_of(), with types from debug information; for leaked allocations of no other kind, the
 * likely type, if STAGE_LEAKED_TYPES is built.
 */
kind_key kind_typed(const struct analysis *analysis, const struct patterns *patterns,
		    const struct typing *typing, allocation_id id);

/* Find the types of the allocations, and what leaked ones look like, if any of them is in use. */
struct error *kind_need_types(struct analysis *analysis, const struct bitmap *members);

/*
 * Like kind_typed(), for a leaked allocation. Needs STAGE_LEAKED_PATTERNS and STAGE_LEAKED_TYPES.
 */
kind_key kind_leaked(const struct analysis *analysis, allocation_id id);

/* True if it is a type of numbers or characters, so that an allocation is an array of these. */
bool kind_is_of_numbers(const struct analysis *analysis, kind_key key);

kind_key kind_of_pattern(pattern_number pattern);

/* The signature or pattern of such a key, else 0; a key BY_TYPE has a pattern in a container. */
uint64_t kind_signature(kind_key key);
pattern_number kind_pattern(kind_key key);

/* True if a container or a library allocated it: its name may be that of a type. */
static inline bool kind_has_pattern(kind_key key)
{
	return kind_pattern(key) != NO_PATTERN;
}

/* The type of a key BY_TYPE. */
struct typed kind_type_of(kind_key key);

static inline bool kind_is_array(kind_key key)
{
	return kind_tag(key) == BY_TYPE && kind_type_of(key).fit == FIT_ARRAY;
}

/* The key of an identity, whatever word tells it; any other stays as it is. */
kind_key kind_without_word(kind_key key);

/* The key with the size of an allocation, unless that is of a signature or an identity. */
kind_key kind_with_size(kind_key key, uint64_t size);

/*
 * A kind of allocations that are unlike others of their size has a number below 256; size 0 is used
 * by other keys.
 */
kind_key kind_unlike(uint64_t size, unsigned int number);
uint64_t kind_size(kind_key key);

/*
 * The kind of an allocation, without regard to its size, the position of its identity word, and its
 * allocating function. Without patterns, which may be NULL, only objects of a runtime have a kind.
 */
kind_key kind_type(const struct analysis *analysis, const struct patterns *patterns,
		   allocation_id id);

/* The parts of a key; 0 or NULL where it has none. */
struct kind_name {
	enum known_by by;
	const char *
		text; /* of a class, a symbol, a pattern or a type; lives as long as the analysis */
	pattern_number pattern;
	uint64_t signature;
	uint64_t identity; /* its address */
	uint64_t offset;   /* of the identity's word in the allocation, in bytes */
	bool has_offset;   /* it is at the same one in all */
	uint64_t size;	   /* of each */
};

struct kind_name kind_name(const struct analysis *analysis, kind_key key);

/*
 * "Session", "%LongString" or "(signature 55d0c0ffee10)", to be freed; NULL if memory is short.
 * Several keys may have the same text, as those of a class.
 */
char *kind_text(const struct analysis *analysis, kind_key key);

/*
 * The word at that offset of an allocation of the kind: ".table" if it is of a type, of one element
 * if that is an array, else "+0x8". To be freed; NULL if memory is short.
 */
char *kind_word_text(const struct typing *typing, kind_key key, uint64_t offset);

/* The name of a class without a name; 0: it may be no class. */
enum { CLASS_NAME_SIZE = 32 };
void class_number_name(uint64_t number, char ret[static CLASS_NAME_SIZE]);
