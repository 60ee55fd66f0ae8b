#include "analyzer/query/order.h"
#include "cli/rows.h"

struct enumeration {
	const struct allocation_index *index;
	struct report *report;
};

static bool write_address(void *data, allocation_id id)
{
	struct enumeration *enumeration = data;

	report_number(enumeration->report,
		      allocation_start(enumeration->index, id));
	report_end_row(enumeration->report);
	return !report_broken(enumeration->report);
}

static struct error *enumerate_allocations(struct analysis *analysis,
					   const struct set_query *query,
					   struct report *report)
{
	_cleanup_(members_deinit) struct members members = { 0 };
	struct enumeration enumeration = { .report = report };
	struct error *error = query_select(analysis, query, &members);

	if (error)
		return error;
	enumeration.index = analysis_index(analysis);
	return query_visit(analysis, query, &members, write_address,
			   &enumeration);
}

static struct error *enumerate_ranges(struct analysis *analysis,
				      const struct set_query *query,
				      struct report *report)
{
	_cleanup_(ranges_deinit) struct ranges ranges = { 0 };
	struct error *error = query_collect(analysis, query, &ranges);

	for (size_t i = 0; !error && i < ranges.count; i++) {
		if (query->limit && i == query->limit)
			break;
		if (ranges.list[i].start == 0)
			continue; /* an arena without a place of its own */
		report_number(report, ranges.list[i].start);
		report_end_row(report);
	}
	return error;
}

static struct error *enumerate_run(struct analysis *analysis,
				   const void *arguments, struct report *report)
{
	static const struct column columns[] = { { "address", VALUE_ADDRESS } };
	static const struct table table = { "address", columns, 1,
					    "{address}" };
	const struct selection *selection = arguments;
	struct error *error;

	report_begin_table(report, &table);
	if (selection->query.set->ranges)
		error = enumerate_ranges(analysis, &selection->query, report);
	else
		error = enumerate_allocations(analysis, &selection->query,
					      report);
	report_end_table(report);
	return error;
}

const struct command command_enumerate = {
	.name = "enumerate",
	.summary = "Write the addresses of a set and nothing else",
	.words = "SET [SIGNATURE]",
	.example = "enumerate leakroots --sort-by bytes --limit 20",
	.description = "For scripts: one bare hexadecimal address a line.",
	.word = WORD_SET,
	.options = &contents_options[SELECTION_OPTIONS],
	.parse = selection_parse,
	.arguments_size = sizeof(struct selection),
	.release = selection_release,
	.needs = STAGE_IMAGE,
	.needs_analysis = true,
	.run = enumerate_run,
};
