/*
 * Finds the holders of memory: the few objects and variables in which most of it accumulates.
 *
 * Each byte is counted for the deepest holder that retains at least a fiftieth of what is used: a
 * cache below a table below a variable is named as the cache, and the table keeps only what it has
 * besides. Links of a chain or tree, of one kind, are one holder, as are an object and the buffers
 * and nodes that are its own, and four or more that would be named in the same words, but for
 * numbers of items. What leaked is no holder: leak roots tell of it.
 *
 *	the variable        retains 100   accumulates  2
 *	  table             retains  98   accumulates  3
 *	    cache           retains  60   accumulates 60   10,000 entries
 *	    listeners       retains  35   accumulates 35
 */
#pragma once

#include "analyzer/kinds/kind_key.h"

struct holder {
	size_t root;	   /* of analysis_variables(), that alone holds it; or NO_ROOT */
	uint64_t bytes;	   /* that accumulate in it */
	uint64_t alike;	   /* so many are one holder; the rest tells of the first */
	uint64_t retained; /* with those of the holders below it */
	kind_key kind;	   /* of id; KIND_UNKNOWN: its size tells it */
	kind_key content;  /* the kind that has most of these bytes, directly below it */
	uint64_t content_count;
	size_t shared_by;      /* of what several share: one that leads to most of it; or NO_ROOT */
	allocation_id id;      /* the topmost that is part of it; NO_ALLOCATION: a variable, or all
				* that several share, if root is NO_ROOT */
	allocation_id named;   /* the nearest object above that the program names, or none */
	allocation_id top;     /* of the tree, that it is below; for owner_top_text() */
	allocation_id example; /* of the content; NO_ALLOCATION: there is none */
	bool is_nearly_all;    /* of what the root holds: four fifths */
	bool is_reserve;       /* of a library for itself: it ranks behind what the program holds */
};

enum { MOST_HOLDERS = 8 };

/*
 * Find those in which at least a fiftieth of what is used accumulates, most first, and behind them
 * what libraries have for themselves; ret_count says
 * how many. Builds what is needed.
 */
struct error *holders_find(struct analysis *analysis, struct holder ret[static MOST_HOLDERS],
			   size_t *ret_count);
