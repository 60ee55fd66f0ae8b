/*
 * Sets of ranges of memory that are not allocations: stacks, modules, arenas.
 *
 * There are few of them next to allocations, so they are collected in a list.
 */
#ifndef ANALYZER_QUERY_RANGES_H
#define ANALYZER_QUERY_RANGES_H

#include "analyzer/analysis.h"
#include "analyzer/report/report.h"

/* What is looked at in a search for references, less what is skipped. */
enum skipped_place {
	SKIP_USED = 1 << 0,
	SKIP_FREE = 1 << 1,
	SKIP_STACKS = 1 << 2,
};

/* What stands behind the name of a set. */
struct set_arguments {
	const char *name;     /* as typed, of a set that the user named */
	uint64_t values[3];   /* as many as the set takes */
	unsigned int skipped; /* a mask of enum skipped_place */
};

struct range {
	uint64_t start, size;
	const char *group; /* what summaries count it as, in the plural */
	size_t number;	   /* which: of what, only its kind knows */
};

struct ranges {
	struct range *list;
	size_t count;
	void *details; /* what the kind keeps beside it */
};

struct range_kind {
	const char *noun;   /* in the plural, as "writable ranges" */
	struct table table; /* what is told of each in a list */
	bool contiguous;    /* size bytes from start on are it, and all of it */
	struct error *(*collect)(struct analysis *analysis,
				 const struct set_arguments *arguments,
				 struct ranges *ret);
	/* Write the values of a row for table. */
	void (*write)(const struct analysis *analysis,
		      const struct ranges *ranges, const struct range *range,
		      struct report *report);
};

extern const struct range_kind range_kind_arenas, range_kind_modules,
	range_kind_signatures, range_kind_readonly, range_kind_stacks,
	range_kind_threads, range_kind_writable;

/* Add a range to a list that is being collected. */
struct error *ranges_add(struct ranges *ranges, struct range range);
void ranges_deinit(struct ranges *ranges);
DEFINE_DEINIT(ranges_deinit, struct ranges)

#endif
