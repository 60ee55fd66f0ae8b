/*
 * Finds the memory that opcache shares between processes: one mapping, which begins with the
 * addresses of its segments, ext/opcache/zend_shared_alloc.c of 7.4 to 8.4:
 *
 *	mapping   table | u32 segments, u32 | ...
 *	table     segment ...
 *	segment   size | ... | bytes in use | mapping |
 */
#include "analyzer/base/list.h"
#include "analyzer/runtimes/php/objects.h"
#include "analyzer/runtimes/php/space.h"

enum { WORD = 8, NEAR = 1 << 10, SEGMENT_WORDS = 5, LEAST_SIZE = 1 << 20 };

/* The bytes in use of the mapping at start, where it is opcache's; else 0. */
static uint64_t measure(struct view *view, uint64_t start, uint64_t size)
{
	uint64_t table, segment, words[SEGMENT_WORDS];
	uint32_t count;

	if (!view_word(view, start, &table) || table - start >= NEAR ||
	    !view_read(view, start + WORD, &count, sizeof(count)) || count != 1 ||
	    !view_word(view, table, &segment) || segment - start >= NEAR ||
	    !view_read(view, segment, words, sizeof(words)) || words[0] != size)
		return 0;
	for (int i = 2; i < SEGMENT_WORDS; i++)
		if (words[i] == start && words[i - 1] <= size)
			return words[i - 1];
	return 0;
}

struct error *php_shared_visit_structure(const struct php *php,
					 const struct structure_visitor *visitor)
{
	struct view view = { php->space.image };

	array_for_each(range, &php->space.ranges) {
		uint64_t start = range->range.start, table, segment, word;

		if (!view_word(&view, start, &table) || table - start >= NEAR ||
		    !view_word(&view, table, &segment) || segment - start >= NEAR)
			continue;
		TRY(visitor->number(visitor->data, start + WORD, sizeof(uint32_t)));
		for (uint64_t at = segment; at < segment + (uint64_t)SEGMENT_WORDS * WORD;
		     at += WORD)
			if (view_word(&view, at, &word) && word <= UINT32_MAX)
				TRY(visitor->number(visitor->data, at, WORD));
	}
	return NULL;
}

static struct error *add(struct php *php, uint64_t start, uint64_t end, const char *name)
{
	return start < end ? array_append(&php->space.ranges,
					  (struct named_range){ { start, end }, name })
			   : NULL;
}

struct error *php_find_shared(struct php *php)
{
	const struct image *image = php->space.image;
	struct view view = { image };

	php->space.ranges.count = 0;
	list_for_each(region, image->regions, image->region_count) {
		uint64_t size = region->end - region->start;
		uint64_t used = (region->rights & RIGHT_WRITE) && size >= LEAST_SIZE
					? measure(&view, region->start, size)
					: 0;

		if (!used)
			continue;
		TRY(add(php, region->start, region->start + used, "PHP's opcache, in use"));
		TRY(add(php, region->start + used, region->end, "PHP's opcache, not in use"));
	}
	return NULL;
}
