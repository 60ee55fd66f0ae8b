/*
 * Finding jemallocs.
 *
 * The root of the radix tree is an array in the data of a module, so that is searched for a word
 * that leads to a leaf or an inner node. A leaf is known by its elements: they name metadata of
 * extents that begin at the very pages that the elements stand for. The upper bits of the address
 * of such an extent are the index of the word, which gives the root. Heaps are not searched.
 */
#include "allocators/jemalloc/jemalloc.h"

#include "analyzer/program/module_words.h"

#include <string.h>

enum {
	MATCHES_WANTED = 3,
	MATCHES_MOST = 64,
	MISSES_MOST = 8,
	/* Elements that name what they do not stand for may be so many times those that do. */
	MISSES_EACH = 8,
	ELEMENTS_MOST = 400,
	CHILDREN_MOST = 8, /* of an inner node, to look at */
	DECOYS_MOST = 16,
	/* Pointers to follow before the module must show the table of size classes. */
	LOOKS_MOST = 1 << 8,
	LOOKS_OF_ZEROS = 1 << 5, /* as many for one that reads nothing but zeros */
	ROW_WORDS = 8,
};

struct search {
	struct jemalloc_heap *heap;
	struct view view, metadata, reach;
	const struct module *module;
	uint64_t start, end; /* memory that [start, end) is known to be a part of */
	unsigned int decoys;
	uint64_t looks;
	bool was_asked, has_classes; /* the module has the table */
	uint64_t decoy_roots[DECOYS_MOST];
};

/* The memory at address if a jemalloc may use it: anonymous, and writable when it was used. */
static const struct region *find_memory(const struct image *image, uint64_t address)
{
	const struct region *region = image_find(image, address);

	return region && region->bytes && (region->rights & RIGHT_WRITE) && !region->mapping
		       ? region
		       : NULL;
}

/* True if a node may be at address. Neighbouring words often lead to the same region. */
static bool may_be_node(struct search *search, uint64_t address)
{
	const struct region *region;

	if (address % METADATA_UNIT != 0 || address < PAGE || address >> 56)
		return false;
	if (address - search->start < search->end - search->start)
		return true;
	region = find_memory(search->heap->context.image, address);
	if (!region)
		return false;
	search->start = region->start;
	search->end = region->end;
	return true;
}

/* True if the memory at address continues for that many bytes. */
static bool reaches(struct search *search, uint64_t address, uint64_t bytes)
{
	return address <= UINT64_MAX - bytes &&
	       view_reach(&search->reach, address, address + bytes) >= address + bytes;
}

/*
 * True if a leaf is at address: its first elements point to extents that begin at their pages. *ret
 * is the part of addresses above the leaf's own bits.
 */
static bool is_leaf(struct search *search, const struct jemalloc_geometry *geometry,
		    uint64_t address, uint64_t *ret_upper)
{
	uint64_t metadata, last = 0, mask = (UINT64_C(1) << leaf_bits(geometry)) - 1;
	unsigned int matches = 0, misses = 0, elements = 0;

	for (uint64_t i = 0; elements < ELEMENTS_MOST && matches < MATCHES_MOST &&
			     jemalloc_next_element(&search->view, geometry, address, &i, &metadata);
	     i++, elements++) {
		uint64_t start, page;

		if (metadata == last)
			continue;
		last = metadata;
		if (!view_word(&search->metadata, metadata + METADATA_ADDRESS, &start))
			start = 0;
		page = start >> geometry->log_page;
		if (start && (page & mask) == i &&
		    (matches == 0 || page >> leaf_bits(geometry) == *ret_upper)) {
			*ret_upper = page >> leaf_bits(geometry);
			matches++;
		} else if (++misses > MISSES_MOST && matches * MISSES_EACH < misses) {
			return false;
		}
	}
	if (elements == 0)
		search->looks += LOOKS_OF_ZEROS;
	return matches >= MATCHES_WANTED;
}

/* True if an inner node is at address, by its first leaves. */
static bool is_inner(struct search *search, const struct jemalloc_geometry *geometry,
		     uint64_t address, uint64_t *ret_upper)
{
	uint64_t leaf, mask = (UINT64_C(1) << geometry->bits[1]) - 1, i = 0;
	struct view nodes = { search->heap->context.image };

	for (unsigned int n = 0;
	     n < CHILDREN_MOST && jemalloc_next_node(&nodes, geometry, 1, address, &i, &leaf);
	     n++, i++) {
		if (!may_be_node(search, leaf) || !reaches(search, leaf, leaf_bytes(geometry)))
			return false;
		if (is_leaf(search, geometry, leaf, ret_upper) && (*ret_upper & mask) == i) {
			*ret_upper >>= geometry->bits[1];
			return true;
		}
	}
	return false;
}

static bool is_node(struct search *search, const struct jemalloc_geometry *geometry,
		    uint64_t address, uint64_t *ret_upper)
{
	if (geometry->levels == 2)
		return reaches(search, address, leaf_bytes(geometry)) &&
		       is_leaf(search, geometry, address, ret_upper);
	return reaches(search, address, node_bytes(geometry, 1)) &&
	       is_inner(search, geometry, address, ret_upper);
}

static bool is_known(const struct search *search, uint64_t root)
{
	array_for_each(je, &search->heap->list)
		if (je->root == root)
			return true;
	for (unsigned int i = 0; i < search->decoys; i++)
		if (search->decoy_roots[i] == root)
			return true;
	return false;
}

/* Add the jemalloc with that root, if it turns out to be one. */
static struct error *add_root(struct search *search, const struct jemalloc_geometry *geometry,
			      uint64_t root)
{
	struct jemalloc_heap *heap = search->heap;
	_cleanup_(jemalloc_deinit) struct jemalloc je = {
		.start = search->module->start,
		.end = search->module->end,
		.root = root,
		.geometry = *geometry,
	};

	arrays_use(heap->context.account, &je.extents, &je.leaves, &je.changing, &je.bases,
		   &je.cached, &je.stacks, &je.bins, &je.arenas);
	TRY(jemalloc_read_extents(&je, &heap->context));
	if (jemalloc_choose_layout(&je, heap->context.image))
		return array_append(&heap->list, take_struct(je));
	search->decoy_roots[search->decoys++] = root;
	return NULL;
}

/* Add the jemalloc, if it is new, to which the word leads that stands at where. */
static struct error *look(struct search *search, uint64_t where, uint64_t word)
{
	list_for_each(geometry, jemalloc_geometries, GEOMETRIES) {
		uint64_t upper, root;

		if (geometry->word != image_word_size(search->heap->context.image) ||
		    !is_node(search, geometry, word, &upper) ||
		    upper > (where - search->module->start) / geometry->word)
			continue;
		root = where - geometry->word * upper;
		if (is_known(search, root) || search->decoys == DECOYS_MOST)
			return NULL;
		return add_root(search, geometry, root);
	}
	return NULL;
}

/* True if the module has the table of size classes, with either quantum. */
static bool has_classes(const struct search *search)
{
	const struct image *image = search->heap->context.image;
	const unsigned int word = image_word_size(image);

	for (unsigned int quantum = 3; quantum <= 4; quantum++) {
		struct jemalloc_layout layout;
		uint8_t row[ROW_WORDS * sizeof(uint64_t)];

		jemalloc_set_classes(&layout, quantum, 12, word);
		for (size_t i = 0; i < ROW_WORDS; i++)
			memcpy(row + i * word, &layout.classes[i], word);
		if (module_holds(image, search->module, row, (size_t)ROW_WORDS * word))
			return true;
	}
	return false;
}

/*
 * True if the search should follow more pointers of the module. Millions of them may lead all over
 * a heap larger than memory, and each reads a page; so the module must show that it has a jemalloc.
 */
static bool goes_on(struct search *search)
{
	if (++search->looks < LOOKS_MOST)
		return true;
	if (!search->was_asked)
		search->has_classes = has_classes(search);
	search->was_asked = true;
	return search->has_classes;
}

static struct error *look_at(void *data, uint64_t where, uint64_t word)
{
	struct search *search = data;

	return may_be_node(search, word) && goes_on(search) ? look(search, where, word) : NULL;
}

struct error *jemalloc_search(struct jemalloc_heap *heap)
{
	const struct program *program = heap->context.program;
	const struct image *image = heap->context.image;
	struct search search = {
		.heap = heap, .view = { image }, .metadata = { image }, .reach = { image }
	};

	list_for_each(module, program->modules, program->module_count) {
		search.module = module;
		search.looks = 0;
		search.was_asked = false;
		TRY(module_visit_words(image, module, look_at, &search));
	}
	return NULL;
}
