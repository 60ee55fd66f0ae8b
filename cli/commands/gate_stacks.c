#include "cli/commands/gate_stacks.h"

#include "analyzer/base/list.h"
#include "analyzer/base/text.h"
#include "cli/views/rows.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

enum { MOST_SIZES = 256, MOST_STACKS = 100, MOST_AS_TEXT = 3 };

/* The sizes of the roots that count, "24,40"; "" if there are too many. To be freed. */
static char *list_sizes(const struct analysis *analysis, const struct leak_kinds *kinds)
{
	const struct leak_side *side = &kinds->certain;
	uint64_t sizes[MOST_SIZES];
	size_t count = 0;
	char *text = strdup("");

	for (size_t i = 0; text && side->leaks && i < side->leaks->count; i++) {
		uint64_t size = allocation_size(analysis_index(analysis), side->leaks->roots[i].id);
		size_t known = 0;
		char *longer;

		if (!leak_counts(&kinds->list[side->kinds.items[i]]))
			continue;
		while (known < count && sizes[known] != size)
			known++;
		if (known < count)
			continue;
		if (count == MOST_SIZES) {
			*text = '\0';
			return text;
		}
		sizes[count++] = size;
		longer = format_text("%s%s%" PRIu64, text, *text ? "," : "", size);
		free(text);
		text = longer;
	}
	return text;
}

/* Forges know files by their path from where they run. */
static char *source_here(const char *source)
{
	_cleanup_(free) char *folder = get_current_dir_name();
	size_t length = folder ? strlen(folder) : 0;
	bool is_below = length > 1 && strncmp(source, folder, length) == 0 && source[length] == '/';

	return strdup(is_below ? source + length + 1 : source);
}

static struct error *set_caller(struct leak_kind *kind, const struct frame *frame)
{
	char *text = leak_caller_text(frame);

	TRY_MEMORY(text);
	free(kind->allocated_by);
	kind->allocated_by = text;
	if (!frame->source)
		return NULL;
	free(kind->source);
	kind->source = source_here(frame->source);
	return kind->source ? NULL : &error_no_memory;
}

struct error *gate_name_caller(struct leak_kind *kind, const struct recorded *recorded,
			       uint64_t stack)
{
	struct backtrace calls = { 0 };
	struct error *error = recorded_calls(recorded, stack, &calls);
	const struct frame *caller = error ? NULL : leak_stack_caller(&calls);

	if (caller)
		error = set_caller(kind, caller);
	free(calls.frames);
	return error;
}

/*
 * Name each leaked kind's callers from the recorded stacks, which are better than reading the code.
 */
static struct error *name_callers(struct leak_kinds *kinds, const struct leak_stacks *stacks)
{
	list_for_each(kind, kinds->list, kinds->count) {
		size_t count;
		const struct leak_stack *stack = leak_stacks_of(stacks, kind->fingerprint, &count);

		if (leak_counts(kind) && stack)
			TRY(gate_name_caller(kind, &stacks->recorded, stack->stack));
	}
	return NULL;
}

static struct error *find(struct analysis *analysis, struct leak_kinds *kinds,
			  struct leak_stacks *ret)
{
	const struct rerun *rerun = analysis_rerun(analysis);
	_cleanup_(free) char *sizes = list_sizes(analysis, kinds), *path = NULL;

	TRY_MEMORY(sizes);
	TRY(rerun->run(rerun->data, sizes, &path));
	if (!path)
		return NULL;
	TRY(leak_stacks_find(analysis, path, ret));
	ret->is_other = rerun->is_other;
	return name_callers(kinds, ret);
}

struct error *gate_find_stacks(struct analysis *analysis, struct leak_kinds *kinds,
			       struct leak_stacks *ret)
{
	struct error *error = analysis_rerun(analysis) ? find(analysis, kinds, ret) : NULL;
	_cleanup_(free) char *text = NULL;

	if (!error || error_code(error) == ERROR_NO_MEMORY ||
	    error_code(error) == ERROR_INTERRUPTED)
		return error;
	text = format_text("the calls that allocated the leaks are not known: %s",
			   error_message(error));
	error_destroy(error);
	TRY_MEMORY(text);
	analysis_note(analysis, text);
	return NULL;
}

static void write_calls(const struct leak_stacks *stacks, const struct leak_stack *stack,
			const char *fingerprint, uint64_t number, struct report *report)
{
	static const struct table table =
		TABLE("leak call", "    {function}[ {inlined}][ at {source}][ ({module})]",
		      { "fingerprint", VALUE_TEXT }, { "stack", VALUE_NUMBER },
		      { "number", VALUE_NUMBER }, { "address", VALUE_ADDRESS },
		      { "function", VALUE_TEXT }, { "inlined", VALUE_TEXT },
		      { "source", VALUE_TEXT }, { "module", VALUE_TEXT });
	struct backtrace calls = { 0 };
	struct error *error = recorded_calls(&stacks->recorded, stack->stack, &calls);

	report_begin_table(report, &table);
	for (size_t i = 0; !error && i < calls.count; i++) {
		const struct frame *frame = &calls.frames[i];
		const char *place = debug_name(analysis_debug(stacks->analysis), frame->address);

		report_row(report, fingerprint, number, i, frame->address,
			   frame->function ? frame->function
			   : place	   ? place
					   : "unknown code",
			   frame->inlined ? "(inlined)" : NULL, frame->source,
			   frame->function && frame->module ? module_name(frame->module) : NULL);
	}
	report_end_table(report);
	free(calls.frames);
	if (error)
		report->error = error;
}

/* Write of a leak why no calls follow. */
static void write_unknown(uint64_t fingerprint, const char *reason, struct report *report)
{
	static const struct table table =
		TABLE("leak without calls", "Leak {fingerprint}: {reason}",
		      { "fingerprint", VALUE_TEXT }, { "reason", VALUE_TEXT });
	char text[FINGERPRINT_SIZE];

	fingerprint_text(fingerprint, text);
	report_single(report, &table, text, reason);
}

/* Write how many roots have no stack. */
static void write_unrecorded(const struct leak_stack *stack, uint64_t roots, const char *run,
			     struct report *report)
{
	_cleanup_(free) char *text =
		format_text("the calls for %" PRIu64 " of %" PRIu64 "%s%s were not recorded",
			    stack->roots, roots, run ? " " : "", run ? run : "");

	if (text)
		write_unknown(stack->fingerprint, text, report);
}

/* Write the stacks of one leak: count of them, from first on. */
static void write_leak(const struct leak_stacks *stacks, const struct leak_stack *first,
		       size_t count, const char *run, struct report *report)
{
	static const struct table table = TABLE(
		"leak stack",
		"Leak {fingerprint}: {count,} of {roots,}[ {run}] {count|was|were} allocated by",
		{ "fingerprint", VALUE_TEXT }, { "stack", VALUE_NUMBER }, { "roots", VALUE_COUNT },
		{ "count", VALUE_COUNT }, { "run", VALUE_TEXT });
	static const struct table rest = TABLE(
		"more stacks", "    ... and by {count,} other {count|way|ways}[: {more}]",
		{ "fingerprint", VALUE_TEXT }, { "count", VALUE_COUNT }, { "more", VALUE_TEXT });
	const size_t most = report->shortened ? MOST_AS_TEXT : MOST_STACKS;
	const size_t shown = count < most ? count : most;
	char fingerprint[FINGERPRINT_SIZE];
	uint64_t roots = 0;

	fingerprint_text(first->fingerprint, fingerprint);
	for (size_t i = 0; i < count; i++)
		roots += first[i].roots;
	for (size_t i = 0; i < shown; i++) {
		if (!first[i].stack) {
			write_unrecorded(&first[i], roots, run, report);
			continue;
		}
		report_single(report, &table, fingerprint, i, roots, first[i].roots, run);
		write_calls(stacks, &first[i], fingerprint, i, report);
	}
	if (shown < count)
		report_single(report, &rest, fingerprint, count - shown,
			      report->shortened ? "-o has more" : NULL);
}

static bool is_of_any(const struct leak_kinds *kinds, uint64_t fingerprint)
{
	for (size_t i = 0; i < kinds->count; i++)
		if (kinds->list[i].fingerprint == fingerprint)
			return true;
	return false;
}

void gate_write_stacks(const struct leak_kinds *kinds, const struct leak_stacks *stacks,
		       struct report *report)
{
	static const struct table short_of_memory = TABLE(
		"lost stacks",
		"{count,} {count|block has|blocks have} no recorded caller: the recorder had no room",
		{ "count", VALUE_COUNT });
	const struct leak_stack *first, *end = stacks->list.items + stacks->list.count;
	size_t count;

	for (size_t i = 0; i < kinds->count; i++) {
		first = leak_stacks_of(stacks, kinds->list[i].fingerprint, &count);
		if (!leak_counts(&kinds->list[i]))
			continue;
		if (first)
			write_leak(stacks, first, count,
				   stacks->is_other ? "in a second run" : NULL, report);
		else if (stacks->is_other && stacks->analysis)
			write_unknown(kinds->list[i].fingerprint, "a second run did not lose it",
				      report);
	}
	if (stacks->recorded.lost)
		report_single(report, &short_of_memory, stacks->recorded.lost);
	for (first = stacks->list.items; first && first < end; first += count) {
		leak_stacks_of(stacks, first->fingerprint, &count);
		if (!is_of_any(kinds, first->fingerprint))
			write_leak(stacks, first, count, "that only a second run lost", report);
	}
}
