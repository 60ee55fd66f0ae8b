/*
 * A word near the start of an allocation without a signature that tells its kind, because all
 * allocations of the kind refer to the same thing.
 *
 * Such an identity word points exactly at a vtable, at a function, or at a data object with a name:
 * a table of operations, the type object of an interpreter. It tells the kind, not the place that
 * allocated it. Where a program labels its allocations (label.h), the label says most, then a
 * vtable; then comes data that refers to code, as tables of operations do, then constants that
 * refer to anything, then functions. What is smaller is more often a value than a kind, an empty
 * string that many share; and variables count only if they refer to code: the last node of a list
 * may well point at its head.
 */
#pragma once

#include "analyzer/classify/classes.h"
#include "analyzer/classify/early_words.h"
#include "analyzer/heap/debug_header.h"
#include "analyzer/heap/index.h"

struct identity {
	const char *name; /* lives as long as struct identities */
	uint64_t address; /* that the word refers to */
	uint64_t offset;  /* of the word in the allocation */
};

struct identities;

/* All that is given is borrowed, and outlives the identities. */
struct error *identities_create(const struct image *image, const struct program *program,
				struct debug *debug, struct classes *classes,
				const struct allocation_index *index,
				struct memory_account *account, struct identities **ret);
void identities_destroy(struct identities *identities);
DEFINE_CLEANUP(identities_destroy, struct identities *)

/*
 * The identity of the allocation that has that range; false if it has none. That an address leads
 * nowhere is remembered, too.
 */
bool identity_find(struct identities *identities, struct view *view, struct memory_range range,
		   struct identity *ret);

/* The identity of an object whose class is gone (unloaded.h). */
bool identity_find_unloaded(struct identities *identities, struct view *view,
			    struct memory_range range, struct identity *ret);

/*
 * The identity that the pool of the allocation gives it (label_objects.h), for those without
 * another one. Its address is that of the pool's object with this bit.
 */
static const uint64_t IDENTITY_OF_POOL = UINT64_C(1) << 54;

bool identities_have_pools(const struct identities *identities);
bool identity_find_pool(struct identities *identities, struct view *view, struct memory_range range,
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
