/*
 * The bytes that each fiber alone holds: its object, and what only words of its stack lead to. What
 * several fibers have is no fiber's; nor is what anything that lasts holds, too.
 */
#pragma once

#include "analyzer/analysis/analysis.h"

/* By fiber, to be freed; needs STAGE_RETAINED. */
struct error *fibers_find_held(struct analysis *analysis, uint64_t **ret);
