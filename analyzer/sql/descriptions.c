/*
 * Facts that many allocations share, numbered, so that a file has each text once.
 *
 * All that the columns of `allocation` depend on, but for those that each has for itself, is put
 * into some words. Allocations that have the same are of one description, and any of them is an
 * example of it.
 */
#include "analyzer/analysis/liveness.h"
#include "analyzer/sql/parts.h"

#include <string.h>
#include <xxhash.h>

static struct sql_description describe(const struct sql *sql, allocation_id id)
{
	const struct analysis *analysis = sql->analysis;
	const struct allocation_index *index = analysis_index(analysis);
	const struct heap_region *region = heap_region_find(index, allocation_start(index, id));
	enum live_state state = liveness_of(analysis, id);
	unsigned int anchor = sql_anchor_kind(analysis_roots(analysis), id);
	bool is_root = leak_root_find(analysis_leaks(analysis), id) != NULL;
	pattern_number pattern = analysis_pattern_shown(analysis, analysis_patterns(analysis), id);
	struct typed typed = { 0 };
	bool is_typed = analysis_type_of(analysis, id, &typed);
	uint64_t arena = region ? (uint64_t)region->arena + 1 : 0;

	return (struct sql_description){
		.words = {
			arena << 32 | sql->kinds.numbers.items[id],
			analysis_signature(analysis, id),
			(uint64_t)typed.type << 32 | (uint64_t)typed.fit << 8 |
				(uint64_t)typed.is_stated << 2 | (uint64_t)typed.is_inferred << 1 |
				(uint64_t)is_typed,
			(uint64_t)state << 32 | (uint64_t)pattern << 16 | (uint64_t)anchor << 8 |
				(uint64_t)is_root,
		},
		.example = id,
	};
}

static bool is_same(const struct sql_description *description, const struct sql_description *other)
{
	return memcmp(description->words, other->words, sizeof(other->words)) == 0;
}

static struct error *find(struct sql_descriptions *descriptions,
			  const struct sql_description *wanted)
{
	uint64_t hash;
	const struct sql_description *found;

	if (descriptions->last < descriptions->count &&
	    is_same(&descriptions->items[descriptions->last], wanted))
		return NULL;
	hash = XXH3_64bits(wanted->words, sizeof(wanted->words));
	found = table_find(descriptions, hash, item, is_same(item, wanted));
	descriptions->last = found ? (size_t)(found - descriptions->items) : descriptions->count;
	return found ? NULL : table_append(descriptions, hash, *wanted);
}

struct context {
	struct sql *sql;
	struct sql_descriptions *descriptions;
};

static void number_function(sqlite3_context *context, int count, sqlite3_value **values)
{
	const struct context *both = sqlite3_user_data(context);
	allocation_id id = (allocation_id)sqlite3_value_int64(values[0]);
	struct sql_description description = describe(both->sql, id);
	struct error *error = find(both->descriptions, &description);

	if (error) {
		sql_fail(both->sql, error);
		sqlite3_result_error(context, "no answer", -1);
		return;
	}
	sql_result_number(context, both->descriptions->last);
}

static void owner_function(sqlite3_context *context, int count, sqlite3_value **values)
{
	sql_result_owner(sqlite3_user_data(context), context,
			 (allocation_id)sqlite3_value_int64(values[0]));
}

struct error *sql_add_descriptions(struct sql *sql, struct sql_descriptions *descriptions)
{
	enum { HOW = SQLITE_UTF8 | SQLITE_DIRECTONLY };
	struct context *context = malloc(sizeof(*context));
	int status;

	TRY_MEMORY(context);
	*context = (struct context){ sql, descriptions };
	/* It frees the context also where it fails. */
	status = sqlite3_create_function_v2(sql->database, "description_of", 1, HOW, context,
					    number_function, NULL, NULL, free);
	if (status == SQLITE_OK)
		status = sqlite3_create_function_v2(sql->database, "owner_of", 1, HOW, sql,
						    owner_function, NULL, NULL, NULL);
	return status == SQLITE_OK ? NULL : sql_error(sql, status);
}
