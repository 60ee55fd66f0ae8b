#include "cli/views/matches.h"

#include "analyzer/base/text.h"
#include "cli/views/rows.h"

static struct error *take_limit(struct matches_switches *switches, const char *value)
{
	struct error *error = parse_count(value, &switches->limit);

	if (!error && switches->limit == 0)
		return error_create(ERROR_USAGE, "a limit of 0 leaves nothing to show");
	return error;
}

bool matches_take(struct matches_switches *switches, int key, const char *value,
		  struct error **ret_error)
{
	if (key == MATCHES_KEY_LIMIT)
		*ret_error = take_limit(switches, value);
	else if (key == MATCHES_KEY_SKIP)
		*ret_error = skipped_parse(value, &switches->skipped);
	else
		return false;
	return true;
}

struct error *matches_write(struct analysis *analysis, struct search search,
			    const struct matches_switches *switches, struct report *report)
{
	const struct range_kind *kind = &range_kind_matches;
	_cleanup_(ranges_deinit) struct ranges ranges = { 0 };
	struct error *error = analysis_need(analysis, kind->needs);
	size_t count;

	if (!error)
		error = references_find(analysis, search, switches->skipped, &ranges);
	if (error)
		return error;
	count = ranges.count;
	if (switches->limit && switches->limit < count)
		count = switches->limit;
	report_begin_table(report, &kind->table);
	for (size_t i = 0; i < count && !report_broken(report); i++) {
		struct range range = ranges_at(&ranges, i);

		kind->write(analysis, &ranges, &range, report);
		report_end_row(report);
	}
	report_end_table(report);
	rows_left_out(report, kind->noun, ranges_found(&ranges), count);
	rows_total(report, kind->noun, ranges_total(&ranges));
	return NULL;
}
