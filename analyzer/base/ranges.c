#include "analyzer/base/ranges.h"

#include "analyzer/base/sort.h"

DEFINE_COMPARE(compare_ranges, struct memory_range, ASCENDING(start))

size_t memory_ranges_join(struct memory_range *ranges, size_t count)
{
	size_t kept = 0;

	SORT(ranges, count, compare_ranges);
	for (size_t i = 0; i < count; i++) {
		if (kept == 0 || ranges[i].start > ranges[kept - 1].end)
			ranges[kept++] = ranges[i];
		else if (ranges[i].end > ranges[kept - 1].end)
			ranges[kept - 1].end = ranges[i].end;
	}
	return kept;
}
