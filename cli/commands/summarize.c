#include "analyzer/base/list.h"
#include "analyzer/base/sort.h"
#include "analyzer/kinds/tally.h"
#include "analyzer/query/string_users.h"
#include "cli/views/allocation_summary.h"
#include "cli/views/leak_root_summary.h"
#include "cli/views/rows.h"
#include "cli/views/string_summary.h"

#include <string.h>

/* However many ranges there are, their groups are few. */
struct range_group {
	const char *name;
	struct tally tally; /* the key is 0 in all */
};

DEFINE_COMPARE(compare_counts, struct range_group, DESCENDING(tally.count), ALPHABETICAL(name))

DEFINE_COMPARE(compare_bytes, struct range_group, DESCENDING(tally.bytes), ALPHABETICAL(name))

struct range_groups {
	struct range_group *list;
	size_t count;
};

static void range_groups_deinit(struct range_groups *groups)
{
	free(groups->list);
}
DEFINE_DEINIT(range_groups_deinit, struct range_groups)

static struct error *add_to_group(struct range_groups *groups, const char *name, uint64_t size)
{
	size_t i;

	for (i = 0; i < groups->count; i++)
		if (strcmp(groups->list[i].name, name) == 0)
			break;
	if (i == groups->count) {
		if (!LIST_GROW(groups->list, groups->count))
			return &error_no_memory;
		groups->list[groups->count++] = (struct range_group){ .name = name };
	}
	groups->list[i].tally.count++;
	groups->list[i].tally.bytes += size;
	return NULL;
}

static struct error *find_groups(struct analysis *analysis, const struct range_kind *kind,
				 const struct ranges *ranges, struct range_groups *groups)
{
	enum { BETWEEN_LOOKS = 1 << 16 };
	struct progress *progress = analysis_progress(analysis);
	struct error *error = NULL;

	progress_begin(progress, "looking at what is there", ranges->count);
	for (size_t i = 0; !error && i < ranges->count; i++) {
		struct range range = ranges_at(ranges, i);

		if (i % BETWEEN_LOOKS == BETWEEN_LOOKS - 1 &&
		    !progress_step(progress, BETWEEN_LOOKS))
			return error_create(ERROR_INTERRUPTED, "interrupted");
		if (!range.group)
			range.group = kind->group(analysis, &range);
		error = add_to_group(groups, range.group, range.size);
	}
	return error;
}

static void write_groups(const struct range_group *groups, size_t count, struct report *report)
{
	static const struct table table =
		TABLE("group", "{group} have {count} instances taking 0x{bytes}({bytes,}) bytes.",
		      { "group", VALUE_TEXT }, { "count", VALUE_COUNT }, { "bytes", VALUE_BYTES });

	report_begin_table(report, &table);
	for (size_t i = 0; i < count; i++)
		report_row(report, groups[i].name, groups[i].tally.count, groups[i].tally.bytes);
	report_end_table(report);
}

static struct error *summarize_ranges(struct analysis *analysis, const struct set_query *query,
				      struct report *report)
{
	_cleanup_(ranges_deinit) struct ranges ranges = { 0 };
	_cleanup_(range_groups_deinit) struct range_groups groups = { 0 };
	struct error *error = query_collect(analysis, query, &ranges);

	if (!error)
		error = find_groups(analysis, query->set->ranges, &ranges, &groups);
	if (error)
		return error;
	if (query->sort != SORT_ADDRESS)
		SORT(groups.list, groups.count,
		     query->sort == SORT_BYTES ? compare_bytes : compare_counts);
	write_groups(groups.list,
		     query->limit && query->limit < groups.count ? query->limit : groups.count,
		     report);
	rows_left_out(report, "lines", groups.count, query->limit);
	rows_not_looked_at(report, rows_noun(query), &ranges);
	rows_total(report, rows_noun(query), ranges_total(&ranges));
	return NULL;
}

static struct error *summarize_run(struct analysis *analysis, const void *arguments,
				   struct report *report)
{
	const struct selection *selection = arguments;
	const struct set_query *query = &selection->query;

	if (query->term_count == 1 && query->extensions.count == 0 &&
	    query->set->select == set_select_leakroots)
		return summarize_leak_roots(analysis, query, report);
	if (query->term_count == 1 && query->set->select == set_select_stringusers)
		return summarize_string_users(analysis, query, report);
	if (query->set->ranges)
		return summarize_ranges(analysis, query, report);
	return summarize_allocations(analysis, query, report);
}

const struct command command_summarize = {
	.name = "summarize",
	.summary = "Count the members of a set by what they are",
	.words = "SET [KIND]",
	.example = "summarize used\n"
		   "summarize leaked --sort-by bytes --limit 20\n"
		   "summarize leakroots   # where to look first\n"
		   "summarize used app::Session --extend ->   # and what "
		   "belongs to it",
	.description =
		"Each allocation is counted once: by its pattern; else by its signature, those of a class together; else by an identity ('help signatures'); else by its size. The most frequent come first, or those of most bytes with '--sort-by bytes'. 'summarize leakroots' says how much hangs on which kind of leak root: where to look first.",
	.word = WORD_SET,
	.options = &contents_options[SELECTION_OPTIONS],
	.parse = selection_parse,
	.arguments_size = sizeof(struct selection),
	.release = selection_release,
	.run = summarize_run,
};
