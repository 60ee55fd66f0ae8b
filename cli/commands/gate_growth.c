#include "cli/commands/gate_growth.h"

#include "analyzer/base/bytes.h"
#include "analyzer/base/list.h"
#include "analyzer/base/text.h"
#include "cli/commands/gate_stacks.h"

#include <inttypes.h>
#include <string.h>

void gate_growth_deinit(struct gate_growth *growth)
{
	growths_deinit(&growth->growths);
	leak_kinds_deinit(&growth->kinds);
	if (growth->diff)
		diff_destroy(growth->diff);
}

static size_t count_steps(const struct gate_growth *growth)
{
	return growth->diff->core_count - 1;
}

/* How many allocations it is more from a core to the next, on average. */
static uint64_t each(const struct gate_growth *growth, const struct growth *one)
{
	return one->count / count_steps(growth);
}

/* Like a leak, so that rules and baselines apply; its fingerprint has no address in it. */
static struct error *add_kind(struct gate_growth *growth, const struct growth *one)
{
	const char *name = *one->kind ? one->kind : one->holder;
	struct leak_kind kind = {
		.fingerprint = hash_add(hash_text(hash_text(1, one->holder), one->kind), one->size),
		.name = strdup(name),
		.holder = strdup(one->holder),
		.size = one->size,
		.smallest_size = one->size,
		.roots = each(growth, one),
		.allocations = one->count,
		.bytes = one->bytes,
	};
	struct error *error = kind.name && kind.holder ? NULL : &error_no_memory;

	if (!error)
		error = LIST_APPEND(growth->kinds.list, growth->kinds.count, kind);
	if (!error)
		return NULL;
	free(kind.name);
	free(kind.holder);
	return error;
}

/* The recorded stack of most examples; 0: there is none. */
static uint64_t common_stack(const struct growth *one, struct recorded *recorded)
{
	const struct allocation_index *index = analysis_index(recorded->analysis);
	uint64_t stacks[MOST_EXAMPLES], most = 0;
	size_t highest = 0;

	for (size_t i = 0; i < one->example_count; i++) {
		size_t count = 0;

		stacks[i] = recorded_stack(recorded, allocation_start(index, one->examples[i]));
		for (size_t j = 0; j <= i; j++)
			count += stacks[j] == stacks[i];
		if (stacks[i] && count > highest) {
			highest = count;
			most = stacks[i];
		}
	}
	return most;
}

/* Name who allocated what grows, if the program ran with the recorder. */
static struct error *name_callers(struct analysis *newest, struct gate_growth *growth)
{
	struct recorded recorded = { 0 };

	if (!recorded_is_there(newest))
		return NULL;
	TRY(recorded_open(newest, &recorded));
	for (size_t i = 0; i < growth->kinds.count; i++) {
		uint64_t stack = common_stack(growth->growths.items + i, &recorded);

		if (stack)
			TRY(gate_name_caller(&growth->kinds.list[i], &recorded, stack));
	}
	return NULL;
}

static struct error *check_relation(const struct diff *diff)
{
	if (kinship_is_same(diff->kinship))
		return NULL;
	return error_create(ERROR_USAGE, "the cores of --growing are of different runs: %s",
			    kinship_reason(diff->kinship));
}

struct error *gate_growth_find(struct analysis *newest, const char *const *paths, size_t count,
			       struct gate_growth *ret)
{
	TRY(compare_cores(newest, paths, count, ASPECT_KIND, HOLDERS_UNBOUNDED, NULL, NULL,
			  &ret->diff));
	TRY(check_relation(ret->diff));
	TRY(growths_find(&ret->diff->held, ret->diff->core_count, &ret->growths));
	TRY(growths_find_examples(newest, &ret->growths));
	TRY(analysis_need(newest, STAGE_OBJECT_PATHS));
	TRY(analysis_need(newest, STAGE_RETAINED));
	array_for_each(one, &ret->growths)
		TRY(add_kind(ret, one));
	return name_callers(newest, ret);
}

uint64_t gate_growth_count(const struct gate_growth *growth)
{
	uint64_t count = 0;

	for (size_t i = 0; i < growth->kinds.count; i++)
		count += leak_counts(&growth->kinds.list[i]);
	return count;
}

/* "__main__.CACHE (dict)", "CACHE (Hash(Int32, User))", "registry (soak)"; to be freed; NULL if
 * memory is short. */
static char *holder_text(const struct growth *one, const struct analysis *newest, bool with_content)
{
	_cleanup_(free) char *path = NULL;
	struct error *error = growth_place(newest, one, with_content, &path);

	if (error) {
		error_destroy(error);
		return NULL;
	}
	if (one->by == HELD_BY_NOBODY)
		return strdup("leaked");
	/* A runtime's own parts of objects are in parentheses. */
	if (path && one->by == HELD_BY_NAME && one->holder[0] != '(')
		return format_text("%s (%s)", path, one->holder);
	if (path || !*one->holder)
		return strdup(path ? path : "various holders");
	return strdup(one->holder);
}

static char *content_text(const struct growth *one)
{
	char size[SIZE_SIZE];

	if (one->size)
		return format_text("%s of size %s", one->kind, format_size(one->size, size));
	return strdup(*one->kind ? one->kind : "allocations of various kinds");
}

static void write_growth(const struct gate_growth *growth, size_t number,
			 const struct analysis *newest, struct report *report)
{
	const struct growth *one = growth->growths.items + number;
	const struct leak_kind *kind = &growth->kinds.list[number];
	_cleanup_(free) char *holder = holder_text(one, newest, !report->no_content);
	_cleanup_(free) char *what = content_text(one);
	char fingerprint[FINGERPRINT_SIZE];

	if (!holder || !what) {
		report->error = &error_no_memory;
		return;
	}
	report_row(report, holder, kind->roots, what, one->bytes,
		   one->has_more ? "with what they hold" : NULL, count_steps(growth),
		   kind->allocated_by, one->least, one->count, leak_state_name(kind->state),
		   fingerprint_text(kind->fingerprint, fingerprint),
		   VALUE_IF(kind->is_allowed, kind->allowed), kind->rule);
}

void gate_growth_write(const struct gate_growth *growth, const struct analysis *newest,
		       struct report *report)
{
	static const struct table table = TABLE(
		"growing",
		"{holder}: +{each,} x {kind} an iteration, {bytes,} bytes[ {more}] in {iterations}[, allocated by {allocated_by}][; {allowed,} in the baseline][; suppressed by {rule}]",
		{ "holder", VALUE_TEXT }, { "each", VALUE_COUNT }, { "kind", VALUE_TEXT },
		{ "bytes", VALUE_BYTES }, { "more", VALUE_TEXT }, { "iterations", VALUE_COUNT },
		{ "allocated_by", VALUE_TEXT }, { "least", VALUE_COUNT }, { "count", VALUE_COUNT },
		{ "state", VALUE_TEXT }, { "fingerprint", VALUE_TEXT }, { "allowed", VALUE_COUNT },
		{ "rule", VALUE_TEXT });

	report_begin_table(report, &table);
	for (size_t i = 0; i < growth->kinds.count; i++)
		write_growth(growth, i, newest, report);
	report_end_table(report);
}

/* With the columns that the gate has for leaks. */
void gate_growth_write_outcome(const struct gate_growth *growth, const char *outcome,
			       struct report *report)
{
	static const struct table table = TABLE(
		"gate",
		"Gate {outcome}: {kinds,} {kinds|kind grows|kinds grow} in each of {iterations,} iterations.",
		{ "outcome", VALUE_TEXT }, { "leaks", VALUE_COUNT }, { "bytes", VALUE_BYTES },
		{ "suppressed", VALUE_COUNT }, { "known", VALUE_COUNT }, { "kinds", VALUE_COUNT },
		{ "iterations", VALUE_COUNT });
	struct set_total counted = { 0 };
	uint64_t suppressed = 0, known = 0;

	list_for_each(kind, growth->kinds.list, growth->kinds.count) {
		struct set_total own = leak_counted(kind);

		set_total_add(&counted, own);
		*(kind->state == LEAK_SUPPRESSED ? &suppressed : &known) +=
			kind->allocations - own.count;
	}
	report_single(report, &table, outcome, counted.count, counted.bytes, suppressed, known,
		      gate_growth_count(growth), count_steps(growth));
}
