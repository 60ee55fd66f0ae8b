/*
 * How stages are kept in a side file; see struct recipe.
 */
#ifndef ANALYZER_ANALYSIS_SIDE_H
#define ANALYZER_ANALYSIS_SIDE_H

#include "analyzer/analysis/parts.h"

#define DECLARE_KEPT_STAGE(name)                                                              \
	struct error *analysis_save_##name(const struct analysis *analysis,                   \
					   struct side_writer *writer);                       \
	struct error *analysis_load_##name(struct analysis *analysis, struct side_file *file, \
					   uint64_t *ret_count)

DECLARE_KEPT_STAGE(heap);
DECLARE_KEPT_STAGE(roots);
DECLARE_KEPT_STAGE(graph);
DECLARE_KEPT_STAGE(reachability);
DECLARE_KEPT_STAGE(leaks);
DECLARE_KEPT_STAGE(leaked_patterns);
DECLARE_KEPT_STAGE(signatures);

#endif
