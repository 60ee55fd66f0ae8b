#include "analyzer/classify/early_words.h"

struct module_bounds module_bounds_find(const struct program *program)
{
	struct module_bounds bounds = { 0 };
	struct memory_range *ranges = bounds.ranges;
	size_t count = program->module_count, first_behind = count;
	uint64_t widest = 0;

	if (count == 0)
		return bounds;
	for (size_t i = 1; i < count; i++) {
		uint64_t end = program->modules[i - 1].end;
		uint64_t start = program->modules[i].start;

		if (start > end && start - end > widest) {
			widest = start - end;
			first_behind = i;
		}
	}
	ranges[0].start = program->modules[0].start;
	ranges[0].end = program->modules[first_behind - 1].end;
	if (first_behind == count)
		return bounds;
	ranges[1].start = program->modules[first_behind].start;
	ranges[1].end = program->modules[count - 1].end;
	return bounds;
}

size_t early_narrow_words_read(struct view *view, struct memory_range range,
			       uint64_t words[static EARLY_WORDS])
{
	uint32_t narrow[EARLY_WORDS];
	uint64_t size = range.end - range.start;
	size_t count = size < sizeof(narrow) ? size / sizeof(*narrow) : EARLY_WORDS;

	if (!view_read(view, range.start, narrow, count * sizeof(*narrow)))
		return 0;
	for (size_t i = 0; i < count; i++)
		words[i] = narrow[i];
	return count;
}
