/*
 * Where to begin: what the core is, and what takes most.
 */
#include "analyzer/image/image.h"
#include "cli/prompt/execute.h"
#include "cli/views/rows.h"

#include <string.h>

enum { MOST_KINDS = 20 };

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

static struct error *info_run(struct analysis *analysis, const void *arguments,
			      struct report *report)
{
	static const char *const sets[] = { "used", "leaked", "leakroots", "free" };
	static const struct table core = TABLE(
		"core", "{core}: a core of {size,} bytes, of {threads} {threads|thread|threads}.",
		{ "core", VALUE_TEXT }, { "size", VALUE_BYTES }, { "threads", VALUE_COUNT });
	static const struct table counts =
		TABLE("set", NULL, { "set", VALUE_TEXT }, { "allocations", VALUE_COUNT },
		      { "bytes", VALUE_BYTES });
	const struct image *image = analysis_image(analysis);
	struct error *error = NULL;

	report_single(report, &core, image->path, image->size, image->thread_count);
	report_begin_table(report, &counts);
	for (size_t i = 0; !error && i < COUNT_OF(sets); i++)
		error = count_set(analysis, sets[i], report);
	report_end_table(report);
	if (!error)
		rows_text(
			report,
			"Next: 'summarize leakroots' shows where it leaked, 'top' what takes most, 'bill' what each byte is used for; 'help' lists all commands.");
	return error;
}

const struct command command_info = {
	.name = "info",
	.summary = "Show what the core is, and how much is used, leaked and free",
	.example = "info",
	.description =
		"This is also what heapcore shows when it is given a core and no command, and standard input is empty.",
	.run = info_run,
};

/* The words of a set, 'used' if there are none. */
static struct error *parse_kinds(int key, const char *value, void *arguments, enum sort_key sort)
{
	struct selection *selection = arguments;
	struct set_query *query = &selection->query;

	if (key != ARGP_KEY_END)
		return selection_parse(key, value, arguments);
	if (!query->set)
		TRY(selection_parse(ARGP_KEY_ARG, "used", arguments));
	query->sort = query->sort == SORT_DEFAULT ? sort : query->sort;
	query->limit = query->limit ? query->limit : MOST_KINDS;
	return selection_parse(key, value, arguments);
}

static struct error *top_parse(int key, const char *value, void *arguments)
{
	return parse_kinds(key, value, arguments, SORT_BYTES);
}

static struct error *tree_parse(int key, const char *value, void *arguments)
{
	return parse_kinds(key, value, arguments, SORT_RETAINED);
}

static struct error *summarize(struct analysis *analysis, const void *arguments,
			       struct report *report)
{
	return command_find("summarize")->run(analysis, arguments, report);
}

const struct command command_top = {
	.name = "top",
	.summary = "Show the kinds that take most bytes",
	.words = "[SET [KIND]]",
	.example = "top\n"
		   "top leaked",
	.description = "The same as 'summarize SET --sort-by bytes --limit 20', of 'used'.",
	TAKES_SELECTION,
	.options = &contents_options[SELECTION_OPTIONS],
	.parse = top_parse,
	.run = summarize,
};

const struct command command_tree = {
	.name = "tree",
	.summary = "Show the kinds that hold most, with all that would be freed along",
	.words = "[SET [KIND]]",
	.example = "tree\n"
		   "tree anchored --limit 5",
	.description = "The same as 'summarize SET --sort-by retained --limit 20', of 'used'.",
	TAKES_SELECTION,
	.options = &contents_options[SELECTION_OPTIONS],
	.parse = tree_parse,
	.run = summarize,
};
