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

struct error *module_list_init(struct module_list *list,
			       const struct image *image);
void module_list_deinit(struct module_list *list);

#endif
