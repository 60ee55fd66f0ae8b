/*
 * The sets of processes with a garbage collector; in others they are empty.
 */
#ifndef ANALYZER_QUERY_COLLECTOR_SETS_H
#define ANALYZER_QUERY_COLLECTOR_SETS_H

#include "analyzer/query/set.h"

struct error *set_select_collectable(struct analysis *analysis,
				     const struct set_arguments *arguments, struct bitmap *ret);
struct error *set_select_uncollectable(struct analysis *analysis,
				       const struct set_arguments *arguments, struct bitmap *ret);
struct error *set_select_atrisk(struct analysis *analysis, const struct set_arguments *arguments,
				struct bitmap *ret);

#endif
