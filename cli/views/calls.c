#include "cli/views/calls.h"

#include "analyzer/analysis/fiber_held.h"
#include "analyzer/query/ranges.h"
#include "analyzer/runtimes/native_tasks.h"
#include "cli/views/rows.h"

#include <inttypes.h>
#include <string.h>

static void write_thread(struct analysis *analysis, uint32_t number, struct report *report)
{
	static const struct table table = TABLE(
		"thread",
		"Thread {thread}[, ended by signal {signal}][ from process {sender}][, on the stack from {stack start} to {stack end}][, {no stack}]",
		{ "thread", VALUE_NUMBER }, { "signal", VALUE_NUMBER }, { "sender", VALUE_NUMBER },
		{ "stack start", VALUE_ADDRESS }, { "stack end", VALUE_ADDRESS },
		{ "no stack", VALUE_TEXT });
	const struct program *program = analysis_program(analysis);
	const struct thread *thread = &program->threads[number];
	bool known = thread->stack != NO_STACK;

	report_begin_table(report, &table);
	report_add(report, thread->id,
		   VALUE_IF(thread->state->signal, (uint64_t)thread->state->signal),
		   VALUE_IF(image_signal_is_foreign(analysis_image(analysis), thread->state),
			    thread->state->signal_sender));
	if (known) {
		const struct stack *stack = &program->stacks[thread->stack];

		report_add(report, stack->start, stack->end);
	} else {
		report_add(report, ABSENT, ABSENT);
	}
	report_row(report, known ? NULL : "on a stack that is not known");
	report_end_table(report);
}

/* The register of that name; there is one for each that a description shows. */
static size_t find_register(const struct arch *arch, const char *name, size_t length)
{
	size_t i = 0;

	while (strncmp(arch->registers[i].name, name, length) != 0 ||
	       arch->registers[i].name[length] != '\0')
		i++;
	return i;
}

static void write_registers(const struct arch *arch, const struct thread *thread,
			    const char *sentence, struct report *report)
{
	struct table table = { "registers", sentence };
	uint64_t values[MAXIMUM_COLUMNS];

	for (const char *next = sentence; (next = strchr(next, '{')); next++) {
		size_t number = find_register(arch, next + 1, strcspn(next + 1, "}"));

		values[table.column_count] = thread->state->registers[number];
		table.columns[table.column_count++] =
			(struct column){ arch->registers[number].name, VALUE_ADDRESS };
	}
	report_begin_table(report, &table);
	for (size_t i = 0; i < table.column_count; i++)
		report_add(report, values[i]);
	report_end_row(report);
	report_end_table(report);
}

static const struct table call_table =
	TABLE("call", "#{number} 0x{address} in {function}[ {inlined}][ at {source}][ ({module})]",
	      { "thread", VALUE_NUMBER }, { "number", VALUE_NUMBER }, { "address", VALUE_ADDRESS },
	      { "function", VALUE_TEXT }, { "inlined", VALUE_TEXT }, { "source", VALUE_TEXT },
	      { "module", VALUE_TEXT });

/* Write calls; if thread is NO_THREAD, they belong to none. */
static void calls_write(struct analysis *analysis, uint32_t thread, const struct backtrace *calls,
			uint64_t limit, struct report *report)
{
	const struct program *program = analysis_program(analysis);
	struct debug *debug = analysis_debug(analysis);

	report_begin_table(report, &call_table);
	for (size_t i = 0; i < calls->count && (!limit || i < limit); i++) {
		const struct frame *frame = &calls->frames[i];
		const char *function = debug_frame_function(debug, frame);

		report_thread(report, program, thread);
		report_row(report, i, frame->address, function ? function : "unknown code",
			   frame->inlined ? "(inlined)" : NULL, frame->source,
			   frame->function && frame->module ? module_name(frame->module) : NULL);
	}
	report_end_table(report);
	rows_left_out(report, calls->cut ? "calls, at least," : "calls", calls->count, limit);
}

void thread_write_calls(struct analysis *analysis, uint32_t thread, uint64_t limit,
			struct report *report)
{
	const struct backtrace *calls = debug_backtrace(analysis_debug(analysis), thread);

	if (calls)
		calls_write(analysis, thread, calls, limit, report);
}

struct frames_writer {
	struct report *report;
	struct analysis *analysis;
	const struct program *program;
	const char *language;
	uint32_t thread;
	uint64_t limit;
	uint64_t count; /* frames visited, including the last */
	uint64_t tasks;
	bool is_in_table; /* a table of calls is open; it ends when the variables of a call follow
			   */
};

static bool is_shown(const struct frames_writer *writer)
{
	return !writer->limit || writer->count <= writer->limit;
}

static void write_frame(void *data, const struct runtime_frame *frame)
{
	static const struct table table = TABLE(
		"frame",
		"{language} #{number}[ in {function}][ at {source}][:{line}][ ({kind})][: {damage}: this and further calls are not known]",
		{ "thread", VALUE_NUMBER }, { "language", VALUE_TEXT }, { "number", VALUE_NUMBER },
		{ "function", VALUE_TEXT }, { "source", VALUE_TEXT }, { "line", VALUE_NUMBER },
		{ "kind", VALUE_TEXT }, { "damage", VALUE_TEXT });
	struct frames_writer *writer = data;

	writer->count++;
	if (!is_shown(writer))
		return;
	if (!writer->is_in_table)
		report_begin_table(writer->report, &table);
	writer->is_in_table = true;
	report_thread(writer->report, writer->program, writer->thread);
	report_row(writer->report, writer->language, frame->number, frame->function, frame->file,
		   value_nonzero(frame->line), frame->kind, frame->damage);
}

static void end_frames(struct frames_writer *writer)
{
	if (writer->is_in_table)
		report_end_table(writer->report);
	writer->is_in_table = false;
}

static void write_local(void *data, const struct runtime_local *local)
{
	static const struct table table =
		TABLE("local", "    {name} = {class} at 0x{address}[: {value}]",
		      { "thread", VALUE_NUMBER }, { "language", VALUE_TEXT },
		      { "number", VALUE_NUMBER }, { "name", VALUE_TEXT }, { "class", VALUE_TEXT },
		      { "value", VALUE_TEXT }, { "address", VALUE_ADDRESS });
	struct frames_writer *writer = data;

	if (!is_shown(writer))
		return;
	end_frames(writer);
	report_begin_table(writer->report, &table);
	report_thread(writer->report, writer->program, writer->thread);
	report_row(writer->report, writer->language, writer->count - 1, local->name,
		   local->class_name, report_content(writer->report, local->value), local->address);
	report_end_table(writer->report);
}

static struct frames_writer begin_frames(struct analysis *analysis, const struct runtime *runtime,
					 uint32_t thread, uint64_t limit, struct report *report)
{
	return (struct frames_writer){
		.report = report,
		.analysis = analysis,
		.program = analysis_program(analysis),
		.language = runtime->name,
		.thread = thread,
		.limit = limit,
	};
}

struct error *thread_write_frames(struct analysis *analysis, uint32_t thread, uint64_t limit,
				  bool with_locals, struct report *report)
{
	const struct runtimes *runtimes = analysis_runtimes(analysis);

	for (size_t i = 0; i < runtime_count(runtimes); i++) {
		struct frames_writer writer =
			begin_frames(analysis, runtime_at(runtimes, i), thread, limit, report);
		struct frame_visitor visitor = { &writer, write_frame,
						 with_locals ? write_local : NULL };
		struct error *error;

		error = runtimes_visit_frames(runtimes, i, thread, &visitor);
		end_frames(&writer);
		if (error)
			return error;
		rows_left_out(report, "calls", writer.count, limit);
	}
	return NULL;
}

void calls_end(struct report *report)
{
	static const struct table gap = TABLE("end", "{text}", { "text", VALUE_TEXT });

	report_single(report, &gap, "");
}

void thread_describe(struct analysis *analysis, uint32_t thread, struct report *report)
{
	const struct arch *arch = analysis_image(analysis)->arch;

	write_thread(analysis, thread, report);
	/* Any of them may hold what the program works on. */
	for (size_t i = 0; arch->shown[i] && !report->no_content; i++)
		write_registers(arch, &analysis_program(analysis)->threads[thread], arch->shown[i],
				report);
	thread_write_calls(analysis, thread, SHOWN_CALLS, report);
	calls_end(report);
}

static const struct table fiber_table = TABLE(
	"fiber",
	"Fiber {fiber}[ '{name}'], {state}[ on thread {thread}], on the stack from {stack start} to {stack end}",
	{ "fiber", VALUE_ADDRESS }, { "name", VALUE_TEXT }, { "state", VALUE_TEXT },
	{ "thread", VALUE_NUMBER }, { "stack start", VALUE_ADDRESS },
	{ "stack end", VALUE_ADDRESS });

void fibers_write_none(struct analysis *analysis, struct report *report)
{
	analysis_note(analysis, "no fiber was found");
	report_begin_table(report, &fiber_table);
	report_end_table(report);
}

static void write_fiber(struct analysis *analysis, const struct fiber *fiber, struct report *report)
{
	report_begin_table(report, &fiber_table);
	report_add(report, fiber->object, report_content(report, fiber->name),
		   fiber->running ? "running" : "waiting");
	report_thread(report, analysis_program(analysis), fiber->thread);
	report_row(report, fiber->start, fiber->end);
	report_end_table(report);
}

struct error *fiber_write_frames(struct analysis *analysis, size_t number, uint64_t limit,
				 bool with_locals, struct report *report)
{
	const struct fiber *fiber = &analysis_fibers(analysis)->items[number];
	struct frames_writer writer =
		begin_frames(analysis, fiber->runtime, fiber->thread, limit, report);
	struct frame_visitor visitor = { &writer, write_frame, with_locals ? write_local : NULL };
	struct error *error;

	if (fiber->thread != NO_THREAD)
		return thread_write_frames(analysis, fiber->thread, limit, with_locals, report);
	error = runtimes_visit_fiber_frames(analysis_runtimes(analysis), fiber, &visitor);
	end_frames(&writer);
	if (!error)
		rows_left_out(report, "calls", writer.count, limit);
	return error;
}

static const struct table task_table = TABLE(
	"task",
	"{kind} {task}[ '{name}'][ ({class})], {state}[ for {awaits}][ '{awaited name}'][ {awaited}], retains {retained,} bytes",
	{ "kind", VALUE_TEXT }, { "task", VALUE_ADDRESS }, { "name", VALUE_TEXT },
	{ "class", VALUE_TEXT }, { "state", VALUE_TEXT }, { "awaits", VALUE_TEXT },
	{ "awaited name", VALUE_TEXT }, { "awaited", VALUE_ADDRESS }, { "retained", VALUE_BYTES });

static struct error *write_task(void *data, const struct runtime_task *task)
{
	struct frames_writer *writer = data;
	struct report *report = writer->report;

	writer->count = 0;
	writer->tasks++;
	report_single(report, &task_table, task->kind ? task->kind : "Task", task->address,
		      report_content(report, task->name), task->class_name,
		      task->is_running ? "running" : "waiting", task->awaited_class,
		      report_content(report, task->awaited_name), value_nonzero(task->awaited),
		      dominators_retained(analysis_dominators(writer->analysis), task->id));
	return NULL;
}

static struct error *end_task(void *data)
{
	struct frames_writer *writer = data;

	end_frames(writer);
	rows_left_out(writer->report, "calls", writer->count, writer->limit);
	calls_end(writer->report);
	return NULL;
}

static void write_fiber_calls(struct analysis *analysis, const struct fiber *fiber, uint64_t limit,
			      struct report *report)
{
	const struct backtrace *calls;
	struct frame_state saved;

	if (fiber->thread != NO_THREAD) {
		thread_write_calls(analysis, fiber->thread, limit, report);
	} else if (fiber_registers(analysis_image(analysis), fiber, &saved)) {
		calls = debug_backtrace_of(analysis_debug(analysis), &saved);
		if (calls)
			calls_write(analysis, NO_THREAD, calls, limit, report);
	}
}

static struct error *write_native_tasks(struct analysis *analysis, uint64_t limit,
					struct report *report, uint64_t *count)
{
	struct frames_writer writer = { .report = report,
					.analysis = analysis,
					.program = analysis_program(analysis),
					.language = "native",
					.thread = NO_THREAD,
					.limit = limit };
	const struct task_visitor visitor = { { &writer, write_frame, NULL },
					      write_task,
					      end_task };

	TRY(native_tasks_visit(analysis_image(analysis), analysis_index(analysis),
			       analysis_debug(analysis), analysis_account(analysis), &visitor));
	*count += writer.tasks;
	return NULL;
}

static struct error *write_waiting_fibers(struct analysis *analysis, uint64_t limit,
					  bool with_locals, struct report *report, uint64_t *count)
{
	const struct fibers *fibers = analysis_fibers(analysis);
	_cleanup_(free) uint64_t *holds = NULL;

	TRY(fibers_find_held(analysis, &holds));
	for (size_t i = 0; i < fibers->count; i++) {
		const struct fiber *fiber = &fibers->items[i];

		report_single(report, &task_table, "Fiber", fiber->object,
			      report_content(report, fiber->name), ABSENT,
			      fiber->running ? "running" : "waiting", ABSENT, ABSENT, ABSENT,
			      holds[i]);
		write_fiber_calls(analysis, fiber, limit, report);
		TRY(fiber_write_frames(analysis, i, limit, with_locals, report));
		calls_end(report);
		++*count;
	}
	return NULL;
}

struct error *tasks_write(struct analysis *analysis, uint64_t limit, bool with_locals,
			  struct report *report)
{
	const struct runtimes *runtimes = analysis_runtimes(analysis);
	uint64_t count = 0;

	for (size_t i = 0; i < runtime_count(runtimes); i++) {
		struct frames_writer writer =
			begin_frames(analysis, runtime_at(runtimes, i), NO_THREAD, limit, report);
		const struct task_visitor visitor = {
			{ &writer, write_frame, with_locals ? write_local : NULL },
			write_task,
			end_task,
		};

		TRY(runtimes_visit_tasks(runtimes, i, &visitor));
		count += writer.tasks;
	}
	TRY(write_native_tasks(analysis, limit, report, &count));
	TRY(write_waiting_fibers(analysis, limit, with_locals, report, &count));
	if (count)
		return NULL;
	analysis_note(analysis, "no task of an event loop was found");
	report_begin_table(report, &task_table);
	report_end_table(report);
	return NULL;
}

void fiber_describe(struct analysis *analysis, size_t number, uint64_t limit, struct report *report)
{
	const struct fiber *fiber = &analysis_fibers(analysis)->items[number];

	write_fiber(analysis, fiber, report);
	write_fiber_calls(analysis, fiber, limit, report);
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
