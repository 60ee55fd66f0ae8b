#include "allocators/glibc/lists.h"

#include "analyzer/base/list.h"

#include <inttypes.h>
#include <xxhash.h>

enum { PROGRESS_STEP = 1 << 14 };

/* Without the seed, nobody can make other pairs with the same sum. */
static uint64_t hash(uint64_t from, uint64_t to, uint64_t seed)
{
	const uint64_t pair[] = { from, to };

	return XXH3_64bits_withSeed(pair, sizeof(pair), seed);
}

static void add_pair(struct glibc_links *links, struct view *view, uint64_t chunk, unsigned int at,
		     bool may_lack)
{
	const unsigned int word = image_word_size(view->image);
	uint64_t next, previous;

	if (view_word(view, chunk + (uint64_t)at * word, &next) &&
	    view_word(view, chunk + (at + UINT64_C(1)) * word, &previous) &&
	    !(may_lack && (next | previous) == 0)) {
		links->forth += hash(chunk, next, links->seed);
		links->back += hash(previous, chunk, links->seed);
	}
}

void glibc_add_links(struct glibc_links *links, struct view *view, uint64_t chunk, uint64_t size)
{
	add_pair(links, view, chunk, 2, false);
	/* One of each size has them. */
	if (size > links->small)
		add_pair(links, view, chunk, 4, true);
}

/* The address of the fake chunk whose links are those of the first bin. */
static uint64_t first_bin(const struct glibc_heap *heap, const struct glibc_arena *arena)
{
	return arena->address + arena->layout->bins - heap->header;
}

/* True if following the bins would find nothing wrong. */
static bool links_fit(const struct glibc_heap *heap)
{
	struct view view = { heap->context.image };
	struct glibc_links links = heap->links;

	for (size_t i = 0; i < heap->arena_count; i++)
		for (unsigned int j = 0; j < BINS; j++)
			glibc_add_links(&links, &view,
					first_bin(heap, &heap->arenas[i]) + heap->header * j, 0);
	return links.forth == links.back;
}

/* A broken link of a bin: of the chunk last, or of the chunk that it points to. */
struct misfit {
	bool found, in_core;
	uint64_t last, chunk;
	uint64_t steps; /* chunks before it */
};

/*
 * Visit the chunks of a bin, forth or back, until one does not point back, or visit returns an
 * error.
 */
static struct error *walk_bin(struct glibc_heap *heap, uint64_t bin, bool forth,
			      struct error *(*visit)(struct glibc_heap *heap, uint64_t chunk),
			      struct misfit *ret)
{
	struct view view = { heap->context.image };
	struct cycle_search search = { .power = 1 };
	const uint64_t fd = heap->header + (forth ? 0 : heap->word);
	const uint64_t bk = heap->header + (forth ? heap->word : 0);
	uint64_t chunk, last = bin, back = 0;

	*ret = (struct misfit){ 0 };
	if (!view_word(&view, bin + fd, &chunk))
		return NULL;
	while (chunk != bin) {
		*ret = (struct misfit){ true, false, last, chunk, search.steps };
		if (view_is_absent(&view, chunk)) {
			ret->found = false;
			return NULL;
		}
		if (!glibc_may_be_chunk(heap, chunk) || !view_word(&view, chunk + bk, &back))
			return NULL;
		ret->in_core = true;
		if (back != last || cycle_closes(&search, chunk))
			return NULL;
		TRY(visit ? visit(heap, chunk) : NULL);
		if (search.steps % PROGRESS_STEP == 0)
			TRY(progress_check(heap->context.progress, 0));
		last = chunk;
		if (!view_word(&view, chunk + fd, &chunk))
			return NULL;
	}
	*ret = (struct misfit){ view_word(&view, bin + bk, &back) && back != last, true, last, bin,
				search.steps };
	return NULL;
}

const char *glibc_bin_kind(uint64_t number)
{
	return number == 1 ? "unsorted bin" : number < 64 ? "small bin" : "large bin";
}

/*
 * A thread was changing the list when the core was taken. The chunks themselves say what is free,
 * so no answer is wrong.
 */
static void report_changing(struct glibc_heap *heap, const struct glibc_broken_list *list)
{
	findings_add(
		heap->context.findings, FINDING_NOTE,
		"the core was taken while a thread was changing an arena: the list of the %s at %#" PRIx64
		" is unfinished",
		list->kind, list->owner);
}

/* True if the list returns to the chunk at which it does not fit. */
static bool returns(const struct glibc_heap *heap, uint64_t bin, const struct misfit *misfit)
{
	struct view view = { heap->context.image };
	uint64_t at = bin, own;

	for (uint64_t i = 0; i < misfit->steps && view_word(&view, at + heap->header, &at); i++)
		if (at == misfit->chunk)
			return true;
	return misfit->in_core && misfit->chunk != bin &&
	       view_word(&view, misfit->chunk + heap->header, &own) && own == misfit->chunk;
}

/*
 * The chunk whose links are wrong, or the bin. From the other side, the list ends with a link to
 * that chunk, or comes to it.
 */
static uint64_t misfit_culprit(const struct misfit *forth, const struct misfit *back)
{
	if (back->found && back->chunk == forth->last)
		return forth->last;
	if (back->found && (back->last == forth->chunk || back->chunk == forth->chunk))
		return forth->chunk;
	return forth->in_core ? forth->chunk : forth->last;
}

static bool is_free_block(const struct glibc_heap *heap, const struct block_sink *sink,
			  uint64_t chunk)
{
	struct block block;

	return block_sink_find(sink, chunk + heap->header, &block) && block.state == BLOCK_FREE;
}

/*
 * True if the links of a large chunk to the next sizes fit. If not, *ret is the chunk with the
 * wrong link: the one that it points to, if that is free.
 */
static bool sizes_fit(const struct glibc_heap *heap, const struct block_sink *sink, uint64_t chunk,
		      uint64_t *ret)
{
	struct view view = { heap->context.image };
	const uint64_t links = heap->header + 2 * (uint64_t)heap->word;
	uint64_t to[2] = { 0, 0 }, back;

	if (!view_word(&view, chunk + links, &to[0]) ||
	    !view_word(&view, chunk + links + heap->word, &to[1]) || (to[0] | to[1]) == 0)
		return true;
	for (unsigned int i = 0; i < 2; i++) {
		uint64_t place = to[i] + links + (i == 0 ? heap->word : 0);

		if (view_word(&view, place, &back) && back == chunk)
			continue;
		*ret = is_free_block(heap, sink, to[i]) ? to[i] : chunk;
		return false;
	}
	return true;
}

/* The first chunk of a large bin, with fitting links, that has wrong ones to other sizes; or 0. */
static uint64_t find_size_misfit(const struct glibc_heap *heap, const struct block_sink *sink,
				 uint64_t bin, uint64_t steps)
{
	struct view view = { heap->context.image };
	uint64_t chunk = bin, culprit;

	while (steps-- > 0 && view_word(&view, chunk + heap->header, &chunk))
		if (!sizes_fit(heap, sink, chunk, &culprit))
			return culprit;
	return 0;
}

/* Find what is wrong with the list: where and how; list->user is 0 if nothing is. */
static struct error *check_bin(struct glibc_heap *heap, const struct block_sink *sink, uint64_t bin,
			       struct glibc_broken_list *list)
{
	struct misfit forth, back;
	uint64_t culprit;

	TRY(walk_bin(heap, bin, true, NULL, &forth));
	if (forth.found) {
		TRY(walk_bin(heap, bin, false, NULL, &back));
		culprit = misfit_culprit(&forth, &back);
		if (culprit != forth.last && returns(heap, bin, &forth)) {
			culprit = forth.chunk;
			list->fault = FAULT_TWICE;
		}
	} else {
		culprit = list->kind == glibc_bin_kind(BINS)
				  ? find_size_misfit(heap, sink, bin, forth.steps)
				  : 0;
	}
	list->user = culprit ? culprit + heap->header : 0;
	return NULL;
}

static struct error *check_bins(struct glibc_heap *heap, struct block_sink *sink,
				const struct glibc_arena *arena)
{
	uint64_t bin = first_bin(heap, arena);

	for (unsigned int i = 0; i < BINS; i++, bin += heap->header) {
		struct glibc_broken_list list = {
			.kind = glibc_bin_kind(i + 1),
			.owner = bin + heap->header,
		};
		struct view view = { heap->context.image };

		TRY(check_bin(heap, sink, bin, &list));
		if (!list.user)
			continue;
		if (list.user != list.owner)
			list.size = view_chunk_size(&view, list.user - heap->header);
		/* The list leads to it, whatever is left of its links. */
		block_sink_restate(sink, list.user, BLOCK_FREE);
		if (arena->locked)
			report_changing(heap, &list);
		else
			glibc_report_broken(heap, sink, &list, glibc_tell_work(arena),
					    "The chunks themselves say what is free");
		if (!arena->locked && heap->broken_count < MAXIMUM_FINDINGS)
			TRY(LIST_APPEND(heap->broken, heap->broken_count, list));
	}
	return NULL;
}

struct error *glibc_check_lists(struct glibc_heap *heap, struct block_sink *sink)
{
	for (size_t i = 0; i < heap->broken_count; i++)
		glibc_report_broken(heap, sink, &heap->broken[i], glibc_tell_any_work(heap),
				    "The rest of the list is recognised by its contents only");
	if (!links_fit(heap))
		for (size_t i = 0; i < heap->arena_count; i++)
			TRY(check_bins(heap, sink, &heap->arenas[i]));
	glibc_report_feet(heap);
	return NULL;
}

/*
 * The links of a heap's free chunks, by id: so a list is followed without reading the heap, which
 * is read once, in order.
 */
struct chain {
	const struct glibc_heap *heap;
	const struct allocation_index *index;
	struct view view;
	allocation_id *next; /* plus 1; 0: none */
	size_t hint;	     /* of the index */
	size_t count;	     /* of links to be found next */
	allocation_id ids[MOST_ADDRESSES];
	uint64_t links[MOST_ADDRESSES];
};

static void find_links(struct chain *chain)
{
	allocation_id found[MOST_ADDRESSES];

	allocation_find_many(chain->index, chain->links, chain->count, &chain->hint, found);
	for (size_t i = 0; i < chain->count; i++)
		chain->next[chain->ids[i]] = found[i] + 1;
	chain->count = 0;
}

/* Add the allocations from first on, below end. */
static void chain_ids(struct chain *chain, size_t first, size_t end)
{
	const struct bitmap *used = allocation_used(chain->index);
	const struct bitmap *cached = allocation_cached(chain->index);
	size_t hint = 0;

	for (size_t id = first; id < end; id++) {
		uint64_t start, link;

		if (bitmap_get(used, id) || bitmap_get(cached, id))
			continue;
		start = allocation_range_near(chain->index, (allocation_id)id, &hint).start;
		if (!view_word(&chain->view, start, &link))
			continue;
		chain->ids[chain->count] = (allocation_id)id;
		chain->links[chain->count++] = link + chain->heap->header;
		if (chain->count == MOST_ADDRESSES)
			find_links(chain);
	}
}

static struct error *chain_region(struct chain *chain, const struct heap_region *region)
{
	enum { STEP = 1 << 16 };
	const struct heap_context *context = &chain->heap->context;
	size_t first = region->first, end = first + region->count;

	while (end > first) {
		size_t start = end - first > STEP ? end - STEP : first;
		size_t next = start - first > STEP ? start - STEP : first;

		if (next < start)
			image_fetch(context->image,
				    allocation_start(chain->index, (allocation_id)next),
				    allocation_start(chain->index, (allocation_id)start));
		chain_ids(chain, start, end);
		allocations_release(context->image, chain->index, start, end);
		TRY(progress_check(context->progress, end - start));
		end = start;
	}
	return NULL;
}

/* Whatever the links say, it ends: nothing is visited twice. */
static void mark_unsorted(struct glibc_heap *heap, const struct chain *chain,
			  const struct glibc_arena *arena)
{
	struct view view = { heap->context.image };
	allocation_id id;
	uint64_t first;

	if (!view_word(&view, first_bin(heap, arena) + heap->header, &first))
		return;
	id = allocation_find(chain->index, first + heap->header);
	while (id != NO_ALLOCATION && !bitmap_get(&heap->unsorted, id)) {
		bitmap_set(&heap->unsorted, id);
		id = chain->next[id] - 1;
	}
}

struct error *glibc_find_unsorted(struct heap *base, const struct allocation_index *index)
{
	struct glibc_heap *heap = (struct glibc_heap *)base;
	struct memory_account *account = heap->context.account;
	_cleanup_(memory_release) struct memory next = { .account = account };
	struct chain chain = { heap, index, { heap->context.image } };

	if (heap->unsorted.words)
		return NULL;
	TRY(memory_resize(&next, allocation_count(index) * sizeof(*chain.next)));
	chain.next = next.bytes;
	for (size_t i = heap_region_count(index); i > 0; i--) {
		const struct heap_region *region = heap_region(index, i - 1);

		if (region->arena >= heap->heap.first_arena &&
		    region->arena - heap->heap.first_arena < heap->arena_count)
			TRY(chain_region(&chain, region));
	}
	find_links(&chain);
	TRY(bitmap_init(&heap->unsorted, allocation_count(index), account));
	for (size_t i = 0; i < heap->arena_count; i++)
		mark_unsorted(heap, &chain, &heap->arenas[i]);
	return NULL;
}

static struct error *vouch(struct glibc_heap *heap, uint64_t chunk)
{
	return array_append(&heap->vouched, chunk);
}

static struct error *vouch_all(struct glibc_heap *heap, const struct number_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		TRY(vouch(heap, list->items[i]));
	return NULL;
}

struct error *glibc_collect_vouched(struct glibc_heap *heap)
{
	TRY(vouch_all(heap, &heap->cached));
	TRY(vouch_all(heap, &heap->fast));
	list_for_each(arena, heap->arenas, heap->arena_count) {
		uint64_t bin = first_bin(heap, arena);
		struct misfit misfit;

		TRY(vouch(heap, arena->top));
		for (unsigned int j = 0; j < BINS; j++, bin += heap->header)
			TRY(walk_bin(heap, bin, true, vouch, &misfit));
	}
	number_list_sort(&heap->vouched);
	heap->vouched_known = true;
	return NULL;
}
