/*
 * Pages and their free lists.
 *
 * Of a page's blocks, capacity have been carved so far. Free ones are on three lists, linked by
 * their first words: that to allocate from, what its thread freed lately, and what other threads
 * freed. used counts all that are not on the first two. What others free into a full page waits on
 * a list of the heap that has the page, which is followed by the number of the heap's thread.
 */
#include "allocators/mimalloc/mimalloc.h"

#include "analyzer/base/budget.h"
#include "analyzer/base/keep.h"
#include "analyzer/base/sort.h"
#include "analyzer/heap/sink.h"

enum {
	VOTERS = 1024,	  /* pages */
	HEAP_WORDS = 600, /* in which the number of its thread is */
	HEAP_KEYS = 24,	  /* behind that number, in bytes */
	MOST_HEAPS = 1 << 12,
	MOST_VARIABLES = 1 << 12, /* bytes of thread-local ones */
	PADDING = 8,		  /* at the end of a block, where that is checked */
};

static const uint32_t CANARY_MASK = 0xffffff00; /* later versions leave out the lowest byte */

/* The next block, as a link in a list says; owner: of the list. */
static uint64_t decode(uint64_t link, const uint64_t keys[2], uint64_t owner)
{
	unsigned int by = keys[0] % 64;
	uint64_t word = link - keys[0];

	if (!keys[0] && !keys[1])
		return link;
	word = (by ? word >> by | word << (64 - by) : word) ^ keys[1];
	return word == owner ? 0 : word;
}

static uint64_t encode(uint64_t block, const uint64_t keys[2])
{
	unsigned int by = keys[0] % 64;
	uint64_t word = block ^ keys[1];

	return (by ? word << by | word >> (64 - by) : word) + keys[0];
}

const struct mimalloc_page *mimalloc_find_page(const struct mimalloc_heap *heap, uint64_t address)
{
	return LIST_HOLDER(heap->pages.items, heap->pages.count, start, end, address);
}

DEFINE_COMPARE(compare_pages, struct mimalloc_page, ASCENDING(start), ASCENDING(metadata))

void mimalloc_keep_apart(struct mimalloc_heap *heap)
{
	array_sort(&heap->pages, compare_pages);
	array_keep(&heap->pages, page, last,
		   page->start < page->end && (!last || page->start >= last->end));
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
	uint64_t wrong; /* the first block whose link leads elsewhere, */
	uint64_t twice; /* or that lists have twice; 0: none */
	bool has_head;	/* all lists begin with a block, if with anything */
};

/* Set the bits of the blocks on the list; false: it leads elsewhere. */
static bool read_list(struct lists *lists, const struct mimalloc_page *page, unsigned int list)
{
	uint64_t last = 0;

	for (uint64_t block = page->lists[list]; block;) {
		uint64_t number = block_number(page, block);

		if (number == MOST_BLOCKS) {
			lists->has_head &= last != 0;
			lists->wrong = lists->wrong ? lists->wrong : last;
			return false;
		}
		if (lists->free[number / 64] >> number % 64 & 1) {
			lists->twice = lists->twice ? lists->twice : block;
			return false;
		}
		last = block;
		lists->free[number / 64] |= UINT64_C(1) << number % 64;
		lists->count += list != LIST_THREAD;
		if (!view_word(&lists->view, block, &block)) {
			lists->is_absent = true;
			return true;
		}
		block = decode(block, page->keys, page->metadata);
	}
	return true;
}

static bool read_lists(struct lists *lists, const struct mimalloc_page *page)
{
	bool fits = true;

	memset(lists->free, 0, (page->capacity + 63) / 64 * 8);
	lists->count = 0;
	lists->is_absent = false;
	lists->wrong = lists->twice = 0;
	lists->has_head = true;
	for (unsigned int i = 0; i < LISTS; i++)
		fits &= read_list(lists, page, i);
	return fits;
}

struct error *mimalloc_vote(const struct mimalloc_heap *heap, struct mimalloc_votes *ret)
{
	_cleanup_(free) struct lists *lists = calloc(1, sizeof(*lists));

	*ret = (struct mimalloc_votes){ 0 };
	TRY_MEMORY(lists);
	lists->view.image = heap->context.image;
	for (size_t i = 0; i < heap->pages.count && ret->pages < VOTERS; i++) {
		const struct mimalloc_page *page = &heap->pages.items[i];

		if (!page->bytes)
			continue;
		ret->pages++;
		if (page->capacity == 0)
			continue;
		if (read_lists(lists, page))
			ret->fits += page->used + lists->count == page->capacity;
		else
			ret->damaged +=
				lists->has_head && page->used + lists->count <= page->capacity;
	}
	return NULL;
}

/* Add the blocks of the list of the heap at owner that wait to be freed into their pages. */
static struct error *add_delayed(struct mimalloc_heap *heap, struct view *view, uint64_t owner,
				 uint64_t block, const uint64_t keys[2])
{
	struct budget budget = { heap->bytes / ALIGNMENT };
	uint64_t last = 0;

	while (block && budget_take(&budget)) {
		const struct mimalloc_page *page = mimalloc_find_page(heap, block);

		if (!page || !page->bytes || block_number(page, block) == MOST_BLOCKS) {
			heap_damage_note(last ? &heap->lists.links : &heap->heads,
					 last ? last : owner);
			return NULL;
		}
		TRY(array_append(&heap->delayed, block));
		last = block;
		if (!view_word(view, block, &block))
			return NULL;
		block = decode(block, keys, owner);
	}
	return NULL;
}

/*
 * True if word is a thread's id: its thread pointer or, with compilers or versions that cannot read
 * that, the first word there, which is the same on x86; or, if the pointer has no register of its
 * own, the address of a thread-local variable above it.
 */
static bool is_thread(const struct program *program, uint64_t word)
{
	const uint64_t above = program->pthread_pointer ? MOST_VARIABLES : 1;
	struct view view = { program->image };

	list_for_each(thread, program->threads, program->thread_count) {
		uint64_t pointer = thread->thread_pointer, first;

		if (word && pointer &&
		    (word - pointer < above ||
		     (view_word(&view, pointer, &first) && first == word)))
			return true;
	}
	return false;
}

/*
 * The list of a heap's is in front of the number of its thread, which is its thread pointer. The
 * keys of the heap are behind it.
 */
static struct error *read_heap(struct mimalloc_heap *heap, struct view *view, uint64_t address)
{
	struct view words = { heap->context.image };
	uint64_t keys[2] = { 0, 0 }, word, block;

	for (unsigned int i = 1; i < HEAP_WORDS; i++) {
		uint64_t at = address + 8 * (uint64_t)i;

		if (!view_word(&words, at, &word) || !is_thread(heap->context.program, word))
			continue;
		if (!view_word(&words, at - 8, &block) ||
		    (heap->layout->keys && !view_read(&words, at + HEAP_KEYS, keys, sizeof(keys))))
			return NULL;
		return add_delayed(heap, view, address, block, keys);
	}
	return NULL;
}

/* Each heap that has pages. */
struct error *mimalloc_read_heaps(struct mimalloc_heap *heap)
{
	_cleanup_(free) uint64_t *heaps = calloc(heap->pages.count + 1, sizeof(*heaps));
	struct view view = { heap->context.image };
	size_t count = 0, read = 0;

	TRY_MEMORY(heaps);
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

/*
 * The size of the used block without what is behind it in builds that check for overruns: a number
 * made of its address, and how many bytes before that the program did not ask for.
 */
static uint64_t size_asked_for(struct mimalloc_heap *heap, struct lists *lists,
			       const struct mimalloc_page *page, uint64_t block)
{
	uint64_t most = page->bytes - PADDING;
	uint32_t padding[2], canary = (uint32_t)encode(block, page->keys);

	if (!(page->keys[0] | page->keys[1]) || page->bytes <= PADDING ||
	    !view_read(&lists->view, block + most, padding, sizeof(padding)))
		return page->bytes;
	if ((padding[0] != canary && padding[0] != (canary & CANARY_MASK)) || padding[1] > most) {
		heap_damage_note(&heap->overruns, block);
		return page->bytes;
	}
	heap->checked_blocks++;
	/* An allocation of 0 bytes still has an address. */
	return padding[1] < most ? most - padding[1] : 1;
}

/* Set the bits of the page's blocks that wait on lists of heaps. */
static void take_delayed(const struct mimalloc_heap *heap, const struct mimalloc_page *page,
			 struct lists *lists)
{
	size_t count = heap->delayed.count;
	const uint64_t *delayed = heap->delayed.items;

	for (size_t i = BISECT(j, 0, count, delayed[j] < page->first);
	     i < count && delayed[i] < page->end; i++) {
		uint64_t number = block_number(page, delayed[i]);

		if (number < MOST_BLOCKS)
			lists->free[number / 64] |= UINT64_C(1) << number % 64;
	}
}

/* Add the blocks of a page, by the bits of the free ones. */
static struct error *add_page_blocks(struct mimalloc_heap *heap, struct lists *lists,
				     const struct mimalloc_page *page, struct block_sink *sink)
{
	if (!(page->keys[0] | page->keys[1])) {
		for (uint64_t i = 0; i * 64 < page->capacity; i++)
			lists->free[i] = ~lists->free[i];
		return block_sink_add_row(sink, page->first, page->bytes, lists->free, NULL,
					  page->capacity);
	}
	for (uint64_t i = 0; i < page->capacity; i++) {
		struct block block = { page->first + i * page->bytes, page->bytes, BLOCK_FREE };

		if (!(lists->free[i / 64] >> i % 64 & 1)) {
			block.state = BLOCK_USED;
			block.size = size_asked_for(heap, lists, page, block.start);
		}
		TRY(block_sink_add(sink, block));
	}
	return NULL;
}

static void note_lists(struct mimalloc_heap *heap, const struct lists *lists,
		       const struct mimalloc_page *page)
{
	if (lists->wrong)
		heap_damage_note(&heap->lists.links, lists->wrong);
	if (lists->twice)
		heap_damage_note(&heap->lists.twice, lists->twice);
	if (!lists->has_head)
		heap_damage_note(&heap->heads, page->start);
}

static struct error *add_page(struct mimalloc_heap *heap, struct lists *lists,
			      const struct mimalloc_page *page, struct block_sink *sink)
{
	uint64_t rest;

	if (!page->bytes)
		return block_sink_add(
			sink, (struct block){ page->start, page->end - page->start, BLOCK_FREE });
	if (!read_lists(lists, page))
		note_lists(heap, lists, page);
	else if (lists->is_absent)
		heap_damage_note(&heap->absent, page->start);
	else if (page->used + lists->count != page->capacity)
		heap_damage_note(&heap->counts, page->start);
	take_delayed(heap, page, lists);
	TRY(add_page_blocks(heap, lists, page, sink));
	rest = page->first + page->capacity * page->bytes;
	return rest < page->end
		       ? block_sink_add(sink, (struct block){ rest, page->end - rest, BLOCK_FREE })
		       : NULL;
}

/* Pages in a row, with their metadata between them or not, are one region. */
static uint64_t find_region_end(const struct mimalloc_heap *heap, size_t first)
{
	const struct mimalloc_page *pages = heap->pages.items;
	uint64_t end = pages[first].end;

	for (size_t i = first + 1; i < heap->pages.count; i++) {
		bool follows = pages[i].start == end ||
			       (pages[i].metadata >= end && pages[i].metadata < pages[i].start &&
				pages[i].start - end <= PAGE_METADATA);

		if (!follows)
			break;
		end = pages[i].end;
	}
	return end;
}

struct error *mimalloc_add_blocks(struct mimalloc_heap *heap, arena_number arena,
				  struct block_sink *sink)
{
	uint64_t end = 0;
	_cleanup_(free) struct lists *lists = calloc(1, sizeof(*lists));

	TRY_MEMORY(lists);
	lists->view.image = heap->context.image;
	array_for_each(page, &heap->pages) {
		if (page->start >= end) {
			end = find_region_end(heap, (size_t)(page - heap->pages.items));
			TRY(block_sink_region(sink, page->start, end, arena));
		}
		TRY(add_page(heap, lists, page, sink));
		TRY(progress_check(heap->context.progress, page->end - page->start));
	}
	return NULL;
}
