/*
 * In what part of an allocation another one is referred to, asked of the same allocations over and
 * over.
 *
 * patterns_find_taint() looks at the words of the source until it finds the target, so to ask that
 * for all that a large table holds would take time by the square of its size. Of the large sources
 * asked about last, it is kept what they refer to by words that are not tainted.
 */
#ifndef ANALYZER_CLASSIFY_TAINT_MEMORY_H
#define ANALYZER_CLASSIFY_TAINT_MEMORY_H

#include "analyzer/classify/patterns.h"

struct taint_memory;

/* The patterns are borrowed, and know the owners. */
struct error *taint_memory_create(const struct patterns *patterns, struct memory_account *account,
				  struct taint_memory **ret);
void taint_memory_destroy(struct taint_memory *memory);
DEFINE_CLEANUP(taint_memory_destroy, struct taint_memory *)

/* What patterns_find_taint() says. */
const char *taint_memory_find(struct taint_memory *memory, allocation_id source,
			      allocation_id target);

#endif
