/*
 * Dangling references: words of memory in use that lead to what was freed.
 *
 * Code that follows one uses memory after it was freed. Each row counts those of one member of one
 * kind of allocations, or of one static variable. Words that hold nothing any more, as in spare
 * room of a container, and words of stacks, which are often stale, are left out. A word in use may
 * be stale, too: the program knows whether it will follow it.
 */
#pragma once

#include "analyzer/analysis/analysis.h"
#include "analyzer/base/table.h"
#include "analyzer/kinds/kind_key.h"

struct dangling {
	kind_key kind;	 /* of the owners, with their size if nothing else is known */
	uint64_t offset; /* in an owner, of an array: in an element; of a variable, its address */
	bool is_static;
	uint64_t references, owners;
	uint64_t to_starts;	 /* of these, to where a freed block begins */
	allocation_id last;	 /* owner that was counted; NO_ALLOCATION: static memory */
	uint64_t example, freed; /* the first word's owner, and the freed block it leads to */
};

/* Released by table_release(). */
struct danglings {
	HASH_TABLE(struct dangling); /* most references first */
	uint64_t references;	     /* of all rows */
	uint64_t doubtful;	     /* members left out: none of their words leads to a start */
};

/*
 * Count words of the owners, which are used; if these are all, of static memory as well. ret is
 * empty. Builds what it needs.
 */
struct error *dangling_find(struct analysis *analysis, const struct bitmap *owners,
			    struct danglings *ret);

/* The first word of freed memory that is the allocation's address. */
struct freed_holder {
	allocation_id block; /* that it is in */
	uint64_t place;
};

/*
 * Find what held the allocation and was freed before it: its words may have been overwritten since.
 * Reads all freed memory.
 */
struct error *dangling_find_freed_holder(struct analysis *analysis, allocation_id id,
					 struct freed_holder *ret, bool *ret_found);

/* "Session.next", "cache (server)", "size 0x40 +0x8"; to be freed. */
char *dangling_name(const struct analysis *analysis, const struct dangling *dangling);
