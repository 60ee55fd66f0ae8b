#include "cli/views/thread_description.h"

#include "analyzer/query/thread_value.h"
#include "cli/views/rows.h"

static void write_head(struct analysis *analysis, uint32_t number, struct report *report)
{
	static const struct table table = TABLE(
		"thread",
		"Thread {thread}[, ended by signal {signal}][ from process {sender}][, on the stack from {stack start} to {stack end}][, {no stack}]",
		{ "thread", VALUE_NUMBER }, { "signal", VALUE_NUMBER }, { "sender", VALUE_NUMBER },
		{ "stack start", VALUE_ADDRESS }, { "stack end", VALUE_ADDRESS },
		{ "no stack", VALUE_TEXT });
	const struct program *program = analysis_program(analysis);
	const struct thread *thread = program_thread(program, number);
	bool known = thread->stack != NO_STACK;

	report_begin_table(report, &table);
	report_add(report, thread->id,
		   VALUE_IF(thread->state->signal, (uint64_t)thread->state->signal),
		   VALUE_IF(image_signal_is_foreign(analysis_image(analysis), thread->state),
			    thread->state->signal_sender));
	if (known) {
		const struct stack *stack = program_stack(program, thread->stack);

		report_add(report, stack->start, stack->end);
	} else {
		report_add(report, ABSENT, ABSENT);
	}
	report_row(report, known ? NULL : "on a stack that is not known");
	report_end_table(report);
}

static void write_registers(const struct thread *thread, struct report *report)
{
	static const struct table tables[] = {
		TABLE("registers",
		      "rax {rax}  rbx {rbx}  rcx {rcx}  rdx {rdx}\n"
		      "rsi {rsi}  rdi {rdi}  rbp {rbp}  rsp {rsp}",
		      { "rax", VALUE_ADDRESS }, { "rbx", VALUE_ADDRESS }, { "rcx", VALUE_ADDRESS },
		      { "rdx", VALUE_ADDRESS }, { "rsi", VALUE_ADDRESS }, { "rdi", VALUE_ADDRESS },
		      { "rbp", VALUE_ADDRESS }, { "rsp", VALUE_ADDRESS }),
		TABLE("registers",
		      "r8 {r8}  r9 {r9}  r10 {r10}  r11 {r11}\n"
		      "r12 {r12}  r13 {r13}  r14 {r14}  r15 {r15}\n"
		      "rip {rip}  fs_base {fs_base}",
		      { "r8", VALUE_ADDRESS }, { "r9", VALUE_ADDRESS }, { "r10", VALUE_ADDRESS },
		      { "r11", VALUE_ADDRESS }, { "r12", VALUE_ADDRESS }, { "r13", VALUE_ADDRESS },
		      { "r14", VALUE_ADDRESS }, { "r15", VALUE_ADDRESS }, { "rip", VALUE_ADDRESS },
		      { "fs_base", VALUE_ADDRESS }),
	};
	const struct user_regs_struct *from = &thread->state->registers;
	const uint64_t values[] = {
		from->rax, from->rbx, from->rcx, from->rdx, from->rsi, from->rdi,
		from->rbp, from->rsp, from->r8,	 from->r9,  from->r10, from->r11,
		from->r12, from->r13, from->r14, from->r15, from->rip, from->fs_base,
	};
	size_t next = 0;

	/* Any of them may hold what the program works on. */
	if (report->no_content)
		return;
	for (size_t i = 0; i < 2; i++) {
		report_begin_table(report, &tables[i]);
		for (size_t j = 0; j < tables[i].column_count; j++)
			report_add(report, values[next++]);
		report_end_row(report);
		report_end_table(report);
	}
}

static const struct table call_table =
	TABLE("call", "#{number} 0x{address} in {function}[ {inlined}][ at {source}][ ({module})]",
	      { "thread", VALUE_NUMBER }, { "number", VALUE_NUMBER }, { "address", VALUE_ADDRESS },
	      { "function", VALUE_TEXT }, { "inlined", VALUE_TEXT }, { "source", VALUE_TEXT },
	      { "module", VALUE_TEXT });

void calls_write(struct analysis *analysis, uint32_t thread, const struct backtrace *calls,
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

void calls_end(struct report *report)
{
	static const struct table gap = TABLE("end", "{text}", { "text", VALUE_TEXT });

	report_single(report, &gap, "");
}

void thread_describe(struct analysis *analysis, uint32_t thread, struct report *report)
{
	write_head(analysis, thread, report);
	write_registers(program_thread(analysis_program(analysis), thread), report);
	thread_write_calls(analysis, thread, SHOWN_CALLS, report);
	calls_end(report);
}
