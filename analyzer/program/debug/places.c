/*
 * Where in a thread an address is, in words.
 */
#include "analyzer/program/debug/locals.h"
#include "analyzer/program/debug/tls.h"

#include <inttypes.h>

static uint32_t id_of(struct debug *debug, uint32_t thread)
{
	return program_thread(debug->program, thread)->id;
}

/* The variable's name, and the way into it or the offset in it. */
static const char *name_variable(struct debug *debug, struct debug_module *module, uint64_t offset)
{
	struct found_symbol symbol;
	const char *name, *path = NULL;
	Dwarf_Die variable;

	if (!module || !symbol_tables_find_thread_local(module, offset, &symbol))
		return name_pool_print(&debug->names, "the variables+0x%" PRIx64, offset);
	name = name_demangle(&debug->names, symbol.name);
	offset -= symbol.value;
	if (symbol.size > 8 && thread_local_variable_find(module, symbol.value, &variable))
		path = debug_path_into(debug, &variable, offset);
	if (path)
		return name_pool_print(&debug->names, "%s%s", name, path);
	if (offset == 0)
		return name;
	return name_pool_print(&debug->names, "%s+0x%" PRIx64, name, offset);
}

const char *debug_thread_local(struct debug *debug, uint64_t address)
{
	struct tls_place place;
	const char *name;

	if (!tls_find(debug, address, &place))
		return NULL;
	if (!place.module)
		return name_pool_print(&debug->names, "the %s of thread %" PRIu32,
				       place.in_table ? "dtv" : "control block",
				       id_of(debug, place.thread));
	name = name_variable(debug, debug_find_module(debug, place.module->start), place.offset);
	return name_pool_print(&debug->names, "%s of thread %" PRIu32 " (%s)",
			       name ? name : "a variable", id_of(debug, place.thread),
			       module_name(place.module));
}

/* The first frame whose stack address is in; those inlined there follow. */
static bool find_frame(const struct debug *debug, const struct backtrace *calls, uint64_t address,
		       size_t *ret)
{
	uint64_t red_zone = image_arch(debug->image)->red_zone;

	for (size_t i = 0; i < calls->count; i++) {
		const struct frame *frame = &calls->frames[i];
		uint64_t start = frame->stack_pointer;

		/* The innermost function may use what is below it. */
		if (i == 0 && start > red_zone)
			start -= red_zone;
		if (address >= start && address < frame->end) {
			*ret = i;
			return true;
		}
	}
	return false;
}

/* Whose the calls are: "thread 4711". */
static const char *print_place(struct debug *debug, const struct backtrace *calls,
			       const struct frame_state *states, const char *whose,
			       uint64_t address)
{
	const char *function;
	struct local local;
	size_t number, outer;
	bool named;

	if (!calls || !states || !find_frame(debug, calls, address, &number))
		return NULL;
	for (outer = number; outer + 1 < calls->count && calls->frames[outer].inlined;)
		outer++;
	named = local_find(debug, &calls->frames[outer], &states[outer], address, &local);
	if (named && local.inlining <= outer - number)
		number += local.inlining;
	else
		number = outer;
	function = debug_frame_function(debug, &calls->frames[number]);
	if (!function)
		function = "unknown code";
	if (!named)
		return name_pool_print(&debug->names, "in %s, frame %zu of %s", function, number,
				       whose);
	return name_pool_print(&debug->names, "%s %s of %s, frame %zu of %s",
			       local.parameter ? "parameter" : "variable", local.path, function,
			       number, whose);
}

static const char *name_stack_place(struct debug *debug, uint32_t thread, uint64_t address)
{
	char whose[32];

	snprintf(whose, sizeof(whose), "thread %" PRIu32, id_of(debug, thread));
	return print_place(debug, debug_backtrace(debug, thread), debug_frame_states(debug, thread),
			   whose, address);
}

const char *debug_stack_place(struct debug *debug, uint32_t thread, uint64_t address)
{
	struct named_place *named = &debug->named[address / 8 % NAMED_PLACES];

	if (named->address != address || named->thread != thread)
		*named = (struct named_place){ address, thread,
					       name_stack_place(debug, thread, address) };
	return named->name;
}

const char *debug_saved_place(struct debug *debug, const struct frame_state *saved,
			      const char *whose, uint64_t address)
{
	return print_place(debug, debug_backtrace_of(debug, saved),
			   debug_saved_frame_states(debug, saved), whose, address);
}
