#include "cli/views/fiber_description.h"

#include "analyzer/query/thread_value.h"
#include "cli/views/thread_description.h"

#include <inttypes.h>

static void write_head(struct analysis *analysis, const struct fiber *fiber, struct report *report)
{
	static const struct table table = TABLE(
		"fiber",
		"Fiber {fiber}[ '{name}'], {state}[ on thread {thread}], on the stack from {stack start} to {stack end}",
		{ "fiber", VALUE_ADDRESS }, { "name", VALUE_TEXT }, { "state", VALUE_TEXT },
		{ "thread", VALUE_NUMBER }, { "stack start", VALUE_ADDRESS },
		{ "stack end", VALUE_ADDRESS });

	report_begin_table(report, &table);
	report_add(report, fiber->object, report_content(report, fiber->name),
		   fiber->running ? "running" : "waiting");
	report_thread(report, analysis_program(analysis), fiber->thread);
	report_row(report, fiber->start, fiber->end);
	report_end_table(report);
}

void fiber_describe(struct analysis *analysis, size_t number, uint64_t limit, struct report *report)
{
	const struct fiber *fiber = fiber_at(analysis_fibers(analysis), number);
	const struct backtrace *calls;
	struct frame_state saved;

	write_head(analysis, fiber, report);
	if (fiber->thread != NO_THREAD) {
		thread_write_calls(analysis, fiber->thread, limit, report);
	} else if (fiber_registers(analysis_image(analysis), fiber, &saved)) {
		calls = debug_backtrace_of(analysis_debug(analysis), &saved);
		if (calls)
			calls_write(analysis, NO_THREAD, calls, limit, report);
	}
	calls_end(report);
}

const char *fiber_place(const struct analysis *analysis, uint64_t address)
{
	const struct fiber *fiber = fiber_find(analysis_fibers(analysis), address);
	_cleanup_(free) char *whose = NULL;
	struct frame_state saved;

	if (!fiber || address < fiber->live ||
	    !fiber_registers(analysis_image(analysis), fiber, &saved) ||
	    asprintf(&whose, "fiber 0x%" PRIx64 "%s%s%s", fiber->object, fiber->name ? " '" : "",
		     fiber->name ? fiber->name : "", fiber->name ? "'" : "") < 0)
		return NULL;
	return debug_saved_place(analysis_debug(analysis), &saved, whose, address);
}
