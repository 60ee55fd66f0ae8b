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
	unsigned int anchor = roots_first_kind(analysis_roots(analysis), id);
	bool is_root = leak_root_find(analysis_leaks(analysis), id) != NULL;
	pattern_number pattern = analysis_pattern_shown(analysis, analysis_patterns(analysis), id);
	struct typed typed = { 0 };
	bool is_typed = analysis_type_of(analysis, id, &typed);
	uint64_t arena = region ? (uint64_t)region->arena + 1 : 0;

	return (struct sql_description){
		.words = {
			arena << 32 | sql->facts.kinds.numbers.items[id],
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

	if (descriptions->last < descriptions->list.count &&
	    is_same(&descriptions->list.items[descriptions->last], wanted))
		return NULL;
	hash = XXH3_64bits(wanted->words, sizeof(wanted->words));
	found = table_find(&descriptions->list, hash, item, is_same(item, wanted));
	descriptions->last =
		found ? (size_t)(found - descriptions->list.items) : descriptions->list.count;
	return found ? NULL : table_append(&descriptions->list, hash, *wanted);
}

static struct error *find_shape(struct sql_descriptions *descriptions,
				const struct sql_shape *wanted, size_t *ret)
{
	uint64_t hash = XXH3_64bits(wanted, sizeof(*wanted));
	const struct sql_shape *found = table_find(&descriptions->shapes, hash, item,
						   memcmp(item, wanted, sizeof(*wanted)) == 0);

	*ret = found ? (size_t)(found - descriptions->shapes.items) : descriptions->shapes.count;
	return found ? NULL : table_append(&descriptions->shapes, hash, *wanted);
}

/* NULL, or what follows from another number, is absent. */
static int64_t number_of(sqlite3_value *value, int64_t known)
{
	int64_t number = sqlite3_value_int64(value);

	return sqlite3_value_type(value) == SQLITE_NULL || number == known ? SQL_ABSENT : number;
}

static struct sql_shape shape_of(size_t description, sqlite3_value **values)
{
	enum { SIZE = 1, OWNER, PARENT, RETAINED, COUNT, OBJECT };
	int64_t size = sqlite3_value_int64(values[SIZE]);
	int64_t owner = number_of(values[OWNER], SQL_ABSENT);

	if (owner != SQL_ABSENT && owner == number_of(values[PARENT], SQL_ABSENT))
		owner = 0;
	return (struct sql_shape){ { (int64_t)description, size, owner,
				     number_of(values[RETAINED], size), number_of(values[COUNT], 1),
				     number_of(values[OBJECT], SQL_ABSENT) } };
}

struct context {
	struct sql *sql;
	struct sql_descriptions *descriptions;
};

static void shape_function(sqlite3_context *context, int count, sqlite3_value **values)
{
	const struct context *both = sqlite3_user_data(context);
	allocation_id id = (allocation_id)sqlite3_value_int64(values[0]);
	struct sql_description description = describe(both->sql, id);
	struct error *error = find(both->descriptions, &description);
	struct sql_shape shape;
	size_t number = 0;

	if (!error) {
		shape = shape_of(both->descriptions->last, values);
		error = find_shape(both->descriptions, &shape, &number);
	}
	if (error) {
		sql_fail(both->sql, error);
		sqlite3_result_error(context, "no answer", -1);
		return;
	}
	sql_result_number(context, number);
}

static void owner_function(sqlite3_context *context, int count, sqlite3_value **values)
{
	const struct sql *sql = sqlite3_user_data(context);
	allocation_id owner =
		allocation_owner(sql->analysis, (allocation_id)sqlite3_value_int64(values[0]));

	if (owner != NO_ALLOCATION)
		sql_result_number(context, owner);
}

struct error *sql_add_descriptions(struct sql *sql, struct sql_descriptions *descriptions)
{
	enum { HOW = SQLITE_UTF8 | SQLITE_DIRECTONLY };
	struct context *context = malloc(sizeof(*context));
	int status;

	TRY_MEMORY(context);
	*context = (struct context){ sql, descriptions };
	/* It frees the context also where it fails. */
	status = sqlite3_create_function_v2(sql->database, "shape_of", 7, HOW, context,
					    shape_function, NULL, NULL, free);
	if (status == SQLITE_OK)
		status = sqlite3_create_function_v2(sql->database, "owner_of", 1, HOW, sql,
						    owner_function, NULL, NULL, NULL);
	return status == SQLITE_OK ? NULL : sql_error(sql, status);
}

struct spots {
	struct sql *sql;
	struct sql_spots *list;
};

static void spot_function(sqlite3_context *context, int count, sqlite3_value **values)
{
	enum { WORD = 8, MOST_INSIDE = 16 * WORD };
	const struct spots *spots = sqlite3_user_data(context);
	struct sql_spot spot = { (uint64_t)sqlite3_value_int64(values[0]),
				 (uint64_t)sqlite3_value_int64(values[1]) };
	uint64_t hash = XXH3_64bits(&spot, sizeof(spot));
	const struct sql_spot *found;
	struct error *error;

	if (sqlite3_value_type(values[0]) == SQLITE_NULL)
		return;
	if (spot.place % WORD == 0 && spot.inside % WORD == 0 && spot.inside < MOST_INSIDE) {
		sql_result_number(context, spot.place * 2 + spot.inside / WORD);
		return;
	}
	found = table_find(spots->list, hash, item, memcmp(item, &spot, sizeof(spot)) == 0);
	sqlite3_result_int64(context, -1 - (sqlite3_int64)(found ? found - spots->list->items
								 : (ptrdiff_t)spots->list->count));
	error = found ? NULL : table_append(spots->list, hash, spot);
	if (error) {
		sql_fail(spots->sql, error);
		sqlite3_result_error(context, "no answer", -1);
	}
}

struct error *sql_add_spots(struct sql *sql, struct sql_spots *list)
{
	struct spots *spots = malloc(sizeof(*spots));
	int status;

	TRY_MEMORY(spots);
	*spots = (struct spots){ sql, list };
	/* It frees the spots also where it fails. */
	status = sqlite3_create_function_v2(sql->database, "spot_of", 2,
					    SQLITE_UTF8 | SQLITE_DIRECTONLY, spots, spot_function,
					    NULL, NULL, free);
	return status == SQLITE_OK ? NULL : sql_error(sql, status);
}
