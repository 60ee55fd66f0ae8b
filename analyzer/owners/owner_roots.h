/*
 * What holds the tops of the dominator tree: for each, the name of the first root that refers to
 * it, "cache (libfoo.so)" or "serve() of thread 4711"; or else why it is at the top.
 */
#ifndef ANALYZER_OWNERS_OWNER_ROOTS_H
#define ANALYZER_OWNERS_OWNER_ROOTS_H

#include "analyzer/owners/owner_names.h"

/* Set the number of the name of each top, by allocation (STAGE_DOMINATORS). */
struct error *owner_roots_find(struct analysis *analysis, struct owner_names *names,
			       uint16_t *ret_roots);

#endif
