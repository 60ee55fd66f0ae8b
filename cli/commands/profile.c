/*
 * The command profile: who allocated what is in use, as the program itself noted it.
 */
#include "analyzer/base/bytes.h"
#include "analyzer/base/text.h"
#include "analyzer/gate/callers.h"
#include "cli/command.h"
#include "cli/views/rows.h"

#include <string.h>

struct profile_arguments {
	enum { BY_STACK, BY_LINE } by;
	uint64_t limit; /* of rows; 0: none */
};

/* Allocations that are shown in one row. */
struct profile_row {
	uint64_t hash;	    /* of source and text */
	const char *source; /* who noted them */
	char *text;	    /* owned */
	uint64_t count, bytes;
};

struct profile_rows {
	HASH_TABLE(struct profile_row);
};

static void profile_rows_deinit(struct profile_rows *rows)
{
	array_for_each(row, rows)
		free(row->text);
	table_release(rows);
}
DEFINE_DEINIT(profile_rows_deinit, struct profile_rows)

/* The place of the innermost call, with the whole path, as other tools group by it. */
static char *line_text(const struct callers *callers, const struct backtrace *calls)
{
	const struct frame *frame = calls->frames;

	if (calls->count == 0)
		return strdup("unknown");
	return frame->source ? strdup(frame->source) : callers_name(callers, frame);
}

static char *calls_text(const struct callers *callers, const struct backtrace *calls)
{
	char *text = strdup(calls->count ? "" : "unknown");

	for (size_t i = 0; text && i < calls->count; i++) {
		_cleanup_(free) char *before = text;
		_cleanup_(free) char *call = callers_name(callers, &calls->frames[i]);

		text = call ? format_text("%s%s%s", before, *before ? " < " : "", call) : NULL;
	}
	return text;
}

static struct error *add_row(struct profile_rows *rows, const struct caller *caller, char *text)
{
	const char *source = caller_source(caller);
	uint64_t hash = hash_text((uintptr_t)source, text);
	struct profile_row *row = table_obtain(
		rows, hash, item, item->source == source && strcmp(item->text, text) == 0,
		(struct profile_row){ .source = source, .text = text });

	if (!row || row->text != text)
		free(text);
	TRY_MEMORY(row);
	row->count += caller->count;
	row->bytes += caller->bytes;
	return NULL;
}

static struct error *find_rows(const struct callers *callers, bool by_line,
			       struct profile_rows *ret)
{
	array_for_each(caller, &callers->list) {
		struct backtrace calls = { 0 };
		char *text;

		TRY(caller_calls(callers, caller, &calls));
		text = by_line ? line_text(callers, &calls) : calls_text(callers, &calls);
		free(calls.frames);
		TRY_MEMORY(text);
		TRY(add_row(ret, caller, text));
	}
	return NULL;
}

DEFINE_COMPARE(compare_rows, struct profile_row, DESCENDING(bytes), DESCENDING(count),
	       ALPHABETICAL(text))

static void write_rows(const struct profile_rows *rows, uint64_t limit, struct report *report)
{
	static const struct table table =
		TABLE("profile", NULL, { "bytes", VALUE_BYTES }, { "allocations", VALUE_COUNT },
		      { "noted by", VALUE_TEXT }, { "allocated by", VALUE_TEXT });

	report_begin_table(report, &table);
	for (size_t i = 0; i < rows->count && (!limit || i < limit); i++) {
		const struct profile_row *row = &rows->items[i];

		report_row(report, row->bytes, row->count, row->source, row->text);
	}
	report_end_table(report);
	rows_left_out(report, "rows", rows->count, limit);
}

static void write_total(const struct profile_rows *rows, struct report *report)
{
	static const struct table table = TABLE(
		"total profile",
		"Noted: {allocations,} {allocations|allocation|allocations} of {bytes,} bytes.",
		{ "allocations", VALUE_COUNT }, { "bytes", VALUE_BYTES });
	uint64_t count = 0, bytes = 0;

	array_for_each(row, rows) {
		count += row->count;
		bytes += row->bytes;
	}
	report_single(report, &table, count, bytes);
}

static struct error *profile_run(struct analysis *analysis, const void *input,
				 struct report *report)
{
	const struct profile_arguments *arguments = input;
	_cleanup_(callers_deinit) struct callers callers = { 0 };
	_cleanup_(profile_rows_deinit) struct profile_rows rows = {
		.memory.account = analysis_account(analysis),
		.slots.memory.account = analysis_account(analysis),
	};

	TRY(callers_find(analysis, &callers));
	TRY(callers_rank(&callers));
	if (callers.list.count == 0)
		analysis_note(
			analysis,
			"nothing in this process noted who allocated; 'help profile' says what may");
	TRY(find_rows(&callers, arguments->by == BY_LINE, &rows));
	SORT(rows.items, rows.count, compare_rows);
	write_rows(&rows, arguments->limit, report);
	write_total(&rows, report);
	return NULL;
}

static const struct argp_option options[] = {
	{ "by", KEEP(CHOICE, struct profile_arguments, by), "stack|line", 0,
	  "Join what the same calls, or the same line, allocated", 0 },
	{ "limit", KEEP(COUNT, struct profile_arguments, limit), "COUNT", 0,
	  "Show the COUNT rows of most bytes", 0 },
	{ "top", KEEP(COUNT, struct profile_arguments, limit), "COUNT", OPTION_ALIAS, NULL, 0 },
	{ 0 },
};

static bool profile_shorten(void *output, uint64_t count)
{
	struct profile_arguments *arguments = output;

	if (arguments->limit)
		return false;
	arguments->limit = count;
	return true;
}

const struct command command_profile = {
	.name = "profile",
	.summary = "Show which calls allocated memory, as the program noted it itself",
	.example = "profile\n"
		   "profile --by line --limit 10",
	.description =
		"For processes in which something notes who allocates: AddressSanitizer, tracemalloc of Python, the samplers of jemalloc (MALLOC_CONF=prof:true), gperftools' tcmalloc (TCMALLOC_SAMPLE_PARAMETER) and Google's, the heap profile of Go, or heapcore's recorder ('run --stacks=always'). Bytes are those that it notes, of jemalloc 5.3 estimates for all allocations, so that the rows are what it or its viewer prints. --by line joins what one line allocated, as tracemalloc's statistics('lineno').",
	.options = options,
	.shorten = profile_shorten,
	.arguments_size = sizeof(struct profile_arguments),
	.sums_up = true,
	.needs = STAGE_HEAP,
	.run = profile_run,
};
