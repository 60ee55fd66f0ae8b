/*
 * Kinds of allocations without a signature: buffers and nodes of containers, recognised by the
 * shape of their referrers.
 *
 * Each kind is a classifier of classifiers/. All of them see each reference to the start of an
 * allocation in one pass over the memory. The result is a byte for each allocation; its owner is
 * found by another pass, when it is needed.
 */
#pragma once

#include "analyzer/base/side_file.h"
#include "analyzer/classify/classes.h"
#include "analyzer/classify/scan.h"
#include "analyzer/graph/graph.h"

typedef uint8_t pattern_number;
enum { NO_PATTERN = 0 };

struct patterns;

/*
 * Patterns yet to be found: of each allocation, or with only, of these, which costs far less. The
 * parts of the input outlive them.
 */
struct error *patterns_create(const struct scan_input *input, struct patterns **ret);

/*
 * Find the patterns, or the owners of all that have one, too, unless they are known. Each takes a
 * pass over the memory, but both together hardly more than one. What follows needs patterns, and
 * where it says so, owners.
 */
struct error *patterns_find(struct patterns *patterns);
struct error *patterns_find_owners(struct patterns *patterns);

/* True if patterns are known and owners could measure none of them. */
bool patterns_measure_nothing(const struct patterns *patterns);

/*
 * Instead, find the patterns and owners of count allocations, in order of id; called again, of
 * others as well. sources has these, all that refers to them, and what patterns_lead_on() adds.
 * Where classifiers walk along references, those of C++ find nothing.
 */
bool patterns_can_find_few(const struct patterns *patterns);
struct error *patterns_find_few(struct patterns *patterns, const allocation_id *ids, size_t count,
				const struct bitmap *sources);

/* True if the patterns of the allocation are known. */
bool patterns_know(const struct patterns *patterns, allocation_id id);

/* True if referrers to that source belong to the few, too. */
bool patterns_lead_on(const struct patterns *patterns, struct reader *reader, allocation_id source);

/* The numbers alone are kept in a side file; they refer to nothing else. */
struct error *patterns_save(const struct patterns *patterns, struct side_writer *writer);
struct error *patterns_load(struct side_file *file, const struct scan_input *input,
			    struct patterns **ret);
void patterns_destroy(struct patterns *patterns);
DEFINE_CLEANUP(patterns_destroy, struct patterns *)

/* The allocation's pattern, or NO_PATTERN. */
pattern_number patterns_of(const struct patterns *patterns, allocation_id id);

/* "LongString"; number is not NO_PATTERN. */
const char *pattern_name(pattern_number number);

/* True if it may hold an object whose class, if known, says more. */
bool pattern_holds_object(pattern_number number);

/*
 * True if contents alone decide the pattern: a class or a type says more, and it is no fingerprint.
 */
bool pattern_is_text(pattern_number number);

/* True if it holds the elements of a container. */
bool pattern_is_body(pattern_number number);

/* True if a library keeps it for itself, whatever the program does. */
bool pattern_is_reserve(pattern_number number);

/* See holds_stale of struct classifier. */
bool pattern_holds_stale(pattern_number number);

/* True if it is no part of what holds it. */
bool pattern_is_whole(pattern_number number);

/* True if a type from debug information says more. */
bool pattern_is_plain(pattern_number number);

/* The number of that name, or NO_PATTERN. */
pattern_number pattern_find(const char *name);

/* The number-th name from 0 on, or NULL at the end. */
const char *pattern_name_at(size_t number);

/*
 * Words by which a pattern is recognised though they are no addresses: lengths, counts and flags. A
 * core without contents keeps them (analyzer/slim). Each bit is one of the first words of the
 * owner, or of the allocation itself; of halves only the lower one, as the rest may be anything.
 */
struct pattern_numbers {
	uint16_t owner, own;
	uint16_t owner_halves, own_halves;
};

static inline bool pattern_numbers_any(const struct pattern_numbers *numbers)
{
	return numbers->owner || numbers->own || numbers->owner_halves || numbers->own_halves;
}

struct pattern_numbers pattern_numbers(pattern_number number);

/* Facts about an allocation with a pattern. */
struct pattern_facts {
	const char *role; /* "the body of a std::string" */
	uint64_t owner;	  /* the address of what it is part of; 0: unknown */
	char text[64];	  /* type and shape in the words of its library; or empty */
	const char *unit; /* of length and capacity; NULL: not known */
	uint64_t length;
	bool has_capacity, lacks_length;
	uint64_t capacity;
	const char *dead; /* name of the part outside of [live_start, live_end); NULL: unknown */
	uint64_t live_start, live_end; /* offsets; UINT64_MAX: up to the end */
	bool is_measured;	       /* the above, and: */
	uint64_t asked;		       /* bytes that the owner asked for; 0: not known */
	uint64_t scattered;	       /* spare bytes in between what is kept */
};

/* Prepare to read by what the patterns were found with. */
void patterns_init_reader(const struct patterns *patterns, struct reader *reader);

/*
 * False if the allocation has no pattern. Several threads may ask at once, each by a reader of its
 * own. Needs owners, as all that follows.
 */
bool patterns_tell(const struct patterns *patterns, struct reader *reader, allocation_id id,
		   struct pattern_facts *ret);

/*
 * The bytes of an allocation that its owner uses. The requested memory begins at the allocation's
 * start.
 */
struct pattern_extent {
	uint64_t asked; /* of the allocator; 0: not known */
	uint64_t spare; /* room for what is not there yet, or not any more */
	/* The live part, as offsets; the whole if spare room is in between. */
	uint64_t live_start, live_end;
};

/*
 * The allocation's extent, which makes sense: what is kept is within what was asked for, if that is
 * known, and this within the allocation. By a reader as above. False if nothing is known.
 */
bool patterns_measure(const struct patterns *patterns, struct reader *reader, allocation_id id,
		      struct pattern_extent *ret);

/*
 * True if the word at that offset of the allocation is a tainted reference: in a part that is
 * unused now, such as a vector's spare capacity. *ret_part names the part, if it is not NULL.
 */
bool patterns_is_tainted(const struct patterns *patterns, allocation_id source, uint64_t offset,
			 const char **ret_part);

/* In what part of source all its references to target are tainted; NULL if there is an untainted
 * one. */
const char *patterns_find_taint(const struct patterns *patterns, allocation_id source,
				allocation_id target);

/* The owner's address; 0: unknown. */
uint64_t patterns_owner(const struct patterns *patterns, allocation_id id);
