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

/* Columns that all three begin with, and those of allocations behind them. */
enum {
	COLUMN_ID,
	COLUMN_ADDRESS,
	COLUMN_SIZE,
	COLUMN_KIND,
	COLUMN_KNOWN_BY,
	COLUMN_CLASS,
	COLUMN_PATTERN,
	COLUMN_TYPE,
	COLUMN_SURENESS,
	COLUMN_SIGNATURE,
	COLUMN_STATE,
	COLUMN_ANCHOR,
	COLUMN_ALLOCATOR,
	COLUMN_ARENA,
	COLUMN_RETAINED,
	COLUMN_LEAK_ROOT,
};

enum { FREE_STATE = COLUMN_KIND, FREE_KIND, FREE_ALLOCATOR, FREE_ARENA };
enum { DOMINATOR_PARENT = COLUMN_KIND, DOMINATOR_RETAINED, DOMINATOR_COUNT };

const struct sql_table sql_allocation_tables[] = {
	[ALLOCATIONS] = {
		"allocations in use; hidden columns take a pass over the graph",
		TABLE("allocation", NULL, { "id", VALUE_NUMBER }, { "address", VALUE_ADDRESS },
		      { "size", VALUE_BYTES }, { "kind", VALUE_TEXT }, { "known_by", VALUE_TEXT },
		      { "class", VALUE_TEXT }, { "pattern", VALUE_TEXT }, { "type", VALUE_TEXT },
		      { "sureness", VALUE_TEXT }, { "signature", VALUE_ADDRESS },
		      { "state", VALUE_TEXT }, { "anchor", VALUE_TEXT },
		      { "allocator", VALUE_TEXT }, { "arena", VALUE_NUMBER },
		      { "retained", VALUE_BYTES }, { "is_leak_root", VALUE_NUMBER }),
		2,
	},
	[FREE] = {
		"free allocations, which share their ids with those in use",
		TABLE("free", NULL, { "id", VALUE_NUMBER }, { "address", VALUE_ADDRESS },
		      { "size", VALUE_BYTES }, { "state", VALUE_TEXT }, { "kind", VALUE_TEXT },
		      { "allocator", VALUE_TEXT }, { "arena", VALUE_NUMBER }),
		0,
	},
	[DOMINATORS] = {
		"what would be freed along with each allocation",
		TABLE("dominator", NULL, { "id", VALUE_NUMBER }, { "address", VALUE_ADDRESS },
		      { "size", VALUE_BYTES }, { "parent", VALUE_NUMBER },
		      { "retained", VALUE_BYTES }, { "retained_count", VALUE_COUNT }),
		0,
	},
};
const size_t sql_allocation_table_count = COUNT_OF(sql_allocation_tables);

struct cursor {
	struct sql_cursor base;
	bool by_kind;
	bool is_free;
	size_t at, end; /* ids, or places */
	size_t id;
	size_t hint;	      /* of the index */
	size_t region_hint;   /* of kinds of free memory */
	uint64_t least, most; /* sizes that are wanted */
};

static const struct allocation_index *index_of(const struct cursor *cursor)
{
	return analysis_index(cursor->base.sql->analysis);
}

/* The stages that the columns of a statement need, a bit for each. */
static struct error *need_columns(struct sql *sql, size_t table, uint64_t columns)
{
	static const struct {
		uint64_t columns;
		enum stage stage;
	} needs[] = {
		{ 1 << COLUMN_STATE | 1 << COLUMN_ANCHOR, STAGE_REACHABILITY },
		{ 1 << COLUMN_CLASS | 1 << COLUMN_SIGNATURE, STAGE_SIGNATURES },
		{ 1 << COLUMN_TYPE | 1 << COLUMN_SURENESS, STAGE_TYPES },
		{ 1 << COLUMN_TYPE | 1 << COLUMN_SURENESS, STAGE_LEAKED_TYPES },
		{ 1 << COLUMN_RETAINED, STAGE_RETAINED },
		{ 1 << COLUMN_LEAK_ROOT, STAGE_LEAKS },
	};

	TRY(analysis_need(sql->analysis, STAGE_HEAP));
	if (table == FREE)
		return columns & 1 << FREE_KIND ? heaps_sort_free(analysis_heaps(sql->analysis))
						: NULL;
	if (table == DOMINATORS)
		return analysis_need(sql->analysis, STAGE_RETAINED);
	for (size_t i = 0; i < COUNT_OF(needs); i++)
		if (columns & needs[i].columns)
			TRY(analysis_need(sql->analysis, needs[i].stage));
	if (columns &
	    (1 << COLUMN_KIND | 1 << COLUMN_KNOWN_BY | 1 << COLUMN_PATTERN | 1 << COLUMN_SURENESS))
		TRY(sql_kinds_find(sql));
	return NULL;
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
	struct sql_virtual *table = (struct sql_virtual *)base;
	struct sql_constraint taken[MOST_CONSTRAINTS];
	int count = 0, order = -1, kind = -1;

	for (int i = 0; i < info->nConstraint; i++) {
		int column = info->aConstraint[i].iColumn;
		bool is_kind = table->number == ALLOCATIONS && column == COLUMN_KIND &&
			       info->aConstraint[i].op == SQLITE_INDEX_CONSTRAINT_EQ;

		if ((column <= COLUMN_SIZE || is_kind) &&
		    sql_take_constraint(info, i, &count, taken) && is_kind)
			kind = COLUMN_KIND;
	}
	estimate(info, taken, count);
	if (has_order(info, &order))
		info->orderByConsumed =
			order == COLUMN_KIND ? table->number == ALLOCATIONS : kind < 0;
	if (info->orderByConsumed && order == COLUMN_KIND)
		kind = COLUMN_KIND;
	info->idxNum = (kind >= 0 ? BY_KIND : 0) | (int)(info->colUsed & 0x3fffffff) << 1;
	return sql_keep_constraints(info, taken, count);
}

static int open_cursor(sqlite3_vtab *table, sqlite3_vtab_cursor **ret)
{
	return sql_open_cursor(table, sizeof(struct cursor), ret);
}

/* True if the cursor has a row that the constraints want. */
static bool is_wanted(struct cursor *cursor)
{
	const struct allocation_index *index = index_of(cursor);
	struct memory_range range;

	cursor->base.sql->visited++;
	if (bitmap_get(allocation_used(index), cursor->id) == cursor->is_free)
		return false;
	if (cursor->least == 0 && cursor->most == UINT64_MAX)
		return true;
	range = allocation_range_near(index, (allocation_id)cursor->id, &cursor->hint);
	return range.end - range.start >= cursor->least && range.end - range.start <= cursor->most;
}

static void find_id(struct cursor *cursor)
{
	const struct bitmap *used = allocation_used(index_of(cursor));

	if (cursor->by_kind)
		cursor->id = cursor->base.sql->kinds.order.items[cursor->at];
	else
		cursor->id = cursor->at = cursor->is_free ? bitmap_next_clear(used, cursor->at)
							  : bitmap_next(used, cursor->at);
}

/* From cursor->at on, which may be a row itself. */
static int find_row(struct cursor *cursor)
{
	int status = SQLITE_OK;

	for (; status == SQLITE_OK && cursor->at < cursor->end; cursor->at++) {
		find_id(cursor);
		if (cursor->at >= cursor->end || is_wanted(cursor))
			break;
		status = sql_glance(&cursor->base, cursor->at);
	}
	return status;
}

static int next_row(sqlite3_vtab_cursor *base)
{
	struct cursor *cursor = (struct cursor *)base;

	cursor->at++;
	return find_row(cursor);
}

static int is_at_end(sqlite3_vtab_cursor *base)
{
	struct cursor *cursor = (struct cursor *)base;

	return cursor->at >= cursor->end;
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
	cursor->at = cursor->at > first ? cursor->at : first;
	cursor->end = cursor->end < end ? cursor->end : end;
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
		cursor->at = cursor->at > least ? cursor->at : least;
		cursor->end = most < cursor->end ? most + 1 : cursor->end;
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
	cursor->at = cursor->end = 0;
	if (number < kinds->list.count) {
		cursor->at = kinds->list.items[number].first;
		cursor->end = cursor->at + kinds->list.items[number].count;
	}
}

static struct error *begin(struct cursor *cursor, int plan)
{
	struct sql *sql = cursor->base.sql;

	cursor->by_kind = plan & BY_KIND;
	cursor->is_free = cursor->base.number == FREE;
	cursor->at = 0;
	cursor->base.reported = 0;
	cursor->least = 0;
	cursor->most = UINT64_MAX;
	TRY(need_columns(sql, cursor->base.number, (uint64_t)plan >> 1));
	if (cursor->by_kind)
		TRY(sql_kinds_find(sql));
	cursor->end = cursor->by_kind ? sql->kinds.order.count : allocation_count(index_of(cursor));
	return NULL;
}

static int filter(sqlite3_vtab_cursor *base, int plan, const char *constraints, int count,
		  sqlite3_value **values)
{
	struct cursor *cursor = (struct cursor *)base;
	struct error *error = begin(cursor, plan);

	if (error)
		return sql_fail(cursor->base.sql, error);
	for (int i = 0; i < count; i++)
		if (constraints[2 * i] - '0' == COLUMN_KIND)
			narrow_kind(cursor, values[i]);
	for (int i = 0; i < count; i++)
		narrow_by(cursor, &constraints[2 * i], values[i]);
	return find_row(cursor);
}

unsigned int sql_anchor_kind(const struct roots *roots, allocation_id id)
{
	unsigned int kind = 0;

	while (kind < ROOT_KINDS && !bitmap_get(root_targets(roots, kind), id))
		kind++;
	return kind;
}

static const char *anchor_of(const struct roots *roots, allocation_id id)
{
	static const char *const names[ROOT_KINDS + 1] = {
		[ROOT_STATIC] = "static", [ROOT_STACK] = "stack",     [ROOT_REGISTER] = "register",
		[ROOT_KERNEL] = "kernel", [ROOT_INTEGER] = "integer",
	};

	return names[sql_anchor_kind(roots, id)];
}

const char *sql_state(const struct analysis *analysis, allocation_id id)
{
	static const char *const names[LIVE_STATES] = {
		[STATE_AT_RISK] = "at risk",
		[STATE_ANCHORED] = "anchored",
		[STATE_GARBAGE] = "garbage",
		[STATE_HELD] = "held by garbage",
		[STATE_LEAKED] = "leaked",
		[STATE_UNREFERENCED] = "leaked",
		[STATE_USED] = "used",
		[STATE_UNSWEPT] = "unswept",
		[STATE_CACHED] = "thread cached",
		[STATE_FREE] = "free",
	};

	return names[liveness_of(analysis, id)];
}

/* How sure what an allocation is called is; see type_reason.h for what the words mean. */
static const char *sureness_of(const struct sql *sql, allocation_id id)
{
	kind_key key = sql->kinds.list.items[sql->kinds.numbers.items[id]].key;
	struct typed typed;

	switch (kind_tag(key)) {
	case BY_SIGNATURE:
		return runtimes_is_part(analysis_runtimes(sql->analysis), kind_signature(key))
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

static void result_place(sqlite3_context *context, const struct cursor *cursor, bool is_arena)
{
	const struct allocation_index *index = index_of(cursor);
	const struct heap_region *region =
		heap_region_find(index, allocation_start(index, (allocation_id)cursor->id));
	const struct heaps *heaps = analysis_heaps(cursor->base.sql->analysis);

	if (region && is_arena)
		sql_result_number(context, region->arena);
	else if (region)
		sql_result_text(context, heaps_arena_allocator(heaps, region->arena)->name);
}

static void result_class(sqlite3_context *context, const struct analysis *analysis,
			 allocation_id id)
{
	uint64_t signature = analysis_signature(analysis, id);
	_cleanup_(free) char *name = NULL, *escaped = NULL;

	if (!signature || runtimes_is_part(analysis_runtimes(analysis), signature) ||
	    !(runtimes_have_class(analysis_runtimes(analysis), signature) ||
	      classes_is_class(analysis_classes(analysis), signature)))
		return;
	name = kind_text(analysis, kind_make(BY_SIGNATURE, signature));
	escaped = name ? text_as_is(name) : NULL;
	if (escaped)
		sqlite3_result_text(context, escaped, -1, SQLITE_TRANSIENT);
	else
		sqlite3_result_error_nomem(context);
}

static void result_type(sqlite3_context *context, const struct analysis *analysis, allocation_id id)
{
	struct typed typed;
	_cleanup_(free) char *escaped = NULL;

	if (!analysis_type_of(analysis, id, &typed))
		return;
	escaped = text_as_is(typing_name(analysis_typing(analysis), typed));
	if (escaped)
		sqlite3_result_text(context, escaped, -1, SQLITE_TRANSIENT);
}

static void result_signature(sqlite3_context *context, const struct analysis *analysis,
			     allocation_id id)
{
	uint64_t signature = analysis_signature(analysis, id);

	/* Numbers of runtimes' classes are no addresses. */
	if (signature && !runtimes_have_class(analysis_runtimes(analysis), signature))
		sql_result_number(context, signature);
}

static const char *known_by(const struct sql *sql, allocation_id id)
{
	kind_key key = sql->kinds.list.items[sql->kinds.numbers.items[id]].key;
	uint64_t signature = kind_signature(key);

	if (runtimes_is_part(analysis_runtimes(sql->analysis), signature))
		return "holder";
	if (signature && (runtimes_have_class(analysis_runtimes(sql->analysis), signature) ||
			  classes_is_class(analysis_classes(sql->analysis), signature)))
		return "class";
	return sql_known_by(key);
}

static void result_pattern(sqlite3_context *context, const struct analysis *analysis,
			   allocation_id id)
{
	pattern_number pattern = analysis_pattern_shown(analysis, analysis_patterns(analysis), id);

	if (pattern != NO_PATTERN)
		sql_result_text(context, pattern_name(pattern));
}

static void result_used(sqlite3_context *context, struct cursor *cursor, int column)
{
	struct sql *sql = cursor->base.sql;
	const struct analysis *analysis = sql->analysis;
	allocation_id id = (allocation_id)cursor->id;

	switch (column) {
	case COLUMN_KIND:
		sql_result_text(context, sql->kinds.list.items[sql->kinds.numbers.items[id]].name);
		break;
	case COLUMN_KNOWN_BY:
		sql_result_text(context, known_by(sql, id));
		break;
	case COLUMN_CLASS:
		result_class(context, analysis, id);
		break;
	case COLUMN_PATTERN:
		result_pattern(context, analysis, id);
		break;
	case COLUMN_TYPE:
		result_type(context, analysis, id);
		break;
	case COLUMN_SURENESS:
		sql_result_text(context, sureness_of(sql, id));
		break;
	case COLUMN_SIGNATURE:
		result_signature(context, analysis, id);
		break;
	case COLUMN_STATE:
		sql_result_text(context, sql_state(analysis, id));
		break;
	case COLUMN_ANCHOR:
		sql_result_text(context, anchor_of(analysis_roots(analysis), id));
		break;
	case COLUMN_RETAINED:
		sql_result_number(context, dominators_retained(analysis_dominators(analysis), id));
		break;
	case COLUMN_LEAK_ROOT:
		sql_result_number(context, leak_root_find(analysis_leaks(analysis), id) != NULL);
		break;
	default:
		result_place(context, cursor, column == COLUMN_ARENA);
	}
}

static void result_free(sqlite3_context *context, struct cursor *cursor, int column)
{
	const struct analysis *analysis = cursor->base.sql->analysis;
	allocation_id id = (allocation_id)cursor->id;

	switch (column) {
	case FREE_STATE:
		sql_result_text(context, sql_state(analysis, id));
		break;
	case FREE_KIND:
		sql_result_text(
			context,
			heaps_free_kind(analysis_heaps(analysis), id, &cursor->region_hint)->name);
		break;
	default:
		result_place(context, cursor, column == FREE_ARENA);
	}
}

/* In the row of the tree, those that an allocation dominates follow it. */
static struct error *find_parents(struct sql *sql)
{
	const struct dominators *tree = analysis_dominators(sql->analysis);
	size_t count = dominators_count(tree), parent = SIZE_MAX;
	_cleanup_(free) uint32_t *above = calloc(count + 1, sizeof(*above));

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

static int result_dominator(sqlite3_context *context, struct cursor *cursor, int column)
{
	struct sql *sql = cursor->base.sql;
	const struct dominators *tree = analysis_dominators(sql->analysis);
	allocation_id id = (allocation_id)cursor->id;
	struct error *error =
		column == DOMINATOR_PARENT && !sql->parents.count ? find_parents(sql) : NULL;
	size_t position;

	if (error)
		return sql_fail(sql, error);
	if (column == DOMINATOR_RETAINED)
		sql_result_number(context, dominators_retained(tree, id));
	else if (column == DOMINATOR_COUNT && dominators_position(tree, id, &position))
		sql_result_number(context, dominators_end(tree, position) - position);
	else if (column == DOMINATOR_PARENT && sql->parents.items[id] != NO_ALLOCATION)
		sql_result_number(context, sql->parents.items[id]);
	return SQLITE_OK;
}

static int result_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int column)
{
	struct cursor *cursor = (struct cursor *)base;
	struct memory_range range;

	if (column == COLUMN_ID) {
		sql_result_number(context, cursor->id);
		return SQLITE_OK;
	}
	if (column <= COLUMN_SIZE) {
		range = allocation_range_near(index_of(cursor), (allocation_id)cursor->id,
					      &cursor->hint);
		sql_result_number(context,
				  column == COLUMN_SIZE ? range.end - range.start : range.start);
		return SQLITE_OK;
	}
	if (cursor->base.number == DOMINATORS)
		return result_dominator(context, cursor, column);
	if (cursor->base.number == FREE)
		result_free(context, cursor, column);
	else
		result_used(context, cursor, column);
	return SQLITE_OK;
}

static int row_id(sqlite3_vtab_cursor *base, sqlite3_int64 *ret)
{
	struct cursor *cursor = (struct cursor *)base;

	*ret = (sqlite3_int64)cursor->id;
	return SQLITE_OK;
}

static const sqlite3_module module = SQL_MODULE(best_index, sql_close_cursor);

struct error *sql_add_allocation_tables(struct sql *sql)
{
	for (size_t i = 0; i < sql_allocation_table_count; i++)
		TRY(sql_add_module(sql, &module, &sql_allocation_tables[i], i));
	return NULL;
}
