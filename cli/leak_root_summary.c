#include "cli/leak_root_summary.h"

#include "analyzer/query/tally.h"
#include "cli/rows.h"

struct root_summary {
	struct analysis *analysis;
	const struct set_query *query;
	struct report *report;
	struct tally_table signatures, sizes; /* bytes are those owned */
	uint64_t roots;
	struct set_total owned;
	uint64_t lines; /* written so far */
};

static void root_summary_deinit(struct root_summary *summary)
{
	tally_table_deinit(&summary->signatures);
	tally_table_deinit(&summary->sizes);
}
DEFINE_DEINIT(root_summary_deinit, struct root_summary)

static struct error *add_root(struct root_summary *summary,
			      const struct leak_root *root)
{
	uint64_t signature = analysis_signature(summary->analysis, root->id);
	uint64_t size =
		allocation_size(analysis_index(summary->analysis), root->id);

	summary->roots++;
	summary->owned.count += root->owned_count;
	summary->owned.bytes += root->owned_bytes;
	return tally_add(signature ? &summary->signatures : &summary->sizes,
			 (struct tally){ .key = signature ? signature : size,
					 .count = 1,
					 .bytes = root->owned_bytes,
					 .owned = root->owned_count });
}

static struct error *add_roots(struct root_summary *summary)
{
	_cleanup_(bitmap_deinit) struct bitmap members = { 0 };
	struct error *error =
		query_select(summary->analysis, summary->query, &members);
	const struct leaks *leaks =
		error ? NULL : analysis_leaks(summary->analysis);

	for (size_t i = 0; !error && i < leak_root_count(leaks); i++)
		if (bitmap_get(&members, leak_root(leaks, i)->id))
			error = add_root(summary, leak_root(leaks, i));
	return error;
}

static void write_group(struct root_summary *summary, bool is_signature,
			const struct tally *tally)
{
	struct report *report = summary->report;
	char what[64];

	if (summary->query->limit && summary->lines++ >= summary->query->limit)
		return;
	snprintf(what, sizeof(what),
		 is_signature ? "signature %jx" : "size 0x%jx",
		 (uintmax_t)tally->key);
	report_number(report, tally->count);
	report_number(report, tally->owned);
	report_number(report, tally->bytes);
	report_text(report, what);
	report_end_row(report);
}

/* Merge the two lists, each of which is sorted. */
static void merge_groups(struct root_summary *summary,
			 int (*order)(const void *, const void *))
{
	const struct tally_table *signatures = &summary->signatures;
	const struct tally_table *sizes = &summary->sizes;
	size_t i = 0, j = 0;

	while (i < signatures->count || j < sizes->count) {
		bool is_signature =
			j == sizes->count ||
			(i < signatures->count &&
			 order(&signatures->slots[i], &sizes->slots[j]) <= 0);

		write_group(summary, is_signature,
			    is_signature ? &signatures->slots[i++]
					 : &sizes->slots[j++]);
	}
}

static void write_groups(struct root_summary *summary)
{
	static const struct column columns[] = {
		{ "leak roots", VALUE_COUNT },
		{ "allocations lost", VALUE_COUNT },
		{ "bytes lost", VALUE_BYTES },
		{ "what the roots are", VALUE_TEXT },
	};
	static const struct table table = { "leak roots", columns, 4, NULL };
	int (*order)(const void *, const void *) =
		summary->query->sort == SORT_COUNT     ? tally_compare_counts
		: summary->query->sort == SORT_ADDRESS ? tally_compare_keys
						       : tally_compare_bytes;

	tally_table_sort(&summary->signatures, order);
	tally_table_sort(&summary->sizes, order);
	report_begin_table(summary->report, &table);
	merge_groups(summary, order);
	report_end_table(summary->report);
	rows_left_out(summary->report, "kinds of leak roots", summary->lines,
		      summary->query->limit);
}

/* What belongs to no single root, if all of them are looked at. */
static void write_shared(struct root_summary *summary)
{
	static const struct column columns[] = {
		{ "count", VALUE_COUNT },
		{ "bytes", VALUE_BYTES },
	};
	static const struct table table = {
		"shared", columns, 2,
		"Several leak roots share {count} allocations taking "
		"0x{bytes}({bytes,}) bytes, which are in no line above."
	};
	const struct leaks *leaks = analysis_leaks(summary->analysis);

	if (summary->roots != leak_root_count(leaks) ||
	    leaks_shared_count(leaks) == 0)
		return;
	report_begin_table(summary->report, &table);
	report_number(summary->report, leaks_shared_count(leaks));
	report_number(summary->report, leaks_shared_bytes(leaks));
	report_end_row(summary->report);
	report_end_table(summary->report);
	summary->owned.count += leaks_shared_count(leaks);
	summary->owned.bytes += leaks_shared_bytes(leaks);
}

static void write_total(struct root_summary *summary)
{
	static const struct column columns[] = {
		{ "roots", VALUE_COUNT },
		{ "count", VALUE_COUNT },
		{ "bytes", VALUE_BYTES },
	};
	static const struct table table = {
		"total", columns, 3,
		"{roots} leak roots hold {count} allocations, which use "
		"0x{bytes} ({bytes,}) bytes."
	};

	report_begin_table(summary->report, &table);
	report_number(summary->report, summary->roots);
	report_number(summary->report, summary->owned.count);
	report_number(summary->report, summary->owned.bytes);
	report_end_row(summary->report);
	report_end_table(summary->report);
}

struct error *summarize_leak_roots(struct analysis *analysis,
				   const struct set_query *query,
				   struct report *report)
{
	_cleanup_(root_summary_deinit) struct root_summary summary = {
		.analysis = analysis,
		.query = query,
		.report = report,
	};
	struct error *error;

	tally_table_init(&summary.signatures, analysis_account(analysis));
	tally_table_init(&summary.sizes, analysis_account(analysis));
	error = add_roots(&summary);
	if (error)
		return error;
	write_groups(&summary);
	write_shared(&summary);
	write_total(&summary);
	return NULL;
}
