/*
 * The unit of debug information of an address of code, and the function that the address is in,
 * with those inlined into it.
 */
#include "analyzer/program/debug/debug_parts.h"

#include <dwarf.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

/*
 * The offset of the unit that .debug_aranges names for the address. libdw would keep all ranges of
 * the program in memory.
 */
static bool find_in_ranges(Dwarf *dwarf, uint64_t address, uint64_t *ret)
{
	struct cursor cursor = debug_section(dwarf, ".debug_aranges");

	while (cursor_left(&cursor)) {
		const uint8_t *start = cursor.at;
		size_t width, size;
		uint64_t length = cursor_length(&cursor, &width), unit;
		struct cursor set = cursor;

		cursor_skip(&cursor, length);
		set.end = cursor.at;
		cursor_skip(&set, 2); /* version */
		unit = cursor_number(&set, width);
		size = cursor_number(&set, 1);
		cursor_skip(&set, 1); /* size of segments */
		if (size != 4 && size != 8)
			continue;
		if ((size_t)(set.at - start) % (2 * size))
			cursor_skip(&set, 2 * size - (size_t)(set.at - start) % (2 * size));
		while (cursor_left(&set)) {
			uint64_t from = cursor_number(&set, size);
			uint64_t reach = cursor_number(&set, size);

			if (address - from < reach) {
				*ret = unit;
				return true;
			}
		}
	}
	return false;
}

static bool unit_at(Dwarf *dwarf, uint64_t offset, Dwarf_Die *ret)
{
	Dwarf_Off next;
	size_t header;

	return dwarf_next_unit(dwarf, offset, &next, &header, NULL, NULL, NULL, NULL, NULL, NULL) ==
		       0 &&
	       dwarf_offdie(dwarf, offset + header, ret);
}

/* Some compilers do not write .debug_aranges, so ask all units. */
static bool find_in_units(Dwarf *dwarf, uint64_t address, Dwarf_Die *ret)
{
	Dwarf_CU *unit = NULL;
	Dwarf_Die die;
	uint8_t type;

	while (dwarf_get_units(dwarf, unit, &unit, NULL, &type, &die, NULL) == 0) {
		if (type != DW_UT_compile && type != DW_UT_skeleton)
			continue;
		if (dwarf_haspc(&die, address) == 1) {
			*ret = die;
			return true;
		}
	}
	return false;
}

static const char *text_of(Dwarf_Die *unit, unsigned int attribute)
{
	Dwarf_Attribute found;

	return dwarf_attr(unit, attribute, &found) ? dwarf_formstring(&found) : NULL;
}

/* True if the file FOLDER/NAME is harmless to open, or does not exist. */
static bool is_harmless(const char *folder, size_t length, const char *name)
{
	_cleanup_(free) char *path = NULL;
	struct stat status;

	if (name[0] == '/')
		length = 0;
	if (asprintf(&path, "%.*s/%s", (int)length, folder, name) < 0) {
		path = NULL;
		return false;
	}
	return stat(path, &status) < 0 ? errno == ENOENT || errno == ENOTDIR
				       : S_ISREG(status.st_mode);
}

static bool is_harmless_beside(const struct debug_file *file, const char *name)
{
	const char *slash = file->path ? strrchr(file->path, '/') : NULL;

	return !slash || is_harmless(file->path, (size_t)(slash - file->path), name);
}

/*
 * libdw opens what the unit names, beside the file or where it was compiled, whatever that is: it
 * may be a FIFO, and it knows of no sysroot.
 */
static bool may_open_split(const struct debug_module *module, Dwarf_Die *unit)
{
	const char *folder = text_of(unit, DW_AT_comp_dir);
	const char *name = text_of(unit, DW_AT_dwo_name);

	if (!name)
		name = text_of(unit, DW_AT_GNU_dwo_name);
	return name && !module->debug->options.sysroot && is_harmless_beside(&module->main, name) &&
	       is_harmless_beside(&module->separate, name) &&
	       (!folder || is_harmless(folder, strlen(folder), name));
}

void debug_enter_split(const struct debug_module *module, Dwarf_Die *unit)
{
	Dwarf_Die die, split;
	uint8_t type;

	if (dwarf_cu_info(unit->cu, NULL, &type, &die, NULL, NULL, NULL, NULL) != 0 ||
	    type != DW_UT_skeleton)
		return;
	module->debug->has_split = true;
	if (!may_open_split(module, &die))
		return;
	if (dwarf_cu_info(unit->cu, NULL, &type, &die, &split, NULL, NULL, NULL) == 0 &&
	    type == DW_UT_skeleton && split.addr)
		*unit = split;
}

bool code_place_find(struct debug *debug, uint64_t address, struct code_place *ret)
{
	const struct region *region = image_find(debug->image, address);
	struct debug_module *module = NULL;
	struct code_place place;
	uint64_t bias, offset;

	if (region && (region->rights & RIGHT_EXECUTE))
		module = debug_find_module(debug, address);
	place = (struct code_place){ .module = module };

	place.dwarf = module ? debug_module_dwarf(module, &bias) : NULL;
	if (!place.dwarf)
		return false;
	place.address = address - bias;
	if (!(find_in_ranges(place.dwarf, place.address, &offset) &&
	      unit_at(place.dwarf, offset, &place.unit)) &&
	    !find_in_units(place.dwarf, place.address, &place.unit))
		return false;
	place.lines = place.unit;
	debug_enter_split(module, &place.unit);
	*ret = place;
	return true;
}

const char *debug_entry_name(struct debug *debug, Dwarf_Die *entry)
{
	Dwarf_Attribute attribute;
	const char *name = NULL;

	if (dwarf_attr_integrate(entry, DW_AT_linkage_name, &attribute) ||
	    dwarf_attr_integrate(entry, DW_AT_MIPS_linkage_name, &attribute))
		name = dwarf_formstring(&attribute);
	if (name)
		return name_demangle(&debug->names, name);
	return dwarf_attr_integrate(entry, DW_AT_name, &attribute) ? dwarf_formstring(&attribute)
								   : NULL;
}

const char *debug_path_into(struct debug *debug, Dwarf_Die *variable, uint64_t offset)
{
	struct type_path path = { .used = 0 };
	Dwarf_Die type;

	if (!entry_type(variable, &type))
		return NULL;
	type_path_add(&path, &type, offset);
	return name_pool_print(&debug->names, "%s", path.text);
}

const char *source_line_text(struct debug *debug, const struct source_line *line)
{
	if (!line->folder || line->file[0] == '/')
		return name_pool_print(&debug->names, "%s:%" PRIu64, line->file, line->line);
	return name_pool_print(&debug->names, "%s/%s:%" PRIu64, line->folder, line->file,
			       line->line);
}

bool inlined_call_find(struct code_place *place, Dwarf_Die *inlined, struct source_line *ret)
{
	Dwarf_Attribute attribute;
	Dwarf_Word file, line;

	if (dwarf_formudata(dwarf_attr(inlined, DW_AT_call_file, &attribute), &file) != 0 ||
	    dwarf_formudata(dwarf_attr(inlined, DW_AT_call_line, &attribute), &line) != 0)
		return false;
	ret->line = line;
	return source_file_find(&place->lines, file, ret);
}

/* True if such an entry can hold the address, or contain entries that do. */
static bool may_hold_code(Dwarf_Die *entry)
{
	switch (dwarf_tag(entry)) {
	case DW_TAG_subprogram:
	case DW_TAG_inlined_subroutine:
	case DW_TAG_lexical_block:
	case DW_TAG_entry_point:
	case DW_TAG_try_block:
	case DW_TAG_catch_block:
	case DW_TAG_with_stmt:
	case DW_TAG_module:
		return true;
	default:
		return false;
	}
}

/* The entry behind child, of those below the same one; false: there is none, or the file is
 * damaged. */
static bool go_on(Dwarf_Die *child)
{
	Dwarf_Die next;

	if (dwarf_siblingof(child, &next) != 0 || dwarf_dieoffset(&next) <= dwarf_dieoffset(child))
		return false;
	*child = next;
	return true;
}

/* The entry below this one that holds the address. */
static bool find_below(Dwarf_Die *entry, uint64_t address, Dwarf_Die *ret)
{
	Dwarf_Die child;

	if (dwarf_child(entry, &child) != 0)
		return false;
	while (!may_hold_code(&child) || dwarf_haspc(&child, address) <= 0)
		if (!go_on(&child))
			return false;
	*ret = child;
	return true;
}

/* Also search nested namespaces, which have all functions of Rust. */
static bool find_in_namespaces(Dwarf_Die *entry, uint64_t address, size_t depth, Dwarf_Die *ret)
{
	enum { DEEPEST_NAMESPACE = 32 };
	Dwarf_Die child;

	if (depth == DEEPEST_NAMESPACE || dwarf_child(entry, &child) != 0)
		return false;
	do {
		if (dwarf_tag(&child) == DW_TAG_namespace &&
		    (find_below(&child, address, ret) ||
		     find_in_namespaces(&child, address, depth + 1, ret)))
			return true;
	} while (go_on(&child));
	return false;
}

/*
 * dwarf_getscopes() recurses, and a file can have entries in each other so deep that no stack is
 * large enough for it.
 */
size_t code_scopes(const struct code_place *place, Dwarf_Die *scopes)
{
	enum { DEEPEST = 256 };
	Dwarf_Die path[DEEPEST], entry = place->unit;
	size_t depth = 0, found = 0;

	while (depth < DEEPEST &&
	       (find_below(&entry, place->address, &path[depth]) ||
		(depth == 0 && find_in_namespaces(&entry, place->address, 0, &path[depth]))))
		entry = path[depth++];
	while (depth-- > 0 && found < MOST_SCOPES) {
		scopes[found++] = path[depth];
		if (dwarf_tag(&path[depth]) == DW_TAG_subprogram)
			return found;
	}
	return 0;
}
