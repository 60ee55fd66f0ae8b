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

	report_add(report, fiber->object, fiber->start, fiber->end, range->size,
		   fiber->end - fiber->live, fiber->running ? "running" : "waiting");
	report_thread(report, analysis_program(analysis), fiber->thread);
	report_add(report, fiber->name);
}

const struct range_kind range_kind_fibers = {
	.noun = "fibers",
	.table = TABLE("fiber", NULL, { "fiber", VALUE_ADDRESS }, { "stack start", VALUE_ADDRESS },
		       { "stack end", VALUE_ADDRESS }, { "size", VALUE_BYTES },
		       { "live", VALUE_BYTES }, { "state", VALUE_TEXT }, { "thread", VALUE_NUMBER },
		       { "name", VALUE_TEXT }),
	.contiguous = true,
	.collect = collect,
	.write = write_fiber,
};
