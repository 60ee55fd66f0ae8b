#include "analyzer/program/debug.h"

#include "analyzer/program/debug_modules.h"

#include <inttypes.h>
#include <string.h>

struct error *debug_create(const struct image *image,
			   const struct program *program,
			   const struct debug_options *options,
			   struct findings *findings, struct debug **ret)
{
	struct debug *debug = calloc(1, sizeof(*debug));

	if (!debug)
		return &error_no_memory;
	debug->image = image;
	debug->program = program;
	debug->options = *options;
	debug->findings = findings;
	*ret = debug;
	return NULL;
}

void debug_destroy(struct debug *debug)
{
	debug_modules_deinit(debug);
	name_pool_deinit(&debug->names);
	free(debug);
}

static enum symbol_kind kind_of(unsigned int type)
{
	switch (type) {
	case STT_FUNC:
	case STT_GNU_IFUNC:
		return SYMBOL_FUNCTION;
	case STT_OBJECT:
		return SYMBOL_DATA;
	default:
		return SYMBOL_OTHER;
	}
}

bool debug_symbol(struct debug *debug, uint64_t address, struct symbol *ret)
{
	struct debug_module *module = debug_find_module(debug, address);
	struct found_symbol found;

	if (!module ||
	    !symbol_tables_find(module, address - module->module->bias, &found))
		return false;
	*ret = (struct symbol){
		.name = name_demangle(&debug->names, found.name),
		.kind = kind_of(found.type),
		.start = module->module->bias + found.value,
		.size = found.size,
		.module = module->module,
	};
	return true;
}

const char *debug_source(struct debug *debug, uint64_t address)
{
	return NULL;
}

const char *module_name(const struct module *module)
{
	const char *slash = strrchr(module->path, '/');

	return slash && slash[1] ? slash + 1 : module->path;
}

const char *debug_name(struct debug *debug, uint64_t address)
{
	const struct module *module =
		program_find_module(debug->program, address);
	struct symbol symbol;

	if (!module)
		return NULL;
	if (!debug_symbol(debug, address, &symbol))
		return name_pool_print(&debug->names, "%s+0x%" PRIx64,
				       module_name(module),
				       address - module->start);
	if (address == symbol.start)
		return name_pool_print(&debug->names, "%s (%s)", symbol.name,
				       module_name(module));
	return name_pool_print(&debug->names, "%s+0x%" PRIx64 " (%s)",
			       symbol.name, address - symbol.start,
			       module_name(module));
}
