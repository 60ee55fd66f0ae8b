#include "cli/commands/gate_stacks.h"

#include "analyzer/base/list.h"
#include "analyzer/base/text.h"
#include "cli/views/rows.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

enum { MOST_SIZES = 256, MOST_STACKS = 100, MOST_AS_TEXT = 3 };
enum { MOST_COMPARED = 1000, MOST_NAMED = 6 }; /* stacks, and calls of one */

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

/* Calls from the first on that is no library's. */
struct own_calls {
	struct backtrace all;
	const struct frame *list;
	size_t count;
};

static void own_calls_deinit(struct own_calls *own)
{
	free(own->all.frames);
}
DEFINE_DEINIT(own_calls_deinit, struct own_calls)

static struct error *own_calls_read(const struct recorded *recorded, uint64_t stack,
				    struct own_calls *ret)
{
	TRY(recorded_calls(recorded, stack, &ret->all));
	ret->list = leak_stack_caller(&ret->all);
	if (ret->list)
		ret->count = (size_t)(ret->all.frames + ret->all.count - ret->list);
	return NULL;
}

static bool is_same(const char *left, const char *right)
{
	return left && right ? strcmp(left, right) == 0 : left == right;
}

/* How many of the innermost calls both have. */
static size_t count_common(const struct own_calls *one, const struct own_calls *other)
{
	size_t common = 0;

	while (common < one->count && common < other->count &&
	       is_same(one->list[common].function, other->list[common].function) &&
	       is_same(one->list[common].source, other->list[common].source))
		common++;
	return common;
}

/*
 * Name who allocated the kind by the innermost calls, enough to tell it from others, and set the
 * source line by one of them.
 */
static struct error *set_caller(struct leak_kind *kind, const struct own_calls *own, size_t enough,
				size_t place)
{
	char *text = leak_calls_text(&own->all, enough);
	char *calls = leak_calls_text(&own->all, SIZE_MAX);

	free(kind->allocated_by);
	free(kind->calls);
	kind->allocated_by = text;
	kind->calls = calls;
	TRY_MEMORY(text && calls);
	if (!own->list[place].source)
		return NULL;
	free(kind->source);
	kind->source = source_here(own->list[place].source);
	return kind->source ? NULL : &error_no_memory;
}

struct error *gate_name_caller(struct leak_kind *kind, const struct recorded *recorded,
			       uint64_t stack)
{
	_cleanup_(own_calls_deinit) struct own_calls own = { 0 };

	TRY(own_calls_read(recorded, stack, &own));
	return own.list ? set_caller(kind, &own, 1, 0) : NULL;
}

/*
 * Name the callers of a kind whose largest stack is all[stack]. What all stacks have in common,
 * such as a wrapper of malloc(), is not where it leaks.
 */
static struct error *name_caller(struct leak_kind *kind, const struct own_calls *all, size_t count,
				 size_t stack)
{
	const struct own_calls *own = &all[stack];
	size_t enough = 0, wrappers = own->count;

	if (!own->list)
		return NULL;
	for (size_t i = 0; i < count; i++) {
		size_t common = i == stack || !all[i].list ? 0 : count_common(own, &all[i]);

		enough = common > enough ? common : enough;
		if (i != stack && all[i].list && common < wrappers)
			wrappers = common;
	}
	while (wrappers < own->count &&
	       (!own->list[wrappers].source || !leak_call_is_own(&own->list[wrappers])))
		wrappers++;
	enough = enough < MOST_NAMED ? enough + 1 : MOST_NAMED;
	return set_caller(kind, own, enough, wrappers < own->count ? wrappers : 0);
}

/*
 * Name each leaked kind's callers from the recorded stacks, which are better than reading the code.
 */
static struct error *name_callers(struct leak_kinds *kinds, const struct leak_stacks *stacks)
{
	size_t count = stacks->list.count < MOST_COMPARED ? stacks->list.count : MOST_COMPARED;
	struct own_calls *all = calloc(count + 1, sizeof(*all));
	struct error *error = all ? NULL : &error_no_memory;

	for (size_t i = 0; !error && i < count; i++)
		error = own_calls_read(&stacks->recorded, stacks->list.items[i].stack, &all[i]);
	for (size_t i = 0; !error && i < kinds->count; i++) {
		size_t of_kind, place;
		const struct leak_stack *stack =
			leak_stacks_of(stacks, kinds->list[i].fingerprint, &of_kind);

		if (!leak_counts(&kinds->list[i]) || !stack)
			continue;
		place = (size_t)(stack - stacks->list.items);
		error = place < count ? name_caller(&kinds->list[i], all, count, place)
				      : gate_name_caller(&kinds->list[i], &stacks->recorded,
							 stack->stack);
	}
	for (size_t i = 0; all && i < count; i++)
		own_calls_deinit(&all[i]);
	free(all);
	return error;
}

static struct error *find(struct analysis *analysis, struct leak_kinds *kinds,
			  struct leak_stacks *ret)
{
	const struct rerun *rerun = analysis_rerun(analysis);
	_cleanup_(free) char *sizes = NULL, *path = NULL;

	TRY(leak_stacks_find_noted(analysis, ret));
	if (ret->recorded.noting)
		return name_callers(kinds, ret);
	if (!rerun)
		return NULL;
	sizes = list_sizes(analysis, kinds);
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
	struct error *error = find(analysis, kinds, ret);
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
		const char *place =
			debug_name(analysis_debug(stacks->recorded.analysis), frame->address);

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
