/*
 * Who alone holds each allocation: the next class above it in the dominator tree, or else the
 * variable, stack or register that the tree hangs on there.
 */
#ifndef ANALYZER_DIFF_OWNERS_H
#define ANALYZER_DIFF_OWNERS_H

#include "analyzer/diff/census.h"

/* Count all used allocations by that; STAGE_RETAINED is built. */
struct error *owners_count(struct census *census);

#endif
