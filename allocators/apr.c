/*
 * The allocators of Apache's portable runtime (APR 1.4 to 1.7) where these map what they hand out,
 * as Debian's do: httpd and Subversion take their pools from them. memory/unix/apr_pools.c:
 *
 *	node      | next | where a word leads here | pages - 1 | first free byte | end | ...
 *	pool      in its first node: | parent, child, sibling | ... | allocator 6 | ... | current
 *	          node 11 | first node 12 | ...
 *	allocator | limits: three | mutex | owner | lists of free nodes: 20
 *
 * The nodes of a pool are a ring; one of buckets is in no list. A free node may still have a pool,
 * which was destroyed.
 */
#include "analyzer/base/budget.h"
#include "analyzer/base/error.h"
#include "analyzer/base/keep.h"
#include "analyzer/base/sort.h"
#include "analyzer/heap/allocator.h"
#include "analyzer/image/view.h"
#include "analyzer/program/symbols.h"

enum {
	WORD = 8,
	PAGE_BYTES = 4096,
	NODE_WORDS = 5,
	NODE_HEADER = NODE_WORDS * WORD,
	POOL_WORDS = 13,
	FREE_LISTS = 20,
	ALLOCATOR_WORDS = 5 + FREE_LISTS,
};

enum pool_word { ALLOCATOR = 6, CURRENT = 11, FIRST };

struct node {
	uint64_t start, end;
	bool is_free;
};

/* Free ones first, as the pool in such a one is gone. */
DEFINE_COMPARE(compare_nodes, struct node, ASCENDING(start), DESCENDING(is_free))

struct pool {
	uint64_t start; /* of its first node */
	uint64_t allocator;
};

DEFINE_COMPARE(compare_pools, struct pool, ASCENDING(allocator), ASCENDING(start))

struct apr_heap {
	struct heap heap;
	struct heap_context context;
	ARRAY(struct node) nodes; /* by address, apart */
	ARRAY(struct pool) pools;
	struct budget steps;
};

static const struct arena_kind arena_kinds[] = {
	{ .name = "apr", .group = "APR's allocators" },
	{ NULL },
};

static const struct free_kind free_kinds[] = {
	{ "APR's free nodes" },
	{ NULL },
};

static struct apr_heap *of(const struct heap *heap)
{
	return (struct apr_heap *)heap;
}

/* Read the node that begins a page; false: there is none. */
static bool read_node(struct view *view, uint64_t start, struct node *ret, uint64_t *ret_next)
{
	uint64_t words[NODE_WORDS];

	if (start == 0 || start % PAGE_BYTES || !view_read(view, start, words, sizeof(words)))
		return false;
	*ret = (struct node){ start, words[4], false };
	*ret_next = words[0];
	return ret->end > start && ret->end % PAGE_BYTES == 0 && words[3] - start >= NODE_HEADER &&
	       words[3] <= ret->end && view_reach(view, start, ret->end) >= ret->end;
}

/*
 * Note the pool that is in the page's node, or the node, if it is in no list; returns where to go
 * on.
 */
static struct error *add_page(struct apr_heap *heap, struct view *view, uint64_t page,
			      uint64_t *ret_end)
{
	uint64_t words[POOL_WORDS], next;
	struct node node;

	*ret_end = page + PAGE_BYTES;
	if (!read_node(view, page, &node, &next))
		return NULL;
	*ret_end = node.end;
	if (next == 0)
		return array_append(&heap->nodes, node);
	if (!view_read(view, page + NODE_HEADER, words, sizeof(words)) || words[FIRST] != page ||
	    words[CURRENT] % PAGE_BYTES)
		return NULL;
	return array_append(&heap->pools, (struct pool){ page, words[ALLOCATOR] });
}

static struct error *search_region(struct apr_heap *heap, const struct region *region)
{
	struct view view = { heap->context.image };
	uint64_t at = (region->start + PAGE_BYTES - 1) & -(uint64_t)PAGE_BYTES;

	while (at < region->end) {
		TRY(add_page(heap, &view, at, &at));
		at = image_next_data(heap->context.image, at) & -(uint64_t)PAGE_BYTES;
	}
	return NULL;
}

/* Add a list of nodes: up to its end, or to its begin again. */
static struct error *add_nodes(struct apr_heap *heap, uint64_t first, bool is_free)
{
	struct view view = { heap->context.image };
	uint64_t at = first;
	struct node node;

	do {
		if (!budget_take(&heap->steps) || !read_node(&view, at, &node, &at))
			return NULL;
		node.is_free = is_free;
		TRY(array_append(&heap->nodes, node));
	} while (at != first);
	return NULL;
}

static struct error *add_free(struct apr_heap *heap, uint64_t allocator)
{
	uint64_t words[ALLOCATOR_WORDS];

	if (!image_read(heap->context.image, allocator, words, sizeof(words)))
		return NULL;
	for (size_t i = ALLOCATOR_WORDS - FREE_LISTS; i < ALLOCATOR_WORDS; i++)
		TRY(add_nodes(heap, words[i], true));
	return NULL;
}

/* Keep each node once, without those that overlap the one before. */
static void sort_nodes(struct apr_heap *heap)
{
	array_sort(&heap->nodes, compare_nodes);
	array_keep(&heap->nodes, node, last, !last || node->start >= last->end);
}

/* Find the free nodes of all allocators, then the nodes of pools that are in none of these. */
static struct error *find_nodes(struct apr_heap *heap)
{
	size_t free_count;

	array_sort(&heap->pools, compare_pools);
	array_for_each(pool, &heap->pools)
		if (pool == heap->pools.items || pool->allocator != pool[-1].allocator)
			TRY(add_free(heap, pool->allocator));
	sort_nodes(heap);
	free_count = heap->nodes.count;
	array_for_each(pool, &heap->pools)
		if (!LIST_HOLDER(heap->nodes.items, free_count, start, end, pool->start))
			TRY(add_nodes(heap, pool->start, false));
	sort_nodes(heap);
	return NULL;
}

static struct error *apr_open(struct heap *base, const struct heap_context *context, bool *ret)
{
	struct apr_heap *heap = of(base);

	heap->context = *context;
	heap->steps = (struct budget){ context->image->size / PAGE_BYTES * 2 };
	arrays_use(context->account, &heap->nodes, &heap->pools, &base->owned);
	if (!program_has_code(context->program, "/libapr-1.", "apr_pool_create_ex"))
		return NULL;
	for (size_t i = 0; i < context->image->region_count; i++) {
		const struct region *region = &context->image->regions[i];

		if (region->bytes && (region->rights & RIGHT_WRITE) &&
		    !program_find_module(context->program, region->start))
			TRY(search_region(heap, region));
	}
	TRY(find_nodes(heap));
	array_for_each(node, &heap->nodes)
		TRY(array_append(&base->owned, (struct memory_range){ node->start, node->end }));
	*ret = heap->nodes.count > 0;
	return NULL;
}

static void apr_close(struct heap *base)
{
	arrays_release(&of(base)->nodes, &of(base)->pools, &base->owned);
}

static struct error *apr_walk(struct heap *base, struct block_sink *sink)
{
	struct arena arena = { .kind = arena_kinds };

	array_for_each(node, &of(base)->nodes) {
		arena.size += node->end - node->start;
		TRY(block_sink_region(sink, node->start, node->end, base->first_arena));
		TRY(block_sink_add(sink,
				   (struct block){ node->start, node->end - node->start,
						   node->is_free ? BLOCK_FREE : BLOCK_USED }));
	}
	return array_append(&base->arenas, arena);
}

static bool apr_size_fits(uint64_t size, uint64_t wanted, bool exactly)
{
	return size - wanted < 2 * PAGE_BYTES;
}

/* The numbers of pages are in the blocks. */
static struct error *apr_visit_structure(const struct heap *heap, program_range_visitor *visit,
					 void *data)
{
	array_for_each(node, &of(heap)->nodes)
		TRY(visit(data, node->start, NODE_HEADER));
	return NULL;
}

static bool apr_wrote(const struct heap *heap, struct block block, uint64_t offset, uint64_t word)
{
	return offset == 2 * WORD && word == block.size / PAGE_BYTES - 1;
}

const struct allocator allocator_apr = {
	.name = "apr",
	.summary = "the allocators of Apache's portable runtime",
	.is_private = true,
	.alignment = WORD,
	.arena_kinds = arena_kinds,
	.free_kinds = free_kinds,
	.heap_size = sizeof(struct apr_heap),
	FILL_SLOTS(apr, open, close, walk, size_fits, visit_structure, wrote),
};
