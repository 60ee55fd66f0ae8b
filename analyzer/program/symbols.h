/*
 * The symbols of a module, read from its file.
 */
#pragma once

#include "analyzer/program/program.h"

/*
 * Which functions called so (at most 64 names, NULL at the end) the module defines: bit 0 for the
 * first. One whose file is not at hand defines nothing.
 */
uint64_t module_defines(const struct module *module, const char *const names[]);

/* Like module_defines(), for functions that the module imports. */
uint64_t module_needs(const struct module *module, const char *const names[]);

/* Which of the functions called so address is in. */
uint64_t module_functions_at(const struct module *module, uint64_t address,
			     const char *const names[]);

/* Find the address of the module's variable or function of that name; false if unknown. */
bool module_find_variable(const struct module *module, const char *name, uint64_t *ret_address);
bool module_find_function(const struct module *module, const char *name, uint64_t *ret_address);

/*
 * True if the module exports a function or variable of that name. One lookup in its hash table, in
 * memory or in its file: quick for any number of symbols.
 */
bool module_exports(const struct image *image, const struct module *module, const char *name);

/*
 * True if a module exports it, or the program itself defines it: an interpreter, whatever its
 * file's name, or a program that one is linked into.
 */
bool program_has_symbol(const struct program *program, const char *name);

/* True if it has the symbol, or a module with part in its path. */
bool program_has_code(const struct program *program, const char *part, const char *name);
