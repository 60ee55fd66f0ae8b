/*
 * The unit of debug information that tells of an address of code, and the function that the address
 * is in, with those inlined into it.
 */
#ifndef ANALYZER_PROGRAM_DEBUG_UNITS_H
#define ANALYZER_PROGRAM_DEBUG_UNITS_H

#include "analyzer/program/debug/lines.h"
#include "analyzer/program/debug/modules.h"

/* An address of code, as the debug information of its module has it. */
struct code_place {
	struct debug_module *module;
	Dwarf *dwarf;
	uint64_t address; /* less the bias */
	Dwarf_Die unit;
	Dwarf_Die lines; /* the same, or what it was split from */
};

bool code_place_find(struct debug *debug, uint64_t address, struct code_place *ret);

/* What a function or variable is called, demangled; NULL: not told. */
const char *debug_entry_name(struct debug *debug, Dwarf_Die *entry);

/* The way into a variable to the offset, as ".entries[3].key"; or NULL. */
const char *debug_path_into(struct debug *debug, Dwarf_Die *variable, uint64_t offset);

/* "session.c:88" */
const char *source_line_text(struct debug *debug, const struct source_line *line);

/* Up to so many scopes within each other are looked at. */
enum { MOST_SCOPES = 64 };

/*
 * Scopes around the place, from the innermost block out to the function. Returns their number, at
 * most MOST_SCOPES.
 */
size_t code_scopes(const struct code_place *place, Dwarf_Die *scopes);

#endif
