/*
 * The radix tree (rtree.h): from the number of a page to the metadata of its extent.
 *
 * Its root is an array in the data of the module. With 48 bits of addresses, its words lead to
 * leaves; with 57 bits, to inner nodes. An element of a leaf is the address of metadata, with the
 * class in the 16 bits above and flags in the lowest; or, where addresses leave no room, two words.
 *
 * An extent is named at its first and its last page, a slab at all of its pages. Elements of pages
 * that are no longer used may be stale: only the element of the page where an extent begins counts.
 */
#include "allocators/jemalloc/jemalloc.h"

#include "analyzer/base/budget.h"
#include "analyzer/program/module_words.h"

enum { PROGRESS_STEP = 1 << 16 };

/* RTREE_HEIGHT and rtree_levels: two levels for up to 36 bits, otherwise three. */
const struct jemalloc_geometry jemalloc_geometries[GEOMETRIES] = {
	{ 12, 2, { 18, 18 }, 1, 8 },	 { 12, 3, { 15, 15, 15 }, 2, 8 },
	{ 16, 2, { 16, 16 }, 1, 8 },	 { 14, 2, { 17, 17 }, 1, 8 },
	{ 16, 3, { 13, 14, 14 }, 2, 8 }, { 14, 3, { 14, 14, 15 }, 2, 8 },
	{ 12, 2, { 10, 10 }, 2, 4 }, /* i386, 5.3 */
	{ 12, 2, { 10, 10 }, 3, 4 }, /* 5.0 to 5.2 */
};

static const uint64_t ADDRESS_BITS = (UINT64_C(1) << 48) - 1;

bool jemalloc_next_element(struct view *view, const struct jemalloc_geometry *geometry,
			   uint64_t leaf, uint64_t *number, uint64_t *ret_metadata)
{
	uint64_t size = element_bytes(geometry), end = leaf + leaf_bytes(geometry), word;
	uint64_t address = leaf + *number * size;

	while ((address = find_word(view, address, end, size, &word)) < end) {
		*number = (address - leaf) / size;
		*ret_metadata = word & ~(uint64_t)(METADATA_UNIT - 1);
		if (geometry->element == 1)
			*ret_metadata &= ADDRESS_BITS;
		if (*ret_metadata)
			return true;
		address += size;
	}
	return false;
}

bool jemalloc_next_node(struct view *view, const struct jemalloc_geometry *geometry,
			unsigned int level, uint64_t node, uint64_t *number, uint64_t *ret_child)
{
	uint64_t end = node + node_bytes(geometry, level), word = geometry->word;
	uint64_t address = find_word(view, node + word * *number, end, word, ret_child);

	*number = (address - node) / word;
	return address < end;
}

/* A walk of the tree. */
struct reading {
	struct jemalloc *je;
	const struct heap_context *context;
	struct view nodes, metadata;
	struct budget budget; /* bytes of nodes that the dump may hold */
	uint64_t last;	      /* metadata looked at last */
	uint64_t steps;
};

/* Add the extent with that metadata if the page is its first. */
static struct error *read_extent(struct reading *reading, uint64_t metadata, uint64_t page)
{
	struct jemalloc *je = reading->je;
	uint64_t bits, address, size, mask = page_size(je) - 1;
	uint64_t place = metadata + METADATA_ADDRESS;

	if (!view_read(&reading->metadata, metadata, &bits, sizeof(bits)) ||
	    !view_word(&reading->metadata, place, &address) || (address & ~mask) != page ||
	    !view_word(&reading->metadata, place + je->geometry.word, &size))
		return NULL;
	return array_append(&je->extents, (struct jemalloc_extent){
						  .start = page,
						  .metadata = metadata,
						  .bits = bits,
						  .bytes = size & ~mask,
						  .offset = address & mask,
					  });
}

static struct error *note_node(struct reading *reading, uint64_t node, uint64_t bytes,
			       bool *ret_go_on)
{
	*ret_go_on = node % reading->je->geometry.word == 0 && node <= UINT64_MAX - bytes &&
		     budget_take_many(&reading->budget, bytes);
	if (!*ret_go_on)
		return NULL;
	return array_append(&reading->je->leaves, (struct memory_range){ node, node + bytes });
}

static struct error *read_leaf(struct reading *reading, uint64_t leaf, uint64_t upper)
{
	const struct jemalloc_geometry *geometry = &reading->je->geometry;
	uint64_t metadata;
	bool go_on;

	TRY(note_node(reading, leaf, leaf_bytes(geometry), &go_on));
	for (uint64_t i = 0;
	     go_on && jemalloc_next_element(&reading->nodes, geometry, leaf, &i, &metadata); i++) {
		uint64_t page = (upper << leaf_bits(geometry) | i) << geometry->log_page;

		if (metadata != reading->last)
			TRY(read_extent(reading, metadata, page));
		reading->last = metadata;
		if (++reading->steps % PROGRESS_STEP == 0)
			TRY(progress_check(reading->context->progress, 0));
	}
	return NULL;
}

static struct error *read_inner(struct reading *reading, uint64_t node, uint64_t upper)
{
	const struct jemalloc_geometry *geometry = &reading->je->geometry;
	uint64_t leaf;
	bool go_on;

	TRY(note_node(reading, node, node_bytes(geometry, 1), &go_on));
	for (uint64_t i = 0;
	     go_on && jemalloc_next_node(&reading->nodes, geometry, 1, node, &i, &leaf); i++)
		TRY(read_leaf(reading, leaf, upper << geometry->bits[1] | i));
	return NULL;
}

struct error *jemalloc_read_extents(struct jemalloc *je, const struct heap_context *context)
{
	struct reading reading = {
		.je = je,
		.context = context,
		.nodes = { context->image },
		.metadata = { context->image },
		.budget = { image_held_bytes(context->image) },
	};
	struct view root = { context->image };
	uint64_t child;

	for (uint64_t i = 0; jemalloc_next_node(&root, &je->geometry, 0, je->root, &i, &child);
	     i++) {
		reading.last = 0;
		if (je->geometry.levels == 2)
			TRY(read_leaf(&reading, child, i));
		else
			TRY(read_inner(&reading, child, i));
	}
	return NULL;
}
