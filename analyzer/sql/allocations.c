/*
 * The tables whose rows are allocations: allocation, free, dominator and object. Their columns are
 * those of analyzer/query/columns.h.
 *
 * A cursor goes over the ids of [id, end), or the places of a kind in the order of kinds.
 * Conditions on id, address and kind make that a stretch of it; one on size is tested before SQLite
 * sees a row.
 */

#include "analyzer/base/sort.h"
#include "analyzer/kinds/object_census.h"
#include "analyzer/sql/parts.h"

#include <string.h>

/* Columns that all but objects begin with, and the one of allocations behind them. */
enum { COLUMN_ID, COLUMN_ADDRESS, COLUMN_SIZE, COLUMN_KIND };

struct cursor {
	struct sql_cursor base;
	bool by_kind;
	bool is_free;
	uint64_t least, most; /* sizes that are wanted */
};

static const struct allocation_index *index_of(const struct cursor *cursor)
{
	return analysis_index(cursor->base.sql->analysis);
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
	bool has_kinds = ((struct sql_virtual *)base)->table == &sql_allocation_table;
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
		base->id = base->sql->facts.kinds.order.items[base->at];
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
	const struct named_kinds *kinds = &cursor->base.sql->facts.kinds;
	const char *name = (const char *)sqlite3_value_text(value);
	size_t number = name ? named_kinds_search(kinds, name) : kinds->list.count;

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
	cursor->is_free = base->table == &sql_free_table;
	cursor->least = 0;
	cursor->most = UINT64_MAX;
	TRY(analysis_need(base->sql->analysis, STAGE_HEAP));
	return sql_begin_ids(base);
}

static void narrow(struct sql_cursor *base, int count, const char *constraints,
		   sqlite3_value **values)
{
	struct cursor *cursor = (struct cursor *)base;

	if (cursor->by_kind)
		base->end = base->sql->facts.kinds.order.count;
	for (int i = 0; i < count; i++)
		if (constraints[2 * i] - '0' == COLUMN_KIND)
			narrow_kind(cursor, values[i]);
	for (int i = 0; i < count; i++)
		narrow_by(cursor, &constraints[2 * i], values[i]);
}

static struct error *begin_objects(struct sql_cursor *cursor, int plan)
{
	TRY(analysis_need(cursor->sql->analysis, STAGE_CLASSES));
	return sql_begin_ids(cursor);
}

static bool find_object(struct sql_cursor *cursor)
{
	return object_class_key(cursor->sql->analysis, (allocation_id)cursor->id) != KIND_UNKNOWN;
}

#define ROWS(list)                                                                           \
	&(const struct sql_rows)                                                             \
	{                                                                                    \
		.cursor_size = sizeof(struct cursor), .shared = &(list), .best = best_index, \
		.begin = begin, .narrow = narrow, .seek = seek, .find = find,                \
	}

const struct sql_table sql_allocation_table = {
	"allocations in use; hidden columns take a pass over the graph",
	.rows = ROWS(allocation_columns),
};

const struct sql_table sql_free_table = {
	"free allocations, which share their ids with those in use",
	.rows = ROWS(free_columns),
};

const struct sql_table sql_dominator_table = {
	"what would be freed along with each allocation",
	.rows = ROWS(dominator_columns),
};

static const struct sql_rows object_rows = {
	.cursor_size = sizeof(struct sql_cursor),
	.shared = &object_columns,
	.best = sql_best_ids,
	.begin = begin_objects,
	.narrow = sql_narrow_ids,
	.seek = sql_seek_used,
	.find = find_object,
};

const struct sql_table sql_object_table = {
	"objects of languages' runtimes, with the blocks that they are made of; bytes are the object's own",
	.rows = &object_rows,
};
