#include "analyzer/heap/owned.h"

#include "analyzer/base/list.h"
#include "analyzer/base/sort.h"

#include <string.h>

DEFINE_COMPARE(compare_ranges, struct memory_range, ASCENDING(start))

/* Sort the ranges, and join those that touch. */
static void join(struct owned_memory *owned)
{
	struct memory_range *all = owned->ranges.items;
	size_t kept = 0;

	if (owned->ranges.count == 0)
		return;
	SORT(all, owned->ranges.count, compare_ranges);
	for (size_t i = 0; i < owned->ranges.count; i++) {
		if (kept > 0 && all[i].start <= all[kept - 1].end) {
			if (all[i].end > all[kept - 1].end)
				all[kept - 1].end = all[i].end;
			continue;
		}
		all[kept++] = all[i];
	}
	owned->ranges.count = kept;
}

struct error *owned_memory_add(struct owned_memory *owned, const struct memory_range *ranges,
			       size_t count)
{
	struct memory_range *all;
	struct error *error = array_reserve(&owned->ranges, count);

	if (error || count == 0)
		return error;
	all = owned->ranges.items;
	memcpy(all + owned->ranges.count, ranges, count * sizeof(*all));
	owned->ranges.count += count;
	join(owned);
	return NULL;
}

const struct memory_range *owned_memory_find(const struct owned_memory *owned, uint64_t address)
{
	const struct memory_range *all;
	size_t number;

	if (!owned || owned->ranges.count == 0)
		return NULL;
	all = owned->ranges.items;
	number = LIST_ABOVE(all, owned->ranges.count, end, address);
	return number < owned->ranges.count ? &all[number] : NULL;
}
