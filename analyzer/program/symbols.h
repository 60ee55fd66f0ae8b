/*
 * The symbols of a module, read from its file.
 */
#ifndef ANALYZER_PROGRAM_SYMBOLS_H
#define ANALYZER_PROGRAM_SYMBOLS_H

#include "analyzer/program/program.h"

/*
 * The number of the first of names (NULL at the end) that the module defines,
 * or -1. A module whose file is not at hand defines nothing.
 */
int module_defines(const struct module *module, const char *const names[]);

#endif
