/*
 * What holds the tops of the dominator tree: the variable that alone does, "cache (libfoo.so)" or
 * "serve() of thread 4711"; or else why it is at the top.
 */
#ifndef ANALYZER_OWNERS_OWNER_ROOTS_H
#define ANALYZER_OWNERS_OWNER_ROOTS_H

#include "analyzer/owners/owner_names.h"

/* The number of the name of what holds the top at that position (STAGE_DOMINATORS). */
struct error *owner_root_name(const struct analysis *analysis, size_t position,
			      struct owner_names *names, uint16_t *ret);

/* What holds a top that no variable alone holds: "several roots", or why nothing does. */
const char *owner_top_text(const struct analysis *analysis, allocation_id id);

#endif
