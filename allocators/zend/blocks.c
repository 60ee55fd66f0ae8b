/*
 * The blocks of chunks. In a run, all are in use that are on no list of free blocks: so the lists
 * are followed first. Where one is cut, blocks that may be the rest of it are held, as nobody knows
 * whether they are in use.
 */
#include "allocators/zend/zend.h"

#include "analyzer/base/list.h"
#include "analyzer/heap/sink.h"

struct walk {
	struct zend_heap *heap;
	struct block_sink *sink;
	struct view view;
	struct bitmap free; /* a bit for each unit of each chunk */
	bool in_region;
	/* The chunk that is walked, or that a block was looked for in. */
	const struct zend_chunk *chunk;
	struct zend_head head;
};

/* Make the chunk the one whose head is at hand. */
static bool load(struct walk *walk, const struct zend_chunk *chunk)
{
	if (chunk == walk->chunk)
		return true;
	walk->chunk = NULL;
	if (!zend_read_head(&walk->view, &walk->heap->spaces.items[chunk->space], chunk->start,
			    &walk->head))
		return false;
	walk->chunk = chunk;
	return true;
}

static size_t unit_of(const struct walk *walk, const struct zend_chunk *chunk, uint64_t address)
{
	return (size_t)(chunk - walk->heap->chunks.items) * ZEND_UNITS +
	       (address - chunk->start) / ZEND_UNIT;
}

/* True if a block of that bin may start at address; sets its bit's number. */
static bool is_block(struct walk *walk, uint32_t space, uint32_t bin, uint64_t address,
		     size_t *ret_unit)
{
	const struct zend_chunk *chunk = zend_find_chunk(walk->heap, address);
	struct zend_page page;
	uint64_t offset;

	if (!chunk || chunk->space != space || chunk->kind != ZEND_CHUNK_RING ||
	    address - chunk->start < ZEND_PAGE || !load(walk, chunk))
		return false;
	page = zend_read_page(&walk->head, (uint32_t)((address - chunk->start) / ZEND_PAGE));
	if (page.kind != ZEND_RUN || page.bin != bin)
		return false;
	offset = address - chunk->start - (uint64_t)page.first * ZEND_PAGE;
	*ret_unit = unit_of(walk, chunk, address);
	return offset % zend_bins[bin].size == 0 &&
	       offset / zend_bins[bin].size < page.count * ZEND_PAGE / zend_bins[bin].size;
}

/* Mark what is on the list of that bin. */
static void mark_free(struct walk *walk, uint32_t number, uint32_t bin)
{
	struct zend_space *space = &walk->heap->spaces.items[number];
	uint64_t at = space->free[bin];
	size_t unit;

	while (at) {
		if (!is_block(walk, number, bin, at, &unit) || bitmap_get(&walk->free, unit)) {
			heap_damage_note(&walk->heap->lists, at);
			space->broken[bin] = true;
			return;
		}
		bitmap_set(&walk->free, unit);
		if (!view_word(&walk->view, at, &at)) {
			space->broken[bin] = true;
			return;
		}
	}
}

static struct error *mark_all_free(struct walk *walk)
{
	const struct zend_heap *heap = walk->heap;

	TRY(bitmap_init(&walk->free, heap->chunks.count * ZEND_UNITS, heap->context.account));
	for (uint32_t i = 0; i < heap->spaces.count; i++)
		for (uint32_t bin = 0; bin < ZEND_BINS; bin++)
			mark_free(walk, i, bin);
	return NULL;
}

/* True if the block, which is on no list, may belong to the lost rest of a broken list. */
static bool may_be_free(struct walk *walk, uint32_t number, uint32_t bin, uint64_t start)
{
	uint64_t next;
	size_t unit;

	return walk->heap->spaces.items[number].broken[bin] &&
	       view_word(&walk->view, start, &next) &&
	       (next == 0 || is_block(walk, number, bin, next, &unit));
}

static struct error *add(struct walk *walk, uint64_t start, uint64_t size, enum block_state state)
{
	if (state == BLOCK_USED)
		walk->heap->spaces.items[walk->chunk->space].used += size;
	return block_sink_add(walk->sink, (struct block){ start, size, state, 0 });
}

static struct error *add_run(struct walk *walk, const struct zend_chunk *chunk,
			     const struct zend_page *page)
{
	uint64_t start = chunk->start + (uint64_t)page->first * ZEND_PAGE;
	uint32_t size = zend_bins[page->bin].size;

	for (uint32_t i = 0; i < page->count * ZEND_PAGE / size; i++, start += size) {
		bool is_free = bitmap_get(&walk->free, unit_of(walk, chunk, start));

		TRY(add(walk, start, size, is_free ? BLOCK_FREE : BLOCK_USED));
		if (!is_free && may_be_free(walk, chunk->space, page->bin, start))
			TRY(block_sink_hold(walk->sink, start));
		if (!load(walk, chunk))
			return NULL;
	}
	return NULL;
}

/*
 * Hold the types that functions in an arena return. Such an arena begins by { in use up to, end };
 * of a function without parameters, the engine has the address behind the type alone, whose first
 * word is 0: there, others have a name.
 */
static struct error *hold_return_types(struct walk *walk, uint32_t space, uint64_t start,
				       uint64_t size)
{
	static const uint32_t bins[] = { 2, 3 }; /* up to 7.4, and since */
	struct view view = { walk->view.image };
	uint64_t words[2], word, name;
	size_t unit;

	if (!view_read(&view, start, words, sizeof(words)) || words[1] != start + size ||
	    words[0] - start > size)
		return NULL;
	for (uint64_t at = start; at + sizeof(word) <= words[0]; at += sizeof(word)) {
		if (!view_word(&view, at, &word) || word % ZEND_UNIT != 0)
			continue;
		for (size_t i = 0; i < 2; i++) {
			uint64_t block = word - zend_bins[bins[i]].size;

			if (is_block(walk, space, bins[i], block, &unit) &&
			    !bitmap_get(&walk->free, unit) &&
			    view_word(&walk->view, block, &name) && name == 0)
				TRY(block_sink_hold(walk->sink, block));
		}
	}
	return NULL;
}

/* How many pages from the number-th on are free. */
static uint32_t count_free(const struct zend_head *head, uint32_t number)
{
	uint32_t count = 0;

	while (number + count < ZEND_PAGES &&
	       zend_read_page(head, number + count).kind == ZEND_FREE)
		count++;
	return count;
}

/* Add what begins with the page; those that make no sense are left out, and so are roots. */
static struct error *add_pages(struct walk *walk, const struct zend_chunk *chunk,
			       arena_number arena, uint32_t number, uint32_t *ret_count)
{
	uint64_t start = chunk->start + (uint64_t)number * ZEND_PAGE;
	struct zend_page page = zend_read_page(&walk->head, number);

	*ret_count = page.kind == ZEND_FREE ? count_free(&walk->head, number) : page.count;
	if (page.kind == ZEND_NONSENSE || page.first != number) {
		*ret_count = 1;
		heap_damage_note(&walk->heap->pages, start);
		if (walk->in_region)
			block_sink_cut(walk->sink, start);
		walk->in_region = false;
		return NULL;
	}
	if (!walk->in_region)
		TRY(block_sink_region(walk->sink, start, chunk->start + ZEND_CHUNK, arena));
	walk->in_region = true;
	if (page.kind == ZEND_RUN)
		return add_run(walk, chunk, &page);
	if (page.kind == ZEND_LARGE) {
		TRY(hold_return_types(walk, chunk->space, start, page.count * ZEND_PAGE));
		if (!load(walk, chunk))
			return NULL;
	}
	return add(walk, start, (uint64_t)*ret_count * ZEND_PAGE,
		   page.kind == ZEND_FREE ? BLOCK_FREE : BLOCK_USED);
}

static struct error *add_chunk(struct walk *walk, const struct zend_chunk *chunk,
			       arena_number arena)
{
	uint32_t count;

	TRY(block_sink_claim(walk->sink, chunk->start, chunk->start + ZEND_PAGE));
	walk->in_region = false;
	if (!load(walk, chunk))
		return NULL;
	for (uint32_t number = 1; number < ZEND_PAGES; number += count)
		TRY(add_pages(walk, chunk, arena, number, &count));
	return NULL;
}

/* Add a chunk that is not used, or a huge block: one block. */
static struct error *add_whole(struct walk *walk, const struct zend_chunk *chunk,
			       arena_number arena)
{
	TRY(block_sink_region(walk->sink, chunk->start, chunk->start + chunk->size, arena));
	walk->chunk = chunk;
	TRY(add(walk, chunk->start, chunk->size,
		chunk->kind == ZEND_CHUNK_HUGE ? BLOCK_USED : BLOCK_FREE));
	walk->chunk = NULL;
	return NULL;
}

struct error *zend_add_blocks(struct zend_heap *heap, arena_number first, struct block_sink *sink)
{
	struct walk walk = { .heap = heap, .sink = sink, .view = { heap->context.image } };
	struct error *error = mark_all_free(&walk);

	block_sink_align(sink, ZEND_UNIT);
	for (size_t i = 0; i < heap->chunks.count && !error; i++) {
		const struct zend_chunk *chunk = &heap->chunks.items[i];
		arena_number arena = first + chunk->space;

		heap->spaces.items[chunk->space].held += chunk->size;
		error = chunk->kind == ZEND_CHUNK_RING ? add_chunk(&walk, chunk, arena)
						       : add_whole(&walk, chunk, arena);
	}
	bitmap_deinit(&walk.free);
	/* The heap leads to them, whose head is no root. */
	for (size_t i = 0; i < heap->nodes.count && !error; i++)
		error = block_sink_hold(sink, heap->nodes.items[i]);
	return error;
}
