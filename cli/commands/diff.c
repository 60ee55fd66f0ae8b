#include "analyzer/diff/diff.h"
#include "cli/command.h"
#include "cli/views/diff_rows.h"

enum { DEFAULT_LIMIT = 20 };

struct diff_arguments {
	struct word_list older; /* cores, the oldest first */
	enum aspect aspect;
	bool has_aspect;
	uint64_t elapsed; /* ns; 0: not said */
	uint64_t limit;
	bool has_limit;
};

static const struct argp_option options[] = {
	{ "by", KEEP_GIVEN(CHOICE, struct diff_arguments, aspect, has_aspect),
	  "kind|class|signature|pattern|size|fingerprint|owner|caller", 0,
	  "The aspect to compare by; the default is kind: the pattern, else the class, type or signature, else the identity, else the size. fingerprint compares leaks only, caller who allocated in programs that ran with --stacks=always",
	  0 },
	{ "elapsed", KEEP(TIME, struct diff_arguments, elapsed), "TIME", 0,
	  "Time from the oldest core to this one, such as 90s, 30m, 12h or 7d", 0 },
	{ "limit", KEEP_GIVEN(COUNT, struct diff_arguments, limit, has_limit), "COUNT", 0,
	  "Show at most N kinds, 0 for all; 20 by default", 0 },
	{ 0 },
};

static const int keep_words[] = { KEEP(LIST, struct diff_arguments, older), 0 };

static struct error *diff_run(struct analysis *analysis, const void *input, struct report *report)
{
	const struct diff_arguments *arguments = input;
	_cleanup_(diff_destroy) struct diff *diff = NULL;
	_cleanup_(growths_deinit) struct growths holders = { 0 };
	struct diff_view view = {
		.newest = analysis,
		.elapsed = arguments->elapsed,
		.limit = arguments->has_limit ? arguments->limit : DEFAULT_LIMIT,
	};

	TRY(compare_cores(analysis, arguments->older.list, arguments->older.count,
			  arguments->aspect, arguments->has_aspect ? HOLDERS_NONE : HOLDERS_ALL,
			  NULL, NULL, &diff));
	view.diff = diff;
	if (!arguments->has_aspect) {
		TRY(analysis_need(analysis, STAGE_OBJECT_PATHS));
		TRY(analysis_need(analysis, STAGE_RETAINED));
		TRY(growths_of_holders(analysis, diff, view.limit, &holders));
		view.holders = &holders;
	}
	diff_write_cores(report, &view);
	diff_write_growth(report, &view);
	return NULL;
}

const struct command command_diff = {
	.name = "diff",
	.table = "growth",
	.summary = "Show what grew since older cores were taken",
	.words = "OLD [OLD...]",
	.example = "diff older.core\n"
		   "diff older.core --by owner --limit 5\n"
		   "diff older.core --elapsed 12h",
	.description =
		"Name the oldest core first; the core that you opened is the newest. The five classes and variables that hold most of what grew come first, each with what it alone holds beyond classes below it, and with the variable or object of the program that holds most of that; '--by' leaves them out. Then the kinds follow, what grew most first; with three cores or more, what grew from each core to the next comes before that. Cores of one process are also compared allocation by allocation, by start, size and class, which makes the sets 'new' and 'survived'. Cores of different processes are compared by the counts of each kind. On the command line, 'heapcore diff OLD NEW' does the same.",
	.word = WORD_FILE,
	.options = options,
	.keep_words = keep_words,
	.arguments_size = sizeof(struct diff_arguments),
	.release = word_list_release,
	.run = diff_run,
};
