/*
 * The place of an address: an allocation, a stack, a module, any mapping.
 *
 * Kinds of places are tried in their order: memory of an arena may be in a module, too, and an
 * allocation in a stack that the program allocated.
 */
#pragma once

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

/* "used allocation"; and the group of addresses in such places, "Matches in used allocations". */
const char *place_noun(const struct analysis *analysis, const struct place *place);
const char *place_group(const struct analysis *analysis, const struct place *place);

/* The name of what is at the address, or of what it is part of; or NULL. Needs STAGE_CLASSES. */
const char *place_name(const struct analysis *analysis, const struct place *place,
		       uint64_t address);

/* The class of an allocation, or its identity; or NULL. */
const char *allocation_name(const struct analysis *analysis, allocation_id id);
