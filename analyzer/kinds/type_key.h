/*
 * What an allocation is, as one number: its pattern; else its signature, such as its class; else
 * its identity.
 */
#ifndef ANALYZER_KINDS_TYPE_KEY_H
#define ANALYZER_KINDS_TYPE_KEY_H

#include "analyzer/analysis/analysis.h"

enum { NO_TYPE_KEY = 0 }; /* nothing is known of it */

/*
 * The key of a used allocation. Without patterns, which may be NULL, only objects of a runtime have
 * any. Needs STAGE_CLASSES.
 */
uint64_t type_key(const struct analysis *analysis, const struct patterns *patterns,
		  allocation_id id);

/*
 * Keys of those of which nothing is known are below this: others can be put there to tell them
 * apart.
 */
#define FIRST_TYPE_KEY (UINT64_C(1) << 60)

/*
 * "Session", "%LongString" or "(signature 55d0c0ffee10)", to be freed; NULL if memory is short.
 * Several keys may have the same name, as those of a class.
 */
char *type_key_name(const struct analysis *analysis, uint64_t key);

/* What a type without a name is called; 0: it is not even known to be one. */
enum { CLASS_NAME_SIZE = 32 };
void type_number_name(uint64_t number, char ret[static CLASS_NAME_SIZE]);

#endif
