/*
 * The members of a structure by its name, as the debug information of a module has them. There is
 * no index of that: each question goes over the types of all units.
 */
#ifndef ANALYZER_PROGRAM_DEBUG_MEMBERS_H
#define ANALYZER_PROGRAM_DEBUG_MEMBERS_H

#include "analyzer/program/debug/debug.h"

/*
 * Call visit for each member, those of structures within it too, as "position.x", until it returns
 * false; a structure comes before what is in it. The name lives as long as debug.
 */
void debug_visit_members(struct debug *debug, const struct module *module, const char *type,
			 bool (*visit)(void *data, uint64_t offset, const char *name), void *data);

#endif
