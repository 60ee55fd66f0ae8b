/*
 * Finding the modules of a dump.
 */
#ifndef ANALYZER_PROGRAM_MODULES_H
#define ANALYZER_PROGRAM_MODULES_H

#include "analyzer/program/program.h"

struct module_list {
	struct module *modules; /* by address */
	size_t count;
};

struct error *module_list_init(struct module_list *list, const struct image *image);
void module_list_deinit(struct module_list *list);

/* The module that has address in one of its mappings, or NULL. */
const struct module *module_list_find(const struct module_list *list, uint64_t address);

#endif
