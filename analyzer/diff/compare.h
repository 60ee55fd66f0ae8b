/*
 * Comparing a core that is being looked into with files of older ones.
 */
#ifndef ANALYZER_DIFF_COMPARE_H
#define ANALYZER_DIFF_COMPARE_H

#include "analyzer/diff/diff.h"

/*
 * Open the files one after the other, the oldest first, and say what grew. That one of them cannot
 * be trusted is added to the findings of the newest. visit, unless it is NULL, is called with the
 * analysis of each older core, once it was counted.
 */
struct error *compare_cores(struct analysis *newest, const char *const *paths, size_t count,
			    enum aspect aspect,
			    struct error *(*visit)(void *data, struct analysis *older), void *data,
			    struct diff **ret);

#endif
