/*
 * The implementation of struct type_table, for the files that build it: type_table.c from debug
 * information, kept_types.c from the cache of other cores of the build.
 */
#pragma once

#include "analyzer/base/cache.h"
#include "analyzer/program/debug/type_reader.h"
#include "analyzer/program/debug/type_table.h"

struct kept_entries;

struct type_table {
	struct name_pool *names;
	unsigned int word_size;
	ARRAY(struct data_type) types;
	ARRAY(struct type_member) members;
	ARRAY(struct type_variant) variants;
	ARRAY(struct type_variable) variables;
	ARRAY(struct entry) entries;
	ARRAY(uint64_t) bounds;	    /* of arrays of several dimensions */
	ARRAY(type_number) by_name; /* structures and unions */
	/* Instead of entries, if the table was kept; else NULL. */
	struct kept_entries *kept;
};

/* Release all that it has; it is empty then. */
void type_table_clear(struct type_table *table);

/* Keep what was read. */
void kept_types_save(struct debug *debug, const struct cache_key *key,
		     const struct type_table *table);

/* Set that to what is kept; false: it is not kept. */
bool kept_types_load(struct debug *debug, const struct cache_key *key, struct type_table *table);

/* The type whose entry stands at that address of its section in memory, or NO_TYPE. */
type_number kept_entries_find(struct kept_entries *kept, uint64_t address);
void kept_entries_destroy(struct kept_entries *kept);
