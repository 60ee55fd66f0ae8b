#include "analyzer/query/order.h"
#include "cli/views/rows.h"

#include <inttypes.h>

struct enumeration {
	struct analysis *analysis;
	struct report *report;
	bool comments;	     /* are asked for */
	bool between;	     /* two parts of the table */
	struct error *error; /* owned */
};

static const struct table table = TABLE("address", "{address}", { "address", VALUE_ADDRESS });

static bool write_address(void *data, allocation_id id)
{
	struct enumeration *enumeration = data;

	if (enumeration->between)
		report_begin_table(enumeration->report, &table);
	enumeration->between = false;
	report_row(enumeration->report,
		   allocation_start(analysis_index(enumeration->analysis), id));
	return !report_broken(enumeration->report);
}

static void write_comment(void *data, const struct member_comment *comment)
{
	struct enumeration *enumeration = data;

	if (!enumeration->comments) {
		if (!enumeration->error)
			enumeration->error = comment_note(enumeration->analysis, comment);
		return;
	}
	if (!enumeration->between)
		report_end_table(enumeration->report);
	enumeration->between = true;
	comment_row(enumeration->report, enumeration->analysis, comment);
}

/*
 * Nothing but addresses, unless comments are asked for. What must be known all the same is a note.
 */
static struct error *enumerate_allocations(struct analysis *analysis, const struct set_query *query,
					   struct report *report)
{
	_cleanup_(members_deinit) struct members members = { 0 };
	struct enumeration enumeration = {
		.analysis = analysis,
		.report = report,
		.comments = query->comment_extensions,
	};
	const struct member_visitor visitor = {
		.member = write_address,
		.comment = write_comment,
		.data = &enumeration,
	};
	struct error *error = query_select(analysis, query, &members);

	if (error)
		return error;
	report_begin_table(report, &table);
	error = query_visit(analysis, query, &members, &visitor);
	if (!enumeration.between)
		report_end_table(report);
	if (!error)
		return enumeration.error;
	error_destroy(enumeration.error);
	return error;
}

static struct error *enumerate_ranges(struct analysis *analysis, const struct set_query *query,
				      struct report *report)
{
	_cleanup_(ranges_deinit) struct ranges ranges = { 0 };

	TRY(query_collect(analysis, query, &ranges));
	/* There is no other way to say so here. */
	if (ranges_found(&ranges) > ranges.count && (!query->limit || query->limit > ranges.count))
		return error_create(ERROR_USAGE,
				    "%" PRIu64
				    " %s are too many to enumerate: use --limit, %zu at most",
				    ranges_found(&ranges), rows_noun(query), ranges.count);
	report_begin_table(report, &table);
	for (size_t i = 0; i < ranges.count && !report_broken(report); i++) {
		uint64_t start = ranges_at(&ranges, i).start;

		if (query->limit && i == query->limit)
			break;
		if (start == 0)
			continue; /* an arena without a place of its own */
		report_row(report, start);
	}
	report_end_table(report);
	return NULL;
}

static struct error *enumerate_run(struct analysis *analysis, const void *arguments,
				   struct report *report)
{
	const struct selection *selection = arguments;

	if (selection->query.set->ranges)
		return enumerate_ranges(analysis, &selection->query, report);
	return enumerate_allocations(analysis, &selection->query, report);
}

const struct command command_enumerate = {
	.name = "enumerate",
	.summary = "Write the addresses of a set, one a line",
	.words = "SET [KIND]",
	.example = "enumerate leakroots --sort-by bytes --limit 20\n"
		   "enumerate used app::Session > sessions.txt",
	.description = "For scripts: hexadecimal addresses and nothing else.",
	TAKES_SELECTION,
	.options = &contents_options[SELECTION_OPTIONS],
	.parse = selection_parse,
	.run = enumerate_run,
};
