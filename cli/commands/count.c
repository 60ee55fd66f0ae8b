#include "cli/views/rows.h"

static struct error *count_ranges(struct analysis *analysis, const struct set_query *query,
				  struct report *report)
{
	_cleanup_(ranges_deinit) struct ranges ranges = { 0 };

	TRY(query_collect(analysis, query, &ranges));
	rows_total(report, rows_noun(query), ranges_total(&ranges));
	return NULL;
}

static struct error *count_run(struct analysis *analysis, const void *arguments,
			       struct report *report)
{
	const struct selection *selection = arguments;
	_cleanup_(members_deinit) struct members members = { 0 };
	struct set_query query = selection->query;

	if (selection->query.set->ranges)
		return count_ranges(analysis, &selection->query, report);
	query.any_order = true;
	TRY(query_select(analysis, &query, &members));
	comment_rows(report, analysis, &members);
	rows_total(report, rows_noun(&selection->query),
		   allocations_total(analysis_index(analysis), &members.set));
	return NULL;
}

const struct command command_count = {
	.name = "count",
	.summary = "Count the members of a set, and their bytes",
	.words = "SET [KIND]",
	.example = "count leaked\n"
		   "count used --min-size 1K   # 1,024 bytes or more\n"
		   "count used %LongString\n"
		   "count used minus leaked",
	.description = "Bytes are those that the program can use, without malloc's overhead.",
	TAKES_SELECTION,
	.options = &contents_options[SELECTION_OPTIONS],
	.parse = selection_parse,
	.run = count_run,
};
