/*
 * Names of kinds that can be told at once, without going over the allocations: classes by the
 * symbols of their vtables, and the types of the debug information where they were read already.
 */
#pragma once

#include "analyzer/analysis/analysis.h"

struct known_names {
	char **list; /* sorted, each once; owned */
	size_t count;
	bool has_types; /* includes names of types */
};

/* Read the symbols of all modules. Builds no stage; needs STAGE_DEBUG. */
struct error *known_names_find(struct analysis *analysis, struct known_names *ret);
void known_names_deinit(struct known_names *names);
DEFINE_DEINIT(known_names_deinit, struct known_names)

/* True if they must be found again, because types have been read since. */
bool known_names_are_old(const struct known_names *names, const struct analysis *analysis);
