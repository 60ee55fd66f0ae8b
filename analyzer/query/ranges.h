/*
 * Sets of ranges of memory that are not allocations: stacks, modules, arenas.
 *
 * There are few of them next to allocations, so they are collected in a list. Only hits of a search
 * are many: they are kept as their addresses.
 */
#pragma once

#include "analyzer/analysis/analysis.h"
#include "analyzer/query/search.h"
#include "analyzer/report/report.h"

/* The places that a search for references skips. */
enum skipped_place {
	SKIP_USED = 1 << 0,
	SKIP_FREE = 1 << 1,
	SKIP_STACKS = 1 << 2,
};

struct reference_choice;
struct set;

/* The words behind the name of a set. */
struct set_arguments {
	const char *name; /* of the set, as typed */
	const struct set *set;
	uint64_t values[3];		     /* as many as the set takes */
	unsigned int skipped;		     /* a mask of enum skipped_place */
	struct reference_choice *references; /* the references that count */
};

struct range {
	uint64_t start, size;
	/* The noun in summaries, in the plural; NULL: ask its kind. */
	const char *group;
	size_t number; /* which: of what, only its kind knows */
};

struct ranges {
	struct range *list; /* NULL: see the hits */
	size_t count;
	struct hits hits;
	void *details; /* data of the kind */
};

/* The calls in a range that is a stack: its number is that of a thread or a fiber. */
enum range_calls { RANGE_HAS_NO_CALLS, RANGE_OF_THREAD, RANGE_OF_FIBER };

struct range_kind {
	const char *noun;	/* in the plural, as "writable ranges" */
	struct table table;	/* the columns of a list of them */
	bool contiguous;	/* size bytes from start on are it, and all of it */
	bool skips;		/* its arguments say what to skip */
	bool spans;		/* of a search: its arguments are a range of values, not one */
	bool is_relative;	/* of a search: for distances, as in code, not for words */
	enum range_calls calls; /* that describe it */
	enum stage needs;	/* to write a row, besides what the set needs */

	/* The number-th; false: there are no more. Without it, collect adds the ranges to ret. */
	bool (*at)(const struct analysis *analysis, size_t number, struct range *ret);
	struct error *(*collect)(struct analysis *analysis, const struct set_arguments *arguments,
				 struct ranges *ret);

	/* For mapped ranges: the rights wanted under a mask. */
	uint8_t rights_mask, rights;

	/* Write the values of a row for table. */
	void (*write)(const struct analysis *analysis, const struct ranges *ranges,
		      const struct range *range, struct report *report);
	/* The range's group, where it has none itself; needs STAGE_HEAP. */
	const char *(*group)(const struct analysis *analysis, const struct range *range);
};

extern const struct range_kind range_kind_arenas, range_kind_fibers, range_kind_inaccessible,
	range_kind_maps, range_kind_modules, range_kind_pointers, range_kind_rangerefs,
	range_kind_readonly, range_kind_relrefs, range_kind_roots, range_kind_rxonly,
	range_kind_signatures, range_kind_stacks, range_kind_threads, range_kind_writable;

/* Collect the ranges of the kind; what the arguments' set needs is built. */
struct error *ranges_collect(struct analysis *analysis, const struct range_kind *kind,
			     const struct set_arguments *arguments, struct ranges *ret);

/* Hits of a search for anything; they are not collected by arguments. */
extern const struct range_kind range_kind_matches;

/*
 * Search the memory; skipped is a mask of enum skipped_place. ret, which is empty, gets the hits.
 * Needs STAGE_HEAP.
 */
struct error *references_find(struct analysis *analysis, struct search search, unsigned int skipped,
			      struct ranges *ret);

/* Add a range to a list that is being collected. */
struct error *ranges_add(struct ranges *ranges, struct range range);

/* The number-th of them, which are count. */
struct range ranges_at(const struct ranges *ranges, size_t number);

/* How many there are: more than count only of hits. */
uint64_t ranges_found(const struct ranges *ranges);

void ranges_deinit(struct ranges *ranges);
DEFINE_DEINIT(ranges_deinit, struct ranges)

/* The value of a thread in a row: the kernel's number of it, or absent. */
static inline void report_thread(struct report *report, const struct program *program,
				 uint32_t thread)
{
	report_add(report, VALUE_IF(thread != NO_THREAD, program->threads[thread].id));
}
