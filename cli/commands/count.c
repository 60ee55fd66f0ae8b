#include "cli/rows.h"

static struct error *count_ranges(struct analysis *analysis,
				  const struct set_query *query,
				  struct report *report)
{
	_cleanup_(ranges_deinit) struct ranges ranges = { 0 };
	struct error *error = query_collect(analysis, query, &ranges);

	if (!error)
		rows_total(report, rows_noun(query), ranges_total(&ranges));
	return error;
}

static struct error *count_run(struct analysis *analysis, const void *arguments,
			       struct report *report)
{
	const struct selection *selection = arguments;
	_cleanup_(members_deinit) struct members members = { 0 };
	struct error *error;

	if (selection->query.set->ranges)
		return count_ranges(analysis, &selection->query, report);
	error = query_select(analysis, &selection->query, &members);
	if (!error)
		rows_total(report, rows_noun(&selection->query),
			   allocations_total(analysis_index(analysis),
					     &members.set));
	return error;
}

const struct command command_count = {
	.name = "count",
	.summary = "Say how many there are of a set, and how many bytes",
	.words = "SET [SIGNATURE]",
	.example = "count leaked --min-size 1K",
	.word = WORD_SET,
	.options = &contents_options[SELECTION_OPTIONS],
	.parse = selection_parse,
	.arguments_size = sizeof(struct selection),
	.release = selection_release,
	.needs = STAGE_IMAGE,
	.needs_analysis = true,
	.run = count_run,
};
