/*
 * Pages and their free lists.
 *
 * Of a page's blocks, capacity have been carved so far. Free ones are on three lists, linked by
 * their first words: that to allocate from, what its thread freed lately, and what other threads
 * freed. used counts all that are not on the first two. What others free into a full page waits on
 * a list of the heap that has the page, which is followed by the number of the heap's thread.
 */
#include "allocators/mimalloc/mimalloc.h"

enum {
	OFFSET_UNIT = 64,
	OFFSETS = 16,
	OFFSET_LIKELY = 6,	 /* 384 bytes: 2.0.9 */
	SMALL_MOST = 1024,	 /* larger blocks begin where the page does */
	HEAP_WORDS = 600,	 /* in which the number of its thread is */
	HUGE_BYTES = 2147483647, /* the size of those is that of the page */
	MOST_HEAPS = 1 << 12,
};

const struct mimalloc_page *mimalloc_find_page(const struct mimalloc_heap *heap, uint64_t address)
{
	size_t above = LIST_ABOVE(heap->pages.items, heap->pages.count, start, address);

	return above > 0 && address < heap->pages.items[above - 1].end
		       ? &heap->pages.items[above - 1]
		       : NULL;
}

bool mimalloc_is_delayed(const struct mimalloc_heap *heap, uint64_t address)
{
	return heap->delayed.count > 0 &&
	       bsearch(&address, heap->delayed.items, heap->delayed.count, sizeof(address),
		       compare_u64);
}

static bool begins_later(const struct mimalloc_page *page)
{
	return page->bytes >= 8 && page->bytes <= SMALL_MOST;
}

/* How many pages have a free block where one may begin, if blocks begin so far in small ones. */
static size_t vote(const struct mimalloc_heap *heap, uint64_t offset)
{
	size_t votes = 0;

	array_for_each(page, &heap->pages) {
		uint64_t block = page->lists[LIST_FREE];

		votes += begins_later(page) && block &&
			 (block - page->start - offset) % page->bytes == 0;
	}
	return votes;
}

static uint64_t choose_offset(const struct mimalloc_heap *heap)
{
	uint64_t best = OFFSET_LIKELY;
	size_t most = vote(heap, best * OFFSET_UNIT);

	for (uint64_t i = 0; i < OFFSETS; i++) {
		size_t votes = vote(heap, i * OFFSET_UNIT);

		if (votes > most) {
			most = votes;
			best = i;
		}
	}
	return best * OFFSET_UNIT;
}

static void set_starts(struct mimalloc_heap *heap)
{
	uint64_t offset = choose_offset(heap);

	array_for_each(page, &heap->pages) {
		uint64_t room;

		page->first = page->start + (begins_later(page) ? offset : 0);
		room = page->end - page->first;
		if (page->bytes >= HUGE_BYTES)
			page->bytes = room;
		if (page->bytes > 0 && page->capacity > room / page->bytes)
			page->capacity = (uint32_t)(room / page->bytes);
	}
}

/* The number of the block in the page; MOST_BLOCKS: none begins there. */
static uint64_t block_number(const struct mimalloc_page *page, uint64_t address)
{
	uint64_t offset = address - page->first;

	return offset % page->bytes == 0 && offset / page->bytes < page->capacity
		       ? offset / page->bytes
		       : MOST_BLOCKS;
}

struct lists {
	struct view view;
	uint64_t free[MOST_BLOCKS / 64]; /* a bit for each block of the page */
	uint64_t count;			 /* on the lists that used leaves out */
	bool is_absent;
};

/* Set the bits of the blocks on the list; false: it leads elsewhere. */
static bool read_list(struct lists *lists, const struct mimalloc_page *page, unsigned int list)
{
	for (uint64_t block = page->lists[list]; block;) {
		uint64_t number = block_number(page, block);

		if (number == MOST_BLOCKS || lists->free[number / 64] >> number % 64 & 1)
			return false;
		lists->free[number / 64] |= UINT64_C(1) << number % 64;
		lists->count += list != LIST_THREAD;
		if (!view_word(&lists->view, block, &block)) {
			lists->is_absent = true;
			return true;
		}
	}
	return true;
}

static bool read_lists(struct lists *lists, const struct mimalloc_page *page)
{
	bool fits = true;

	memset(lists->free, 0, (page->capacity + 63) / 64 * 8);
	lists->count = 0;
	lists->is_absent = false;
	for (unsigned int i = 0; i < LISTS; i++)
		fits &= read_list(lists, page, i);
	return fits;
}

bool mimalloc_fits(const struct mimalloc_heap *heap)
{
	_cleanup_(free) struct lists *lists = calloc(1, sizeof(*lists));
	size_t fits = 0, pages = 0;

	if (!lists)
		return false;
	lists->view.image = heap->context.image;
	array_for_each(page, &heap->pages) {
		if (!page->bytes)
			continue;
		pages++;
		fits += page->capacity > 0 && read_lists(lists, page) &&
			page->used + lists->count == page->capacity;
	}
	return pages > 0 && fits * 4 >= pages * 3;
}

/* Add the blocks of the list that wait to be freed into their pages. */
static struct error *add_delayed(struct mimalloc_heap *heap, struct view *view, uint64_t block)
{
	for (uint64_t budget = heap->bytes / ALIGNMENT; block && budget > 0; budget--) {
		const struct mimalloc_page *page = mimalloc_find_page(heap, block);

		if (!page || !page->bytes || block_number(page, block) == MOST_BLOCKS) {
			heap_damage_note(&heap->lists, block);
			return NULL;
		}
		TRY(array_append(&heap->delayed, block));
		if (!view_word(view, block, &block))
			return NULL;
	}
	return NULL;
}

static bool is_thread(const struct program *program, uint64_t word)
{
	list_for_each(thread, program->threads, program->thread_count)
		if (word && thread->thread_pointer == word)
			return true;
	return false;
}

/* The list of a heap's is in front of the number of its thread, which is its thread pointer. */
static struct error *read_heap(struct mimalloc_heap *heap, struct view *view, uint64_t address)
{
	struct view words = { heap->context.image };
	uint64_t word, block;

	for (unsigned int i = 1; i < HEAP_WORDS; i++) {
		uint64_t at = address + 8 * (uint64_t)i;

		if (!view_word(&words, at, &word) || !is_thread(heap->context.program, word))
			continue;
		return view_word(&words, at - 8, &block) ? add_delayed(heap, view, block) : NULL;
	}
	return NULL;
}

/* Each heap that has pages. */
static struct error *read_heaps(struct mimalloc_heap *heap)
{
	_cleanup_(free) uint64_t *heaps = calloc(heap->pages.count + 1, sizeof(*heaps));
	struct view view = { heap->context.image };
	size_t count = 0, read = 0;

	if (!heaps)
		return &error_no_memory;
	array_for_each(page, &heap->pages)
		if (page->bytes && page->heap)
			heaps[count++] = page->heap;
	SORT(heaps, count, compare_u64);
	for (size_t i = 0; i < count && read < MOST_HEAPS; i++) {
		if (i > 0 && heaps[i] == heaps[i - 1])
			continue;
		TRY(read_heap(heap, &view, heaps[i]));
		read++;
	}
	SORT(heap->delayed.items, heap->delayed.count, compare_u64);
	return NULL;
}

struct error *mimalloc_read_pages(struct mimalloc_heap *heap)
{
	set_starts(heap);
	return read_heaps(heap);
}

static struct error *add_page(struct mimalloc_heap *heap, struct lists *lists,
			      const struct mimalloc_page *page, struct block_sink *sink)
{
	if (!page->bytes)
		return block_sink_add(
			sink, (struct block){ page->start, page->end - page->start, BLOCK_FREE });
	if (!read_lists(lists, page))
		heap_damage_note(&heap->lists, page->start);
	else if (lists->is_absent)
		heap_damage_note(&heap->absent, page->start);
	else if (page->used + lists->count != page->capacity)
		heap_damage_note(&heap->counts, page->start);
	for (uint64_t i = 0; i < page->capacity; i++) {
		uint64_t start = page->first + i * page->bytes;
		bool is_free =
			lists->free[i / 64] >> i % 64 & 1 || mimalloc_is_delayed(heap, start);

		TRY(block_sink_add(sink, (struct block){ start, page->bytes,
							 is_free ? BLOCK_FREE : BLOCK_USED }));
	}
	return NULL;
}

struct error *mimalloc_add_blocks(struct mimalloc_heap *heap, arena_number arena,
				  struct block_sink *sink)
{
	_cleanup_(free) struct lists *lists = calloc(1, sizeof(*lists));

	if (!lists)
		return &error_no_memory;
	lists->view.image = heap->context.image;
	array_for_each(page, &heap->pages) {
		TRY(block_sink_region(sink, page->start, page->end, arena));
		TRY(add_page(heap, lists, page, sink));
		TRY(progress_check(heap->context.progress, page->end - page->start));
	}
	return NULL;
}
