#include "analyzer/program/module_words.h"

#include "analyzer/base/list.h"

static struct error *visit_region(const struct image *image, const struct region *region,
				  uint64_t at, uint64_t end,
				  struct error *(*visit)(void *data, uint64_t where, uint64_t word),
				  void *data)
{
	const unsigned int size = image_word_size(image);
	uint64_t word, mask = size - 1;

	for (at = (at + mask) & ~mask; at < end && end - at >= size; at += size) {
		if (at % PAGE == 0)
			at = (image_next_data(image, at) + mask) & ~mask;
		if (at >= end || end - at < size)
			break;
		word = load_word(region->bytes + (at - region->start), size);
		if (word)
			TRY(visit(data, at, word));
	}
	return NULL;
}

struct error *data_visit_words(const struct image *image, uint64_t start, uint64_t end,
			       struct error *(*visit)(void *data, uint64_t where, uint64_t word),
			       void *data)
{
	size_t first = LIST_ABOVE(image->regions, image->region_count, end, start);

	for (size_t i = first; i < image->region_count; i++) {
		const struct region *region = &image->regions[i];

		if (region->start >= end)
			break;
		if (region->bytes && (region->rights & RIGHT_WRITE))
			TRY(visit_region(image, region, MAX(region->start, start),
					 MIN(region->end, end), visit, data));
	}
	return NULL;
}

struct error *module_visit_words(const struct image *image, const struct module *module,
				 struct error *(*visit)(void *data, uint64_t where, uint64_t word),
				 void *data)
{
	return data_visit_words(image, module->start, module->end, visit, data);
}

uint64_t find_word(struct view *view, uint64_t address, uint64_t end, uint64_t step, uint64_t *ret)
{
	for (; address < end; address += step) {
		if (address % PAGE < step) {
			uint64_t next = image_next_data(view->image, address);

			if (next >= end)
				return end;
			if (next > address)
				address += (next - address) / step * step;
		}
		if (view_word(view, address, ret)) {
			if (*ret)
				return address;
		} else {
			/* The rest of the page is absent, too. */
			address += (page_below(address) + PAGE - step - address) / step * step;
		}
	}
	return end;
}

bool is_anonymous_memory(const struct image *image, uint64_t address)
{
	const struct region *region = image_find(image, address);

	return region && region->bytes && (region->rights & RIGHT_WRITE) && !region->mapping;
}

uint64_t image_held_bytes(const struct image *image)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < image->region_count; i++)
		if (image->regions[i].bytes)
			bytes += image->regions[i].end - image->regions[i].start;
	return bytes;
}
