#include "analyzer/query/ending.h"

#include "analyzer/base/list.h"
#include "analyzer/base/text.h"
#include "analyzer/classify/exceptions.h"
#include "analyzer/image/arch.h"
#include "analyzer/program/symbols.h"
#include "analyzer/program/tls.h"
#include "analyzer/query/place.h"

#include <ctype.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>

enum { LONGEST_MESSAGE = 400, MOST_THREAD_LOCAL = 1 << 16 /* bytes of a module */ };

struct autopsy {
	struct analysis *analysis;
	const struct image *image;
	const struct thread *thread;
	struct view view;
	struct ending *ending;
};

void ending_deinit(struct ending *ending)
{
	free(ending->place);
	free(ending->reason);
	free(ending->message);
}

/* The text at the address, to be freed; NULL: there is none, or memory is short. */
static char *read_message(struct autopsy *autopsy, uint64_t address)
{
	uint64_t size;
	const uint8_t *bytes = view_bytes(&autopsy->view, address, &size);
	size_t length;

	if (!bytes)
		return NULL;
	length = text_run((const char *)bytes, MIN(size, LONGEST_MESSAGE));
	while (length && bytes[length - 1] == '\n')
		length--;
	return length ? strndup((const char *)bytes, length) : NULL;
}

/* The text of what() or of a thrown string, which one of the object's first words points at. */
static char *read_what(struct autopsy *autopsy, uint64_t object)
{
	unsigned int size = image_word_size(autopsy->image);
	char *text = NULL;

	for (unsigned int i = 2; i > 0 && !text; i--) {
		uint64_t word;

		if (view_word(&autopsy->view, object + (i - 1) * size, &word))
			text = read_message(autopsy, word);
	}
	return text;
}

/* True if the thread called through the module: std::terminate() is in that of the exceptions. */
static bool ended_within(struct autopsy *autopsy, const struct module *module)
{
	const struct backtrace *calls = debug_bare_backtrace(analysis_debug(autopsy->analysis), 0);

	for (size_t i = 0; calls && i < calls->count; i++)
		if (calls->frames[i].module == module)
			return true;
	return false;
}

/* The word points at an exception that the thread handles. */
static bool is_exception(struct autopsy *autopsy, uint64_t word, const struct tls_module *module)
{
	const struct allocation_index *index = analysis_index(autopsy->analysis);
	allocation_id id = allocation_find(index, word);
	struct memory_range range;
	struct exception exception;
	const char *name;
	uint64_t first;
	size_t hint = 0;

	if (id == NO_ALLOCATION)
		return false;
	range = allocation_range_near(index, id, &hint);
	if (!view_word(&autopsy->view, range.start, &first) ||
	    !exception_read(&autopsy->view, range, first, &exception) || exception.is_rethrown)
		return false;
	name = allocation_name(autopsy->analysis, id);
	autopsy->ending->message = read_what(autopsy, range.start + EXCEPTION_HEADER);
	autopsy->ending->reason = format_text(
		"%s %s", ended_within(autopsy, module->module) ? "Uncaught" : "While handling",
		name ? name : "exception");
	return true;
}

static void find_exception(struct autopsy *autopsy)
{
	const struct program *program = analysis_program(autopsy->analysis);
	const unsigned int word_size = image_word_size(autopsy->image);

	for (size_t i = 0; i < program->tls_module_count; i++) {
		const struct tls_module *module = &program->tls_modules[i];
		uint64_t start = thread_variables(program, autopsy->thread, module), word;
		bool is_library = strstr(module->module->path, "++") != NULL ||
				  module->module == program_main_module(program);

		for (uint64_t at = 0;
		     start && is_library && at < module->size && at < MOST_THREAD_LOCAL;
		     at += word_size)
			if (view_word(&autopsy->view, start + at, &word) &&
			    is_exception(autopsy, word, module))
				return;
	}
}

/* "server: cart.c:5: void pay(): Assertion `sum > 0' failed." is cut to the condition. */
static void cut_assertion(struct ending *ending)
{
	static const char before[] = "Assertion `", behind[] = "' failed.";
	char *found = strstr(ending->message, before), *end;

	if (!found)
		return;
	found += strlen(before);
	end = strstr(found, behind);
	if (!end)
		return;
	*end = '\0';
	memmove(ending->message, found, strlen(found) + 1);
	ending->reason = strdup("Failed assertion");
}

static void find_abort_message(struct autopsy *autopsy)
{
	const struct program *program = analysis_program(autopsy->analysis);
	struct ending *ending = autopsy->ending;
	uint64_t variable, message;

	list_for_each(module, program->modules, program->module_count)
		if (!ending->message &&
		    (module_is_libc(module) || module == program_main_module(program)) &&
		    module_find_variable(module, "__abort_msg", &variable) &&
		    view_word(&autopsy->view, variable, &message) && message)
			ending->message = read_message(autopsy, message + sizeof(int));
	if (!ending->message)
		return;
	cut_assertion(ending);
	if (!ending->reason)
		ending->reason = strdup("Its last message");
}

/* Describe the address, as far as it explains the fault. */
static char *describe_address(struct autopsy *autopsy, uint64_t address)
{
	enum { NEAR = 1 << 16 };
	struct place place = place_find(autopsy->analysis, address);
	const char *name = place.kind == PLACE_MODULE ? module_name(place.module) : NULL;
	bool is_closed = !place.region || !place.region->rights;

	if (address < NEAR)
		return strdup("near null");
	if (is_closed && address - autopsy->thread->stack_pointer + NEAR < 2 * NEAR)
		return strdup("at the end of its stack, which overflowed");
	if (autopsy->ending->signal == SIGBUS)
		return strdup("which its mapped file does not reach");
	if (place.kind == PLACE_NOWHERE)
		return strdup("which is not mapped");
	return format_text("which is %s%s%s", is_closed ? "protected" : "read-only",
			   name ? ", in " : "", name ? name : "");
}

/* "; rax points into freed memory at 0x5555": the address may have been read there. */
static char *describe_freed(struct autopsy *autopsy)
{
	const struct allocation_index *index = analysis_index(autopsy->analysis);
	const struct arch *arch = autopsy->image->arch;

	for (size_t i = 0; i < arch->register_count; i++) {
		allocation_id id = allocation_find(index, autopsy->thread->state->registers[i]);

		if (id != NO_ALLOCATION && !bitmap_get(allocation_used(index), id))
			return format_text("; %s points into freed memory at 0x%" PRIx64,
					   arch->registers[i].name, allocation_start(index, id));
	}
	return strdup("");
}

static void find_fault(struct autopsy *autopsy)
{
	const struct image_thread *state = autopsy->thread->state;
	bool is_jump = state->fault_address == autopsy->thread->instruction;
	_cleanup_(free) char *what = NULL, *freed = NULL;

	if (state->fault == FAULT_NONE)
		return;
	freed = describe_freed(autopsy);
	if (state->fault == FAULT_SOMEWHERE) {
		autopsy->ending->reason =
			format_text("It used a wild pointer%s", freed ? freed : "");
		return;
	}
	what = describe_address(autopsy, state->fault_address);
	if (what && freed)
		autopsy->ending->reason =
			format_text("It %s 0x%" PRIx64 ", %s%s", is_jump ? "jumped to" : "accessed",
				    state->fault_address, what, freed);
}

/* The length of a function's name without the types of its parameters. */
static size_t name_length(const char *function)
{
	static const char anonymous[] = "(anonymous namespace)";
	size_t depth = 0, i = 0;

	for (; function[i]; i++) {
		if (function[i] == '(' && depth == 0 &&
		    strncmp(function + i, anonymous, strlen(anonymous)) != 0)
			break;
		depth += function[i] == '<';
		depth -= function[i] == '>' && depth > 0;
	}
	return i;
}

/* "parse() at cart.c:12", "cart.c:12"; NULL: nothing is known, or memory is short. */
static char *describe_call(const char *function, const char *path, uint64_t line)
{
	const char *slash = path ? strrchr(path, '/') : NULL;
	size_t length = function ? name_length(function) : 0;
	const char *open = function && function[length] ? "()" : "";
	char text[32] = "";

	if (!function && !path)
		return NULL;
	if (line)
		snprintf(text, sizeof(text), ":%" PRIu64, line);
	return format_text("%.*s%s%s%s%s", (int)length, function ? function : "", open,
			   function && path ? " at " : "",
			   slash  ? slash + 1
			   : path ? path
				  : "",
			   text);
}

/* "strlen" of "__strlen_evex()", as a copy for one kind of processor is named. */
static char *plain_name(const char *function)
{
	static const char *const kinds[] = { "_evex", "_avx", "_sse", "_ssse", "_erms" };
	size_t length = name_length(function);

	for (size_t i = 0; i < COUNT_OF(kinds); i++) {
		const char *found = strstr(function, kinds[i]);

		if (found && (size_t)(found - function) < length)
			length = (size_t)(found - function);
	}
	while (length && *function == '_') {
		function++;
		length--;
	}
	return strndup(function, length);
}

/* True if the frame is of a library of a language, also where that is inlined into the program. */
static bool is_of_library(struct autopsy *autopsy, const struct frame *frame)
{
	const struct runtimes *runtimes = analysis_runtimes(autopsy->analysis);
	const char *name = debug_frame_function(analysis_debug(autopsy->analysis), frame);

	return frame->module &&
	       (module_is_of_language(frame->module) ||
		(name && (strncmp(name, "std::", 5) == 0 || runtimes_own_code(runtimes, name))) ||
		(frame->source && runtimes_own_code(runtimes, frame->source)));
}

/* Functions of the program, and of libraries that are inlined there; name is the last of these. */
static bool find_own_call(struct autopsy *autopsy, uint64_t address, char **ret, const char **name)
{
	struct debug *debug = analysis_debug(autopsy->analysis);
	_cleanup_(free) struct frame *frames = NULL;
	struct backtrace calls;
	struct error *error = debug_calls_at(debug, &address, 1, &calls);

	if (error) {
		error_destroy(error);
		return false;
	}
	frames = calls.frames;
	for (size_t i = 0; i < calls.count; i++) {
		const char *function = debug_frame_function(debug, &frames[i]);

		if (!is_of_library(autopsy, &frames[i])) {
			*ret = describe_call(function, frames[i].source, 0);
			return true;
		}
		*name = function;
	}
	return false;
}

/*
 * The function of the program in which it ended. One of the C library that faulted comes before,
 * while abort() and the like are skipped; so is an address that it jumped to. Of libraries, symbols
 * will do: their debug information takes longer to unpack than a small core to analyse.
 */
static char *find_place(struct autopsy *autopsy, const struct frame **ret_frame)
{
	struct debug *debug = analysis_debug(autopsy->analysis);
	const struct backtrace *calls = debug_bare_backtrace(debug, 0);
	_cleanup_(free) char *caller = NULL, *library = NULL;
	size_t count = calls ? calls->count : 0, first = count && !calls->frames[0].module, i;
	const char *name = NULL;

	for (i = first; i < count; i++) {
		const struct frame *frame = &calls->frames[i];
		struct symbol symbol;

		/* A call returns behind its address. */
		if (!frame->module || !module_is_of_language(frame->module)) {
			if (find_own_call(autopsy, frame->address + (i == 0), &caller, &name)) {
				*ret_frame = frame;
				break;
			}
		} else if (debug_symbol(debug, frame->address - (i > 0), &symbol)) {
			name = symbol.name;
		}
	}
	if (i == first || !name || autopsy->thread->state->signal_sent)
		return take(caller);
	library = plain_name(name);
	return library && caller ? format_text("%s(), called by %s", library, caller)
	       : library	 ? format_text("%s()", library)
				 : NULL;
}

/* The innermost call of a script, and if that is of a function in C, the one that called it. */
struct script_call {
	char *text;
	bool has_file;
};

static void keep_call(void *data, const struct runtime_frame *frame)
{
	struct script_call *call = data;
	_cleanup_(free) char *inner = NULL, *text = NULL;

	if (call->has_file || frame->damage || (call->text && !frame->file))
		return;
	text = describe_call(frame->function, frame->file, frame->line);
	inner = take(call->text);
	call->text = inner && text ? format_text("%s, called by %s", inner, text) : take(text);
	call->has_file = frame->file != NULL;
}

/* Say which function of a script ran, instead of those of its interpreter. */
static struct error *find_script_place(struct autopsy *autopsy, const struct frame *native)
{
	const struct program *program = analysis_program(autopsy->analysis);
	struct ending *ending = autopsy->ending;
	const struct runtimes *runtimes;
	struct script_call script = { 0 };
	const struct frame_visitor visitor = { &script, keep_call };
	_cleanup_(free) char *call = NULL, *inner = NULL;
	struct error *error = NULL;

	if (!runtimes_have_frames(runtime_kinds, program))
		return NULL;
	TRY(analysis_need(autopsy->analysis, STAGE_OBJECTS));
	runtimes = analysis_runtimes(autopsy->analysis);
	for (size_t i = 0; i < runtime_count(runtimes) && !script.text && !error; i++)
		error = runtimes_visit_frames(runtimes, i, 0, &visitor);
	call = script.text;
	if (!call || error)
		return error;
	inner = take(ending->place);
	if (inner && native && native->module != program_main_module(program) &&
	    !runtimes_have_module(runtimes, native->module))
		ending->place = format_text("%s, called by %s", inner, call);
	else
		ending->place = take(call);
	return NULL;
}

/* "While handling KeyError from load at app.py:12"; behind a reason, "; while ...". */
static char *describe_exception(const struct runtime_exception *found, const char *before,
				const char *call)
{
	const char *name = found->class_name;

	return format_text("%s%s%c%s%s%s%s%s", before ? before : "", before ? "; " : "",
			   before ? found->state[0] : toupper(found->state[0]), found->state + 1,
			   name ? " " : "", name ? name : "", call ? " from " : "",
			   call ? call : "");
}

/* The function of the program that raised the exception, where no other place is known. */
static void find_raising_call(struct autopsy *autopsy, const struct runtime_exception *exception)
{
	const char *name;

	for (size_t i = 0; i < MOST_RAISING_CALLS && !autopsy->ending->place; i++)
		if (!exception->calls[i] ||
		    find_own_call(autopsy, exception->calls[i], &autopsy->ending->place, &name))
			return;
}

/* Add the exception that a script raised, or handled when it ended. */
static struct error *find_script_exception(struct autopsy *autopsy)
{
	const struct runtimes *runtimes = analysis_runtimes(autopsy->analysis);
	struct ending *ending = autopsy->ending;

	for (size_t i = 0; i < runtime_count(runtimes) && !ending->message; i++) {
		struct script_call call = { 0 };
		const struct frame_visitor visitor = { &call, keep_call };
		struct runtime_exception found;
		struct error *error = runtimes_find_exception(runtimes, i, 0, &visitor, &found);
		_cleanup_(free) char *text = call.text, *before = NULL;

		if (error)
			return error;
		if (!found.state)
			continue;
		find_raising_call(autopsy, &found);
		before = take(ending->reason);
		ending->reason = describe_exception(&found, before, text);
		ending->message = found.message[0] ? strdup(found.message) : NULL;
	}
	return NULL;
}

struct error *ending_find(struct analysis *analysis, struct ending *ret)
{
	const struct image *image = analysis_image(analysis);
	struct autopsy autopsy = {
		.analysis = analysis, .image = image, .view = { image }, .ending = ret
	};
	const struct frame *native = NULL;

	*ret = (struct ending){ .signal = image_fatal_signal(image) };
	if (!ret->signal)
		return NULL;
	autopsy.thread = &analysis_program(analysis)->threads[0];
	ret->thread = autopsy.thread->id;
	if (image_signal_is_foreign(image, &image->threads[0])) {
		ret->sender = image->threads[0].signal_sender;
		TRY(find_script_place(&autopsy, NULL));
		return ret->place ? find_script_exception(&autopsy) : NULL;
	}
	TRY(analysis_need(analysis, STAGE_HEAP));
	TRY(analysis_need(analysis, STAGE_CLASSES));
	ret->place = find_place(&autopsy, &native);
	TRY(find_script_place(&autopsy, native));
	if (ret->signal == SIGABRT)
		find_exception(&autopsy);
	if (ret->signal == SIGABRT && !ret->reason)
		find_abort_message(&autopsy);
	if (!ret->reason)
		find_fault(&autopsy);
	return find_script_exception(&autopsy);
}
