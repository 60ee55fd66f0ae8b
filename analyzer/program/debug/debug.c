#include "analyzer/program/debug/debug.h"

#include "analyzer/program/debug/debug_parts.h"
#include "analyzer/program/debug/package.h"
#include "analyzer/program/debug/type_reader.h"

#include <dwarf.h>
#include <inttypes.h>
#include <string.h>

struct error *debug_create(const struct image *image, const struct program *program,
			   const struct debug_options *options, struct findings *findings,
			   struct debug **ret)
{
	struct debug *debug = calloc(1, sizeof(*debug));

	TRY_MEMORY(debug);
	debug->image = image;
	debug->program = program;
	debug->options = *options;
	debug->findings = findings;
	*ret = debug;
	return NULL;
}

void debug_destroy(struct debug *debug)
{
	tls_deinit(&debug->tls);
	unwinder_destroy(debug->unwinder);
	debug_modules_deinit(debug);
	name_pool_deinit(&debug->names);
	if (debug->kept_types)
		side_file_close(debug->kept_types);
	free(debug);
}

/* The name as in the source, without the version that a symbol may have. */
static const char *shown_name(struct debug *debug, const char *name)
{
	const char *version = strchr(name, '@'), *plain = NULL;

	/* In names of Crystal, it precedes the class that has the method. */
	if (version && version != name && name[0] != '*' && name[0] != '~')
		plain = name_pool_print(&debug->names, "%.*s", (int)(version - name), name);
	return name_demangle(&debug->names, plain ? plain : name);
}

bool debug_symbol(struct debug *debug, uint64_t address, struct symbol *ret)
{
	struct debug_module *module = debug_find_module(debug, address);

	if (!module || !symbol_tables_find(module, address, ret))
		return false;
	ret->name = shown_name(debug, ret->raw);
	return true;
}

bool debug_has_all_symbols(struct debug *debug, uint64_t address)
{
	struct debug_module *module = debug_find_module(debug, address);

	return module && symbol_tables_are_whole(module);
}

void debug_visit_symbols(struct debug *debug, const struct module *module,
			 bool (*visit)(void *data, const struct symbol *symbol), void *data)
{
	struct debug_module *found = debug_find_module(debug, module->start);

	if (found)
		symbol_tables_visit(found, visit, data);
}

/* "app.cr:8": without the folders, which depend on who compiled it. */
static const char *declared_at(struct debug *debug, Dwarf_Die *function)
{
	const char *path = dwarf_decl_file(function), *slash;
	int line;

	if (!path || dwarf_decl_line(function, &line) != 0)
		return NULL;
	slash = strrchr(path, '/');
	return name_pool_print(&debug->names, "%s:%d", slash ? slash + 1 : path, line);
}

bool debug_find_inlined(struct debug *debug, uint64_t address, bool (*takes)(const char *function),
			struct inlined *ret, bool *ret_known)
{
	Dwarf_Die scopes[MOST_SCOPES];
	struct code_place place;
	size_t count = 0;

	if (code_place_find(debug, address, &place))
		count = code_scopes(&place, scopes);
	*ret_known = count > 0;
	for (size_t i = 0; i < count; i++) {
		const char *name;

		if (dwarf_tag(&scopes[i]) != DW_TAG_inlined_subroutine)
			continue;
		name = debug_entry_name(debug, &scopes[i]);
		if (!name || !takes(name))
			continue;
		ret->function = name;
		ret->source = declared_at(debug, &scopes[i]);
		return true;
	}
	return false;
}

/* Find the same by symbols. */
static bool find_around_by_symbol(struct debug *debug, uint64_t address,
				  bool (*skips)(const char *function), struct inlined *ret)
{
	struct symbol symbol;

	if (!debug_symbol(debug, address, &symbol) || symbol.kind != SYMBOL_FUNCTION ||
	    skips(symbol.name))
		return false;
	*ret = (struct inlined){ symbol.name, NULL };
	return true;
}

/* The name of what is not inlined: of Crystal, only the symbol has its class. */
static const char *name_around(struct debug *debug, uint64_t address, Dwarf_Die *scope)
{
	struct symbol symbol;

	return debug_symbol(debug, address, &symbol) && symbol.kind == SYMBOL_FUNCTION
		       ? symbol.name
		       : debug_entry_name(debug, scope);
}

bool debug_find_around(struct debug *debug, uint64_t address, bool (*skips)(const char *function),
		       struct inlined *ret)
{
	Dwarf_Die scopes[MOST_SCOPES];
	struct source_line line = { 0 };
	struct code_place place;
	size_t count = 0;

	if (code_place_find(debug, address, &place))
		count = code_scopes(&place, scopes);
	if (count == 0)
		return find_around_by_symbol(debug, address, skips, ret);
	if (!source_line_find(&place.lines, place.address, &line))
		line = (struct source_line){ 0 };
	for (size_t i = 0; i < count; i++) {
		bool is_inlined = dwarf_tag(&scopes[i]) == DW_TAG_inlined_subroutine;
		const char *name;

		if (!is_inlined && dwarf_tag(&scopes[i]) != DW_TAG_subprogram)
			continue;
		name = is_inlined ? debug_entry_name(debug, &scopes[i])
				  : name_around(debug, address, &scopes[i]);
		if (name && !skips(name)) {
			*ret = (struct inlined){ name, line.file ? source_line_text(debug, &line)
								 : NULL };
			return true;
		}
		if (!is_inlined)
			return false;
		if (!inlined_call_find(&place, &scopes[i], &line))
			line = (struct source_line){ 0 };
	}
	return false;
}

const char *debug_source(struct debug *debug, uint64_t address)
{
	struct source_line line;
	struct code_place place;

	if (!code_place_find(debug, address, &place) ||
	    !source_line_find(&place.lines, place.address, &line))
		return NULL;
	return source_line_text(debug, &line);
}

/* The problem with the file that would have the names. */
static const char *file_obstacle(const struct debug_module *module,
				 const struct debug_options *options)
{
	switch (module->module->state) {
	case FILE_OTHER_BUILD:
		return options->sysroot
			       ? "the sysroot has another build"
			       : "the file here is another build, perhaps upgraded since: use --sysroot";
	case FILE_NOT_THERE:
		if (module->module->path[0] != '/')
			return "the core does not say in which folder it is";
		return options->sysroot ? "which is not below the sysroot"
					: "which is not here: use --sysroot";
	default:
		return "its build-id is not in the core (see coredump_filter in core(5), bit 4), so no file can be matched with it";
	}
}

/* The module's path and build-id; lives as long as struct debug. */
static const char *module_title(struct debug_module *module)
{
	char id[2 * sizeof(module->id.bytes) + 1] = "", *next = id;

	for (size_t i = 0; i < module->id.size; i++)
		next += snprintf(next, 3, "%02x", module->id.bytes[i]);
	return name_pool_print(&module->debug->names, "%s%s%s%s", module->module->path,
			       *id ? " (build-id " : "", id, *id ? ")" : "");
}

void debug_miss_names(struct debug *debug, uint64_t address)
{
	struct debug_module *module = debug_find_module(debug, address);

	if (!module || module->names_missed || module->module->state == FILE_USED ||
	    module->module->path[0] == '[' || module_has_constants(debug->image, module->module))
		return;
	module->names_missed = true;
	findings_add(debug->findings, FINDING_NOTE, "class names need %s, %s", module_title(module),
		     file_obstacle(module, &debug->options));
}

/* One line has to say what to do. */
static void report_missing_types(struct debug *debug, struct debug_module *module)
{
	const struct debug_options *options = &debug->options;
	_cleanup_(free) char *package = debug_package_of(options->sysroot, module->module->path);

	findings_add(debug->findings, FINDING_NOTE, "install %s for types of %s%s",
		     package ? package : "the debug package (-dbgsym, -debuginfo)",
		     module_name(module->module), options->debuginfod ? "" : " (or --debuginfod)");
}

void debug_miss_types(struct debug *debug)
{
	struct debug_module *module =
		debug_find_module(debug, image_auxiliary(debug->image, AT_ENTRY, 0));

	if (!module || !debug_module_main(module) || debug_has_types(module))
		return;
	if (module->module->state != FILE_USED)
		findings_add(debug->findings, FINDING_NOTE, "types of allocations need %s, %s",
			     module_title(module), file_obstacle(module, &debug->options));
	else if (strncmp(module->module->path, "/usr/", strlen("/usr/")) != 0)
		findings_add(
			debug->findings, FINDING_NOTE,
			"%s has no debug information, which would name types: compile it with -g",
			module_name(module->module));
	else
		report_missing_types(debug, module);
}

/* The way from the start of a variable to address, by its type; or NULL. */
static const char *path_to(struct debug *debug, const struct symbol *symbol, uint64_t address)
{
	struct debug_module *module = debug_find_module(debug, address);
	Dwarf_Die variable;
	uint64_t bias;

	/* The name of a number or pointer is enough. */
	if (symbol->size <= image_word_size(debug->image) || !debug_module_dwarf(module, &bias) ||
	    !static_variable_find(module, symbol->start - bias, &variable))
		return NULL;
	return debug_path_into(debug, &variable, address - symbol->start);
}

const char *debug_name(struct debug *debug, uint64_t address)
{
	const struct module *module = program_find_module(debug->program, address);
	struct symbol symbol;

	if (!module)
		return NULL;
	if (!debug_symbol(debug, address, &symbol))
		return name_pool_print(&debug->names, "%s+0x%" PRIx64, module_name(module),
				       address - module->start);
	if (symbol.kind == SYMBOL_DATA) {
		const char *path = path_to(debug, &symbol, address);

		if (path)
			return name_pool_print(&debug->names, "%s%s (%s)", symbol.name, path,
					       module_name(module));
	}
	if (address == symbol.start)
		return name_pool_print(&debug->names, "%s (%s)", symbol.name, module_name(module));
	return name_pool_print(&debug->names, "%s+0x%" PRIx64 " (%s)", symbol.name,
			       address - symbol.start, module_name(module));
}
