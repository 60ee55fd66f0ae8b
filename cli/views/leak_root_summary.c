#include "cli/views/leak_root_summary.h"

#include "analyzer/kinds/summary.h"
#include "cli/views/rows.h"

#include <inttypes.h>

struct root_summary {
	struct analysis *analysis;
	const struct set_query *query;
	struct report *report;
	struct tally_table groups; /* bytes are those owned */
	uint64_t roots;
	struct set_total owned;
	uint64_t lines; /* written so far */
};

static void root_summary_deinit(struct root_summary *summary)
{
	table_release(&summary->groups);
}
DEFINE_DEINIT(root_summary_deinit, struct root_summary)

static struct error *count_roots(struct root_summary *summary)
{
	_cleanup_(members_deinit) struct members members = { 0 };
	struct error *error = query_select(summary->analysis, summary->query, &members);

	if (!error)
		error = leak_roots_count(summary->analysis, &members.set, &summary->groups);
	for (size_t i = 0; !error && i < summary->groups.count; i++) {
		summary->roots += summary->groups.items[i].count;
		summary->owned.count += summary->groups.items[i].owned;
		summary->owned.bytes += summary->groups.items[i].bytes;
	}
	return error;
}

/* What the roots of that key are, to be freed; NULL if memory is short. */
static char *group_text(const struct root_summary *summary, kind_key key)
{
	struct kind_name name = kind_name(summary->analysis, key);
	const char *text = kind_name_in_form(summary->analysis, key, summary->query->full_names);
	char *line = NULL;
	int length = -1;

	if (name.by == BY_SIZE)
		length = asprintf(&line, "size 0x%" PRIx64, name.size);
	else if (name.by == BY_IDENTITY)
		length = asprintf(&line, "identity %s at offset 0x%" PRIx64, text ? text : "",
				  name.offset);
	else if (name.by == BY_PATTERN)
		length = asprintf(&line, "pattern %%%s", text);
	else if (text)
		length = asprintf(&line, "signature %" PRIx64 " (%s)", name.signature, text);
	else
		length = asprintf(&line, "signature %" PRIx64, name.signature);
	return length < 0 ? NULL : line;
}

static void write_group(struct root_summary *summary, const struct tally *tally)
{
	struct report *report = summary->report;
	_cleanup_(free) char *text = NULL;

	if (summary->query->limit && summary->lines++ >= summary->query->limit)
		return;
	text = group_text(summary, tally->key);
	report_row(report, tally->count, tally->owned, tally->bytes, text);
}

static void write_groups(struct root_summary *summary)
{
	static const struct table table =
		TABLE("leak roots", NULL, { "leak roots", VALUE_COUNT },
		      { "allocations lost", VALUE_COUNT }, { "bytes lost", VALUE_BYTES },
		      { "what the roots are", VALUE_TEXT });
	int (*order)(const void *, const void *) =
		summary->query->sort == SORT_COUNT     ? tally_compare_counts
		: summary->query->sort == SORT_ADDRESS ? tally_compare_keys
						       : tally_compare_bytes;

	array_sort(&summary->groups, order);
	report_begin_table(summary->report, &table);
	for (size_t i = 0; i < summary->groups.count; i++)
		write_group(summary, &summary->groups.items[i]);
	report_end_table(summary->report);
	rows_left_out(summary->report, "kinds of leak roots", summary->lines,
		      summary->query->limit);
}

/* What belongs to no single root, if all of them are looked at. */
static void write_shared(struct root_summary *summary)
{
	static const struct table table = TABLE(
		"shared",
		"Several leak roots share {count} allocations taking 0x{bytes}({bytes,}) bytes, which are in no line above.",
		{ "count", VALUE_COUNT }, { "bytes", VALUE_BYTES });
	const struct leaks *leaks = analysis_leaks(summary->analysis);

	if (summary->roots != leak_root_count(leaks) || leaks_shared_count(leaks) == 0)
		return;
	report_single(summary->report, &table, leaks_shared_count(leaks),
		      leaks_shared_bytes(leaks));
	summary->owned.count += leaks_shared_count(leaks);
	summary->owned.bytes += leaks_shared_bytes(leaks);
}

static void write_total(struct root_summary *summary)
{
	static const struct table table = TABLE(
		"total",
		"{count} leak roots hold {allocations lost} allocations, which use 0x{bytes} ({bytes,}) bytes.",
		{ "count", VALUE_COUNT }, { "allocations lost", VALUE_COUNT },
		{ "bytes", VALUE_BYTES });

	report_single(summary->report, &table, summary->roots, summary->owned.count,
		      summary->owned.bytes);
}

struct error *summarize_leak_roots(struct analysis *analysis, const struct set_query *query,
				   struct report *report)
{
	_cleanup_(root_summary_deinit) struct root_summary summary = {
		.analysis = analysis,
		.query = query,
		.report = report,
	};
	struct error *error;

	summary.groups.memory.account = analysis_account(analysis);
	error = count_roots(&summary);
	if (error)
		return error;
	write_groups(&summary);
	write_shared(&summary);
	write_total(&summary);
	return NULL;
}
