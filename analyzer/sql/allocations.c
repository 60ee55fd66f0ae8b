/*
 * The tables whose rows are allocations: allocation, free and dominator.
 *
 * A cursor goes over the ids of [id, end), or the places of a kind in the order of kinds.
 * Conditions on id, address and kind make that a stretch of it; one on size is tested before SQLite
 * sees a row.
 */

#include "analyzer/analysis/liveness.h"
#include "analyzer/base/sort.h"
#include "analyzer/sql/parts.h"

#include <string.h>

enum { ALLOCATIONS, FREE, DOMINATORS };

/* Columns that all three begin with, and the one of allocations behind them. */
enum { COLUMN_ID, COLUMN_ADDRESS, COLUMN_SIZE, COLUMN_KIND };

struct cursor {
	struct sql_cursor base;
	bool by_kind;
	bool is_free;
	size_t region_hint;   /* of kinds of free memory */
	uint64_t least, most; /* sizes that are wanted */
};

static const struct allocation_index *index_of(const struct cursor *cursor)
{
	return analysis_index(cursor->base.sql->analysis);
}

static bool is_table(const struct sql_table *table, size_t number)
{
	return table == &sql_allocation_tables[number];
}

/* Behind what is narrowed by id: estimates are of ten million rows. */
static void estimate(sqlite3_index_info *info, const struct sql_constraint *taken, int count)
{
	double rows = 1e7;

	for (int i = 0; i < count; i++) {
		bool is_equal = taken[i].operator== SQLITE_INDEX_CONSTRAINT_EQ;

		if (is_equal && taken[i].column <= COLUMN_ADDRESS) {
			rows = 1;
		} else if (taken[i].column == COLUMN_KIND) {
			rows /= 100;
		} else if (taken[i].column <= COLUMN_SIZE) {
			rows /= 4;
		}
	}
	info->estimatedRows = rows < 1 ? 1 : (sqlite3_int64)rows;
	info->estimatedCost = rows < 1 ? 1 : rows;
}

/* Rows come by id, and so by address; or by kind where that is the order asked for. */
static bool has_order(const sqlite3_index_info *info, int *ret_column)
{
	if (info->nOrderBy != 1 || info->aOrderBy[0].desc)
		return false;
	*ret_column = info->aOrderBy[0].iColumn;
	return *ret_column <= COLUMN_ADDRESS || *ret_column == COLUMN_KIND;
}

enum { BY_KIND = 1 };

static int best_index(sqlite3_vtab *base, sqlite3_index_info *info)
{
	bool has_kinds = is_table(((struct sql_virtual *)base)->table, ALLOCATIONS);
	struct sql_constraint taken[MOST_CONSTRAINTS];
	int count = 0, order = -1, kind = -1;

	for (int i = 0; i < info->nConstraint; i++) {
		int column = info->aConstraint[i].iColumn;
		bool is_kind = has_kinds && column == COLUMN_KIND &&
			       info->aConstraint[i].op == SQLITE_INDEX_CONSTRAINT_EQ;

		if ((column <= COLUMN_SIZE || is_kind) &&
		    sql_take_constraint(info, i, &count, taken) && is_kind)
			kind = COLUMN_KIND;
	}
	estimate(info, taken, count);
	if (has_order(info, &order))
		info->orderByConsumed = order == COLUMN_KIND ? has_kinds : kind < 0;
	if (info->orderByConsumed && order == COLUMN_KIND)
		kind = COLUMN_KIND;
	if (kind >= 0) {
		info->idxNum = BY_KIND;
		info->colUsed |= 1 << COLUMN_KIND;
	}
	return sql_keep_constraints(info, taken, count);
}

/* True if the cursor has a row that the constraints want. */
static bool find(struct sql_cursor *base)
{
	struct cursor *cursor = (struct cursor *)base;
	const struct allocation_index *index = index_of(cursor);
	struct memory_range range;

	if (bitmap_get(allocation_used(index), base->id) == cursor->is_free)
		return false;
	if (cursor->least == 0 && cursor->most == UINT64_MAX)
		return true;
	range = allocation_range_near(index, (allocation_id)base->id, &base->hint);
	return range.end - range.start >= cursor->least && range.end - range.start <= cursor->most;
}

static void seek(struct sql_cursor *base)
{
	const struct cursor *cursor = (struct cursor *)base;

	if (cursor->by_kind)
		base->id = base->sql->kinds.order.items[base->at];
	else if (cursor->is_free)
		base->id = base->at =
			bitmap_next_clear(allocation_used(index_of(cursor)), base->at);
	else
		sql_seek_used(base);
}

/* The ids of the allocations that start in [least, most]. */
static void narrow_ids(struct cursor *cursor, uint64_t least, uint64_t most)
{
	const struct allocation_index *index = index_of(cursor);
	size_t count = allocation_count(index);
	allocation_id found = least == most ? allocation_find(index, least) : NO_ALLOCATION;
	size_t first = 0, end;

	if (found != NO_ALLOCATION) {
		first = found;
		end = first + 1;
	} else {
		first = BISECT(i, 0, count, allocation_start(index, (allocation_id)i) < least);
		end = BISECT(i, first, count, allocation_start(index, (allocation_id)i) <= most);
	}
	cursor->base.at = cursor->base.at > first ? cursor->base.at : first;
	cursor->base.end = cursor->base.end < end ? cursor->base.end : end;
}

/* In SQL, addresses from 2^63 on are negative: with any, bounds are left to SQLite. */
static bool has_negative(const struct cursor *cursor)
{
	const struct allocation_index *index = index_of(cursor);
	size_t count = allocation_count(index);

	return count && (int64_t)allocation_start(index, (allocation_id)(count - 1)) < 0;
}

static void narrow_by(struct cursor *cursor, const char *constraint, sqlite3_value *value)
{
	uint64_t least = 0, most = INT64_MAX;

	/* Leave other comparisons to SQLite. */
	if (sqlite3_value_type(value) != SQLITE_INTEGER || sqlite3_value_int64(value) < 0 ||
	    !sql_narrow((unsigned char)constraint[1], sqlite3_value_int64(value), &least, &most))
		return;
	switch (constraint[0] - '0') {
	case COLUMN_ID:
		if (cursor->by_kind)
			return;
		cursor->base.at = cursor->base.at > least ? cursor->base.at : least;
		cursor->base.end = most < cursor->base.end ? most + 1 : cursor->base.end;
		break;
	case COLUMN_ADDRESS:
		if (!cursor->by_kind && !has_negative(cursor))
			narrow_ids(cursor, least, most);
		break;
	case COLUMN_SIZE:
		cursor->least = cursor->least > least ? cursor->least : least;
		if (most < INT64_MAX)
			cursor->most = cursor->most < most ? cursor->most : most;
		break;
	default:
		break;
	}
}

static void narrow_kind(struct cursor *cursor, sqlite3_value *value)
{
	const struct sql_kinds *kinds = &cursor->base.sql->kinds;
	const char *name = (const char *)sqlite3_value_text(value);
	size_t number = name ? sql_kinds_search(kinds, name) : kinds->list.count;

	if (sqlite3_value_type(value) != SQLITE_TEXT)
		return;
	cursor->base.at = cursor->base.end = 0;
	if (number < kinds->list.count) {
		cursor->base.at = kinds->list.items[number].first;
		cursor->base.end = cursor->base.at + kinds->list.items[number].count;
	}
}

static struct error *begin(struct sql_cursor *base, int plan)
{
	struct cursor *cursor = (struct cursor *)base;

	cursor->by_kind = plan & BY_KIND;
	cursor->is_free = is_table(base->table, FREE);
	cursor->least = 0;
	cursor->most = UINT64_MAX;
	TRY(analysis_need(base->sql->analysis, STAGE_HEAP));
	if (is_table(base->table, DOMINATORS))
		TRY(analysis_need(base->sql->analysis, STAGE_RETAINED));
	return sql_begin_ids(base);
}

static void narrow(struct sql_cursor *base, int count, const char *constraints,
		   sqlite3_value **values)
{
	struct cursor *cursor = (struct cursor *)base;

	if (cursor->by_kind)
		base->end = base->sql->kinds.order.count;
	for (int i = 0; i < count; i++)
		if (constraints[2 * i] - '0' == COLUMN_KIND)
			narrow_kind(cursor, values[i]);
	for (int i = 0; i < count; i++)
		narrow_by(cursor, &constraints[2 * i], values[i]);
}

enum root_kind sql_anchor_kind(const struct roots *roots, allocation_id id)
{
	enum root_kind kind = 0;

	while (kind < ROOT_KINDS && !bitmap_get(root_targets(roots, kind), id))
		kind++;
	return kind;
}

static void get_anchor(struct sql_cursor *cursor, sqlite3_context *context)
{
	sql_result_text(context,
			root_kind_name(sql_anchor_kind(analysis_roots(cursor->sql->analysis),
						       (allocation_id)cursor->id)));
}

static const struct sql_kind *kind_at(const struct sql_cursor *cursor)
{
	const struct sql_kinds *kinds = &cursor->sql->kinds;

	return &kinds->list.items[kinds->numbers.items[cursor->id]];
}

/* How sure what an allocation is called is; see type_reason.h for what the words mean. */
static const char *sureness_of(const struct sql_cursor *cursor)
{
	kind_key key = kind_at(cursor)->key;
	struct typed typed;

	switch (kind_tag(key)) {
	case BY_SIGNATURE:
		return runtimes_is_part(analysis_runtimes(cursor->sql->analysis),
					kind_signature(key))
			       ? "held by"
			       : "certain";
	case BY_TYPE:
		typed = kind_type_of(key);
		return typed.fit >= FIT_ARRAY && !typed_is_like(typed) ? "typed" : "looks like";
	case BY_PATTERN:
		return pattern_is_text(kind_pattern(key)) ? "text" : "certain";
	case BY_IDENTITY:
		return "looks like";
	default:
		return NULL;
	}
}

static void get_sureness(struct sql_cursor *cursor, sqlite3_context *context)
{
	sql_result_text(context, sureness_of(cursor));
}

static void result_as_is(sqlite3_context *context, const char *text)
{
	_cleanup_(free) char *escaped = text ? text_as_is(text) : NULL;

	if (escaped)
		sqlite3_result_text(context, escaped, -1, SQLITE_TRANSIENT);
	else
		sqlite3_result_error_nomem(context);
}

static const struct heap_region *region_of(const struct sql_cursor *cursor)
{
	const struct allocation_index *index = analysis_index(cursor->sql->analysis);

	return heap_region_find(index, allocation_start(index, (allocation_id)cursor->id));
}

static void get_arena(struct sql_cursor *cursor, sqlite3_context *context)
{
	const struct heap_region *region = region_of(cursor);

	if (region)
		sql_result_number(context, region->arena);
}

static void get_allocator(struct sql_cursor *cursor, sqlite3_context *context)
{
	const struct heap_region *region = region_of(cursor);
	const struct heaps *heaps = analysis_heaps(cursor->sql->analysis);

	if (region)
		sql_result_text(context, heaps_arena_allocator(heaps, region->arena)->name);
}

static bool is_class(const struct analysis *analysis, uint64_t signature)
{
	return signature && (runtimes_have_class(analysis_runtimes(analysis), signature) ||
			     classes_is_class(analysis_classes(analysis), signature));
}

static void get_class(struct sql_cursor *cursor, sqlite3_context *context)
{
	const struct analysis *analysis = cursor->sql->analysis;
	uint64_t signature = analysis_signature(analysis, (allocation_id)cursor->id);
	_cleanup_(free) char *name = NULL;

	if (!is_class(analysis, signature) ||
	    runtimes_is_part(analysis_runtimes(analysis), signature))
		return;
	name = kind_text(analysis, kind_make(BY_SIGNATURE, signature));
	result_as_is(context, name);
}

static void get_type(struct sql_cursor *cursor, sqlite3_context *context)
{
	const struct analysis *analysis = cursor->sql->analysis;
	struct typed typed;

	if (analysis_type_of(analysis, (allocation_id)cursor->id, &typed))
		result_as_is(context, typing_name(analysis_typing(analysis), typed));
}

static void get_signature(struct sql_cursor *cursor, sqlite3_context *context)
{
	const struct analysis *analysis = cursor->sql->analysis;
	uint64_t signature = analysis_signature(analysis, (allocation_id)cursor->id);

	/* Numbers of runtimes' classes are no addresses. */
	if (signature && !runtimes_have_class(analysis_runtimes(analysis), signature))
		sql_result_number(context, signature);
}

static void get_known_by(struct sql_cursor *cursor, sqlite3_context *context)
{
	const struct analysis *analysis = cursor->sql->analysis;
	kind_key key = kind_at(cursor)->key;
	uint64_t signature = kind_signature(key);

	if (runtimes_is_part(analysis_runtimes(analysis), signature))
		sql_result_text(context, "holder");
	else
		sql_result_text(context,
				is_class(analysis, signature) ? "class" : sql_known_by(key));
}

static void get_pattern(struct sql_cursor *cursor, sqlite3_context *context)
{
	const struct analysis *analysis = cursor->sql->analysis;
	pattern_number pattern = analysis_pattern_shown(analysis, analysis_patterns(analysis),
							(allocation_id)cursor->id);

	if (pattern != NO_PATTERN)
		sql_result_text(context, pattern_name(pattern));
}

static void get_kind(struct sql_cursor *cursor, sqlite3_context *context)
{
	sql_result_text(context, kind_at(cursor)->name);
}

static void get_retained(struct sql_cursor *cursor, sqlite3_context *context)
{
	sql_result_number(context, dominators_retained(analysis_dominators(cursor->sql->analysis),
						       (allocation_id)cursor->id));
}

static void get_leak_root(struct sql_cursor *cursor, sqlite3_context *context)
{
	sql_result_number(context, leak_root_find(analysis_leaks(cursor->sql->analysis),
						  (allocation_id)cursor->id) != NULL);
}

/* The allocation that it is part of, as a body of what it holds, or a block of that. */
static allocation_id owner_of(const struct analysis *analysis, allocation_id id)
{
	uint64_t address = patterns_owner(analysis_owners(analysis), id);
	allocation_id owner =
		address ? allocation_find(analysis_index(analysis), address) : NO_ALLOCATION;

	return owner != id ? owner : NO_ALLOCATION;
}

void sql_result_owner(const struct sql *sql, sqlite3_context *context, allocation_id id)
{
	enum { MOST_STEPS = 16 };
	allocation_id last = id, owner = owner_of(sql->analysis, id);

	for (int i = 0; owner != NO_ALLOCATION && i < MOST_STEPS; i++) {
		last = owner;
		owner = owner_of(sql->analysis, last);
	}
	if (last != id)
		sql_result_number(context, last);
}

static void get_owner(struct sql_cursor *cursor, sqlite3_context *context)
{
	sql_result_owner(cursor->sql, context, (allocation_id)cursor->id);
}

static struct error *sort_free(struct sql *sql)
{
	return heaps_sort_free(analysis_heaps(sql->analysis));
}

static void get_free_kind(struct sql_cursor *cursor, sqlite3_context *context)
{
	sql_result_text(context, heaps_free_kind(analysis_heaps(cursor->sql->analysis),
						 (allocation_id)cursor->id,
						 &((struct cursor *)cursor)->region_hint)
					 ->name);
}

/* In the row of the tree, those that an allocation dominates follow it. */
static struct error *find_parents(struct sql *sql)
{
	const struct dominators *tree = analysis_dominators(sql->analysis);
	size_t count = dominators_count(tree), parent = SIZE_MAX;
	_cleanup_(free) uint32_t *above = calloc(count + 1, sizeof(*above));

	if (sql->parents.count)
		return NULL;
	TRY_MEMORY(above);
	sql->parents.memory.account = analysis_account(sql->analysis);
	TRY(array_resize(&sql->parents, allocation_count(analysis_index(sql->analysis))));
	for (size_t i = 0; i < count; i++) {
		while (parent != SIZE_MAX && i >= dominators_end(tree, parent))
			parent = above[parent] == UINT32_MAX ? SIZE_MAX : above[parent];
		above[i] = parent == SIZE_MAX ? UINT32_MAX : (uint32_t)parent;
		sql->parents.items[dominators_at(tree, i)] =
			parent == SIZE_MAX ? NO_ALLOCATION : dominators_at(tree, parent);
		parent = i;
	}
	return NULL;
}

static void get_parent(struct sql_cursor *cursor, sqlite3_context *context)
{
	allocation_id parent = cursor->sql->parents.items[cursor->id];

	if (parent != NO_ALLOCATION)
		sql_result_number(context, parent);
}

static void get_retained_count(struct sql_cursor *cursor, sqlite3_context *context)
{
	const struct dominators *tree = analysis_dominators(cursor->sql->analysis);
	size_t position;

	if (dominators_position(tree, (allocation_id)cursor->id, &position))
		sql_result_number(context, dominators_end(tree, position) - position);
}

#define PLACE(X)                                     \
	X("id", VALUE_NUMBER, sql_get_id)            \
	X("address", VALUE_ADDRESS, sql_get_address) \
	X("size", VALUE_BYTES, sql_get_size)
#define ORIGIN(X)                                 \
	X("allocator", VALUE_TEXT, get_allocator) \
	X("arena", VALUE_NUMBER, get_arena)

#define NEED_TYPES (1U << STAGE_TYPES | 1U << STAGE_LEAKED_TYPES)
#define ALLOCATION_COLUMNS(X)                                               \
	PLACE(X)                                                            \
	X("kind", VALUE_TEXT, get_kind, 0, sql_kinds_find)                  \
	X("known_by", VALUE_TEXT, get_known_by, 0, sql_kinds_find)          \
	X("class", VALUE_TEXT, get_class, 1 << STAGE_SIGNATURES)            \
	X("pattern", VALUE_TEXT, get_pattern, 0, sql_kinds_find)            \
	X("type", VALUE_TEXT, get_type, NEED_TYPES)                         \
	X("sureness", VALUE_TEXT, get_sureness, NEED_TYPES, sql_kinds_find) \
	X("signature", VALUE_ADDRESS, get_signature, 1 << STAGE_SIGNATURES) \
	X("state", VALUE_TEXT, sql_get_state, 1 << STAGE_REACHABILITY)      \
	X("anchor", VALUE_TEXT, get_anchor, 1 << STAGE_REACHABILITY)        \
	ORIGIN(X)                                                           \
	X("retained", VALUE_BYTES, get_retained, 1 << STAGE_RETAINED)       \
	X("is_leak_root", VALUE_NUMBER, get_leak_root, 1 << STAGE_LEAKS)    \
	X("owner", VALUE_NUMBER, get_owner, 1 << STAGE_OWNERS)
#define FREE_COLUMNS(X)                                    \
	PLACE(X)                                           \
	X("state", VALUE_TEXT, sql_get_state)              \
	X("kind", VALUE_TEXT, get_free_kind, 0, sort_free) \
	ORIGIN(X)
#define DOMINATOR_COLUMNS(X)                                   \
	PLACE(X)                                               \
	X("parent", VALUE_NUMBER, get_parent, 0, find_parents) \
	X("retained", VALUE_BYTES, get_retained)               \
	X("retained_count", VALUE_COUNT, get_retained_count)

#define ROWS(list)                                                                             \
	&(const struct sql_rows)                                                               \
	{                                                                                      \
		.cursor_size = sizeof(struct cursor),                                          \
		.columns = (const struct sql_column[]){ list(AS_GETTER) }, .best = best_index, \
		.begin = begin, .narrow = narrow, .seek = seek, .find = find,                  \
	}

const struct sql_table sql_allocation_tables[] = {
	[ALLOCATIONS] = { "allocations in use; hidden columns take a pass over the graph",
			  TABLE("allocation", NULL, ALLOCATION_COLUMNS(AS_COLUMN)), 3,
			  ROWS(ALLOCATION_COLUMNS) },
	[FREE] = { "free allocations, which share their ids with those in use",
		   TABLE("free", NULL, FREE_COLUMNS(AS_COLUMN)), 0, ROWS(FREE_COLUMNS) },
	[DOMINATORS] = { "what would be freed along with each allocation",
			 TABLE("dominator", NULL, DOMINATOR_COLUMNS(AS_COLUMN)), 0,
			 ROWS(DOMINATOR_COLUMNS) },
};
const size_t sql_allocation_table_count = COUNT_OF(sql_allocation_tables);
