/*
 * Tables whose rows belong to allocations, in the order of ids: conditions on the id narrow what is
 * visited.
 */
#include "analyzer/sql/parts.h"

/*
 * Bounds of a column as SQL has it: [least, most] of numbers that are not negative. false: no
 * number that can be an id, an address or a size is.
 */
bool sql_narrow(unsigned char operator, sqlite3_int64 value, uint64_t *least, uint64_t *most)
{
	switch (operator) {
	case SQLITE_INDEX_CONSTRAINT_EQ:
		*least = *least > (uint64_t)value ? *least : (uint64_t)value;
		*most = *most < (uint64_t)value ? *most : (uint64_t)value;
		return true;
	case SQLITE_INDEX_CONSTRAINT_GT:
	case SQLITE_INDEX_CONSTRAINT_GE:
		*least = *least > (uint64_t)value ? *least : (uint64_t)value;
		return true;
	case SQLITE_INDEX_CONSTRAINT_LT:
	case SQLITE_INDEX_CONSTRAINT_LE:
		*most = *most < (uint64_t)value ? *most : (uint64_t)value;
		return true;
	default:
		return false;
	}
}

int sql_best_ids(sqlite3_vtab *base, sqlite3_index_info *info)
{
	struct sql_constraint taken[MOST_CONSTRAINTS];
	int count = 0;

	info->estimatedRows = 10000000;
	for (int i = 0; i < info->nConstraint; i++)
		if (info->aConstraint[i].iColumn == 0 &&
		    sql_take_constraint(info, i, &count, taken))
			info->estimatedRows = info->aConstraint[i].op == SQLITE_INDEX_CONSTRAINT_EQ
						      ? 10
						      : info->estimatedRows / 4 + 1;
	info->estimatedCost = (double)info->estimatedRows * 2;
	info->orderByConsumed =
		info->nOrderBy == 1 && !info->aOrderBy[0].desc && info->aOrderBy[0].iColumn == 0;
	info->idxNum = (int)(info->colUsed & 0x3fffffff);
	return sql_keep_constraints(info, taken, count);
}

void sql_narrow_ids(int count, const char *constraints, sqlite3_value **values, size_t *at,
		    size_t *end)
{
	for (int i = 0; i < count; i++) {
		uint64_t least = 0, most = INT64_MAX;

		/* Leave other comparisons to SQLite. */
		if (sqlite3_value_type(values[i]) != SQLITE_INTEGER ||
		    sqlite3_value_int64(values[i]) < 0 ||
		    !sql_narrow((unsigned char)constraints[2 * i + 1],
				sqlite3_value_int64(values[i]), &least, &most))
			continue;
		*at = *at > least ? *at : least;
		*end = most < *end ? most + 1 : *end;
	}
}
