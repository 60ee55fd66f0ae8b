/*
 * Where to begin: what the core is, and what takes most.
 */
#include "cli/views/overview.h"
#include "cli/prompt/execute.h"
#include "cli/views/rows.h"

static struct error *info_run(struct analysis *analysis, const void *arguments,
			      struct report *report)
{
	TRY(overview_write(analysis, report));
	rows_text(
		report,
		"Next: 'report' shows all that one looks at first, 'summarize leakroots' where it leaked, 'bill' what each byte is used for; 'help' lists all commands.");
	return NULL;
}

const struct command command_info = {
	.name = "info",
	.summary = "Show what the core is, and how much is used, leaked and free",
	.example = "info",
	.description = "'report' begins with it.",
	.run = info_run,
};

/* The words of a set, 'used' if there are none. */
static struct error *top_parse(int key, const char *value, void *arguments)
{
	struct selection *selection = arguments;
	struct set_query *query = &selection->query;

	if (key != ARGP_KEY_END)
		return selection_parse(key, value, arguments);
	if (!query->set)
		TRY(selection_parse(ARGP_KEY_ARG, "used", arguments));
	query->sort = query->sort == SORT_DEFAULT ? SORT_BYTES : query->sort;
	return selection_parse(key, value, arguments);
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
	.description = "The same as 'summarize SET', of 'used'.",
	TAKES_SELECTION,
	.shorten = selection_shorten,
	.sums_up = true,
	.own_options = sizes_options,
	.options = &contents_options[SELECTION_OPTIONS],
	.parse = top_parse,
	.run = summarize,
};
