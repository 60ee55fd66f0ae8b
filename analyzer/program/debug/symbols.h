/*
 * The symbols of one module.
 *
 * A table is searched as it stands in the mapped file: a handful of addresses costs no memory. When
 * more are asked for, an index by address is made.
 */
#ifndef ANALYZER_PROGRAM_DEBUG_SYMBOLS_H
#define ANALYZER_PROGRAM_DEBUG_SYMBOLS_H

#include "analyzer/program/program.h"

#include <elf.h>
#include <libelf.h>

struct debug_module;

/* A table of symbols as it stands in a file. */
struct symbol_table {
	Elf *elf;
	const Elf64_Sym *symbols;
	size_t count;
	size_t strings;	   /* the number of the section with their names */
	uint32_t *ordered; /* numbers of symbols by value; NULL: not yet */
	size_t ordered_count;
	bool *apart;	      /* sections that are not loaded: no address is in them */
	size_t section_count; /* of those, 0 if it is not known */
	bool packed;	      /* a copy of libdwfl's table */
};

/* A symbol as its module has it, the name mangled. */
struct found_symbol {
	const char *name;
	unsigned int type; /* STT_... */
	uint64_t value;	   /* in the module: an address less its bias */
	uint64_t size;
};

struct symbol_tables {
	bool opened;
	bool whole; /* those of all functions and variables, as it was linked */
	struct symbol_table list[2];
	size_t count;
	size_t lookups;
	uint64_t last_value; /* that was asked for, and its answer */
	struct found_symbol last;
};

void symbol_tables_deinit(struct symbol_tables *tables);

/* The symbol that covers value. */
bool symbol_tables_find(struct debug_module *module, uint64_t value, struct found_symbol *ret);

/* Whether a function or variable of the module without a symbol has no name. */
bool symbol_tables_are_whole(struct debug_module *module);

/* Call visit for each symbol of an address until it returns false. */
void symbol_tables_visit(struct debug_module *module,
			 bool (*visit)(void *data, const struct found_symbol *symbol), void *data);

/* The thread-local variable that covers offset in the module's TLS. */
bool symbol_tables_find_thread_local(struct debug_module *module, uint64_t offset,
				     struct found_symbol *ret);

#endif
