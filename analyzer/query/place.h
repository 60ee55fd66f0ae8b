/*
 * What an address is in: an allocation, a stack, a module, anything mapped.
 */
#ifndef ANALYZER_QUERY_PLACE_H
#define ANALYZER_QUERY_PLACE_H

#include "analyzer/analysis/analysis.h"

enum place_kind {
	PLACE_ALLOCATION,
	PLACE_STACK,
	PLACE_ARENA,	   /* memory of an arena, but no allocation */
	PLACE_BOOKKEEPING, /* the allocator's own */
	PLACE_MODULE,
	PLACE_MAPPING, /* any other */
	PLACE_NOWHERE, /* not mapped */
};

/* The members from id on are set for the kinds that they are named after. */
struct place {
	enum place_kind kind;
	uint64_t start, size;	     /* of the whole that the address is in */
	const struct region *region; /* NULL: not in the dump */
	allocation_id id;
	const struct stack *stack;
	const struct module *module;
	struct arena arena;
	const struct allocator *allocator; /* of the arena */
};

/* Needs STAGE_HEAP. */
struct place place_find(const struct analysis *analysis, uint64_t address);

#endif
