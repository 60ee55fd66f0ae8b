#include "allocators/boehm/data.h"

struct visitor {
	struct error *(*visit)(void *data, uint64_t where, uint64_t word);
	void *data;
};

static struct error *visit_words(const struct visitor *visitor, const struct region *region,
				 uint64_t start, uint64_t end)
{
	const uint8_t *bytes = region->bytes + (start - region->start);

	for (uint64_t offset = 0; end - start - offset >= 8; offset += 8) {
		struct error *error;
		uint64_t word;

		__builtin_memcpy(&word, bytes + offset, sizeof(word));
		if (word == 0)
			continue;
		error = visitor->visit(visitor->data, start + offset, word);
		if (error)
			return error;
	}
	return NULL;
}

/* Visit [start, end) of a region, holes of the dump left out. */
static struct error *visit_region(const struct visitor *visitor, const struct image *image,
				  const struct region *region, uint64_t start, uint64_t end)
{
	while (start < end) {
		uint64_t next = image_next_data(image, start);
		uint64_t page_end = (start | (PAGE - 1)) + 1;
		struct error *error;

		if (next > start) {
			start = (next + 7) & ~UINT64_C(7);
			continue;
		}
		if (page_end > end)
			page_end = end;
		error = visit_words(visitor, region, start, page_end);
		if (error)
			return error;
		start = page_end;
	}
	return NULL;
}

struct error *boehm_visit_data(uint64_t start, uint64_t end, const struct image *image,
			       size_t *cursor,
			       struct error *(*visit)(void *data, uint64_t where, uint64_t word),
			       void *data)
{
	const struct visitor visitor = { visit, data };

	while (*cursor < image_region_count(image) && image_region(image, *cursor)->end <= start)
		(*cursor)++;
	for (size_t i = *cursor; i < image_region_count(image); i++) {
		const struct region *region = image_region(image, i);
		struct error *error;

		if (region->start >= end)
			break;
		if (!region->bytes || !(region->rights & RIGHT_WRITE))
			continue;
		error = visit_region(&visitor, image, region,
				     region->start > start ? region->start : start,
				     region->end < end ? region->end : end);
		if (error)
			return error;
	}
	return NULL;
}
