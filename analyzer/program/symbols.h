/*
 * The symbols of a module, read from its file.
 */
#ifndef ANALYZER_PROGRAM_SYMBOLS_H
#define ANALYZER_PROGRAM_SYMBOLS_H

#include "analyzer/program/program.h"

/*
 * Which functions called so (at most 64 names, NULL at the end) the module defines: bit 0 for the
 * first. One whose file is not at hand defines nothing.
 */
uint64_t module_defines(const struct module *module, const char *const names[]);

/* The same for functions that it takes from others. */
uint64_t module_needs(const struct module *module, const char *const names[]);

/* Which of the functions called so address is in. */
uint64_t module_functions_at(const struct module *module, uint64_t address,
			     const char *const names[]);

/* Where the module has the variable or function called so; false if that is not known. */
bool module_find_variable(const struct module *module, const char *name, uint64_t *ret_address);
bool module_find_function(const struct module *module, const char *name, uint64_t *ret_address);

/*
 * Whether the module exports a function or variable called so. One look into its hash table, which
 * is in memory or in its file: quick, however many symbols there are.
 */
bool module_exports(const struct image *image, const struct module *module, const char *name);

/*
 * Whether a module exports it, or the program itself defines it: an interpreter, whatever its file
 * is called, or a program that one is linked into.
 */
bool program_has_symbol(const struct program *program, const char *name);

/* Whether it has the symbol, or a module with that part in its path. */
bool program_has_code(const struct program *program, const char *part, const char *name);

#endif
