/*
 * Finding tcmallocs, and the layout of their version.
 *
 * A module with a tcmalloc has the table of size classes among its variables: 32-bit numbers that
 * begin with 0, 8 or 0, 16, rise, and end with 262144, then the same again (or that end with 8192,
 * of the small variant). Only such a module is searched for a word that leads to a leaf of the page
 * map, or to a node above leaves; this gives the root, an array in the same module.
 */
#include "allocators/google_tcmalloc/google_tcmalloc.h"

#include "analyzer/image/view.h"

enum {
	LARGEST_CLASS = 256 << 10,
	SMALL_LARGEST = 8 << 10,
	FEWEST_CLASSES = 20,
	LEAF_BITS = 15,
	LEAVES_TRIED = 8,
	STEPS_MOST = 1 << 28,
	STEPS_EACH = 1 << 12, /* word of the module */
};

#define HEADER .allocated = 4, .embedded = 0, .list = 2, .cached = 6
#define FIRST                                                                                 \
	.size = 32, .page = 16, .has_location = true, .pages = 24, .sample = 8, .objects = 8, \
	.bitmap_words = 1, .cached_mask = 0xff
#define FLAGS .size = 48, .has_flags = true, .page = 8
#define SECOND \
	FLAGS, .pages = 16, .large = 16, .sample = 24, .objects = 24, HEADER, .cached_mask = 0xf

/* By the first month that has them; the last one is that of 2026-07, too, without old locks. */
static const struct span_layout layouts[] = {
	/* 2023-02 */
	{ FIRST, .allocated = 0, .embedded = 2, .list = 4, .cached = 6 },
	/* 2023-11 */
	{ FIRST, HEADER },
	/* 2024-03 */
	{ .size = 48,
	  .page = 8,
	  .has_location = true,
	  .pages = 16,
	  .sample = 24,
	  .objects = 24,
	  .bitmap_words = 1,
	  HEADER,
	  .cached_mask = 0xff },
	/* 2024-11 */
	{ SECOND, .bitmap_words = 1 },
	/* 2025-05 */
	{ SECOND, .bitmap_words = 2 },
	/* 2026-07 */
	{ FLAGS, .pages = 16, .large = 32, .sample = 40, .objects = 32, .bitmap_words = 2, HEADER,
	  .cached_mask = 0xf },
	{ FLAGS, .flags_follow = true, .count_follows = true, .large = 24, .sample = 32,
	  .objects = 24, .bitmap_words = 3, HEADER, .cached_mask = 0xff },
};

/* Two links, and since 2025, unless built without checks, the list that it is in. */
static const unsigned int link_bytes[] = { 16, 24 };

/* log2 of possible page sizes, the usual one first. */
static const unsigned int page_shifts[] = { 13, 12, 15, 18 };

struct search {
	struct google_heap *heap;
	struct google_tcmalloc *tc;
	struct view view;
	struct budget steps; /* of trying leaves in the module */
	uint64_t held;	     /* bytes of the dump */
};

/* The classes come again for cold objects, as they do not in gperftools' table. */
static bool has_copy(const uint32_t sizes[static MOST_CLASSES], unsigned int count)
{
	while (count < MOST_CLASSES && sizes[count] == 0)
		count++;
	return count + 1 < MOST_CLASSES && sizes[count] == sizes[1] && sizes[count + 1] == sizes[2];
}

/* Read the table at address, if it is one. */
static void read_classes(struct view *view, uint64_t address, struct google_tcmalloc *tc)
{
	uint32_t sizes[MOST_CLASSES] = { 0 };
	unsigned int count = 1, read = 0;

	/* The variables may end before so many. */
	while (read < MOST_CLASSES &&
	       view_read(view, address + read * sizeof(*sizes), &sizes[read], sizeof(*sizes)))
		read++;
	if (sizes[0] != 0)
		return;
	while (count < MOST_CLASSES && sizes[count] > sizes[count - 1] &&
	       sizes[count] % ALIGNMENT == 0)
		count++;
	if (count < FEWEST_CLASSES ||
	    !(sizes[count - 1] == SMALL_LARGEST ||
	      (sizes[count - 1] == LARGEST_CLASS && has_copy(sizes, count))))
		return;
	for (unsigned int i = 0; i < MOST_CLASSES; i++)
		tc->classes[i] =
			sizes[i] <= LARGEST_CLASS && sizes[i] % ALIGNMENT == 0 ? sizes[i] : 0;
	tc->class_count = count;
}

/* The second number of the table is in the word, the first there or just before. */
static struct error *look_for_classes(void *data, uint64_t where, uint64_t word)
{
	struct search *search = data;
	uint32_t low = (uint32_t)word, high = (uint32_t)(word >> 32);

	if (search->tc->class_count > 0)
		return NULL;
	if (low == 0 && (high == 8 || high == 16))
		read_classes(&search->view, where, search->tc);
	else if (low == 8 || low == 16)
		read_classes(&search->view, where - 4, search->tc);
	return NULL;
}

/* A shape that the page map may have. */
struct shape {
	const struct span_layout *layout;
	unsigned int page_shift, leaf_bits, class_bytes, links;
	bool has_nodes;
};

static void take_shape(struct google_tcmalloc *tc, const struct shape *shape)
{
	tc->layout = shape->layout;
	tc->page_shift = shape->page_shift;
	tc->leaf_bits = shape->leaf_bits;
	tc->class_bytes = shape->class_bytes;
	tc->links = shape->links;
	tc->has_nodes = shape->has_nodes;
}

/* The shape that fits best so far. */
struct best {
	int64_t score;
	struct shape shape;
	uint64_t root;
};

/* The variable at where leads to the leaf, or to a node that leads to it. Score the shape. */
static void try_leaf(struct search *search, const struct shape *shape, uint64_t where,
		     uint64_t leaf, struct best *best)
{
	struct google_tcmalloc *tc = search->tc;
	const struct image *image = search->heap->context.image;
	uint64_t number, root;
	int64_t score;

	take_shape(tc, shape);
	if (!google_leaf_at(tc, image, leaf, &search->steps, &number))
		return;
	root = number >> (shape->has_nodes ? shape->leaf_bits : 0);
	if (root > (where - tc->module->start) / WORD)
		return;
	score = google_leaf_score(tc, image, leaf, number, &search->steps);
	if (score > best->score)
		*best = (struct best){ score, *shape, where - root * WORD };
}

/* True if the first word for a page may lead to a Span: most memory is not a leaf. */
static bool may_be_leaf(struct search *search, const struct shape *shape, uint64_t leaf)
{
	const uint64_t start = leaf + ((uint64_t)shape->class_bytes << shape->leaf_bits);
	const uint64_t end = start + ((uint64_t)WORD << shape->leaf_bits);
	uint64_t word;

	if (leaf % WORD != 0 || !is_anonymous_memory(search->view.image, leaf) ||
	    find_word(&search->view, start, end, WORD, &word) >= end)
		return false;
	word &= (UINT64_C(1) << ADDRESS_BITS) - 1;
	return word % WORD == 0 && image_find(search->view.image, word);
}

static void try_layouts(struct search *search, struct shape *shape, uint64_t where, uint64_t leaf,
			struct best *best)
{
	for (shape->class_bytes = 1; shape->class_bytes <= 2; shape->class_bytes++) {
		if (!may_be_leaf(search, shape, leaf))
			continue;
		for (unsigned int i = 0; i < 2 * COUNT_OF(layouts); i++) {
			shape->layout = &layouts[i / 2];
			shape->links = link_bytes[i % 2];
			try_leaf(search, shape, where, leaf, best);
		}
	}
}

/* Try what the node leads to. Some leaves may have no spans. */
static void try_node(struct search *search, struct shape *shape, uint64_t where, uint64_t node,
		     struct best *best)
{
	const uint64_t end = node + ((uint64_t)WORD << shape->leaf_bits);
	uint64_t leaf, at = node;

	for (unsigned int i = 0; i < LEAVES_TRIED; i++, at += WORD) {
		at = find_word(&search->view, at, end, WORD, &leaf);
		if (at >= end)
			return;
		try_layouts(search, shape, where, leaf, best);
	}
}

static struct error *look_for_root(void *data, uint64_t where, uint64_t word)
{
	struct search *search = data;
	struct best best = { 0 };
	struct shape shape;

	if (search->tc->root || word < PAGE || word % WORD != 0 || word >> ADDRESS_BITS ||
	    !is_anonymous_memory(search->view.image, word))
		return NULL;
	for (unsigned int i = 0; i < COUNT_OF(page_shifts); i++) {
		shape.page_shift = page_shifts[i];
		shape.has_nodes = false;
		shape.leaf_bits = LEAF_BITS;
		try_layouts(search, &shape, where, word, &best);
		shape.has_nodes = true;
		shape.leaf_bits = (ADDRESS_BITS - page_shifts[i] + 2) / 3;
		try_node(search, &shape, where, word, &best);
	}
	if (best.score <= 0)
		return NULL;
	take_shape(search->tc, &best.shape);
	search->tc->root = best.root;
	return NULL;
}

static struct error *search_module(struct search *search, const struct module *module)
{
	struct google_heap *heap = search->heap;
	const struct image *image = heap->context.image;
	_cleanup_(google_tcmalloc_deinit) struct google_tcmalloc tc = { .module = module };

	arrays_use(heap->context.account, &tc.spans, &tc.leaves, &tc.cached, &tc.metadata);
	search->tc = &tc;
	search->steps.left =
		STEPS_MOST + MIN(module->end - module->start, search->held) / WORD * STEPS_EACH;
	TRY(module_visit_words(image, module, look_for_classes, search));
	if (tc.class_count > 0)
		TRY(module_visit_words(image, module, look_for_root, search));
	if (!tc.root)
		return NULL;
	TRY(google_read_spans(&tc, &heap->context));
	TRY(google_find_caches(&tc, &heap->context));
	TRY(google_find_free_pages(&tc, image));
	return array_append(&heap->list, take_struct(tc));
}

struct error *google_tcmalloc_search(struct google_heap *heap)
{
	const struct program *program = heap->context.program;
	struct search search = { .heap = heap,
				 .view = { heap->context.image },
				 .held = image_held_bytes(heap->context.image) };

	list_for_each(module, program->modules, program->module_count)
		TRY(search_module(&search, module));
	return NULL;
}
