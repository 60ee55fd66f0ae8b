/*
 * Finding the pages of 3.x: a variable leads to the page map, which has a word for each 512 MiB of
 * addresses. It leads to a leaf, which has one for each slice of 64 KiB: the address of the
 * metadata of its page. The map may have some words in front of it.
 */
#include "allocators/mimalloc/mimalloc.h"

#include "analyzer/base/list.h"

enum {
	LEAF_SHIFT = 29,
	SLICE_SHIFT = 16,
	LEAF_WORDS = 1 << (LEAF_SHIFT - SLICE_SHIFT),
	FRONT_MOST = 512, /* bytes in front of the map */
	TRIED_LEAVES = 16,
	TRIED_MAPS = 4096,
	TRIED_NUMBERS = 64, /* of leaves, for which the process has memory */
	LEAVES_MOST = 4096,
	TRIED_PAGES = 8,      /* of a leaf */
	LOOKS_MOST = 1 << 20, /* at pages, in total, until a map is found */
	BYTES_LEAST = 8,      /* of a block */
	ARENA_FIELDS = 32,    /* of an arena: from there on, in these words, are its sizes */
	ARENA_WORDS = 4,
	SLICES_MOST = 1 << 28,
	MEMORY_BYTES = 24, /* end of the metadata: the source of the page's memory */
	META_MEMORY = 8,   /* where a slice for mimalloc's own says so */
};

struct search {
	struct mimalloc_heap *heap;
	struct view maps, leaves, pages;
	uint64_t numbers[TRIED_NUMBERS];
	size_t number_count;
};

static void add_number(struct search *search, uint64_t number)
{
	bool is_known =
		search->number_count > 0 && search->numbers[search->number_count - 1] == number;

	if (!is_known && search->number_count < TRIED_NUMBERS)
		search->numbers[search->number_count++] = number;
}

/* The numbers of the leaves of all memory that may be the process's own. */
static void list_numbers(struct search *search)
{
	const struct image *image = search->heap->context.image;

	for (size_t i = image->region_count; i-- > 0;) {
		const struct region *region = &image->regions[i];

		if (is_anonymous_memory(image, region->start)) {
			add_number(search, (region->end - 1) >> LEAF_SHIFT);
			add_number(search, region->start >> LEAF_SHIFT);
		}
	}
}

/* True if the page with these metadata has its blocks in this slice, from its start on. */
static bool is_page(const struct mimalloc_page *page, uint64_t slice)
{
	return page->bytes >= BYTES_LEAST && page->bytes >> 47 == 0 &&
	       page->first % ALIGNMENT == 0 && page->first >> SLICE_SHIFT == slice &&
	       page->capacity > 0 && page->capacity <= page->reserved &&
	       page->used <= page->capacity && page->metadata % ALIGNMENT == 0;
}

/* The number of the leaf, as one of the first pages that it leads to says; 0: none does. */
static uint64_t leaf_number(struct search *search, uint64_t leaf)
{
	uint64_t end = leaf + 8 * (uint64_t)LEAF_WORDS, word, last = 0;
	struct mimalloc_page page;
	unsigned int tried = 0;

	for (uint64_t at = leaf; tried < TRIED_PAGES; at += 8) {
		at = find_word(&search->leaves, at, end, 8, &word);
		if (at >= end)
			return 0;
		if (word == last)
			continue;
		last = word;
		tried++;
		search->heap->looks++;
		if (word >= PAGE && word % 8 == 0 &&
		    mimalloc_read_page(search->heap->layout, &search->pages, word, &page) &&
		    (page.first >> SLICE_SHIFT) % LEAF_WORDS == (at - leaf) / 8 &&
		    is_page(&page, page.first >> SLICE_SHIFT))
			return page.first >> LEAF_SHIFT;
	}
	return 0;
}

/* True if a page map is near address and has a leaf for memory in use; *ret is its first word. */
static bool is_map(struct search *search, uint64_t address, uint64_t *ret)
{
	unsigned int tried = 0;

	for (size_t i = 0; i < search->number_count; i++) {
		uint64_t number = search->numbers[i], place = address + 8 * number, word;

		for (uint64_t at = place; at <= place + FRONT_MOST && tried < TRIED_LEAVES;
		     at += 8) {
			if (!view_word(&search->maps, at, &word) || word < PAGE ||
			    word % PAGE != 0 || !is_anonymous_memory(search->maps.image, word))
				continue;
			tried++;
			*ret = at - 8 * number;
			if (search->heap->looks >= LOOKS_MOST)
				return false;
			if (leaf_number(search, word) == number)
				return true;
		}
	}
	return false;
}

static struct error *look(void *data, uint64_t where, uint64_t word)
{
	struct mimalloc_heap *heap = data;
	size_t count = heap->maps.count;

	if (count == TRIED_MAPS || (count > 0 && heap->maps.items[count - 1].address == word))
		return NULL;
	return word >= PAGE && word % PAGE == 0 && is_anonymous_memory(heap->context.image, word)
		       ? array_append(&heap->maps, (struct mimalloc_map){ word, where })
		       : NULL;
}

struct error *mimalloc_find_maps(struct mimalloc_heap *heap)
{
	const struct program *program = heap->context.program;

	list_for_each(module, program->modules, program->module_count)
		TRY(module_visit_words(heap->context.image, module, look, heap));
	return NULL;
}

/* Add the pages that the leaf leads to. Only the word for the slice where its blocks begin counts.
 */
static struct error *add_leaf(struct search *search, uint64_t leaf, uint64_t number)
{
	uint64_t end = leaf + 8 * (uint64_t)LEAF_WORDS, word, last = 0;
	struct mimalloc_page page;

	for (uint64_t at = leaf; at < end; at += 8) {
		uint64_t slice;

		at = find_word(&search->leaves, at, end, 8, &word);
		if (at >= end)
			break;
		slice = number * LEAF_WORDS + (at - leaf) / 8;
		if (word == last ||
		    !mimalloc_read_page(search->heap->layout, &search->pages, word, &page) ||
		    !is_page(&page, slice))
			continue;
		last = word;
		page.start = page.first;
		page.end = page.first + page.reserved * page.bytes;
		TRY(array_append(&search->heap->pages, page));
	}
	return progress_check(search->heap->context.progress, 0);
}

/* Add the leaves for memory that is there: what only looks like a map may have words for all. */
static struct error *add_leaves(struct search *search, uint64_t map)
{
	const struct image *image = search->heap->context.image;
	uint64_t next = 0, word;
	unsigned int leaves = 0;

	list_for_each(region, image->regions, image->region_count) {
		uint64_t last = (region->end - 1) >> LEAF_SHIFT;

		if (!is_anonymous_memory(image, region->start))
			continue;
		next = MAX(next, region->start >> LEAF_SHIFT);
		for (; next <= last && leaves < LEAVES_MOST; next++, leaves++)
			if (view_word(&search->maps, map + 8 * next, &word) && word >= PAGE &&
			    word % 8 == 0)
				TRY(add_leaf(search, word, next));
	}
	return NULL;
}

static bool find_map(struct search *search, uint64_t *ret)
{
	struct mimalloc_heap *heap = search->heap;

	array_for_each(map, &heap->maps)
		if (is_map(search, map->address, ret)) {
			heap->variable = map->variable;
			return true;
		}
	return false;
}

struct error *mimalloc_find_map(struct mimalloc_heap *heap)
{
	const struct image *image = heap->context.image;
	struct search search = { heap, { image }, { image }, { image } };
	uint64_t map;

	heap->looks = 0;
	list_numbers(&search);
	if (!find_map(&search, &map))
		return NULL;
	TRY(add_leaves(&search, map));
	mimalloc_keep_apart(heap);
	return NULL;
}

/*
 * Read the arena whose structure is at address: it has, behind each other, its start, from 3.6 on,
 * its slices, and those of its head.
 */
static bool read_arena(struct view *view, uint64_t address, struct mimalloc_segment *ret)
{
	uint64_t words[ARENA_WORDS];

	if (!view_read(view, address + ARENA_FIELDS, words, sizeof(words)))
		return false;
	for (unsigned int i = 0; i + 1 < ARENA_WORDS; i++) {
		uint64_t base = i > 0 ? words[i - 1] : 0, head = words[i + 1] * SLICE_BYTES;

		if (words[i] > SLICES_MOST || words[i + 1] >= words[i] || words[i + 1] == 0)
			continue;
		if (base % SLICE_BYTES != 0 || address - base >= head)
			base = address;
		*ret = (struct mimalloc_segment){ base, base + words[i] * SLICE_BYTES, base + head,
						  address };
		return true;
	}
	return false;
}

/* The memory that the page was allocated from: slices of the arena, or what the system gave. */
static bool read_range(const struct image *image, const struct mimalloc_segment *arena,
		       const struct mimalloc_page *page, struct memory_range *ret)
{
	uint64_t size = page->memory[1];

	*ret = (struct memory_range){ page->memory[0], page->memory[0] + size };
	if (arena) {
		ret->start = arena->start + (size & UINT32_MAX) * SLICE_BYTES;
		ret->end = ret->start + (size >> 32) * SLICE_BYTES;
	}
	return image_may_address(image, ret->start) && image_may_address(image, ret->end) &&
	       ret->start % PAGE == 0 && ret->start <= page->start && ret->end >= page->end;
}

/* The start of the page's memory, which may hold its metadata. */
static uint64_t page_base(const struct mimalloc_page *page)
{
	return page->start - page->metadata <= PAGE_METADATA ? page->metadata : page->start;
}

/* Extend the page to all that was allocated for it, up to the next one. */
static void extend_page(const struct mimalloc_heap *heap, struct mimalloc_page *page,
			struct memory_range range)
{
	page->start = range.start;
	if (page->metadata - range.start < page->first - range.start)
		page->start = page->metadata + heap->layout->memory + MEMORY_BYTES;
	page->end = range.end;
}

/* Find the arena that the page is from: the last one or a further one. *ret is NULL if it has none.
 */
static struct error *find_arena(struct mimalloc_heap *heap, const struct mimalloc_page *page,
				const struct mimalloc_segment **ret)
{
	struct view view = { heap->context.image };
	struct mimalloc_segment last = { 0 }, arena;

	*ret = NULL;
	if (page->memory[1] >> 32 == 0)
		return NULL;
	if (heap->segments.count > 0)
		last = heap->segments.items[heap->segments.count - 1];
	if (last.arena != page->memory[0]) {
		if (!read_arena(&view, page->memory[0], &arena) || arena.start < last.end)
			return NULL;
		TRY(array_append(&heap->segments, arena));
		last = arena;
	}
	if (page->start >= last.head_end && page->end <= last.end)
		*ret = &heap->segments.items[heap->segments.count - 1];
	return NULL;
}

/* Extend pages, and list the arenas that they are from. */
static struct error *read_memory(struct mimalloc_heap *heap)
{
	uint64_t end = 0;

	for (size_t i = 0; i < heap->pages.count; i++) {
		struct mimalloc_page *page = &heap->pages.items[i];
		uint64_t next = i + 1 < heap->pages.count ? page[1].start : UINT64_MAX;
		const struct mimalloc_segment *arena;
		struct memory_range range;

		TRY(find_arena(heap, page, &arena));
		if ((page->memory[1] >> 32 && !arena) ||
		    !read_range(heap->context.image, arena, page, &range) || range.end > next ||
		    range.start < end)
			continue;
		extend_page(heap, page, range);
		end = range.end;
	}
	return NULL;
}

/* True if the slice has mimalloc's own metadata, which say where its memory comes from. */
static bool is_meta(struct view *view, const struct mimalloc_segment *arena, uint64_t slice)
{
	uint64_t words[2];

	return view_read(view, slice + META_MEMORY, words, sizeof(words)) &&
	       words[0] == arena->arena &&
	       arena->start + (words[1] & UINT32_MAX) * SLICE_BYTES == slice;
}

static struct error *add_span(struct mimalloc_heap *heap, uint64_t start, uint64_t end)
{
	struct mimalloc_page span = { .start = start, .end = end };

	return start < end ? array_append(&heap->pages, span) : NULL;
}

/* Add what is free between two pages of the arena. */
static struct error *add_gap(struct mimalloc_heap *heap, const struct mimalloc_segment *arena,
			     uint64_t start, uint64_t end)
{
	struct view view = { heap->context.image };
	uint64_t from = start, slice = start;

	while (slice < end) {
		uint64_t data = image_next_data(view.image, slice);

		if (data >= slice + SLICE_BYTES) {
			slice = data / SLICE_BYTES * SLICE_BYTES;
			continue;
		}
		if (is_meta(&view, arena, slice)) {
			TRY(add_span(heap, from, slice));
			from = slice + SLICE_BYTES;
		}
		slice += SLICE_BYTES;
	}
	return add_span(heap, from, end);
}

struct error *mimalloc_find_arenas(struct mimalloc_heap *heap)
{
	size_t count, next = 0;

	if (!heap->layout->memory)
		return NULL;
	TRY(read_memory(heap));
	count = heap->pages.count;
	array_for_each(arena, &heap->segments) {
		uint64_t from = arena->head_end;

		heap->bytes += arena->end - arena->start;
		for (; next < count && heap->pages.items[next].start < arena->end; next++) {
			const struct mimalloc_page *page = &heap->pages.items[next];
			uint64_t base = page_base(page), end = page->end;

			if (base >= from && base % SLICE_BYTES == 0)
				TRY(add_gap(heap, arena, from, base));
			if (end > from)
				from = (end + SLICE_BYTES - 1) / SLICE_BYTES * SLICE_BYTES;
		}
		TRY(add_gap(heap, arena, from, arena->end));
	}
	mimalloc_keep_apart(heap);
	return progress_check(heap->context.progress, 0);
}
