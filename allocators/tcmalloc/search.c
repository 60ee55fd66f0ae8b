/*
 * Finding tcmallocs.
 *
 * A module with a tcmalloc has the table of size classes among its variables: 32-bit numbers that
 * begin with 0, 8 or 0, 16, rise, and end with 262144. Only such a module is searched for a word
 * that leads to a leaf of the page map, which gives the root, an array in the same module.
 */
#include "allocators/tcmalloc/tcmalloc.h"

enum { LARGEST_CLASS = 256 << 10, FEWEST_CLASSES = 20, LEAF_BITS_MOST = 18, LEAF_BITS = 4 };

struct search {
	struct tcmalloc_heap *heap;
	struct tcmalloc *tc;
	struct view view, spans;
};

/* Read the table at address, if it is one. */
static bool read_classes(struct view *view, uint64_t address, struct tcmalloc *tc)
{
	uint32_t sizes[MOST_CLASSES];
	unsigned int count = 1;

	if (!view_read(view, address, sizes, sizeof(sizes)) || sizes[0] != 0)
		return false;
	while (count < MOST_CLASSES && sizes[count] > sizes[count - 1] &&
	       sizes[count] % ALIGNMENT == 0)
		count++;
	if (count < FEWEST_CLASSES || sizes[count - 1] != LARGEST_CLASS)
		return false;
	for (unsigned int i = 0; i < count; i++)
		tc->classes[i] = sizes[i];
	tc->class_count = count;
	tc->class_table = address;
	return true;
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

static struct error *look_for_root(void *data, uint64_t where, uint64_t word)
{
	struct search *search = data;
	struct tcmalloc *tc = search->tc;

	const unsigned int most = LEAF_BITS_MOST - (ADDRESS_BITS - address_bits(tc)) / 2;

	if (tc->root || word < PAGE || word % tc->word != 0 || word >> ADDRESS_BITS ||
	    !is_anonymous_memory(search->view.image, word))
		return NULL;
	for (unsigned int bits = most; bits > most - LEAF_BITS && !tc->root; bits--) {
		uint64_t upper;
		bool fits;

		if (!tcmalloc_is_leaf(&search->view, &search->spans, bits, word, &upper) ||
		    upper > (where - tc->module->start) / tc->word)
			continue;
		tc->root = where - tc->word * upper;
		tc->leaf_bits = bits;
		TRY(tcmalloc_read_spans(tc, &search->heap->context, &fits));
		if (!fits)
			tc->root = 0;
	}
	return NULL;
}

static struct error *search_module(struct search *search, const struct module *module)
{
	struct tcmalloc_heap *heap = search->heap;
	const struct image *image = heap->context.image;
	_cleanup_(tcmalloc_deinit) struct tcmalloc tc = {
		.module = module,
		.word = image_word_size(image),
	};

	arrays_use(heap->context.account, &tc.spans, &tc.leaves, &tc.caches, &tc.cached,
		   &tc.metadata, &tc.pools);
	search->tc = &tc;
	TRY(module_visit_words(image, module, look_for_classes, search));
	if (tc.class_count > 0)
		TRY(module_visit_words(image, module, look_for_root, search));
	if (!tc.root)
		return NULL;
	TRY(tcmalloc_find_caches(&tc, &heap->context));
	return array_append(&heap->list, take_struct(tc));
}

struct error *tcmalloc_search(struct tcmalloc_heap *heap)
{
	const struct program *program = heap->context.program;
	struct search search = { .heap = heap,
				 .view = { heap->context.image },
				 .spans = { heap->context.image } };

	list_for_each(module, program->modules, program->module_count)
		TRY(search_module(&search, module));
	return NULL;
}
