#include "analyzer/heap/heap_pages.h"

static const uint64_t NO_PAGE = UINT64_MAX;

struct page_walk {
	const struct allocation_index *index;
	struct error *(*visit)(void *data, const struct heap_page *page);
	void *data;
	struct heap_page page; /* start is NO_PAGE: none */
	allocation_id pinners[MOST_PINNERS];
	size_t pinner_count;
};

/* A page is complete. */
static struct error *end_page(struct page_walk *walk)
{
	struct heap_page page = walk->page;

	walk->page.start = NO_PAGE;
	if (page.start == NO_PAGE || page.free == 0)
		return NULL;
	page.whole = walk->pinner_count == 0 && !page.foreign;
	page.pinners = walk->pinners;
	page.pinner_count = walk->pinner_count;
	return walk->visit(walk->data, &page);
}

/* Go to the page of address, of that arena. */
static struct error *turn_page(struct page_walk *walk, uint64_t address, arena_number arena)
{
	uint64_t start = page_below(address);
	struct error *error;

	if (walk->page.start == start && walk->page.arena == arena)
		return NULL;
	error = end_page(walk);
	walk->page = (struct heap_page){ .start = start, .end = start + PAGE, .arena = arena };
	walk->pinner_count = 0;
	return error;
}

static bool is_cached(const struct page_walk *walk, allocation_id id)
{
	return bitmap_get(allocation_cached(walk->index), id);
}

/* [start, end), part of a page, is of the allocation. */
static struct error *add_part(struct page_walk *walk, arena_number arena, allocation_id id,
			      uint64_t start, uint64_t end)
{
	struct error *error = turn_page(walk, start, arena);

	if (bitmap_get(allocation_used(walk->index), id)) {
		if (walk->pinner_count < MOST_PINNERS)
			walk->pinners[walk->pinner_count++] = id;
		return error;
	}
	walk->page.free += end - start;
	if (is_cached(walk, id))
		walk->page.cached += end - start;
	return error;
}

/* [start, end), whole pages, is of the allocation. */
static struct error *add_pages(struct page_walk *walk, arena_number arena, allocation_id id,
			       uint64_t start, uint64_t end)
{
	const struct heap_page page = {
		.start = start,
		.end = end,
		.arena = arena,
		.free = end - start,
		.cached = is_cached(walk, id) ? end - start : 0,
		.whole = true,
	};
	struct error *error = end_page(walk);

	if (error || bitmap_get(allocation_used(walk->index), id))
		return error;
	return walk->visit(walk->data, &page);
}

static struct error *add_block(struct page_walk *walk, arena_number arena, allocation_id id,
			       struct memory_range range)
{
	uint64_t first = page_above(range.start), last = page_below(range.end);
	struct error *error = NULL;

	if (first > last || first < range.start) /* on one page */
		return add_part(walk, arena, id, range.start, range.end);
	if (range.start < first)
		error = add_part(walk, arena, id, range.start, first);
	if (!error && first < last)
		error = add_pages(walk, arena, id, first, last);
	if (!error && last < range.end)
		error = add_part(walk, arena, id, last, range.end);
	return error;
}

/* Where the region ends or begins within a page, that is not all its own. */
static struct error *mark_border(struct page_walk *walk, const struct heap_region *region,
				 uint64_t border)
{
	struct error *error;

	if (border % PAGE == 0)
		return NULL;
	error = turn_page(walk, border, region->arena);
	walk->page.foreign = true;
	return error;
}

static struct error *visit_region(struct page_walk *walk, const struct heap_region *region,
				  struct progress *progress)
{
	struct error *error = mark_border(walk, region, region->start);
	size_t end = region->first + (size_t)region->count, hint = 0;
	uint64_t told = region->first;

	for (size_t id = region->first; id < end && !error; id++) {
		struct memory_range range =
			allocation_range_near(walk->index, (allocation_id)id, &hint);

		error = add_block(walk, region->arena, (allocation_id)id, range);
		if (!error && !progress_pass(progress, id, &told))
			error = error_create(ERROR_INTERRUPTED, "interrupted");
	}
	return error ? error : mark_border(walk, region, region->end);
}

struct error *heap_pages_visit(const struct allocation_index *index, struct progress *progress,
			       struct error *(*visit)(void *data, const struct heap_page *page),
			       void *data)
{
	struct page_walk walk = {
		.index = index,
		.visit = visit,
		.data = data,
		.page.start = NO_PAGE,
	};
	struct error *error = NULL;

	progress_begin(progress, "looking at pages", allocation_count(index));
	for (size_t i = 0; i < heap_region_count(index) && !error; i++)
		error = visit_region(&walk, heap_region(index, i), progress);
	return error ? error : end_page(&walk);
}
