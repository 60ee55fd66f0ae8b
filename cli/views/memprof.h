/*
 * The command memprof: what MemProf, a profiler within programs of Crystal, prints of its process,
 * of a dump and in MemProf's formats. Scripts read these: their first line says how many follow.
 */
#ifndef CLI_VIEWS_MEMPROF_H
#define CLI_VIEWS_MEMPROF_H

#include "cli/command.h"

struct memprof_arguments {
	const struct memprof_question *question; /* the first word */
	bool has_operand;
	const char *type;	  /* of graph; borrowed */
	uint64_t address;	  /* of size */
	uint64_t levels, objects; /* of graph; 0: no limit */
	uint64_t least;		  /* bytes of a line of allocations */
	bool pretty;
	bool has_levels, has_objects, has_least; /* they were given */
};

/* What memprof can be asked for. */
struct memprof_question {
	const char *word;
	const char *operand; /* what stands behind it, or NULL */
	struct error *(*run)(struct analysis *analysis, const struct memprof_arguments *arguments,
			     struct report *report);
};

struct error *memprof_counts(struct analysis *analysis, const struct memprof_arguments *arguments,
			     struct report *report);
struct error *memprof_sizes(struct analysis *analysis, const struct memprof_arguments *arguments,
			    struct report *report);
struct error *memprof_size(struct analysis *analysis, const struct memprof_arguments *arguments,
			   struct report *report);
struct error *memprof_graph(struct analysis *analysis, const struct memprof_arguments *arguments,
			    struct report *report);
struct error *memprof_allocations(struct analysis *analysis,
				  const struct memprof_arguments *arguments, struct report *report);

/* The line in front of so many others. */
void memprof_write_lines(struct report *report, uint64_t lines);

#endif
