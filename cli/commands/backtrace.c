#include "cli/command.h"
#include "cli/views/calls.h"

struct backtrace_arguments {
	uint64_t thread; /* the kernel's number of it */
	bool has_thread;
	uint64_t limit;	    /* of calls; 0: none */
	bool fibers, tasks; /* instead */
	bool locals;
};

static const struct argp_option options[] = {
	{ "limit", KEEP(COUNT, struct backtrace_arguments, limit), "N", 0,
	  "Show at most N calls of each thread", 0 },
	{ "fibers", KEEP(FLAG, struct backtrace_arguments, fibers), NULL, 0,
	  "Show the calls of fibers instead", 0 },
	{ "tasks", KEEP(FLAG, struct backtrace_arguments, tasks), NULL, 0,
	  "Show what waits beside threads instead, for what, and the bytes that it retains", 0 },
	{ "locals", KEEP(FLAG, struct backtrace_arguments, locals), NULL, 0,
	  "Show variables of functions in the interpreter's language", 0 },
	{ 0 },
};

static const int keep_words[] = { KEEP_GIVEN(COUNT, struct backtrace_arguments, thread, has_thread),
				  0 };

static struct error *write_thread(struct analysis *analysis, uint32_t number,
				  const struct backtrace_arguments *arguments,
				  struct report *report)
{
	static const struct table table =
		TABLE("thread", "Thread {thread}:", { "thread", VALUE_NUMBER });
	const struct program *program = analysis_program(analysis);

	report_single(report, &table, program->threads[number].id);
	thread_write_calls(analysis, number, arguments->limit, report);
	if (!runtimes_have_frames(runtime_kinds, program))
		return NULL;
	TRY(analysis_need(analysis, STAGE_OBJECTS));
	return thread_write_frames(analysis, number, arguments->limit, arguments->locals, report);
}

static struct error *write_fibers(struct analysis *analysis,
				  const struct backtrace_arguments *arguments,
				  struct report *report)
{
	bool has_frames = runtimes_have_frames(runtime_kinds, analysis_program(analysis));

	TRY(analysis_need(analysis, has_frames ? STAGE_OBJECTS : STAGE_FIBERS));
	for (size_t i = 0; i < analysis_fibers(analysis)->count; i++) {
		fiber_describe(analysis, i, arguments->limit, report);
		if (has_frames)
			TRY(fiber_write_frames(analysis, i, arguments->limit, arguments->locals,
					       report));
		calls_end(report);
	}
	if (!analysis_fibers(analysis)->count)
		fibers_write_none(analysis, report);
	return NULL;
}

static struct error *write_tasks(struct analysis *analysis,
				 const struct backtrace_arguments *arguments, struct report *report)
{
	TRY(analysis_need(analysis, STAGE_OBJECTS));
	TRY(analysis_need(analysis, STAGE_RETAINED));
	return tasks_write(analysis, arguments->limit, arguments->locals, report);
}

static struct error *backtrace_run(struct analysis *analysis, const void *input,
				   struct report *report)
{
	const struct backtrace_arguments *arguments = input;
	const struct program *program = analysis_program(analysis);
	bool found = false;

	if (arguments->tasks)
		return write_tasks(analysis, arguments, report);
	if (arguments->fibers)
		return write_fibers(analysis, arguments, report);
	for (size_t i = 0; i < program->thread_count; i++) {
		if (arguments->has_thread && program->threads[i].id != arguments->thread)
			continue;
		found = true;
		TRY(write_thread(analysis, (uint32_t)i, arguments, report));
	}
	if (arguments->has_thread && !found)
		return error_create(ERROR_USAGE, "there is no thread %ju; see 'list threads'",
				    (uintmax_t)arguments->thread);
	return NULL;
}

const struct command command_backtrace = {
	.name = "backtrace",
	.table = "call",
	.summary = "Show the calls of one thread, or of each",
	.words = "[THREAD]",
	.example = "backtrace 4711 --limit 20 --locals",
	.description =
		"The innermost call comes first. Inlined functions are marked. Calls in Python, Ruby, PHP and Perl follow those of the thread. --tasks shows tasks of asyncio and tokio, greenlets, async functions and timers of Node.js, coroutines of C++20 and fibers that have not ended: their calls, what each waits for, and the bytes that only it holds.",
	.word = WORD_NUMBER,
	.options = options,
	.keep_words = keep_words,
	.arguments_size = sizeof(struct backtrace_arguments),
	.needs = STAGE_DEBUG,
	.run = backtrace_run,
};
