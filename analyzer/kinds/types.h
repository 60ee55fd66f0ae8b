/*
 * Live allocations by type: the number of each, and its members.
 *
 * Live is what is in use and no garbage: what a collector would leave. Where a
 * runtime knows its objects, types are their classes; elsewhere whatever 'summarize' counts by:
 * patterns, classes and other signatures, identities.
 */
#pragma once

#include "analyzer/analysis/analysis.h"
#include "analyzer/base/array.h"
#include "analyzer/kinds/retained.h"

struct type {
	char *name; /* "Session", "%LongString"; "(class 12)": it has none */
	uint64_t count, bytes;
	uint64_t class;	 /* its number, if a runtime knows it; else 0 */
	uint32_t number; /* for types_find() */
};

struct types {
	struct type *list; /* most of them first, equal ones by name */
	size_t count;
	struct bitmap live;
	ARRAY(uint32_t) groups; /* by allocation: its type's place in the list, or NO_GROUP */
};

enum types_choice {
	TYPES_OBJECTS, /* only objects, where a runtime knows them */
	TYPES_ALL,     /* any known kind */
};

/* ret is all zeros. Builds what is needed. */
struct error *types_find(struct analysis *analysis, enum types_choice choice, struct types *ret);
void types_deinit(struct types *types);
DEFINE_DEINIT(types_deinit, struct types)

/* The type's place in the list, or NO_GROUP. */
static inline uint32_t types_of(const struct types *types, allocation_id id)
{
	return types->groups.items[id];
}

/* The place of the type of that name; an error that says which may be meant if there is none. */
struct error *types_find_name(const struct types *types, const char *name, uint32_t *ret);
