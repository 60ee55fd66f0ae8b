/*
 * Finding heaps and their chunks.
 *
 * Each multiple of 2 MiB in writable memory without a file may be the start of a chunk, whose first
 * word is the address of a heap. A heap is accepted if its main chunk leads to it and back. Then
 * chunks are what its ring and its list have, and what else names the heap and counts its free
 * pages right: so one damaged link loses nothing.
 */
#include "allocators/zend/zend.h"

#include "analyzer/base/list.h"

#include <inttypes.h>

enum {
	/* In a struct zend_mm_heap. */
	SIZE_WORD = 16,
	FREE_WORDS = 32, /* behind the key, if there is one */
	/*
	 * Possible offsets of the main chunk's address: behind { real size, its peak }, which
	 * follow the lists, and the fields that some versions add.
	 */
	LEAST_MAIN = 16 + 8,
	MOST_MAIN = LEAST_MAIN + 64,
	/* In a chunk. Its map is behind the heap, and ends in the first page. */
	NEXT_WORD = 8,
	FREE_PAGES = 24,
	LEAST_MAP = ZEND_HEAP + FREE_WORDS + ZEND_BINS * 8 + LEAST_MAIN + 64,
	MOST_MAP = ZEND_PAGE - ZEND_PAGES * 4,
	FIRST_PAGE = 0x40000001, /* in the map */
	MOST_OTHERS = 1 << 20,
};

struct search {
	struct zend_heap *heap;
	struct view view;
};

static bool is_chunk_address(const struct search *search, uint64_t address)
{
	return address && address % ZEND_CHUNK == 0 &&
	       image_may_address(search->view.image, address);
}

/*
 * True if the chunk's bitmap has as many free pages as its count says, and the head's page is
 * taken.
 */
static bool is_counted(struct search *search, const struct zend_space *space, uint64_t chunk)
{
	struct zend_head head;
	uint32_t free_pages, taken = 0;

	if (!zend_read_head(&search->view, space, chunk, &head) ||
	    !view_read(&search->view, chunk + FREE_PAGES, &free_pages, sizeof(free_pages)) ||
	    head.map[0] != FIRST_PAGE || !(head.bits[0] & 1))
		return false;
	for (size_t i = 0; i < ZEND_PAGES / 64; i++)
		taken += (uint32_t)__builtin_popcountll(head.bits[i]);
	return free_pages == ZEND_PAGES - taken;
}

static bool find_map(struct search *search, struct zend_space *space)
{
	for (space->map = LEAST_MAP; space->map <= MOST_MAP; space->map += 8)
		if (is_counted(search, space, space->main))
			return true;
	return false;
}

/* Read { huge blocks, main chunk, cached chunks }, which follow the sizes somewhere. */
static bool read_links(struct search *search, uint64_t sizes, struct zend_space *space)
{
	uint64_t words[3];

	for (uint64_t at = sizes + LEAST_MAIN; at <= sizes + MOST_MAIN; at += 8) {
		if (!view_read(&search->view, at - 8, words, sizeof(words)))
			return false;
		space->huge = words[0];
		space->cached = words[2];
		if (words[1] == space->main)
			return true;
	}
	return false;
}

/* Read the heap in the chunk, if it has one, with its lists at that place. */
static bool read_space(struct search *search, uint64_t chunk, uint64_t lists,
		       struct zend_space *ret)
{
	struct view *view = &search->view;
	uint64_t sizes = lists + sizeof(ret->free), real[2];

	*ret = (struct zend_space){ .main = chunk };
	if (!view_word(view, chunk + ZEND_HEAP + SIZE_WORD, &ret->size) ||
	    !view_read(view, lists, ret->free, sizeof(ret->free)) ||
	    !view_read(view, sizes, real, sizeof(real)))
		return false;
	ret->real_size = real[0];
	return real[0] >= ZEND_CHUNK && real[0] % ZEND_PAGE == 0 && real[1] >= real[0] &&
	       real[1] >> 47 == 0 && read_links(search, sizes, ret) && find_map(search, ret);
}

/* Look at what may be a chunk: one that names a heap is kept for now, the heap itself added. */
static struct error *look(struct search *search, uint64_t chunk)
{
	struct zend_heap *heap = search->heap;
	struct zend_space space;
	uint64_t word;

	if (!view_word(&search->view, chunk, &word) || word % ZEND_CHUNK != ZEND_HEAP ||
	    !is_chunk_address(search, word - ZEND_HEAP))
		return NULL;
	if (word == chunk + ZEND_HEAP) {
		if (read_space(search, chunk, word + FREE_WORDS, &space) ||
		    read_space(search, chunk, word + FREE_WORDS + 8, &space))
			TRY(array_append(&heap->spaces, space));
		else
			heap_damage_note(&heap->heads, chunk);
	}
	return array_append(&heap->chunks, (struct zend_chunk){ chunk, ZEND_CHUNK, 0, 0 });
}

static struct error *look_around(struct search *search)
{
	const struct image *image = search->heap->context.image;

	list_for_each(region, image->regions, image->region_count) {
		uint64_t at = region->start;

		if (!region->bytes || !(region->rights & RIGHT_WRITE) || region->mapping)
			continue;
		while ((at = (at + ZEND_CHUNK - 1) & -(uint64_t)ZEND_CHUNK) < region->end &&
		       at >= region->start) {
			uint64_t next = image_next_data(image, at);

			if (next == at)
				TRY(look(search, at));
			at = next > at ? next : at + ZEND_PAGE;
		}
	}
	return NULL;
}

/* The heap that the chunk names, or NULL. */
static struct zend_space *find_space(struct search *search, uint64_t chunk)
{
	struct zend_heap *heap = search->heap;
	uint64_t word;
	size_t above;

	if (!view_word(&search->view, chunk, &word))
		return NULL;
	word -= ZEND_HEAP;
	above = LIST_ABOVE(heap->spaces.items, heap->spaces.count, main, word);
	return above > 0 && heap->spaces.items[above - 1].main == word
		       ? &heap->spaces.items[above - 1]
		       : NULL;
}

/* Set the heap of each chunk, and drop those without one. */
static void assign(struct search *search)
{
	struct zend_heap *heap = search->heap;
	size_t kept = 0;

	for (size_t i = 0; i < heap->chunks.count; i++) {
		struct zend_chunk chunk = heap->chunks.items[i];
		const struct zend_space *space = find_space(search, chunk.start);

		if (!space)
			continue;
		chunk.space = (uint32_t)(space - heap->spaces.items);
		heap->chunks.items[kept++] = chunk;
	}
	heap->chunks.count = kept;
}

static struct zend_chunk *chunk_at(struct zend_heap *heap, uint64_t start)
{
	struct zend_chunk *chunk = LIST_LAST(heap->chunks.items, heap->chunks.count, start, start);

	return chunk && chunk->start == start ? chunk : NULL;
}

/* Between requests, the heads of cached chunks are cleared, but for their links. */
static bool is_cleared(struct search *search, uint64_t chunk)
{
	const struct region *region = image_find(search->heap->context.image, chunk);
	uint64_t words[4];

	return is_chunk_address(search, chunk) && region && (region->rights & RIGHT_WRITE) &&
	       !region->mapping && view_read(&search->view, chunk, words, sizeof(words)) &&
	       !words[0] && !words[2] && !words[3];
}

/* Follow links from a chunk on, up to one that is of a list already; sets where that ended. */
static struct error *follow(struct search *search, uint32_t space, uint64_t start,
			    enum zend_chunk_kind kind, uint64_t *ret_end)
{
	struct zend_heap *heap = search->heap;
	uint64_t at = start;

	for (;;) {
		struct zend_chunk *chunk = chunk_at(heap, at);

		if (chunk && chunk->space == space && chunk->kind == ZEND_CHUNK_UNKNOWN)
			chunk->kind = kind;
		else if (!chunk && kind == ZEND_CHUNK_CACHED && heap->others.count < MOST_OTHERS &&
			 is_cleared(search, at))
			TRY(array_append(&heap->others,
					 (struct zend_chunk){ at, ZEND_CHUNK, space, kind }));
		else
			break;
		if (!view_word(&search->view, at + NEXT_WORD, &at))
			break;
	}
	*ret_end = at;
	return NULL;
}

static struct error *read_lists(struct search *search)
{
	struct zend_heap *heap = search->heap;
	uint64_t ring_end, cached_end;

	for (uint32_t i = 0; i < heap->spaces.count; i++) {
		const struct zend_space *space = &heap->spaces.items[i];

		TRY(follow(search, i, space->main, ZEND_CHUNK_RING, &ring_end));
		TRY(follow(search, i, space->cached, ZEND_CHUNK_CACHED, &cached_end));
		if (ring_end != space->main || cached_end != 0)
			heap_damage_note(&heap->rings, space->main);
	}
	return NULL;
}

/* Drop what is on no list, unless its head is valid: then a list lost it. */
static void drop_strangers(struct search *search)
{
	struct zend_heap *heap = search->heap;
	size_t kept = 0;

	for (size_t i = 0; i < heap->chunks.count; i++) {
		struct zend_chunk chunk = heap->chunks.items[i];

		if (chunk.kind == ZEND_CHUNK_UNKNOWN) {
			if (!is_counted(search, &heap->spaces.items[chunk.space], chunk.start))
				continue;
			chunk.kind = ZEND_CHUNK_RING;
		}
		heap->chunks.items[kept++] = chunk;
	}
	heap->chunks.count = kept;
}

/* Read the list of huge blocks: { address, size, next } each, in blocks of the heap. */
static struct error *read_huge(struct search *search, uint32_t number)
{
	struct zend_heap *heap = search->heap;
	uint64_t at = heap->spaces.items[number].huge, words[3];
	size_t count = 0;

	for (; at && count < MOST_OTHERS; at = words[2], count++) {
		const struct zend_chunk *chunk = zend_find_chunk(heap, at);

		if (!chunk || chunk->space != number ||
		    !view_read(&search->view, at, words, sizeof(words)) ||
		    !is_chunk_address(search, words[0]) || words[1] == 0 ||
		    words[1] % ZEND_PAGE != 0 || words[1] >> 47)
			break;
		TRY(array_append(&heap->nodes, at));
		TRY(array_append(&heap->others, (struct zend_chunk){ words[0], words[1], number,
								     ZEND_CHUNK_HUGE }));
	}
	if (at)
		heap_damage_note(&heap->huge_damage, at);
	return NULL;
}

DEFINE_COMPARE(compare_chunks, struct zend_chunk, ASCENDING(start), ASCENDING(kind))

/* If huge blocks overlap others, keep the lower ones. */
static void drop_overlapping(struct zend_heap *heap)
{
	size_t kept = 0;
	uint64_t end = 0;

	array_sort(&heap->chunks, compare_chunks);
	for (size_t i = 0; i < heap->chunks.count; i++) {
		struct zend_chunk chunk = heap->chunks.items[i];

		if (chunk.start < end) {
			heap_damage_note(&heap->huge_damage, chunk.start);
			continue;
		}
		end = chunk.start + chunk.size;
		heap->chunks.items[kept++] = chunk;
	}
	heap->chunks.count = kept;
}

const struct zend_chunk *zend_find_chunk(const struct zend_heap *heap, uint64_t address)
{
	const struct zend_chunk *chunk =
		LIST_LAST(heap->chunks.items, heap->chunks.count, start, address);

	return chunk && address - chunk->start < chunk->size ? chunk : NULL;
}

struct error *zend_search(struct zend_heap *heap)
{
	struct search search = { .heap = heap, .view = { heap->context.image } };

	TRY(look_around(&search));
	assign(&search);
	TRY(read_lists(&search));
	drop_strangers(&search);
	for (uint32_t i = 0; i < heap->spaces.count; i++)
		TRY(read_huge(&search, i));
	array_for_each(block, &heap->others)
		TRY(array_append(&heap->chunks, *block));
	drop_overlapping(heap);
	if (heap->nodes.count > 0)
		array_sort(&heap->nodes, compare_u64);
	return NULL;
}
