/*
 * Holders of the dominator tree's tops: the variable that alone holds one, "cache (libfoo.so)" or
 * "serve() of thread 4711", or that owns it; those that share it; or else why it is at the top.
 * STAGE_SHARERS is built.
 */
#pragma once

#include "analyzer/owners/owner_names.h"

/* The variable that holds the top at that position, or NO_ROOT. */
size_t owner_root_of(const struct analysis *analysis, size_t position);

/* The number of the name of what holds the top at that position. */
struct error *owner_root_name(const struct analysis *analysis, size_t position,
			      struct owner_names *names, uint16_t *ret);

/*
 * The holder of a top that no single variable holds: "shared by a and b (server)", or why it has
 * none. To be freed; NULL: memory is short.
 */
char *owner_top_text(const struct analysis *analysis, allocation_id top);

/* Like owner_top_text(), without modules: "shared by a and b". */
char *owner_top_short_text(const struct analysis *analysis, allocation_id top);

/* Name what it shares: "shared by a (server) and others"; NO_ROOT: "shared by several roots". */
char *owner_shared_text(const struct analysis *analysis, size_t variable, bool is_short);
