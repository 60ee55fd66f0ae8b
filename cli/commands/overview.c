/* The first screen: what the core is, and what takes most memory. */
#include "cli/views/overview.h"
#include "cli/prompt/execute.h"
#include "cli/views/rows.h"

struct info_arguments {
	bool notes;
};

static const struct argp_option info_options[] = {
	{ "notes", KEEP(FLAG, struct info_arguments, notes), NULL, 0,
	  "Show all notes and warnings instead, in full", 0 },
	{ 0 },
};

static struct error *info_parse(int key, const char *value, void *arguments)
{
	/* Commands of gdb that begin with info. */
	static const struct {
		const char *word, *command;
	} others[] = {
		{ "locals", "backtrace --locals" },  { "proc", "list maps" },
		{ "registers", "describe threads" }, { "sharedlibrary", "list modules" },
		{ "symbol", "describe ADDRESS" },    { "threads", "list threads" },
	};

	if (key)
		return NULL;
	for (size_t i = 0; i < COUNT_OF(others); i++)
		if (strcmp(others[i].word, value) == 0)
			return error_create(ERROR_USAGE, "instead of gdb's 'info %s', type '%s'",
					    value, others[i].command);
	return error_create(ERROR_USAGE, "unexpected word '%s' after 'info'", value);
}

static struct error *info_run(struct analysis *analysis, const void *input, struct report *report)
{
	const struct info_arguments *arguments = input;

	if (!arguments->notes)
		return overview_write(analysis, report);
	TRY(analysis_need(analysis, STAGE_HEAP));
	overview_write_notes(analysis, report);
	return NULL;
}

const struct command command_info = {
	.name = "info",
	.summary = "Show the first screen: what explains the memory, who holds it, what leaked",
	.example = "info\n"
		   "info --notes   # all problems that may make answers wrong",
	.description =
		"It is what the prompt begins with, unless heapcore is quiet (-q); 'report' begins with it, too. Names are shortened so that it has at most 24 lines of 80 columns; formats such as JSON have them in full. A holder is an object or a variable in which at least a fiftieth of the heap accumulates, each byte counted for the deepest one. Small blocks that several roots share are one holder; if the same root is the first that leads to three quarters of them, it is named: 'shared by db and others'. Resident memory is used by allocations, leaked, garbage that a collector will free, free in heaps, or other: code, files, stacks, and what allocators need themselves; 'bill' has the details.",
	.options = info_options,
	.parse = info_parse,
	.arguments_size = sizeof(struct info_arguments),
	.tells_findings = true,
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
	.description = "As 'summarize SET', with 'used' by default.",
	TAKES_SELECTION,
	.shorten = selection_shorten,
	.sums_up = true,
	.own_options = sizes_options,
	.options = &contents_options[SELECTION_OPTIONS],
	.parse = top_parse,
	.run = summarize,
};
