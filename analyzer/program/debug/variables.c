#include "analyzer/program/debug/variables.h"

#include "analyzer/program/debug/debug_parts.h"
#include "analyzer/program/debug/type_reader.h"

#include <string.h>

/* Frames of recursion tell nothing new. */
enum { MOST_FRAMES = 256 };

struct visit {
	struct debug *debug;
	const struct type_table *table;
	bool (*visit)(void *data, const struct typed_variable *variable);
	void *data;
	const struct frame *frame;
	const struct type_variable *variable; /* thread-local */
	const struct module *module;	      /* of the last frame */
	bool is_typed;
};

static bool visit_in_thread(void *data, uint64_t address)
{
	const struct visit *visit = data;
	const struct typed_variable found = {
		.address = address,
		.size = visit->variable->size,
		.type = visit->variable->type,
	};

	return visit->visit(visit->data, &found);
}

static bool visit_thread_local(struct visit *visit, const struct type_variable *variable)
{
	visit->variable = variable;
	return tls_visit(visit->debug, variable->module, variable->address, visit_in_thread, visit);
}

static bool visit_static(struct visit *visit)
{
	const struct type_variable *variables = type_variables(visit->table);

	for (size_t i = 0; i < type_variable_count(visit->table); i++) {
		struct typed_variable found = { variables[i].address, variables[i].size,
						.type = variables[i].type };

		if (variables[i].is_thread_local ? !visit_thread_local(visit, &variables[i])
						 : !visit->visit(visit->data, &found))
			return false;
	}
	return true;
}

static bool visit_local(void *data, const struct local_value *value, Dwarf_Die *type)
{
	const struct visit *visit = data;
	const struct typed_variable found = {
		.address = value->is_in_memory ? value->address : visit->frame->stack_pointer,
		.size = UINT64_MAX,
		.value = value->value,
		.type = type_of_entry(visit->table, type->addr),
		.is_in_register = !value->is_in_memory,
	};

	return found.type == NO_TYPE || visit->visit(visit->data, &found);
}

/*
 * If a module's types were not read, as for the C library, its variables have none, and its debug
 * information, which may need unpacking, is not needed.
 */
static bool may_have_types(struct visit *visit)
{
	const struct module *module = visit->frame->module;

	if (module != visit->module) {
		visit->module = module;
		visit->is_typed =
			module &&
			debug_typed_module(visit->debug,
					   (size_t)(module - visit->debug->program->modules));
	}
	return visit->is_typed;
}

static bool visit_frames(struct visit *visit, uint32_t thread)
{
	const struct trace *calls = debug_frames(visit->debug, thread);

	for (size_t i = 0; calls && i < calls->trace.count && i < MOST_FRAMES; i++) {
		visit->frame = &calls->trace.frames[i];
		/* Inlined functions are visited with the function around them. */
		if (!visit->frame->inlined && may_have_types(visit) &&
		    !locals_visit(visit->debug, visit->frame, &calls->states[i], visit_local,
				  visit))
			return false;
	}
	return true;
}

void debug_visit_variables(struct debug *debug, const struct type_table *table,
			   bool (*visit)(void *data, const struct typed_variable *variable),
			   void *data)
{
	struct visit all = { .debug = debug, .table = table, .visit = visit, .data = data };

	if (!visit_static(&all))
		return;
	for (size_t i = 0; i < debug->program->thread_count; i++)
		if (!visit_frames(&all, (uint32_t)i))
			return;
}

/* The kernel lists the thread that a signal ended first. */
static uint32_t find_main_thread(const struct program *program)
{
	for (size_t i = 0; i < program->stack_count; i++)
		if (program->stacks[i].kind == STACK_MAIN && program->stacks[i].thread != NO_THREAD)
			return program->stacks[i].thread;
	return 0;
}

bool debug_variable_address(struct debug *debug, const struct type_variable *variable,
			    uint64_t *ret)
{
	if (variable->is_thread_local)
		return tls_address(debug, find_main_thread(debug->program), variable->module,
				   variable->address, ret);
	*ret = variable->address;
	return true;
}

bool debug_may_have_variable(struct debug *debug, const char *name)
{
	const struct program *program = debug->program;

	for (size_t i = 0; i < program->module_count; i++) {
		struct debug_module *module = debug_find_module(debug, program->modules[i].start);

		if (module && symbol_tables_may_have(module, name))
			return true;
	}
	return false;
}

struct data_visit {
	const char *name;
	bool (*visit)(void *data, const struct symbol *symbol);
	void *data;
	bool is_over;
};

static bool visit_if_data(void *data, const struct symbol *symbol)
{
	struct data_visit *visit = data;

	if (symbol->kind == SYMBOL_DATA && strcmp(symbol->name, visit->name) == 0)
		visit->is_over = !visit->visit(visit->data, symbol);
	return !visit->is_over;
}

void debug_visit_data_symbols(struct debug *debug, const char *name,
			      bool (*visit)(void *data, const struct symbol *symbol), void *data)
{
	struct data_visit all = { .name = name, .visit = visit, .data = data };

	for (size_t i = 0; i < debug->program->module_count && !all.is_over; i++)
		debug_visit_symbols(debug, &debug->program->modules[i], visit_if_data, &all);
}
