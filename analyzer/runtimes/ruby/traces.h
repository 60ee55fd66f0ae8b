/*
 * Finds where objects were allocated, if the program called
 * ObjectSpace.trace_object_allocations_start: object_tracing.c of ext/objspace has a table from
 * objects to
 *
 *	struct allocation_info | u32 living | flags | class | path * | line | class path * |
 *	                       | symbol of the method | generation |
 */
#pragma once

#include "analyzer/runtimes/ruby/space.h"

struct ruby_traces {
	struct address_map places; /* objects, to the number of their entry */
	uint64_t entries;
};

struct ruby_trace {
	char path[512]; /* empty: not known */
	uint64_t line, method, generation;
};

/* Find the table; none: nothing is traced. ret is all zeros. */
struct error *ruby_traces_init(struct ruby_traces *ret, const struct ruby *ruby);
void ruby_traces_deinit(struct ruby_traces *traces);

bool ruby_traces_find(const struct ruby_traces *traces, const struct ruby *ruby, struct view *view,
		      uint64_t object, struct ruby_trace *ret);

/* For cores without contents: visit all notes. */
struct ruby_structure;
struct error *ruby_traces_keep(struct ruby_structure *structure);
