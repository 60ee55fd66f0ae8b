/*
 * Evidence from code, cached for other cores of the same build (cache.h). Numbers of types and
 * members mean the same there, because the type table is read from the same files in the same
 * order.
 */
#pragma once

#include "analyzer/program/debug/build.h"
#include "analyzer/program/debug/type_table.h"

struct casts;

/* Something that is kept, and where. */
struct kept_entry {
	struct debug *debug;
	const struct type_table *types;
	const char *folder; /* NULL: nothing is kept */
	struct cache_key key;
};

/* With symbols: it depends on those of modules without debug information, too. */
struct kept_entry kept_entry_of(const char *kind, struct debug *debug,
				const struct type_table *types, bool symbols);

/* The array of that number, of elements of so many bytes; false: there is none. */
bool kept_array(struct side_file *file, unsigned int number, size_t element, struct side_array *ret,
		size_t *ret_count);

/* Load casts read without a listener, in kept_casts.c; false: there is no entry. */
bool kept_casts_load(const struct kept_entry *entry, struct casts *casts);
void kept_casts_save(const struct kept_entry *entry, const struct casts *casts);
