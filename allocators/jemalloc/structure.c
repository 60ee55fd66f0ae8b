#include "allocators/jemalloc/jemalloc.h"

static struct error *visit_ranges(const struct range_list *list, program_range_visitor *visit,
				  void *data)
{
	array_for_each(range, list)
		TRY(visit(data, range->start, range->end - range->start));
	return NULL;
}

/* True for an element of a leaf, or part of one: metadata with flags, or a class and flags. */
static bool is_element(const struct jemalloc *je, uint64_t word)
{
	enum { ADDRESS_BITS = 48, MOST_FLAGS = 1 << 16 };

	return word < MOST_FLAGS ||
	       jemalloc_find_base(je, word & ((UINT64_C(1) << ADDRESS_BITS) - 1));
}

/* Visit what is no address because it has flags beside one. */
static struct error *visit_leaves(const struct jemalloc *je, const struct image *image,
				  program_range_visitor *visit, void *data)
{
	struct view view = { image };
	uint64_t word;

	array_for_each(leaf, &je->leaves)
		for (uint64_t at = leaf->start; at < leaf->end; at += je->geometry.word)
			if (view_word(&view, at, &word) && word && is_element(je, word))
				TRY(visit(data, at, je->geometry.word));
	return NULL;
}

struct error *jemalloc_visit_structure(const struct heap *base, program_range_visitor *visit,
				       void *data)
{
	const struct jemalloc_heap *heap = (const struct jemalloc_heap *)base;

	array_for_each(je, &heap->list) {
		TRY(visit_leaves(je, heap->context.image, visit, data));
		TRY(visit_ranges(&je->bases, visit, data));
		TRY(visit_ranges(&je->bins, visit, data));
	}
	return NULL;
}
