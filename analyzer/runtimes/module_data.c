#include "analyzer/runtimes/module_data.h"

#include "analyzer/base/sort.h"

enum { WORD = 8 };

/* Search [start, end) of a region. */
static uint64_t search_region(const struct image *image, const struct region *region,
			      uint64_t start, uint64_t end, module_word_test test, void *data)
{
	struct view view = { image };

	for (uint64_t at = start; at < end && end - at >= WORD; at += WORD) {
		uint64_t word;

		memcpy(&word, region->bytes + (at - region->start), sizeof(word));
		if (test(&view, at, word, data))
			return at;
	}
	return 0;
}

uint64_t module_data_search_in(const struct image *image, const struct module *module,
			       module_word_test test, void *data)
{
	size_t first = BISECT(i, 0, image->region_count, image->regions[i].end <= module->start);
	uint64_t found = 0;

	for (size_t i = first; i < image->region_count && !found; i++) {
		const struct region *region = &image->regions[i];
		uint64_t start = region->start > module->start ? region->start : module->start;
		uint64_t end = region->end < module->end ? region->end : module->end;

		if (region->start >= module->end)
			break;
		if (region->bytes && (region->rights & RIGHT_WRITE) && !region->untouched)
			found = search_region(image, region, (start + WORD - 1) / WORD * WORD, end,
					      test, data);
	}
	return found;
}

uint64_t module_data_search(const struct image *image, const struct program *program,
			    module_word_test test, void *data)
{
	uint64_t found = 0;

	for (size_t i = 0; i < program->module_count && !found; i++)
		found = module_data_search_in(image, &program->modules[i], test, data);
	return found;
}
