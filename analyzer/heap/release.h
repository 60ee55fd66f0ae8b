/*
 * Goes on from what was read of allocations in order: see image_release().
 */
#ifndef ANALYZER_HEAP_RELEASE_H
#define ANALYZER_HEAP_RELEASE_H

#include "analyzer/base/progress.h"
#include "analyzer/heap/index.h"
#include "analyzer/image/image.h"

/* From the allocation first on, below end; both may be their count. */
static inline void allocations_release(const struct image *image,
				       const struct allocation_index *index, size_t first,
				       size_t end)
{
	size_t hint = 0;

	if (first >= end)
		return;
	image_release(image, allocation_start(index, (allocation_id)first),
		      allocation_range_near(index, (allocation_id)(end - 1), &hint).end);
}

/* Go on from what a loop over all ids read, now and then: see progress_pass(). */
static inline bool allocations_step(const struct image *image, const struct allocation_index *index,
				    struct progress *progress, size_t id, uint64_t *told)
{
	uint64_t before = *told;
	bool wanted = progress_pass(progress, id, told);

	if (before < *told)
		image_advance(image, allocation_start(index, (allocation_id)before),
			      allocation_start(index, (allocation_id)*told));
	return wanted;
}

#endif
