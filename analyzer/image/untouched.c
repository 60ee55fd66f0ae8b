#include "analyzer/image/untouched.h"

#include "analyzer/base/list.h"

#include <sys/mman.h>

struct error *untouched_add(struct untouched *untouched, uint64_t start, uint64_t end)
{
	/* Out of order, they would take the square of their number. */
	if (untouched->count > 0 && start < untouched->cuts[untouched->count - 1].end)
		return error_create(ERROR_BAD_DUMP,
				    "the note of mappings that are cut makes no sense");
	if (!LIST_GROW(untouched->cuts, untouched->count))
		return &error_no_memory;
	untouched->cuts[untouched->count].start = start;
	untouched->cuts[untouched->count++].end = end;
	return NULL;
}

void untouched_deinit(struct untouched *untouched)
{
	if (untouched->zeros)
		munmap(untouched->zeros, untouched->zeros_size);
	free(untouched->cuts);
}

/* Returns the size of the largest. */
static uint64_t mark(const struct untouched *untouched, struct region *regions, size_t count)
{
	uint64_t largest = 0;
	size_t next = 0;

	for (size_t i = 0; i < untouched->count; i++) {
		uint64_t end = untouched->cuts[i].end;
		uint32_t segment;

		while (next < count && regions[next].start < untouched->cuts[i].start)
			next++;
		segment = next < count ? regions[next].segment : 0;
		for (; next < count && regions[next].end <= end; next++) {
			struct region *region = &regions[next];

			region->segment = segment;
			region->untouched = region->left_out;
			if (region->untouched && region->end - region->start > largest)
				largest = region->end - region->start;
		}
	}
	return largest;
}

void untouched_provide(struct untouched *untouched, struct region *regions, size_t count,
		       struct findings *findings)
{
	uint64_t size = mark(untouched, regions, count);
	void *zeros;

	if (size == 0)
		return;
	/* What is only read takes no memory. */
	zeros = mmap(NULL, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (zeros == MAP_FAILED) {
		findings_add(
			findings, FINDING_INCOMPLETE,
			"there are not enough addresses for memory that was never touched: it is taken for missing");
	} else {
		untouched->zeros = zeros;
		untouched->zeros_size = size;
	}
	for (size_t i = 0; i < count; i++) {
		struct region *region = &regions[i];

		region->untouched &= untouched->zeros != NULL;
		if (!region->untouched)
			continue;
		region->origin = REGION_CORE;
		region->bytes = untouched->zeros;
	}
}
