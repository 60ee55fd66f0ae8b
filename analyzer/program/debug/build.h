/*
 * Identifies a build of a program: the key under which results for it are cached, for its other
 * cores.
 */
#pragma once

#include "analyzer/base/cache.h"
#include "analyzer/program/debug/debug.h"

/*
 * Add to the key what tells the program's modules, their debug information and their code from
 * those of other builds; with symbols, also the files of modules without debug information. Where
 * the modules are in memory does not matter. False: no results can be kept, as for debug
 * information without a build-id, or if all that is known of a module's file stands in the core.
 */
bool build_identify(struct debug *debug, bool symbols, struct cache_key *key);

/*
 * True if the key covers all files that debug information was read from; call it after reading.
 * Split-off parts (.dwo) have no build-id, and some may be missing if memory was short.
 */
bool build_was_read_whole(const struct debug *debug);

/* The folder of struct debug_options; NULL: nothing is kept. */
const char *build_cache(const struct debug *debug);

/*
 * An address as it can be kept: in which module it is, and where in that. 0 stays 0; all addresses
 * in no module become one, which is in none.
 */
typedef uint64_t kept_address;

enum { KEPT_OUTSIDE = 1 };

kept_address build_keep_address(const struct debug *debug, uint64_t address);
/* False: there is no such place. */
bool build_find_address(const struct debug *debug, kept_address kept, uint64_t *ret);
