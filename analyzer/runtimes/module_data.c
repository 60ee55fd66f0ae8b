#include "analyzer/runtimes/module_data.h"

#include "analyzer/base/sort.h"

enum { WORD = 8 };

bool module_data_next(const struct image *image, const struct module *module, size_t *number,
		      struct memory_range *ret)
{
	if (*number == 0)
		*number = BISECT(i, 0, image->region_count, image->regions[i].end <= module->start);
	while (*number < image->region_count) {
		const struct region *region = &image->regions[(*number)++];

		if (region->start >= module->end)
			return false;
		ret->start = region->start > module->start ? region->start : module->start;
		ret->end = region->end < module->end ? region->end : module->end;
		if (region->bytes && (region->rights & RIGHT_WRITE) && !region->untouched)
			return true;
	}
	return false;
}

/* Search a piece of the data. */
static uint64_t search_piece(const struct image *image, struct memory_range piece,
			     module_word_test test, void *data)
{
	struct view view = { image }, words = view;
	uint64_t at = (piece.start + WORD - 1) / WORD * WORD, word;

	for (; at < piece.end && piece.end - at >= WORD; at += WORD)
		if (view_read(&words, at, &word, sizeof(word)) && test(&view, at, word, data))
			return at;
	return 0;
}

uint64_t module_data_search_in(const struct image *image, const struct module *module,
			       module_word_test test, void *data)
{
	struct memory_range piece;
	uint64_t found = 0;
	size_t number = 0;

	while (!found && module_data_next(image, module, &number, &piece))
		found = search_piece(image, piece, test, data);
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
