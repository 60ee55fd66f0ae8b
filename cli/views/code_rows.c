#include "cli/views/code_rows.h"

#include "analyzer/kinds/code_census.h"
#include "cli/views/rows.h"

static void write_owners(const struct code_census *census, uint64_t limit, struct report *report)
{
	static const struct table table =
		TABLE("code", NULL, { "iseqs", VALUE_COUNT }, { "bytes", VALUE_BYTES },
		      { "labels", VALUE_COUNT }, { "class", VALUE_TEXT }, { "path", VALUE_TEXT });

	report_begin_table(report, &table);
	for (size_t i = 0; i < census->owners.count && (!limit || i < limit); i++) {
		const struct code_group *group = &census->owners.items[i];

		report_row(report, group->count, group->bytes, group->labels, group->owner,
			   group->path);
	}
	report_end_table(report);
	rows_left_out(report, "lines", census->owners.count, limit);
}

static void write_labels(const struct code_census *census, uint64_t limit, struct report *report)
{
	static const struct table table =
		TABLE("code label", NULL, { "iseqs", VALUE_COUNT }, { "bytes", VALUE_BYTES },
		      { "label", VALUE_TEXT }, { "class", VALUE_TEXT }, { "path", VALUE_TEXT });

	report_begin_table(report, &table);
	for (size_t i = 0; i < census->labels.count && (!limit || i < limit); i++) {
		const struct code_group *group = &census->labels.items[i];

		report_row(report, group->count, group->bytes, group->label, group->owner,
			   group->path);
	}
	report_end_table(report);
	rows_left_out(report, "lines", census->labels.count, limit);
}

static void write_total(const struct code_census *census, struct report *report)
{
	static const struct table table =
		TABLE("total code",
		      "{iseqs} {iseqs|iseq uses|iseqs use} {bytes,} bytes with their blocks.",
		      { "iseqs", VALUE_COUNT }, { "bytes", VALUE_BYTES });
	uint64_t count = 0, bytes = 0;

	array_for_each(group, &census->owners) {
		count += group->count;
		bytes += group->bytes;
	}
	report_single(report, &table, count, bytes);
}

struct error *code_rows(struct analysis *analysis, const struct set_query *query,
			struct report *report)
{
	_cleanup_(members_deinit) struct members members = { 0 };
	_cleanup_(code_census_deinit) struct code_census census = { 0 };
	struct set_query unordered = *query;

	unordered.any_order = true;
	TRY(query_select(analysis, &unordered, &members));
	TRY(code_census_take(analysis, &members.set, query->sort == SORT_COUNT, &census));
	if (!runtimes_have_objects(analysis_runtimes(analysis)))
		analysis_note(analysis, "this process has no runtime whose compiled code is known");
	write_owners(&census, query->limit, report);
	write_labels(&census, query->limit, report);
	write_total(&census, report);
	return NULL;
}
