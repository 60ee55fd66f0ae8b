/*
 * All that one looks at first, as one page: of text, or in HTML.
 *
 * Both are the answers of other commands, one after the other, so that no number differs from
 * theirs. The page in HTML has more of them, and longer ones.
 */
#include "analyzer/base/text.h"
#include "analyzer/image/image.h"
#include "cli/prompt/execute.h"
#include "cli/prompt/switches.h"
#include "cli/views/largest_rows.h"
#include "cli/views/overview.h"
#include "cli/views/owner_tree.h"
#include "cli/views/rows.h"

#include <inttypes.h>
#include <string.h>

enum { MOST_BACKTRACES = 100 };

/* Bytes of a page, without its script and what limits the trust in it, for it to stay below 2 MB.
 */
static const uint64_t MOST_OF_PAGE = 1900000;

/* Keep the references of as many allocations from the first use to the last. */
static const size_t MOST_KEPT_WHOLE = 4000000;

struct report_arguments {
	struct word_list older; /* cores, the oldest first */
	bool share;
};

static const struct argp_option options[] = {
	{ "share", KEEP(FLAG, struct report_arguments, share), NULL, 0,
	  "Leave out contents of memory, so that others may read it, as --no-content does", 0 },
	{ 0 },
};

static const int keep_words[] = { KEEP(LIST, struct report_arguments, older), 0 };

/* Write the rows of another command. */
static struct error *run_words(struct analysis *analysis, char *const *words, size_t count,
			       struct report *report)
{
	const struct command *command = command_find(words[0]);
	struct common_switches common = { 0 };
	_cleanup_(free) void *arguments = calloc(1, command->arguments_size + 1);
	struct error *error;

	TRY_MEMORY(arguments);
	error = switches_parse(command, words + 1, count - 1, arguments, &common);
	if (!error)
		error = analysis_need(analysis, command->needs);
	if (!error)
		error = command->run(analysis, arguments, report);
	if (command->release)
		command->release(arguments);
	return error;
}

static struct error *run_line(struct analysis *analysis, const char *text, struct report *report)
{
	_cleanup_(line_deinit) struct line line = { 0 };

	TRY(line_split(text, &line));
	return run_words(analysis, line.words, line.count, report);
}

/* The state shared by the sections of the page. */
struct page {
	struct analysis *analysis;
	struct owners owners; /* of used allocations, once needed */
	struct frames frames;
	struct owner_tree_limits limits; /* of the tree */
	struct bitmap holders;		 /* the allocations that stand in it */
	bool is_html;
	struct report *report;
};

static void release_tree(struct page *page)
{
	frames_deinit(&page->frames);
	owners_deinit(&page->owners);
	page->owners = (struct owners){ 0 };
	page->frames = (struct frames){ 0 };
}

static void page_deinit(struct page *page)
{
	release_tree(page);
	bitmap_deinit(&page->holders);
}
DEFINE_DEINIT(page_deinit, struct page)

static struct error *find_owners(struct page *page)
{
	const struct allocation_index *index = analysis_index(page->analysis);

	if (page->frames.owners)
		return NULL;
	return owner_tree_find(page->analysis, allocation_used(index), &page->owners,
			       &page->frames);
}

static struct error *write_overview(struct page *page, const char *words)
{
	return overview_write(page->analysis, page->report);
}

/* Keep what the tree links to. */
static struct error *keep_holders(struct page *page)
{
	const struct frames *frames = &page->frames;

	TRY(bitmap_init(&page->holders, allocation_count(analysis_index(page->analysis)),
			analysis_account(page->analysis)));
	for (size_t i = 0; i < frames->list.count; i++) {
		const struct owner_frame *frame = &frames->list.items[i];
		allocation_id example = frames->owners->nodes.items[frame->node].example;

		if (!frame->others && example != NO_ALLOCATION &&
		    frame->total[MEASURE_OWN].bytes >= page->limits.least)
			bitmap_set(&page->holders, example);
	}
	return NULL;
}

/* With the rows of the command. */
static struct error *write_tree(struct page *page, const char *words)
{
	const struct allocation_index *index = analysis_index(page->analysis);

	TRY(find_owners(page));
	owner_tree_write(page->analysis, &page->frames, &page->limits, page->report);
	rows_total(page->report, "allocations", allocations_total(index, allocation_used(index)));
	if (page->is_html)
		TRY(keep_holders(page));
	/* No later section needs it. */
	release_tree(page);
	return NULL;
}

static struct error *write_largest(struct page *page, const char *words)
{
	struct error *error =
		largest_rows(page->analysis, &page->holders, MOST_OF_PAGE, page->report);

	/* The other sections are worth a page without this one. */
	if (!error || error_code(error) != ERROR_NO_MEMORY)
		return error;
	report_cut_table(page->report);
	rows_text(page->report, error_message(error));
	error_destroy(error);
	return NULL;
}

static struct error *write_threads(struct page *page, const char *words)
{
	struct analysis *analysis = page->analysis;

	TRY(run_line(analysis, words, page->report));
	return analysis_program(analysis)->thread_count <= MOST_BACKTRACES
		       ? run_line(analysis, "backtrace", page->report)
		       : NULL;
}

/* True if there is a count that is more than its holders, which is rare. */
static struct error *find_lost_counts(struct page *page, bool *ret)
{
	TRY(analysis_need(page->analysis, STAGE_LOST_COUNTS));
	*ret = analysis_lost_counts(page->analysis)->lost.count > 0;
	return NULL;
}

static char *tree_line(const struct owner_tree_limits *limits)
{
	return format_text("tree --depth %" PRIu64 " --top %" PRIu64 " --min-retained %" PRIu64,
			   limits->depth, limits->top, limits->least);
}

static const struct section {
	const char *title, *text;
	/* The command of a page of text, and in HTML; NULL: not there. */
	const char *line, *page;
	struct error *(*write)(struct page *page,
			       const char *words);		 /* NULL: as the command does */
	struct error *(*is_there)(struct page *page, bool *ret); /* NULL: it always is */
	/* The command with the limits of the page; NULL: the command as it stands. */
	char *(*limit)(const struct owner_tree_limits *limits);
} sections[] = {
	{ "Overview", NULL, NULL, "", write_overview },
	{ "What leaked", "Nothing refers to these any more, so the program cannot free them.",
	  "summarize leakroots --limit 5", "summarize leakroots --limit 200", NULL },
	{ "Counts that are more than their holders",
	  "A reference that was counted is gone, so nothing will free these.",
	  "summarize lostcount --limit 5", "summarize lostcount --limit 200", NULL,
	  find_lost_counts },
	{ "Who holds the memory",
	  "Each line is what the line above alone holds, large objects by themselves, others by kind; 'retained' is what would be freed with it.",
	  "tree", "tree", write_tree, .limit = tree_line },
	{ "What the memory is", NULL, "top --limit 10",
	  "summarize used --sort-by bytes --limit 300", NULL },
	{ "What each byte is used for", NULL, NULL, "bill", NULL },
	{ "Free memory", NULL, NULL, "fragmentation", NULL },
	{ "Waste", NULL, NULL, "waste", NULL },
	{ "Threads", NULL, NULL, "list threads --limit 200", write_threads },
	{ "The largest",
	  "What leads to the allocations that retain most, what refers to them, and what is in them; 'offset' is where in the referrer.",
	  NULL, "list used --sort-by retained", write_largest },
};

static void begin_section(struct report *report, const char *title, const char *text,
			  const char *command)
{
	static const struct table table =
		TABLE("section", "\n{title}[ ({command})]", { "title", VALUE_TEXT },
		      { "command", VALUE_TEXT }, { "text", VALUE_TEXT });

	report_single(report, &table, title, *command ? command : NULL, text);
}

static struct error *write_growth(struct analysis *analysis, const struct word_list *older,
				  struct report *report)
{
	_cleanup_(free) char **line = calloc(older->count + 1, sizeof(*line));
	char diff[] = "diff";

	TRY_MEMORY(line);
	line[0] = diff;
	for (size_t i = 0; i < older->count; i++)
		line[i + 1] = (char *)older->list[i];
	begin_section(report, "What grew", NULL, diff);
	return run_words(analysis, line, older->count + 1, report);
}

static struct error *write_section(struct page *page, const struct section *section,
				   const char *words)
{
	_cleanup_(free) char *line = section->limit ? section->limit(&page->limits) : strdup(words);

	TRY_MEMORY(line);
	begin_section(page->report, section->title, section->text, line);
	return section->write ? section->write(page, line)
			      : run_line(page->analysis, line, page->report);
}

static struct error *write_sections(struct page *page, const struct report_arguments *arguments)
{
	const struct allocation_index *index = analysis_index(page->analysis);
	uint64_t used = allocations_total(index, allocation_used(index)).bytes;

	/* Leave out nodes that are too small to see. */
	page->limits = page->is_html ? (struct owner_tree_limits){ 12, 25, used / 2000 }
				     : (struct owner_tree_limits){ 3, 4, used / 100 };
	if (!page->is_html)
		TRY(overview_write(page->analysis, page->report));
	for (size_t i = 0; i < COUNT_OF(sections); i++) {
		const char *words = page->is_html ? sections[i].page : sections[i].line;
		bool is_there = words;

		if (words && sections[i].is_there)
			TRY(sections[i].is_there(page, &is_there));
		if (is_there)
			TRY(write_section(page, &sections[i], words));
		/* A report with an older core is about what grew. */
		if (i == 0 && arguments->older.count)
			TRY(write_growth(page->analysis, &arguments->older, page->report));
	}
	return NULL;
}

static bool is_page(const struct report *report)
{
	return strcmp(report->format->name, "html") == 0;
}

/* Each report by itself, for they differ; beside a page in HTML, text is an overview. */
static struct error *report_run(struct analysis *analysis, const void *input, struct report *report)
{
	const struct report_arguments *arguments = input;
	_cleanup_(page_deinit) struct page page = { .analysis = analysis };
	bool has_page = false;
	struct error *error = NULL;

	for (struct report *each = report; each; each = each->next) {
		has_page |= is_page(each);
		each->no_content |= arguments->share;
		each->shows_kept &= !arguments->share;
	}
	for (struct report *each = report, *next; each && !error; each = next) {
		next = each->next;
		each->next = NULL;
		page.report = each;
		page.is_html = is_page(each);
		/* A page is made by the command line, which has no other command. */
		if (page.is_html && allocation_count(analysis_index(analysis)) > MOST_KEPT_WHOLE)
			analysis_save_memory(analysis);
		if (has_page && !page.is_html && each == report)
			error = overview_write(analysis, each);
		else
			error = write_sections(&page, arguments);
		each->next = next;
	}
	return error;
}

const struct command command_report = {
	.name = "report",
	.summary = "Show an overview on one page, as text or HTML",
	.words = "[OLD...]",
	.options = options,
	.example = "report\n"
		   "report older.core",
	.description =
		"With -o FILE.html on the command line, as in 'heapcore report CORE -o FILE.html', it is one page for a browser that needs nothing else: a map of who holds the memory, tables to sort and to search, the bill, threads. With the files of older cores, it also shows what grew since.",
	.word = WORD_FILE,
	.needs = STAGE_HEAP,
	.keep_words = keep_words,
	.arguments_size = sizeof(struct report_arguments),
	.release = word_list_release,
	.run = report_run,
};
