#include "analyzer/classify/module_bounds.h"

struct module_bounds module_bounds_find(const struct program *program)
{
	struct module_bounds bounds = { 0 };
	struct memory_range *ranges = bounds.ranges;
	size_t count = program_module_count(program), first_behind = count;
	uint64_t widest = 0;

	if (count == 0)
		return bounds;
	for (size_t i = 1; i < count; i++) {
		uint64_t end = program_module(program, i - 1)->end;
		uint64_t start = program_module(program, i)->start;

		if (start > end && start - end > widest) {
			widest = start - end;
			first_behind = i;
		}
	}
	ranges[0].start = program_module(program, 0)->start;
	ranges[0].end = program_module(program, first_behind - 1)->end;
	if (first_behind == count)
		return bounds;
	ranges[1].start = program_module(program, first_behind)->start;
	ranges[1].end = program_module(program, count - 1)->end;
	return bounds;
}
