/*
 * Backtraces, from call frame information by libdwfl.
 */
#include "analyzer/base/list.h"
#include "analyzer/program/debug/debug_parts.h"

#include <dwarf.h>
#include <elf.h>
#include <string.h>

/* Endless recursion is what a stack of more frames shows. */
enum { MOST_FRAMES = 1 << 14 };

/* libdwfl sees every stack as this one thread, so ids need not differ. */
static const pid_t ONE_THREAD = 1;

struct unwinder {
	Elf64_Ehdr header; /* tells libdwfl of what machine all is */
	Elf *elf;
	bool attached;
	struct trace *traces; /* of each thread */
	size_t count;
	const struct frame_state *start; /* of what is asked for */
	struct frame_state saved;	 /* asked for last */
	struct trace saved_trace;
};

static void trace_deinit(struct trace *trace)
{
	free(trace->trace.frames);
	free(trace->states);
	*trace = (struct trace){ .done = false };
}

void unwinder_destroy(struct unwinder *unwinder)
{
	if (!unwinder)
		return;
	for (size_t i = 0; i < unwinder->count; i++)
		trace_deinit(&unwinder->traces[i]);
	trace_deinit(&unwinder->saved_trace);
	free(unwinder->traces);
	elf_end(unwinder->elf);
	free(unwinder);
}

static bool read_memory(Dwfl *dwfl, Dwarf_Addr address, Dwarf_Word *ret, void *data)
{
	const struct debug *debug = data;

	if (!image_read_word(debug->image, address, ret))
		return false;
	*ret = program_unsigned(debug->program, *ret);
	return true;
}

static bool get_thread(Dwfl *dwfl, pid_t number, void *data, void **ret)
{
	*ret = data;
	return true;
}

static pid_t next_thread(Dwfl *dwfl, void *data, void **thread)
{
	return 0;
}

static bool set_registers(Dwfl_Thread *handle, void *data)
{
	const struct debug *debug = data;
	const struct arch *arch = debug->image->arch;
	const struct frame_state *start = debug->unwinder->start;

	for (unsigned int i = 0; i < MOST_UNWOUND; i++)
		if (start->known >> i & 1 &&
		    !dwfl_thread_state_registers(handle, (int)arch_dwarf_number(arch, i), 1,
						 &start->registers[i]))
			return false;
	dwfl_thread_state_register_pc(handle, start->address);
	return true;
}

static struct unwinder *create(struct debug *debug)
{
	static const Dwfl_Thread_Callbacks callbacks = {
		.next_thread = next_thread,
		.get_thread = get_thread,
		.memory_read = read_memory,
		.set_initial_registers = set_registers,
	};
	const struct arch *arch = debug->image->arch;
	size_t count = debug->program->thread_count;
	struct unwinder *unwinder = calloc(1, sizeof(*unwinder));

	if (!unwinder || !(unwinder->traces = calloc(count + 1, sizeof(struct trace)))) {
		debug_lacks_memory(debug);
		free(unwinder);
		return NULL;
	}
	unwinder->count = count;
	unwinder->header = (Elf64_Ehdr){
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, arch->class, ELFDATA2LSB,
			     EV_CURRENT },
		.e_type = ET_CORE,
		.e_machine = arch->machine,
		.e_version = EV_CURRENT,
		.e_ehsize = sizeof(Elf64_Ehdr),
	};
	elf_version(EV_CURRENT);
	unwinder->elf = elf_memory((char *)&unwinder->header, sizeof(unwinder->header));
	unwinder->attached = debug_session(debug) &&
			     dwfl_attach_state(debug->dwfl, unwinder->elf, 1, &callbacks, debug);
	return unwinder;
}

static bool add_frame(struct trace *trace, const struct frame *frame,
		      const struct frame_state *state)
{
	size_t count = trace->trace.count;

	if (!LIST_GROW(trace->trace.frames, count) || !LIST_GROW(trace->states, count))
		return false;
	trace->trace.frames[count] = *frame;
	trace->states[count] = *state;
	trace->trace.count++;
	return true;
}

struct walk {
	struct debug *debug;
	struct trace *trace;
	size_t physical;
};

static struct frame_state read_state(const struct arch *arch, Dwfl_Frame *handle)
{
	struct frame_state state = { .known = 0 };

	for (unsigned int i = 0; i < arch->unwound_count; i++)
		if (dwfl_frame_reg(handle, arch_dwarf_number(arch, i), &state.registers[i]) == 0)
			state.known |= UINT64_C(1) << i;
	return state;
}

/* The last frame ends where the next one begins; so do those before it whose end is not known. */
static void end_frames(struct trace *trace, uint64_t end)
{
	for (size_t i = trace->trace.count; i-- > 0 && !trace->trace.frames[i].end;)
		trace->trace.frames[i].end = end;
}

static int take_frame(Dwfl_Frame *handle, void *data)
{
	struct walk *walk = data;
	struct debug *debug = walk->debug;
	const struct arch *arch = debug->image->arch;
	uint8_t stack_pointer = arch_unwound_stack_pointer(arch);
	struct frame_state state = read_state(arch, handle);
	struct frame frame = { .stack_pointer = state.registers[stack_pointer] };
	bool exact = true;

	if (!dwfl_frame_pc(handle, &frame.address, &exact))
		return DWARF_CB_ABORT;
	/* The return address can be behind the end of a function. */
	state.address = exact ? frame.address : frame.address - 1;
	if (state.known >> stack_pointer & 1)
		end_frames(walk->trace, frame.stack_pointer);
	frame.module = program_find_module(debug->program, state.address);
	if (!add_frame(walk->trace, &frame, &state))
		return DWARF_CB_ABORT;
	walk->trace->trace.cut = ++walk->physical == MOST_FRAMES;
	return walk->trace->trace.cut ? DWARF_CB_ABORT : DWARF_CB_OK;
}

/* Let libdwfl unwind from the registers. */
static void walk_from(struct debug *debug, const struct frame_state *start, struct trace *trace)
{
	struct walk walk = { .debug = debug, .trace = trace };

	debug->unwinder->start = start;
	if (debug->unwinder->attached && debug_session(debug))
		dwfl_getthread_frames(debug->dwfl, ONE_THREAD, take_frame, &walk);
}

/* The caller of a jump to nowhere is where it was to return to: in a register, or on the stack. */
static void walk_caller(struct debug *debug, struct frame_state *start, struct trace *trace)
{
	const struct arch *arch = debug->image->arch;
	uint64_t *stack_pointer = &start->registers[arch_unwound_stack_pointer(arch)];
	uint64_t *back = &start->registers[arch->unwound_return];
	size_t first = trace->trace.count;

	if (!arch->return_is_register) {
		if (!image_read_word(debug->image, *stack_pointer, back))
			return;
		*stack_pointer += arch_word_size(arch);
	}
	if (!program_find_module(debug->program, --*back))
		return;
	start->address = *back; /* the call, not what stands behind it */
	walk_from(debug, start, trace);
	if (trace->trace.count > first)
		trace->trace.frames[first].address++;
}

static void walk_thread(struct debug *debug, const struct thread *thread, struct trace *trace)
{
	struct frame_state start = { .address = thread->instruction };
	struct frame first = {
		.address = thread->instruction,
		.stack_pointer = thread->stack_pointer,
		.module = program_find_module(debug->program, thread->instruction),
	};
	uint8_t code;

	start.known = arch_unwound(debug->image->arch, thread->state->registers, start.registers);
	if (!first.module && !image_read(debug->image, first.address, &code, sizeof(code)) &&
	    add_frame(trace, &first, &(struct frame_state){ .address = first.address }))
		walk_caller(debug, &start, trace);
	else
		walk_from(debug, &start, trace);
	/* Without libdwfl, or where it knows nothing, there is still the first. */
	if (trace->trace.count == 0)
		add_frame(trace, &first, &(struct frame_state){ .address = first.address });
}

static bool open_unwinder(struct debug *debug)
{
	if (!debug->unwinder)
		debug->unwinder = create(debug);
	return debug->unwinder != NULL;
}

/* Add a frame for each function of the place: those inlined into others come first. */
static bool add_functions(struct debug *debug, struct trace *trace, struct code_place *place,
			  struct frame frame, const struct frame_state *state)
{
	Dwarf_Die scopes[MOST_SCOPES];
	size_t count = code_scopes(place, scopes);
	struct source_line line = { 0 };

	if (source_line_find(&place->lines, place->address, &line))
		frame.source = source_line_text(debug, &line);
	for (size_t i = 0; i < count; i++) {
		struct frame inlined = frame;

		if (dwarf_tag(&scopes[i]) != DW_TAG_inlined_subroutine)
			continue;
		inlined.inlined = true;
		inlined.function = debug_entry_name(debug, &scopes[i]);
		if (!add_frame(trace, &inlined, state))
			return false;
		frame.source = inlined_call_find(place, &scopes[i], &line)
				       ? source_line_text(debug, &line)
				       : NULL;
	}
	if (count > 0 && !frame.function)
		frame.function = debug_entry_name(debug, &scopes[count - 1]);
	return add_frame(trace, &frame, state);
}

/* The distance back at which a frame with the same address is searched for. */
enum { MOST_REPEATED = 256 };

/*
 * A recursion has the same address again and again: copy the frames that it had the last time.
 * False if there was none.
 */
static bool repeat_frames(struct trace *trace, const struct frame *frame,
			  const struct frame_state *state)
{
	size_t last = trace->trace.count, first;

	while (last > 0 && trace->trace.count - last < MOST_REPEATED &&
	       (trace->states[last - 1].address != state->address ||
		trace->trace.frames[last - 1].inlined))
		last--;
	if (last == 0 || trace->trace.count - last == MOST_REPEATED)
		return false;
	first = last - 1;
	while (first > 0 && trace->trace.frames[first - 1].inlined)
		first--;
	for (size_t i = first; i < last; i++) {
		struct frame copy = trace->trace.frames[i];

		copy.stack_pointer = frame->stack_pointer;
		copy.end = frame->end;
		if (!add_frame(trace, &copy, state))
			return true;
	}
	return true;
}

/* Add the frame with its function, those inlined into it first. */
static bool name_frame(struct debug *debug, struct trace *trace, struct frame frame,
		       const struct frame_state *state)
{
	struct code_place place;
	struct symbol symbol;

	if (debug_symbol(debug, state->address, &symbol))
		frame.function = symbol.name;
	if (!code_place_find(debug, state->address, &place))
		return add_frame(trace, &frame, state);
	return add_functions(debug, trace, &place, frame, state);
}

/* A name for each frame, and the functions inlined there. */
static void name_frames(struct debug *debug, struct trace *trace)
{
	struct trace named = { .done = true, .is_named = true };
	const struct frame *frames = trace->trace.frames;

	if (trace->is_named)
		return;
	for (size_t i = 0; i < trace->trace.count; i++)
		if (!repeat_frames(&named, &frames[i], &trace->states[i]) &&
		    !name_frame(debug, &named, frames[i], &trace->states[i]))
			break;
	named.trace.cut = trace->trace.cut;
	trace_deinit(trace);
	*trace = named;
}

/* The walk as it is, or NULL. */
static struct trace *find_trace(struct debug *debug, uint32_t thread)
{
	struct trace *trace;

	if (!open_unwinder(debug) || thread >= debug->unwinder->count)
		return NULL;
	trace = &debug->unwinder->traces[thread];
	if (!trace->done) {
		trace->done = true;
		walk_thread(debug, &debug->program->threads[thread], trace);
	}
	return trace;
}

const struct trace *debug_frames(struct debug *debug, uint32_t thread)
{
	return find_trace(debug, thread);
}

const struct trace *debug_trace(struct debug *debug, uint32_t thread)
{
	struct trace *trace = find_trace(debug, thread);

	if (trace)
		name_frames(debug, trace);
	return trace;
}

const struct trace *debug_trace_of(struct debug *debug, const struct frame_state *saved)
{
	struct unwinder *unwinder;

	if (!open_unwinder(debug))
		return NULL;
	unwinder = debug->unwinder;
	if (unwinder->saved_trace.done && memcmp(&unwinder->saved, saved, sizeof(*saved)) == 0)
		return &unwinder->saved_trace;
	trace_deinit(&unwinder->saved_trace);
	unwinder->saved_trace.done = true;
	unwinder->saved = *saved;
	walk_from(debug, saved, &unwinder->saved_trace);
	name_frames(debug, &unwinder->saved_trace);
	return &unwinder->saved_trace;
}

const struct backtrace *debug_backtrace(struct debug *debug, uint32_t thread)
{
	const struct trace *trace = debug_trace(debug, thread);

	return trace ? &trace->trace : NULL;
}

const struct backtrace *debug_bare_backtrace(struct debug *debug, uint32_t thread)
{
	const struct trace *trace = find_trace(debug, thread);

	return trace ? &trace->trace : NULL;
}

/* The function that a frame belongs to; its symbol is asked first, as name_frame() does. */
static const char *function_of(struct debug *debug, struct frame frame, uint64_t address)
{
	Dwarf_Die scopes[MOST_SCOPES];
	struct code_place place;
	struct symbol symbol;
	size_t count = 0;

	if (!frame.function && debug_symbol(debug, address, &symbol))
		frame.function = symbol.name;
	if (!frame.function && code_place_find(debug, address, &place))
		count = code_scopes(&place, scopes);
	if (count > 0)
		frame.function = debug_entry_name(debug, &scopes[count - 1]);
	return debug_frame_function(debug, &frame);
}

const char *debug_function_around(struct debug *debug, uint32_t thread, uint64_t address,
				  struct memory_range *ret_frame, unsigned int *ret_depth)
{
	const struct trace *trace = find_trace(debug, thread);
	size_t count = trace ? trace->trace.count : 0, found = count;

	*ret_depth = 0;
	for (size_t i = 0; i < count; i++) {
		const struct frame *frame = &trace->trace.frames[i];

		if (frame->inlined)
			continue;
		*ret_depth += found < count;
		if (found == count && address >= frame->stack_pointer && address < frame->end)
			found = i;
	}
	if (found == count)
		return NULL;
	*ret_frame = (struct memory_range){ trace->trace.frames[found].stack_pointer,
					    trace->trace.frames[found].end };
	return function_of(debug, trace->trace.frames[found], trace->states[found].address);
}

const struct backtrace *debug_backtrace_of(struct debug *debug, const struct frame_state *saved)
{
	const struct trace *trace = debug_trace_of(debug, saved);

	return trace ? &trace->trace : NULL;
}

const char *debug_frame_function(struct debug *debug, const struct frame *frame)
{
	if (!frame->function)
		return debug_name(debug, frame->address);
	if (strchr(frame->function, '('))
		return frame->function;
	return name_pool_print(&debug->names, "%s()", frame->function);
}

const char *debug_keep(struct debug *debug, char *text)
{
	return name_pool_keep(&debug->names, text);
}

struct error *debug_calls_at(struct debug *debug, const uint64_t *addresses, size_t count,
			     struct backtrace *ret)
{
	struct trace trace = { .done = true };

	for (size_t i = 0; i < count; i++) {
		const struct frame frame = {
			.address = addresses[i],
			.module = program_find_module(debug->program, addresses[i]),
		};

		if (!add_frame(&trace, &frame,
			       &(struct frame_state){ .address = addresses[i] - 1 }))
			break;
	}
	name_frames(debug, &trace);
	if (trace.trace.count < count) {
		trace_deinit(&trace);
		return &error_no_memory;
	}
	*ret = trace.trace;
	free(trace.states);
	return NULL;
}

struct error *backtrace_append(struct backtrace *calls, const struct frame *frames, size_t count)
{
	struct frame *longer = reallocarray(calls->frames, calls->count + count, sizeof(*longer));

	TRY_MEMORY(longer);
	memcpy(longer + calls->count, frames, count * sizeof(*longer));
	calls->frames = longer;
	calls->count += count;
	return NULL;
}
