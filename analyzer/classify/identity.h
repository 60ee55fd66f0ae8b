/*
 * A word near the start of an allocation without a signature that tells its kind, because all
 * allocations of the kind refer to the same thing.
 *
 * Such an identity word points exactly at a vtable, at a function, or at a data object with a name:
 * a table of operations, the type object of an interpreter. It tells the kind, not the place that
 * allocated it. Among the words a vtable says most; then comes data that refers to code, as tables
 * of operations do, then constants that refer to anything, then functions. What is smaller is more
 * often a value than a kind, an empty string that many share; and variables count only if they
 * refer to code: the last node of a list may well point at its head.
 */
#pragma once

#include "analyzer/classify/classes.h"
#include "analyzer/heap/debug_header.h"
#include "analyzer/image/view.h"

/* An identity word is among the first: a cache line of them. */
enum { IDENTITY_BYTES = 64, IDENTITY_WORDS = IDENTITY_BYTES / 8 };

/*
 * Two ranges to test quickly, without symbols, whether words may refer to modules: modules are near
 * the program or near the libraries, far apart.
 */
struct module_bounds {
	struct memory_range ranges[2];
};

/* The modules up to the widest gap between two, and those behind it. */
struct module_bounds module_bounds_find(const struct program *program);

static inline bool module_bounds_hold(const struct module_bounds *bounds, uint64_t address)
{
	const struct memory_range *ranges = bounds->ranges;

	return address - ranges[0].start < ranges[0].end - ranges[0].start ||
	       address - ranges[1].start < ranges[1].end - ranges[1].start;
}

/* Like identity_words_read(), for words of 4 bytes. */
size_t identity_narrow_words_read(struct view *view, struct memory_range range,
				  uint64_t words[static IDENTITY_WORDS]);

/* Read the first words of an allocation that has that range; how many there are. */
static inline size_t identity_words_read(struct view *view, struct memory_range range,
					 uint64_t words[static IDENTITY_WORDS])
{
	uint64_t size = range.end - range.start;
	size_t count = size < IDENTITY_BYTES ? size / sizeof(*words) : IDENTITY_WORDS;

	if (image_word_size(view->image) != sizeof(*words))
		return identity_narrow_words_read(view, range, words);
	return view_read(view, range.start, words, count * sizeof(*words)) ? count : 0;
}

/* True if any of the words is within the bounds. */
static inline bool module_bounds_meet(const struct module_bounds *bounds, const uint64_t *words,
				      size_t count)
{
	size_t i = 0;

	while (i < count && !module_bounds_hold(bounds, words[i]))
		i++;
	return i < count;
}

struct identity {
	const char *name; /* lives as long as struct identities */
	uint64_t address; /* that the word refers to */
	uint64_t offset;  /* of the word in the allocation */
};

struct identities;

/* All that is given is borrowed, and outlives the identities. */
struct error *identities_create(const struct image *image, const struct program *program,
				struct debug *debug, struct classes *classes,
				struct memory_account *account, struct identities **ret);
void identities_destroy(struct identities *identities);
DEFINE_CLEANUP(identities_destroy, struct identities *)

/*
 * The identity of the allocation that has that range; false if it has none. That an address leads
 * nowhere is remembered, too.
 */
bool identity_find(struct identities *identities, struct view *view, struct memory_range range,
		   struct identity *ret);

/*
 * True if it may have an identity, by its words alone: quick, and independent of any other state.
 */
bool identity_possible(const struct identities *identities, struct view *view,
		       struct memory_range range);

/*
 * The identity of an object whose header says who allocated it. Its address is then a number below
 * MOST_MAKERS, one for each place in a program.
 */
enum { MOST_MAKERS = 1 << 16 };

bool identity_find_maker(struct identities *identities, uint64_t address, struct identity *ret);

/* The name of an address or number that was found so, or NULL. */
const char *identity_name(const struct identities *identities, uint64_t address);
