/*
 * Chains: from one allocation to the next by a word at a fixed offset, forwards (`chain`) or
 * backwards (`reversechain`).
 *
 * A chain ends at what is no used allocation. Unlike a walk that just follows the words, it also
 * ends, and says so, where it comes back to itself, and backwards where several allocations lead to
 * the same.
 */
#ifndef ANALYZER_QUERY_CHAIN_H
#define ANALYZER_QUERY_CHAIN_H

#include "analyzer/query/set.h"

/* ADDRESS OFFSET: to what the word at the offset points into. */
struct error *chain_walk(struct analysis *analysis, const struct set_arguments *arguments,
			 struct members *ret);

/*
 * ADDRESS SOURCE_OFFSET TARGET_OFFSET: to the one whose word at the source offset is the start of
 * this one plus the target offset.
 */
struct error *reverse_chain_walk(struct analysis *analysis, const struct set_arguments *arguments,
				 struct members *ret);

#endif
