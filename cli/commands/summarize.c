#include "analyzer/query/tally.h"
#include "cli/leak_root_summary.h"
#include "cli/rows.h"

#include <assert.h>
#include <string.h>

/*
 * A set by what its members are: by pattern, else by signature, each pattern
 * and what has neither also by size. Leak roots have a summary of their own.
 */

/* What has no signature: a pattern's allocations, or what has neither. */
struct group {
	pattern_number number; /* NO_PATTERN: unrecognized */
	struct tally total;
};

enum { GROUPS = UINT8_MAX + 1, SIZE_BITS = 56 };

struct summary {
	struct analysis *analysis;
	const struct set_query *query;
	struct report *report;
	struct tally_table signatures;
	struct tally_table sizes; /* with the pattern above SIZE_BITS */
	struct group groups[GROUPS];
	size_t group_count, groups_written;
	uint64_t lines;		     /* written so far */
};

static void summary_deinit(struct summary *summary)
{
	tally_table_deinit(&summary->signatures);
	tally_table_deinit(&summary->sizes);
}
DEFINE_DEINIT(summary_deinit, struct summary)

static int (*summary_order(const struct set_query *query))(const void *,
							   const void *)
{
	switch (query->sort) {
	case SORT_BYTES:
		return tally_compare_bytes;
	case SORT_ADDRESS:
		return tally_compare_keys;
	default:
		return tally_compare_counts;
	}
}

static struct error *add_member(struct summary *summary, allocation_id id)
{
	uint64_t size = allocation_size(analysis_index(summary->analysis), id);
	pattern_number number =
		patterns_of(analysis_patterns(summary->analysis), id);
	uint64_t signature =
		number == NO_PATTERN
			? analysis_signature(summary->analysis, id)
			: 0;
	struct group *group = &summary->groups[number];

	if (signature)
		return tally_add(&summary->signatures,
				 (struct tally){ signature, 1, size });
	group->number = number;
	group->total.count++;
	group->total.bytes += size;
	return tally_add(&summary->sizes,
			 (struct tally){ (uint64_t)number << SIZE_BITS | size,
					 1, size });
}

static struct error *add_members(struct summary *summary,
				 const struct bitmap *members)
{
	enum { BETWEEN_STEPS = 1 << 18 };
	struct progress *progress = analysis_progress(summary->analysis);
	size_t stepped = 0;

	progress_begin(progress, "summarizing", members->count);
	bitmap_for_each(id, members) {
		struct error *error = add_member(summary, (allocation_id)id);

		if (error)
			return error;
		if (id - stepped < BETWEEN_STEPS)
			continue;
		if (!progress_step(progress, id - stepped))
			return error_create(ERROR_INTERRUPTED, "interrupted");
		stepped = id;
	}
	return NULL;
}

/* A line; which of the members is there tells its kind. */
struct line {
	uint64_t signature;
	const uint64_t *size; /* of unrecognized ones */
	const char *pattern;
	const uint64_t *match; /* the size of a pattern's */
	const char *group;
};

static void report_optional(struct report *report, const uint64_t *number)
{
	if (number)
		report_number(report, *number);
	else
		report_absent(report);
}

static void write_line(struct summary *summary, struct line line,
		       const struct tally *tally)
{
	struct report *report = summary->report;
	uint64_t limit = summary->query->limit;

	assert(tally);
	if (limit && summary->lines++ >= limit)
		return;
	report_optional(report, line.signature ? &line.signature : NULL);
	report_optional(report, line.size);
	report_text(report, line.pattern);
	report_optional(report, line.match);
	report_text(report, line.group);
	report_number(report, tally->count);
	report_number(report, tally->bytes);
	report_end_row(report);
}

static void write_sizes(struct summary *summary, pattern_number number)
{
	for (size_t i = 0; i < summary->sizes.count; i++) {
		const struct tally *tally = &summary->sizes.slots[i];
		uint64_t size = tally->key & ((UINT64_C(1) << SIZE_BITS) - 1);

		if (tally->key >> SIZE_BITS != number)
			continue;
		write_line(summary,
			   number == NO_PATTERN
				   ? (struct line){ .size = &size }
				   : (struct line){ .match = &size },
			   tally);
	}
}

/* The groups without signature that come before next, or all that are left. */
static void write_others(struct summary *summary, const struct tally *next)
{
	int (*order)(const void *, const void *) =
		summary_order(summary->query);

	while (summary->groups_written < summary->group_count) {
		const struct group *group =
			&summary->groups[summary->groups_written];
		struct line line = { .group = "Unrecognized allocations" };

		if (next && order(&group->total, next) > 0)
			return;
		if (group->number != NO_PATTERN)
			line = (struct line){ .pattern = pattern_name(
						      group->number) };
		write_line(summary, line, &group->total);
		write_sizes(summary, group->number);
		summary->groups_written++;
	}
}

static const struct column columns[] = {
	{ "signature", VALUE_ADDRESS }, { "size", VALUE_BYTES },
	{ "pattern", VALUE_TEXT },	{ "match", VALUE_BYTES },
	{ "group", VALUE_TEXT },	{ "count", VALUE_COUNT },
	{ "bytes", VALUE_BYTES },
};

static const struct table table = {
	"group", columns, 7,
	"[Signature {signature} has]"
	"[   Unrecognized allocations of size 0x{size} have]"
	"[Pattern %{pattern} has]"
	"[   Matches of size 0x{match} have]"
	"[{group} have]"
	" {count} instances taking 0x{bytes}({bytes,}) bytes."
};

static int compare_counts(const void *a, const void *b)
{
	const struct group *left = a, *right = b;

	return tally_compare_counts(&left->total, &right->total);
}

static int compare_bytes(const void *a, const void *b)
{
	const struct group *left = a, *right = b;

	return tally_compare_bytes(&left->total, &right->total);
}

static int compare_keys(const void *a, const void *b)
{
	const struct group *left = a, *right = b;

	return tally_compare_keys(&left->total, &right->total);
}

/*
 * Move the groups that there are to the front, in order. Patterns are in order
 * of name; what is unrecognized comes last, and all behind all signatures if
 * sorted by these.
 */
static void sort_groups(struct summary *summary)
{
	size_t count = 0;

	for (size_t i = 0; i < GROUPS; i++) {
		struct group *group = &summary->groups[i];

		if (!group->total.count)
			continue;
		group->total.key = i == NO_PATTERN ? UINT64_MAX
						   : UINT64_MAX - GROUPS + i;
		summary->groups[count++] = *group;
	}
	summary->group_count = count;
	qsort(summary->groups, count, sizeof(*summary->groups),
	      summary->query->sort == SORT_BYTES     ? compare_bytes
	      : summary->query->sort == SORT_ADDRESS ? compare_keys
						     : compare_counts);
}

static void write_groups(struct summary *summary)
{
	int (*order)(const void *, const void *) =
		summary_order(summary->query);

	sort_groups(summary);
	tally_table_sort(&summary->signatures, order);
	tally_table_sort(&summary->sizes, order);
	report_begin_table(summary->report, &table);
	for (size_t i = 0; i < summary->signatures.count; i++) {
		const struct tally *tally = &summary->signatures.slots[i];

		write_others(summary, tally);
		write_line(summary, (struct line){ .signature = tally->key },
			   tally);
	}
	write_others(summary, NULL);
	report_end_table(summary->report);
	rows_left_out(summary->report, "lines", summary->lines,
		      summary->query->limit);
}

static struct error *summarize_allocations(struct summary *summary)
{
	_cleanup_(bitmap_deinit) struct bitmap members = { 0 };
	struct error *error =
		query_select(summary->analysis, summary->query, &members);

	if (!error)
		error = analysis_need(summary->analysis, STAGE_PATTERNS);
	if (!error)
		error = add_members(summary, &members);
	if (error)
		return error;
	write_groups(summary);
	rows_total(
		summary->report, "allocations",
		allocations_total(analysis_index(summary->analysis), &members));
	return NULL;
}

struct range_group {
	const char *name;
	struct tally tally; /* the key is 0 in all */
};

static int compare_group_counts(const void *a, const void *b)
{
	const struct range_group *left = a, *right = b;
	int order = tally_compare_counts(&left->tally, &right->tally);

	return order ? order : strcmp(left->name, right->name);
}

static int compare_group_bytes(const void *a, const void *b)
{
	const struct range_group *left = a, *right = b;
	int order = tally_compare_bytes(&left->tally, &right->tally);

	return order ? order : strcmp(left->name, right->name);
}

/* Ranges are few, and so are their groups: at most one each. */
static struct error *write_range_groups(struct summary *summary,
					const struct ranges *ranges)
{
	const struct set_query *query = summary->query;
	_cleanup_(free) struct range_group *groups =
		calloc(ranges->count + 1, sizeof(*groups));
	size_t count = 0, j;

	if (!groups)
		return &error_no_memory;
	for (size_t i = 0; i < ranges->count; i++) {
		const struct range *range = &ranges->list[i];

		for (j = 0; j < count; j++)
			if (strcmp(groups[j].name, range->group) == 0)
				break;
		if (j == count)
			groups[count++].name = range->group;
		groups[j].tally.count++;
		groups[j].tally.bytes += range->size;
	}
	if (query->sort != SORT_ADDRESS && count)
		qsort(groups, count, sizeof(*groups),
		      query->sort == SORT_BYTES ? compare_group_bytes
						: compare_group_counts);
	report_begin_table(summary->report, &table);
	for (size_t i = 0; i < count; i++)
		write_line(summary, (struct line){ .group = groups[i].name },
			   &groups[i].tally);
	report_end_table(summary->report);
	rows_left_out(summary->report, "lines", summary->lines, query->limit);
	rows_total(summary->report, rows_noun(query), ranges_total(ranges));
	return NULL;
}

static struct error *summarize_ranges(struct summary *summary)
{
	_cleanup_(ranges_deinit) struct ranges ranges = { 0 };
	struct error *error =
		query_collect(summary->analysis, summary->query, &ranges);

	return error ? error : write_range_groups(summary, &ranges);
}

static struct error *summarize_run(struct analysis *analysis,
				   const void *arguments, struct report *report)
{
	const struct selection *selection = arguments;
	const struct set_query *query = &selection->query;
	_cleanup_(summary_deinit) struct summary summary = {
		.analysis = analysis,
		.query = query,
		.report = report,
	};

	if (query->set->select == set_select_leakroots)
		return summarize_leak_roots(analysis, query, report);
	tally_table_init(&summary.signatures, analysis_account(analysis));
	tally_table_init(&summary.sizes, analysis_account(analysis));
	return query->set->ranges ? summarize_ranges(&summary)
				  : summarize_allocations(&summary);
}

const struct command command_summarize = {
	.name = "summarize",
	.summary = "Count the members of a set by what they are",
	.words = "SET [SIGNATURE]",
	.example = "summarize leaked --sort-by bytes --limit 20",
	.description =
		"Allocations are counted by what they were recognized as, a "
		"pattern, else by their signatures, and those without either "
		"by their sizes, the most frequent first. "
		"'summarize leakroots' says how much hangs on which kind of "
		"leak root: where to look first.",
	.word = WORD_SET,
	.options = &contents_options[SELECTION_OPTIONS],
	.parse = selection_parse,
	.arguments_size = sizeof(struct selection),
	.needs = STAGE_IMAGE,
	.needs_analysis = true,
	.run = summarize_run,
};
