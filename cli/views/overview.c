#include "cli/views/overview.h"

#include "analyzer/account/hidden.h"
#include "analyzer/account/unexplained.h"
#include "analyzer/image/image.h"
#include "cli/views/rows.h"

static struct error *count_set(struct analysis *analysis, const char *name, struct report *report)
{
	_cleanup_(set_query_deinit) struct set_query query = { .any_order = true };
	_cleanup_(members_deinit) struct members members = { 0 };
	struct set_total total;

	TRY(query_take_word(&query, name));
	TRY(query_check(&query));
	TRY(query_select(analysis, &query, &members));
	total = allocations_total(analysis_index(analysis), &members.set);
	report_row(report, name, total.count, total.bytes);
	return NULL;
}

struct error *overview_write(struct analysis *analysis, struct report *report)
{
	static const char *const sets[] = { "used", "leaked", "leakroots", "free" };
	static const struct table core = TABLE(
		"core", "{core}: a core of {size,} bytes, of {threads} {threads|thread|threads}.",
		{ "core", VALUE_TEXT }, { "size", VALUE_BYTES }, { "threads", VALUE_COUNT });
	static const struct table counts =
		TABLE("set", NULL, { "set", VALUE_TEXT }, { "allocations", VALUE_COUNT },
		      { "bytes", VALUE_BYTES });
	const struct image *image = analysis_image(analysis);
	struct error *error = analysis_need(analysis, STAGE_HEAP);

	if (!error)
		error = unexplained_note(analysis);
	report_single(report, &core, image->path, image->size, image->thread_count);
	report_begin_table(report, &counts);
	for (size_t i = 0; !error && i < COUNT_OF(sets); i++)
		error = count_set(analysis, sets[i], report);
	report_end_table(report);
	if (!error)
		error = rows_likely_held(report, analysis, analysis_leaked(analysis),
					 "leaked allocations");
	return error ? error : hidden_note(analysis);
}
