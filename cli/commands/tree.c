/* The memory as a tree of owners: roots, and below each the kinds that only it holds. */
#include "cli/prompt/switches.h"
#include "cli/views/owner_tree.h"
#include "cli/views/rows.h"

enum { USUAL_DEPTH = 4, USUAL_TOP = 8 };

struct tree_arguments {
	struct selection selection; /* first: it is released as one */
	struct owner_tree_limits limits;
};

static struct error *tree_parse(int key, const char *value, void *arguments)
{
	struct tree_arguments *tree = arguments;
	struct owner_tree_limits *limits = &tree->limits;

	if (key != ARGP_KEY_END)
		return selection_parse(key, value, &tree->selection);
	if (!limits->depth || limits->depth > OWNER_TREE_DEEPEST)
		limits->depth = limits->depth ? OWNER_TREE_DEEPEST : USUAL_DEPTH;
	limits->top = limits->top ? limits->top : USUAL_TOP;
	return selection_end_of_allocations(&tree->selection);
}

static struct error *tree_run(struct analysis *analysis, const void *arguments,
			      struct report *report)
{
	const struct tree_arguments *tree = arguments;
	_cleanup_(members_deinit) struct members members = { 0 };
	_cleanup_(owners_deinit) struct owners owners = { 0 };
	_cleanup_(frames_deinit) struct frames frames = { 0 };

	TRY(query_select(analysis, &tree->selection.query, &members));
	TRY(owner_tree_find(analysis, &members.set, &owners, &frames));
	owner_tree_write(analysis, &frames, &tree->limits, report);
	rows_total(report, rows_noun(&tree->selection.query),
		   allocations_total(analysis_index(analysis), &members.set));
	/* All of memory is searched for disguised pointers only where leaks were asked for. */
	return bitmap_within(&members.set, analysis_leaked(analysis))
		       ? rows_likely_held(report, analysis, &members.set, "leaked allocations")
		       : NULL;
}

static const struct argp_option options[] = {
	{ "depth", KEEP(COUNT, struct tree_arguments, limits.depth), "COUNT", 0,
	  "Show that many levels of owners; 4 by default", 0 },
	{ "top", KEEP(COUNT, struct tree_arguments, limits.top), "COUNT", 0,
	  "Show that many holdings of each owner, largest first; 8 by default", 0 },
	{ "min-retained", KEEP(SIZE, struct tree_arguments, limits.least), "SIZE", 0,
	  "Show only what retains at least that much", 0 },
	{ 0 },
};

const struct command command_tree = {
	.name = "tree",
	.summary = "Show who holds the memory: roots, and what each of them alone holds",
	.words = "[SET [KIND]]",
	.example = "tree\n"
		   "tree leaked --depth 2",
	.description =
		"Each line is what the line above alone holds: one allocation if it retains at least a fiftieth of what is used, else all of a kind. 'retained' is what would be freed with it, and 'bytes' its own part. "
		"The nodes of a list or a tree are one line, and so are a container and its body. "
		"Memory that several roots share belongs to none of them; the line names them if it is much; but a static variable does not share with a passing word on a stack. The set is 'used' by default.",
	.word = WORD_SET,
	.arguments_size = sizeof(struct tree_arguments),
	.release = selection_release,
	.options = options,
	.parse = tree_parse,
	.run = tree_run,
};
