#include "cli/views/leak_root_summary.h"

#include "analyzer/kinds/tally.h"
#include "cli/views/rows.h"

#include <inttypes.h>

/* What is counted together: the kind above KIND_BITS of a key. */
enum group_kind { GROUP_SIZE, GROUP_SIGNATURE, GROUP_IDENTITY, GROUP_PATTERN };
enum { KIND_BITS = 62, OFFSET_BITS = 3 };

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
	tally_table_deinit(&summary->groups);
}
DEFINE_DEINIT(root_summary_deinit, struct root_summary)

static uint64_t group_key(enum group_kind kind, uint64_t value)
{
	return (uint64_t)kind << KIND_BITS | (value & ((UINT64_C(1) << KIND_BITS) - 1));
}

static uint64_t root_key(const struct root_summary *summary, allocation_id id)
{
	uint64_t signature = analysis_signature(summary->analysis, id);
	pattern_number pattern = analysis_pattern_shown(
		summary->analysis, analysis_leaked_patterns(summary->analysis), id);
	struct identity identity;

	if (pattern != NO_PATTERN)
		return group_key(GROUP_PATTERN, pattern);
	if (signature)
		return group_key(GROUP_SIGNATURE, signature);
	if (analysis_identity(summary->analysis, id, &identity))
		return group_key(GROUP_IDENTITY, identity.address << OFFSET_BITS |
							 identity.offset / sizeof(uint64_t));
	return group_key(GROUP_SIZE, allocation_size(analysis_index(summary->analysis), id));
}

static struct error *add_root(struct root_summary *summary, const struct leak_root *root)
{
	summary->roots++;
	summary->owned.count += root->owned_count;
	summary->owned.bytes += root->owned_bytes;
	return tally_add(&summary->groups, (struct tally){ .key = root_key(summary, root->id),
							   .count = 1,
							   .bytes = root->owned_bytes,
							   .owned = root->owned_count });
}

static struct error *add_roots(struct root_summary *summary)
{
	_cleanup_(members_deinit) struct members members = { 0 };
	struct error *error = query_select(summary->analysis, summary->query, &members);
	const struct leaks *leaks;

	if (!error)
		error = analysis_need(summary->analysis, STAGE_CLASSES);
	if (!error)
		error = analysis_need(summary->analysis, STAGE_LEAKED_PATTERNS);
	leaks = error ? NULL : analysis_leaks(summary->analysis);

	for (size_t i = 0; !error && i < leak_root_count(leaks); i++)
		if (bitmap_get(&members.set, leak_root(leaks, i)->id))
			error = add_root(summary, leak_root(leaks, i));
	return error;
}

static int print_identity(const struct root_summary *summary, uint64_t value, char **ret)
{
	const char *name =
		identity_name(analysis_identities(summary->analysis), value >> OFFSET_BITS);
	uint64_t words = value & ((1 << OFFSET_BITS) - 1);

	return asprintf(ret, "identity %s at offset 0x%zx", name ? name : "",
			(size_t)words * sizeof(uint64_t));
}

static int print_signature(const struct root_summary *summary, uint64_t value, char **ret)
{
	const char *name = rows_signature_name(summary->analysis, summary->query, value);

	return name ? asprintf(ret, "signature %" PRIx64 " (%s)", value, name)
		    : asprintf(ret, "signature %" PRIx64, value);
}

/* What the roots of that key are, to be freed; NULL if memory is short. */
static char *group_text(const struct root_summary *summary, uint64_t key)
{
	uint64_t value = key & ((UINT64_C(1) << KIND_BITS) - 1);
	char *text = NULL;
	int length = -1;

	switch ((enum group_kind)(key >> KIND_BITS)) {
	case GROUP_SIZE:
		length = asprintf(&text, "size 0x%" PRIx64, value);
		break;
	case GROUP_SIGNATURE:
		length = print_signature(summary, value, &text);
		break;
	case GROUP_IDENTITY:
		length = print_identity(summary, value, &text);
		break;
	case GROUP_PATTERN:
		length = asprintf(&text, "pattern %%%s", pattern_name((pattern_number)value));
	}
	return length < 0 ? NULL : text;
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

	tally_table_sort(&summary->groups, order);
	report_begin_table(summary->report, &table);
	for (size_t i = 0; i < summary->groups.count; i++)
		write_group(summary, &summary->groups.slots[i]);
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

	tally_table_init(&summary.groups, analysis_account(analysis));
	error = add_roots(&summary);
	if (error)
		return error;
	write_groups(&summary);
	write_shared(&summary);
	write_total(&summary);
	return NULL;
}
