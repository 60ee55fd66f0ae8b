#include "analyzer/heap/fragments.h"

#include "analyzer/base/bytes.h"
#include "analyzer/image/residency.h"

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

	if (walk->page.start == start && walk->page.arena == arena)
		return NULL;
	TRY(end_page(walk));
	walk->page = (struct heap_page){ .start = start, .end = start + PAGE, .arena = arena };
	walk->pinner_count = 0;
	return NULL;
}

static bool is_cached(const struct page_walk *walk, allocation_id id)
{
	return bitmap_get(allocation_cached(walk->index), id);
}

/* [start, end), part of a page, is of the allocation. */
static struct error *add_part(struct page_walk *walk, arena_number arena, allocation_id id,
			      uint64_t start, uint64_t end)
{
	TRY(turn_page(walk, start, arena));
	if (bitmap_get(allocation_used(walk->index), id)) {
		if (walk->pinner_count < MOST_PINNERS)
			walk->pinners[walk->pinner_count++] = id;
		return NULL;
	}
	walk->page.free += end - start;
	if (is_cached(walk, id))
		walk->page.cached += end - start;
	return NULL;
}

/* [start, end), whole pages, is of the allocation. */
static struct error *add_whole_pages(struct page_walk *walk, arena_number arena, allocation_id id,
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

	TRY(end_page(walk));
	if (bitmap_get(allocation_used(walk->index), id))
		return NULL;
	return walk->visit(walk->data, &page);
}

static struct error *add_block(struct page_walk *walk, arena_number arena, allocation_id id,
			       struct memory_range range)
{
	uint64_t first = page_above(range.start), last = page_below(range.end);

	if (first > last || first < range.start) /* on one page */
		return add_part(walk, arena, id, range.start, range.end);
	if (range.start < first)
		TRY(add_part(walk, arena, id, range.start, first));
	if (first < last)
		TRY(add_whole_pages(walk, arena, id, first, last));
	return last < range.end ? add_part(walk, arena, id, last, range.end) : NULL;
}

/* If the region begins or ends within a page, that page is shared. */
static struct error *mark_border(struct page_walk *walk, const struct heap_region *region,
				 uint64_t border)
{
	if (border % PAGE == 0)
		return NULL;
	TRY(turn_page(walk, border, region->arena));
	walk->page.foreign = true;
	return NULL;
}

static struct error *visit_region(struct page_walk *walk, const struct heap_region *region,
				  struct progress *progress)
{
	size_t end = region->first + (size_t)region->count, hint = 0;
	uint64_t reported = region->first;

	TRY(mark_border(walk, region, region->start));
	for (size_t id = region->first; id < end; id++) {
		struct memory_range range =
			allocation_range_near(walk->index, (allocation_id)id, &hint);

		TRY(add_block(walk, region->arena, (allocation_id)id, range));
		TRY(progress_check_at(progress, id, &reported));
	}
	return mark_border(walk, region, region->end);
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

	progress_begin(progress, "examining pages", allocation_count(index));
	for (size_t i = 0; i < heap_region_count(index); i++)
		TRY(visit_region(&walk, heap_region(index, i), progress));
	return end_page(&walk);
}

struct fragments {
	struct arena_fragments *arenas;
	size_t count;
};

/* State that the threads share. */
struct survey {
	struct fragments *fragments;
	const struct allocation_index *index;
	const struct image *image;
	struct progress *progress;
	struct error *(*visit)(void *data, const struct heap_page *page);
	void *data;
	enum residency_source told_by;
	bool interrupted;
};

void fragments_destroy(struct fragments *fragments)
{
	free(fragments->arenas);
	free(fragments);
}

const struct arena_fragments *fragments_of(const struct fragments *fragments, arena_number arena)
{
	return &fragments->arenas[arena];
}

static unsigned int size_class(uint64_t size)
{
	unsigned int class = size ? 63 - (unsigned int)__builtin_clzll(size) : 0;

	return class < SIZE_CLASSES ? class : SIZE_CLASSES - 1;
}

static void add_free(struct arena_fragments *arena, uint64_t size, bool cached)
{
	const struct set_total one = { 1, size };

	set_total_add(&arena->free, one);
	if (cached)
		set_total_add(&arena->cached, one);
	set_total_add(&arena->classes[size_class(size)], one);
	if (size > arena->largest)
		arena->largest = size;
}

/* Add [start, end), counted from the arena's begin, to the cells it is in. */
static void add_to_map(struct arena_fragments *arena, uint64_t start, uint64_t end, size_t *cell)
{
	while (*cell + 1 < MAP_CELLS && start >= (*cell + 1) * arena->cell_size)
		(*cell)++;
	while (start < end) {
		uint64_t border = (*cell + 1) * arena->cell_size;
		uint64_t stop = end < border || *cell + 1 == MAP_CELLS ? end : border;

		arena->map[*cell] += stop - start;
		start = stop;
		if (start < end)
			(*cell)++;
	}
}

/* Count the region's blocks, which begins *offset bytes into the arena. */
static struct error *count_region(const struct survey *survey, const struct heap_region *region,
				  uint64_t offset)
{
	struct arena_fragments *arena = &survey->fragments->arenas[region->arena];
	const struct bitmap *used = allocation_used(survey->index);
	const struct bitmap *cached = allocation_cached(survey->index);
	size_t end = region->first + (size_t)region->count, hint = 0, cell = 0;
	uint64_t reported = region->first;

	for (size_t id = region->first; id < end; id++) {
		struct memory_range range =
			allocation_range_near(survey->index, (allocation_id)id, &hint);
		uint64_t size = range.end - range.start;
		uint64_t start = offset + (range.start - region->start);

		if (bitmap_get(used, id)) {
			set_total_add(&arena->used, (struct set_total){ 1, size });
			add_to_map(arena, start, start + size, &cell);
		} else {
			add_free(arena, size, bitmap_get(cached, id));
		}
		TRY(progress_check_at(survey->progress, id, &reported));
	}
	return NULL;
}

/* Sizes first: only then it is known which part of the map a block is in. */
static struct error *count_blocks(const struct survey *survey)
{
	struct arena_fragments *arenas = survey->fragments->arenas;
	_cleanup_(free) uint64_t *offsets = calloc(survey->fragments->count + 1, sizeof(*offsets));

	TRY_MEMORY(offsets);
	for (size_t i = 0; i < heap_region_count(survey->index); i++) {
		const struct heap_region *region = heap_region(survey->index, i);

		arenas[region->arena].size += region->end - region->start;
	}
	for (size_t i = 0; i < survey->fragments->count; i++)
		arenas[i].cell_size = (arenas[i].size + MAP_CELLS - 1) / MAP_CELLS;
	progress_begin(survey->progress, "counting blocks", allocation_count(survey->index));
	for (size_t i = 0; i < heap_region_count(survey->index); i++) {
		const struct heap_region *region = heap_region(survey->index, i);

		TRY(count_region(survey, region, offsets[region->arena]));
		offsets[region->arena] += region->end - region->start;
	}
	return NULL;
}

static struct error *count_page(void *data, const struct heap_page *page)
{
	const struct survey *survey = data;
	struct arena_fragments *arena = &survey->fragments->arenas[page->arena];

	if (page->whole) {
		arena->kept += page->free;
	} else {
		arena->pinned += page->free;
		arena->pinned_pages += page->end - page->start;
	}
	return survey->visit ? survey->visit(survey->data, page) : NULL;
}

static bool is_blank(const struct image *image, uint64_t page)
{
	uint64_t available;
	const uint8_t *bytes = image_bytes(image, page, &available);

	return bytes && available >= PAGE && bytes_are_zero(bytes, PAGE);
}

/* If a hole of the dump's file begins at page, the end of the hole; else the end of the page. */
static uint64_t end_of_hole(const struct survey *survey, uint64_t page, bool *ret_hole)
{
	const struct region *region = image_find(survey->image, page);
	uint64_t next = region ? region->end : UINT64_MAX;

	if (region && region->bytes)
		next = image_next_data(survey->image, page);
	next = page_below(next);
	*ret_hole = next > page;
	return *ret_hole ? next : page + PAGE;
}

/* The sum that zero pages count to, whether in a hole of the dump's file or not. */
static uint64_t *fate_of_zeros(const struct survey *survey, bool hole, struct page_bytes *pages)
{
	if (survey->told_by == RESIDENCY_ZEROS)
		return &pages->blank;
	/* Cores by heapcore leave out all zeros. */
	return hole || survey->told_by == RESIDENCY_SMAPS ? &pages->absent : &pages->resident;
}

/*
 * A page that was never touched or was given back is a hole of the dump's file, as the kernel
 * writes it. Others write zeros there, or make holes of zeros.
 */
static struct page_bytes count_pages(struct survey *survey, uint64_t start, uint64_t end)
{
	struct page_bytes pages = { 0 };
	uint64_t reported = start, next;

	for (uint64_t page = start; page < end && !survey->interrupted; page = next) {
		bool missing = !image_bytes(survey->image, page, &next);
		bool hole = false;
		uint64_t *fate = &pages.absent;

		/* Only zeros can be a hole: others need not ask the system. */
		if (!missing && !is_blank(survey->image, page)) {
			next = page + PAGE;
			fate = &pages.resident;
		} else {
			next = end_of_hole(survey, page, &hole);
			if (!missing)
				fate = fate_of_zeros(survey, hole, &pages);
		}
		next = next < end ? next : end;
		*fate += next - page;
		survey->interrupted = !progress_pass(survey->progress, next, &reported);
	}
	return pages;
}

static void add_pages(struct page_bytes *total, struct page_bytes pages)
{
	total->resident += pages.resident;
	total->absent += pages.absent;
	total->blank += pages.blank;
}

static void count_spare(void *data, const struct spare *spare)
{
	struct survey *survey = data;
	struct arena_fragments *arena = &survey->fragments->arenas[spare->arena];
	uint64_t size = spare->end - spare->start;
	struct page_bytes *const kinds[] = {
		[SPARE_INSIDE] = &arena->inside,
		[SPARE_END] = &arena->end,
		[SPARE_KEPT] = &arena->top,
	};

	add_pages(kinds[spare->kind], count_pages(survey, spare->start, spare->end));
	if (spare->kind != SPARE_KEPT)
		arena->kept -= size < arena->kept ? size : arena->kept;
}

void fragments_add(struct arena_fragments *total, const struct arena_fragments *arena)
{
	set_total_add(&total->used, arena->used);
	set_total_add(&total->free, arena->free);
	set_total_add(&total->cached, arena->cached);
	for (size_t i = 0; i < SIZE_CLASSES; i++)
		set_total_add(&total->classes[i], arena->classes[i]);
	if (arena->largest > total->largest)
		total->largest = arena->largest;
	total->pinned += arena->pinned;
	total->pinned_pages += arena->pinned_pages;
	total->kept += arena->kept;
	add_pages(&total->inside, arena->inside);
	add_pages(&total->end, arena->end);
	add_pages(&total->top, arena->top);
	total->size += arena->size;
}

struct error *fragments_create(const struct heaps *heaps, const struct image *image,
			       struct progress *progress,
			       struct error *(*visit)(void *data, const struct heap_page *page),
			       void *data, struct fragments **ret)
{
	_cleanup_(fragments_destroy) struct fragments *fragments = calloc(1, sizeof(*fragments));
	struct survey survey = {
		.fragments = fragments,
		.index = heaps_index(heaps),
		.image = image,
		.progress = progress,
		.visit = visit,
		.data = data,
		.told_by = residency_told_by(image),
	};

	TRY_MEMORY(fragments);
	fragments->count = heaps_arena_count(heaps);
	fragments->arenas = calloc(fragments->count + 1, sizeof(*fragments->arenas));
	TRY_MEMORY(fragments->arenas);
	TRY(heaps_wake(heaps));
	TRY(count_blocks(&survey));
	TRY(heap_pages_visit(survey.index, progress, count_page, &survey));
	progress_begin(progress, "examining free pages", 0);
	heaps_visit_spare(heaps, count_spare, &survey);
	if (survey.interrupted)
		return error_create(ERROR_INTERRUPTED, "interrupted");
	*ret = take(fragments);
	return NULL;
}
