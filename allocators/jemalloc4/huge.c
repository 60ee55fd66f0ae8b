/*
 * Allocations of whole chunks, free chunks, and the module that jemalloc is in.
 *
 * Nodes describe both. In 4.5 those of allocations are allocated from the heap itself, the others
 * from memory for metadata:
 *
 *	4.5	{ arena, address, size, ... }
 *	3.6	{ tree by size: left, right; tree by address: left, right; profile; address, size,
 *... }
 *
 * In 3.6 all are from memory for metadata, in red-black trees whose roots are in the data of the
 * module, each before the node that stands for none: free chunks are in a tree by size and in one
 * by address, allocations in one by address alone.
 */
#include "allocators/jemalloc4/jemalloc4.h"

#include "analyzer/base/budget.h"
#include "analyzer/base/sort.h"

enum {
	NODE_CLASS = 128,
	TREE_NODE = 64, /* bytes of a node of 3.6 */
	MOST_DEPTH = 128,
};

DEFINE_COMPARE(compare_runs, struct run, ASCENDING(start), DESCENDING(kind), DESCENDING(bytes))

struct module_search {
	struct jemalloc4_heap *heap;
	struct view view;
	bool found;
};

static bool is_arena(const struct jemalloc4_heap *heap, uint64_t word, uint16_t *ret)
{
	for (size_t i = 0; i < heap->arenas.count; i++)
		if (heap->arenas.items[i].address == word) {
			*ret = (uint16_t)i;
			return true;
		}
	return false;
}

static struct error *look_for_arena(void *data, uint64_t where, uint64_t word)
{
	struct module_search *search = data;
	uint64_t first;
	uint16_t number;

	search->found = search->found || is_arena(search->heap, word, &number) ||
			(word % 8 == 0 && word >= PAGE && view_word(&search->view, word, &first) &&
			 first >= PAGE && is_arena(search->heap, first, &number));
	return NULL;
}

struct error *jemalloc4_find_module(struct jemalloc4_heap *heap, bool *ret)
{
	const struct program *program = heap->context.program;
	struct module_search search = { heap, { heap->context.image }, false };

	list_for_each(module, program->modules, program->module_count) {
		TRY(module_visit_words(heap->context.image, module, look_for_arena, &search));
		if (!search.found)
			continue;
		heap->module_start = module->start;
		heap->module_end = module->end;
		break;
	}
	*ret = search.found;
	return NULL;
}

/* Whether whole chunks may be there: none that are cut into runs. */
static bool may_be_huge(const struct jemalloc4_heap *heap, uint64_t address, uint64_t size)
{
	size_t above = LIST_ABOVE(heap->chunks.items, heap->chunks.count, start, address);

	return address >= PAGE && address % chunk_bytes(heap) == 0 && size >= PAGE &&
	       size % PAGE == 0 && size < UINT64_C(1) << 47 &&
	       (above == 0 || heap->chunks.items[above - 1].start != address) &&
	       is_anonymous_memory(heap->context.image, address);
}

static struct error *add_huge(struct jemalloc4_heap *heap, uint64_t address, uint64_t size,
			      enum run_kind kind, uint16_t arena)
{
	struct run run = { address, size, 0, kind, 0, arena };

	return array_append(&heap->runs, run);
}

/* Look at what may be nodes of 4.5, from start on. */
static struct error *read_node(struct jemalloc4_heap *heap, struct view *view, uint64_t node,
			       enum run_kind kind)
{
	uint64_t words[3];
	uint16_t arena;

	if (!view_read(view, node, words, sizeof(words)) || !is_arena(heap, words[0], &arena) ||
	    !may_be_huge(heap, words[1], words[2]))
		return NULL;
	if (kind == RUN_HUGE)
		TRY(array_append(&heap->own, node));
	return add_huge(heap, words[1], words[2], kind, arena);
}

/* Nodes among the regions of the run. */
static struct error *read_nodes(struct jemalloc4_heap *heap, struct view *view,
				const struct run *run)
{
	struct regions regions = jemalloc4_regions(heap, run);

	for (uint64_t i = 0; i < regions.count; i++) {
		uint64_t word, node = regions.first + i * regions.bytes;

		if (view_word(view, run->header + 4 + i / 64 * 8, &word) && !(word >> i % 64 & 1) &&
		    !jemalloc_has_address(&heap->cached, node))
			TRY(read_node(heap, view, node, RUN_HUGE));
	}
	return NULL;
}

/* Memory for metadata: the chunks with arenas. */
static struct error *list_bases(struct jemalloc4_heap *heap)
{
	uint64_t bytes = chunk_bytes(heap);

	array_for_each(arena, &heap->arenas)
		TRY(array_append(&heap->bases,
				 (struct memory_range){ arena->address & -bytes,
							(arena->address & -bytes) + bytes }));
	heap->bases.count = memory_ranges_join(heap->bases.items, heap->bases.count);
	return NULL;
}

static struct error *find_nodes(struct jemalloc4_heap *heap)
{
	struct view view = { heap->context.image };
	size_t count = heap->runs.count;

	for (size_t i = 0; i < count; i++) {
		struct run run = heap->runs.items[i];

		if (run.kind == RUN_SMALL && run.class < heap->layout.small_count &&
		    heap->layout.classes[run.class] == NODE_CLASS)
			TRY(read_nodes(heap, &view, &run));
	}
	array_for_each(base, &heap->bases) {
		for (uint64_t at = base->start; at < base->end; at += METADATA_UNIT)
			TRY(read_node(heap, &view, at, RUN_CHUNKS));
	}
	return NULL;
}

/* A tree of nodes of 3.6. */
struct tree_search {
	struct jemalloc4_heap *heap;
	struct view view;
	uint64_t none;	    /* the node that stands for none */
	unsigned int links; /* words of a node before its links */
	struct budget budget;
	struct range_list found;
};

/* Whether all of the tree is as it should be; its nodes go to the list. */
static struct error *read_tree(struct tree_search *search, uint64_t root, bool *ret)
{
	uint64_t stack[MOST_DEPTH], words[7];
	unsigned int depth = 0;

	search->found.count = 0;
	*ret = false;
	stack[depth++] = root;
	while (depth > 0) {
		uint64_t node = stack[--depth];

		if (node % TREE_NODE != 0 ||
		    !view_read(&search->view, node, words, sizeof(words)) ||
		    !may_be_huge(search->heap, words[5], words[6]) ||
		    !budget_take_many(&search->budget, TREE_NODE))
			return NULL;
		TRY(array_append(&search->found,
				 (struct memory_range){ words[5], words[5] + words[6] }));
		for (int i = 0; i < 2; i++) {
			uint64_t child = words[search->links + i] & ~UINT64_C(1);

			if (child == search->none)
				continue;
			if (depth == MOST_DEPTH)
				return NULL;
			stack[depth++] = child;
		}
	}
	*ret = true;
	return NULL;
}

/* A tree may begin there: by size it has free chunks, by address these or allocations. */
static struct error *look_for_tree(void *data, uint64_t where, uint64_t word)
{
	struct tree_search *search = data;

	if (word < PAGE || word % TREE_NODE != 0)
		return NULL;
	search->none = where + 8;
	for (search->links = 0; search->links <= 2; search->links += 2) {
		bool is_tree;

		TRY(read_tree(search, word, &is_tree));
		if (!is_tree)
			continue;
		array_for_each(range, &search->found)
			TRY(add_huge(search->heap, range->start, range->end - range->start,
				     search->links == 0 ? RUN_CHUNKS : RUN_HUGE, 0));
		return NULL;
	}
	return NULL;
}

static struct error *find_trees(struct jemalloc4_heap *heap)
{
	const struct program *program = heap->context.program;
	struct tree_search search = { .heap = heap,
				      .view = { heap->context.image },
				      .budget = { image_held_bytes(heap->context.image) } };
	struct error *error = NULL;

	search.found.memory.account = heap->context.account;
	list_for_each(module, program->modules, program->module_count)
		if (module->start == heap->module_start && !error)
			error = module_visit_words(heap->context.image, module, look_for_tree,
						   &search);
	array_release(&search.found);
	return error;
}

/* In 3.6, what is in a tree by size and in one by address is free. */
static void drop_free_twice(struct jemalloc4_heap *heap)
{
	uint64_t last = 0;

	array_for_each(run, &heap->runs) {
		if (run->kind == RUN_CHUNKS)
			last = run->start;
		else if (run->kind == RUN_HUGE && run->start == last)
			run->bytes = 0;
	}
}

/* In 4.5, nodes may be stale: free chunks end where something else begins. */
static void cut_free(struct jemalloc4_heap *heap)
{
	uint64_t next = UINT64_MAX;

	for (size_t i = heap->runs.count; i-- > 0;) {
		struct run *run = &heap->runs.items[i];

		if (run->kind != RUN_CHUNKS)
			next = run->start & -chunk_bytes(heap);
		else if (run_end(run) > next)
			run->bytes = next - run->start;
	}
}

/* By address, and apart. */
static void sort_runs(struct jemalloc4_heap *heap)
{
	size_t kept = 0;
	uint64_t end = 0;

	array_sort(&heap->runs, compare_runs);
	if (heap->form->run_bytes)
		cut_free(heap);
	else
		drop_free_twice(heap);
	array_for_each(run, &heap->runs) {
		if (run->bytes == 0 || run->start < end)
			continue;
		end = run_end(run);
		heap->runs.items[kept++] = *run;
	}
	heap->runs.count = kept;
}

struct error *jemalloc4_find_huge(struct jemalloc4_heap *heap)
{
	TRY(list_bases(heap));
	if (heap->form->run_bytes)
		TRY(find_nodes(heap));
	else
		TRY(find_trees(heap));
	sort_runs(heap);
	SORT(heap->own.items, heap->own.count, compare_u64);
	return NULL;
}
