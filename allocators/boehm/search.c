/*
 * Finding collectors.
 *
 * A collector has its variables in the data of a module: GC_arrays, with pointers to the bottom
 * indexes. So the writable data of modules is searched for a word that leads to one. An index is
 * known by its links and key, and by headers that name the very blocks whose slots lead to them.
 * Heaps are not searched: a process without a collector pays for its modules' data only.
 */
#include "allocators/boehm/boehm.h"

#include <string.h>

/*
 * The usual one first; SMALL_CONFIG has small blocks and large indexes. Words are those of the
 * process.
 */
static const struct boehm_geometry geometries[] = {
	{ 12, 10, 0 }, { 10, 11, 0 }, { 13, 10, 0 }, { 14, 10, 0 }, { 16, 10, 0 },
};

enum {
	GEOMETRIES = COUNT_OF(geometries),
	/* Limits for a module: words to check as an index, and false positives. */
	MOST_GLANCES = 1 << 14,
	MOST_DECOYS = 64,
	/* Pointers to follow before the module must show its size_map. */
	MOST_LOOKS = 1 << 8,
};

struct search {
	struct boehm_heap *heap;
	struct view view;
	const struct module *module;
	uint64_t miss, miss_end; /* where no index can be */
	unsigned int glances, decoys;
	uint64_t looks;
	bool has_size_map;
};

/* Indexes are in anonymous memory; a build may get it from /dev/zero. */
static bool can_hold_index(const struct region *region)
{
	return region && region->bytes && (region->rights & RIGHT_WRITE) &&
	       (!region->mapping || strcmp(region->mapping->path, "/dev/zero") == 0);
}

/* True if the word may point to an index. Neighbouring words often lead to the same region. */
static bool may_point(struct search *search, uint64_t word)
{
	const struct region *region;

	if (word % 8 != 0 || word < PAGE || !image_may_address(search->view.image, word) ||
	    word - search->miss < search->miss_end - search->miss)
		return false;
	if (word - search->view.start < search->view.size)
		return true;
	region = image_find(search->heap->context.image, word);
	if (can_hold_index(region))
		return view_move(&search->view, word);
	search->miss = region ? region->start : page_below(word);
	search->miss_end = region ? region->end : search->miss + PAGE;
	return false;
}

/* The lowest index of those that this one is linked with. */
static uint64_t lowest_index(struct view *view, const struct boehm_geometry *geometry,
			     uint64_t index)
{
	uint64_t below;

	/* Keys fall from one to the next, so there is an end. */
	while (view_word(view, index_field(geometry, index, INDEX_DOWNWARD), &below) && below &&
	       boehm_is_index(view, geometry, below))
		index = below;
	return index;
}

/* True if it is an index of a collector that was found already. */
static bool is_known(const struct boehm_heap *heap, uint64_t index)
{
	for (size_t i = 0; i < heap->collector_count; i++)
		if (number_list_has(&heap->collectors[i].indexes, index))
			return true;
	return false;
}

static void account(struct collector *collector, struct memory_account *account)
{
	arrays_use(account, &collector->blocks, &collector->indexes, &collector->thread_lists,
		   &collector->listed, &collector->cached, &collector->threads, &collector->spares);
}

/* Add the collector with that lowest index, if it turns out to be one. */
static struct error *add_collector(struct search *search, const struct boehm_geometry *geometry,
				   uint64_t index, uint64_t where)
{
	struct boehm_heap *heap = search->heap;
	struct collector *collector;
	struct error *error;
	bool valid;

	TRY_MEMORY(LIST_GROW(heap->collectors, heap->collector_count));
	collector = &heap->collectors[heap->collector_count];
	*collector = (struct collector){
		.geometry = *geometry,
		.start = search->module->start,
		.end = search->module->end,
		.arrays = where,
		.index = index,
	};
	account(collector, heap->context.account);
	_cleanup_(image_advice_end) struct image_advice advice =
		image_advise_in_order(heap->context.image);
	error = boehm_read_blocks(collector, &heap->context, &valid);
	if (error || !valid) {
		arrays_release(&collector->blocks, &collector->indexes);
		search->decoys++;
		return error;
	}
	SORT(collector->indexes.items, collector->indexes.count, compare_u64);
	heap->collector_count++;
	return NULL;
}

/* Add the collector, if it is new, to which the word leads that stands at where. */
static struct error *look(struct search *search, uint64_t word, uint64_t where)
{
	for (size_t i = 0; i < GEOMETRIES; i++) {
		struct boehm_geometry geometry = geometries[i];
		struct view view = search->view;
		size_t before = search->heap->collector_count;
		uint64_t index;

		geometry.word = image_word_size(view.image);
		if (!boehm_is_index(&view, &geometry, word))
			continue;
		if (is_known(search->heap, word))
			return NULL;
		if (search->glances >= MOST_GLANCES || search->decoys >= MOST_DECOYS)
			continue;
		search->glances++;
		if (!boehm_leads_to_blocks(&view, &geometry, word))
			continue;
		index = lowest_index(&view, &geometry, word);
		TRY(add_collector(search, &geometry, index, where));
		if (search->heap->collector_count > before)
			return NULL;
	}
	return NULL;
}

static struct error *look_for_map(void *data, uint64_t where, uint64_t word)
{
	struct search *search = data;
	struct view view = { search->heap->context.image };
	struct boehm_geometry geometry = { .word = image_word_size(view.image) };
	bool extra;

	if (word == 1 && !search->has_size_map)
		search->has_size_map = boehm_is_size_map(&view, &geometry, where, &extra);
	return NULL;
}

static struct error *find_size_map(struct search *search)
{
	const struct image *image = search->heap->context.image;
	_cleanup_(image_advice_end) struct image_advice advice = image_advise_in_order(image);

	return module_visit_words(image, search->module, look_for_map, search);
}

/*
 * True if the search should follow more pointers of the module. Millions of them may lead all over
 * a heap larger than memory, and each reads a page; so the module must show that it has a
 * collector.
 */
static bool goes_on(struct search *search, struct error **ret_error)
{
	if (++search->looks == MOST_LOOKS)
		*ret_error = find_size_map(search);
	return search->looks < MOST_LOOKS || search->has_size_map;
}

static struct error *visit(void *data, uint64_t where, uint64_t word)
{
	struct search *search = data;
	struct error *error = NULL;

	if (!may_point(search, word) || !goes_on(search, &error) || error)
		return error;
	return look(search, word, where);
}

struct error *boehm_search(struct boehm_heap *heap)
{
	const struct program *program = heap->context.program;
	struct search search = { .heap = heap, .view = { heap->context.image } };

	list_for_each(module, program->modules, program->module_count) {
		search = (struct search){
			.heap = heap,
			.view = search.view,
			.module = module,
			.miss = search.miss,
			.miss_end = search.miss_end,
		};
		TRY(module_visit_words(heap->context.image, module, visit, &search));
	}
	return NULL;
}
