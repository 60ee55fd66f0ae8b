/*
 * The set of fibers, each as its stack.
 */

#include "analyzer/query/ranges.h"
#include "analyzer/query/thread_value.h"

static struct error *collect(struct analysis *analysis, const struct set_arguments *arguments,
			     struct ranges *ret)
{
	const struct fibers *fibers = analysis_fibers(analysis);
	struct error *error = NULL;

	for (size_t i = 0; !error && i < fiber_count(fibers); i++) {
		const struct fiber *fiber = fiber_at(fibers, i);

		error = ranges_add(ret, (struct range){ .start = fiber->start,
							.size = fiber->end - fiber->start,
							.group = fiber->running ? "Running fibers"
										: "Waiting fibers",
							.number = i });
	}
	return error;
}

static void write_fiber(const struct analysis *analysis, const struct ranges *ranges,
			const struct range *range, struct report *report)
{
	const struct fiber *fiber = fiber_at(analysis_fibers(analysis), range->number);

	report_number(report, fiber->object);
	report_number(report, fiber->start);
	report_number(report, fiber->end);
	report_number(report, range->size);
	report_number(report, fiber->end - fiber->live);
	report_text(report, fiber->running ? "running" : "waiting");
	report_thread(report, analysis_program(analysis), fiber->thread);
	report_text(report, fiber->name);
}

static const struct column columns[] = {
	{ "fiber", VALUE_ADDRESS },	{ "stack start", VALUE_ADDRESS },
	{ "stack end", VALUE_ADDRESS }, { "size", VALUE_BYTES },
	{ "live", VALUE_BYTES },	{ "state", VALUE_TEXT },
	{ "thread", VALUE_NUMBER },	{ "name", VALUE_TEXT },
};

const struct range_kind range_kind_fibers = {
	.noun = "fibers",
	.table = { "fiber", columns, 8, NULL },
	.contiguous = true,
	.collect = collect,
	.write = write_fiber,
};
