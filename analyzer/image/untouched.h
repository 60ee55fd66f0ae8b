/*
 * Parts of mappings that a core by heapcore leaves out because the process never touched them. They
 * are zeros, and in every respect as if the core had them: terabytes of them are common, which not
 * every file system could hold, even as a hole.
 */
#ifndef ANALYZER_IMAGE_UNTOUCHED_H
#define ANALYZER_IMAGE_UNTOUCHED_H

#include "analyzer/image/image.h"

struct untouched {
	struct {
		uint64_t start, end;
	} * cuts; /* mappings with such parts, in order of address */
	size_t count;
	void *zeros; /* as many as the largest part needs */
	uint64_t zeros_size;
};

/* What segments in [start, end) leave out was never touched. */
struct error *untouched_add(struct untouched *untouched, uint64_t start, uint64_t end);
void untouched_deinit(struct untouched *untouched);

/* Give the regions that were left out their zeros, and all parts of a mapping the same segment. */
void untouched_provide(struct untouched *untouched, struct region *regions, size_t count,
		       struct findings *findings);

#endif
