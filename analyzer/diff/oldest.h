/*
 * The allocations of the oldest core, to be found again in others of the same process.
 *
 * The used allocations of each core are visited by address: those of the oldest are kept, those of
 * the others matched with them, while a census (census.h) counts them. Its keys are known by number
 * until the pass ends, and by group from then on.
 */
#pragma once

#include "analyzer/diff/group_table.h"

/* The group of each key, by the key's number. */
struct group_numbers {
	ARRAY(uint32_t);
};

struct oldest {
	struct memory list; /* entries of a few bytes each, by start */
	size_t count;
	struct group_numbers groups;
	struct bitmap everywhere; /* entries in all cores so far */
};

void oldest_deinit(struct oldest *oldest);

struct oldest_entry {
	uint64_t start, size;
	uint16_t type; /* a hash; 0: none */
	uint32_t key;  /* its number, plus 1; 0: none */
};

struct known_type {
	uint64_t signature; /* 0: none */
	uint16_t type;
};

enum { KNOWN_TYPES = 32 };

/* How many allocations with one key are new, and how many survived. */
struct match_tally {
	uint64_t added, survived;
};

/* The pass over one core. The caller sets the first members, which are borrowed, and the rest to 0.
 */
struct matching {
	struct oldest *oldest;
	const struct analysis *analysis;
	struct group_table *groups;
	bool is_oldest, is_newest;
	struct known_type types[KNOWN_TYPES];
	struct oldest_entry entry;	   /* written last, or to be matched next */
	size_t number, bytes;		   /* of entries and of the list so far */
	bool is_found;			   /* the entry, in this core */
	ARRAY(struct match_tally) tallies; /* by number of the key, plus 1 */
	struct bitmap added;		   /* of the newest: not in the oldest */
	struct bitmap survived;		   /* of the newest: in all cores */
};

struct error *matching_begin(struct matching *matching);
void matching_deinit(struct matching *matching);
DEFINE_DEINIT(matching_deinit, struct matching)

/* Visit the next allocation; data is the matching. */
struct error *matching_visit(void *data, allocation_id id, struct memory_range range, uint32_t key);

/* Count by group. The oldest takes groups over, which are then empty. */
struct error *matching_end(struct matching *matching, struct group_numbers *groups);
