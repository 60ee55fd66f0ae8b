#include "analyzer/query/tally.h"
#include "cli/allocation_summary.h"
#include "cli/leak_root_summary.h"
#include "cli/rows.h"

#include <string.h>

/* Ranges are few, and so are their groups: at most one each. */
struct range_group {
	const char *name;
	struct tally tally; /* the key is 0 in all */
};

static int compare_counts(const void *a, const void *b)
{
	const struct range_group *left = a, *right = b;
	int order = tally_compare_counts(&left->tally, &right->tally);

	return order ? order : strcmp(left->name, right->name);
}

static int compare_bytes(const void *a, const void *b)
{
	const struct range_group *left = a, *right = b;
	int order = tally_compare_bytes(&left->tally, &right->tally);

	return order ? order : strcmp(left->name, right->name);
}

/* Returns how many groups there are, of which at most ranges->count. */
static size_t find_groups(const struct ranges *ranges,
			  struct range_group *groups)
{
	size_t count = 0, j;

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
	return count;
}

static void write_groups(const struct range_group *groups, size_t count,
			 struct report *report)
{
	static const struct column columns[] = {
		{ "group", VALUE_TEXT },
		{ "count", VALUE_COUNT },
		{ "bytes", VALUE_BYTES },
	};
	static const struct table table = {
		"group", columns, 3,
		"{group} have {count} instances taking 0x{bytes}({bytes,}) "
		"bytes."
	};

	report_begin_table(report, &table);
	for (size_t i = 0; i < count; i++) {
		report_text(report, groups[i].name);
		report_number(report, groups[i].tally.count);
		report_number(report, groups[i].tally.bytes);
		report_end_row(report);
	}
	report_end_table(report);
}

static struct error *summarize_ranges(struct analysis *analysis,
				      const struct set_query *query,
				      struct report *report)
{
	_cleanup_(ranges_deinit) struct ranges ranges = { 0 };
	_cleanup_(free) struct range_group *groups = NULL;
	struct error *error = query_collect(analysis, query, &ranges);
	size_t count;

	if (error)
		return error;
	groups = calloc(ranges.count + 1, sizeof(*groups));
	if (!groups)
		return &error_no_memory;
	count = find_groups(&ranges, groups);
	if (query->sort != SORT_ADDRESS && count)
		qsort(groups, count, sizeof(*groups),
		      query->sort == SORT_BYTES ? compare_bytes
						: compare_counts);
	write_groups(groups,
		     query->limit && query->limit < count ? query->limit
							  : count,
		     report);
	rows_left_out(report, "lines", count, query->limit);
	rows_total(report, rows_noun(query), ranges_total(&ranges));
	return NULL;
}

static struct error *summarize_run(struct analysis *analysis,
				   const void *arguments, struct report *report)
{
	const struct selection *selection = arguments;
	const struct set_query *query = &selection->query;

	if (query->term_count == 1 &&
	    query->set->select == set_select_leakroots)
		return summarize_leak_roots(analysis, query, report);
	if (query->set->ranges)
		return summarize_ranges(analysis, query, report);
	return summarize_allocations(analysis, query, report);
}

const struct command command_summarize = {
	.name = "summarize",
	.summary = "Count the members of a set by what they are",
	.words = "SET [SIGNATURE]",
	.example = "summarize leaked --sort-by bytes --limit 20",
	.description =
		"Allocations are counted by what they were recognized as, a "
		"pattern, else by their signatures and the classes of these, "
		"else by an identity, a word near their start that points "
		"at a table of operations or the like, and those without any "
		"of that by their sizes, the most frequent first. "
		"'summarize leakroots' says how much hangs on which kind of "
		"leak root: where to look first.",
	.word = WORD_SET,
	.options = &contents_options[SELECTION_OPTIONS],
	.parse = selection_parse,
	.arguments_size = sizeof(struct selection),
	.release = selection_release,
	.needs = STAGE_IMAGE,
	.needs_analysis = true,
	.run = summarize_run,
};
