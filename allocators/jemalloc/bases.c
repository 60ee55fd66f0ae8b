/*
 * Arenas, and the memory for metadata (base.h).
 *
 * Metadata are in blocks of a base, which begin at multiples of 2 MiB:
 *
 *	| size | next, older block or 0 | bits | rest's address | rest's size | ... | used | rest |
 *
 * Each arena has a base: its structure is in the oldest block, begins with the index of the arena,
 * and leads to the newest block. The structure of the arena is in a block of its base, too, and
 * leads to that; a table in the data of the module leads to it.
 */
#include "allocators/jemalloc/jemalloc.h"

#include "analyzer/program/module_words.h"

#include <string.h>

enum {
	BLOCK_UNIT = 2 << 20,
	BLOCK_BITS = 8,	    /* bytes, behind the first two words */
	UNITS_MOST = 8,	    /* of a block, before its arena */
	BLOCKS_MOST = 4096, /* of a base */
	BASE_NEAR = 4096,   /* the base is so near to the start of its block */
	BASE_HEAD = 512,    /* in which it leads to the newest block */
	ARENA_BYTES = 256 << 10,
};

struct base_search {
	struct jemalloc *je;
	struct view view, words;
	uint64_t miss; /* a unit where no block begins at or just before it */
	uint64_t addresses[MOST_ARENAS], bytes[MOST_ARENAS];
};

/* True if a block begins at start. */
static bool is_block(struct view *view, uint64_t start, struct memory_range *ret,
		     uint64_t *ret_next)
{
	const unsigned int word = image_word_size(view->image);
	const uint64_t second = start + 2 * word + BLOCK_BITS;
	uint64_t size, rest, rest_size;

	if (!view_word(view, start, &size) || !view_word(view, start + word, ret_next) ||
	    !view_word(view, second, &rest) || !view_word(view, second + word, &rest_size))
		return false;
	rest -= start;
	if (size == 0 || size % BLOCK_UNIT != 0 || size >> 47 || *ret_next % BLOCK_UNIT != 0 ||
	    rest > size || rest_size != size - rest)
		return false;
	*ret = (struct memory_range){ start, start + size };
	return true;
}

/* The block that address is in, if it is in one of the first units. */
static bool find_block(struct view *view, uint64_t address, struct memory_range *ret,
		       uint64_t *ret_next)
{
	uint64_t start = address / BLOCK_UNIT * BLOCK_UNIT;

	for (int i = 0; i < UNITS_MOST && start > 0; i++, start -= BLOCK_UNIT)
		if (is_block(view, start, ret, ret_next))
			return address < ret->end;
	return false;
}

/* True if the blocks from newest on end with the oldest one. */
static bool leads_to(struct view *view, uint64_t newest, uint64_t oldest)
{
	struct memory_range block;

	for (int i = 0; i < BLOCKS_MOST && newest && is_block(view, newest, &block, &newest); i++)
		if (block.start == oldest)
			return newest == 0;
	return false;
}

/* True if a base is at address; *ret_newest is its newest block. */
static bool is_base(struct view *view, uint64_t address, uint64_t *ret_newest)
{
	struct memory_range block;
	uint64_t next;

	if (address % METADATA_UNIT != 0 || address % BLOCK_UNIT >= BASE_NEAR ||
	    !is_block(view, address / BLOCK_UNIT * BLOCK_UNIT, &block, &next) || next != 0)
		return false;
	for (uint64_t at = address; at < address + BASE_HEAD; at += image_word_size(view->image))
		if (view_word(view, at, ret_newest) && *ret_newest &&
		    *ret_newest % BLOCK_UNIT == 0 && leads_to(view, *ret_newest, block.start))
			return true;
	return false;
}

static struct error *add_blocks(struct base_search *search, uint64_t newest)
{
	struct memory_range block;

	for (int i = 0;
	     i < BLOCKS_MOST && newest && is_block(&search->view, newest, &block, &newest); i++)
		TRY(array_append(&search->je->bases, block));
	return NULL;
}

/* If an arena is at address, in that block, note it. */
static struct error *look_for_base(struct base_search *search, uint64_t address,
				   const struct memory_range *block)
{
	uint64_t end = block->end - address < ARENA_BYTES ? block->end : address + ARENA_BYTES;

	for (uint64_t at = address; at < end; at += search->je->geometry.word) {
		uint64_t word, newest;
		uint32_t index;

		if (!view_word(&search->words, at, &word) || word == 0 || word == address ||
		    !is_base(&search->view, word, &newest) ||
		    !image_read_u32(search->view.image, word, &index) || index >= MOST_ARENAS)
			continue;
		if (!search->addresses[index]) {
			search->addresses[index] = address;
			TRY(add_blocks(search, newest));
		}
		return NULL;
	}
	return NULL;
}

/* Look at a word of the module's data that is not of the root of the tree. */
static struct error *look_for_arena(void *data, uint64_t where, uint64_t word)
{
	struct base_search *search = data;
	const struct jemalloc *je = search->je;
	struct memory_range block;
	uint64_t next;

	if (where - je->root < node_bytes(&je->geometry, 0))
		return NULL;
	if (word % METADATA_UNIT != 0 || word < BLOCK_UNIT || word / BLOCK_UNIT == search->miss)
		return NULL;
	if (find_block(&search->view, word, &block, &next) && word > block.start)
		return look_for_base(search, word, &block);
	search->miss = word / BLOCK_UNIT;
	return NULL;
}

/* List arenas that are used by index. */
static struct error *list_arenas(struct base_search *search)
{
	struct jemalloc *je = search->je;

	for (uint32_t i = 0; i < MOST_ARENAS; i++) {
		struct jemalloc_arena arena = { search->addresses[i], search->bytes[i], i };

		if (!arena.address && !arena.bytes)
			continue;
		je->arena_numbers[i] = (uint16_t)je->arenas.count;
		TRY(array_append(&je->arenas, arena));
	}
	return NULL;
}

struct error *jemalloc_find_arenas(struct jemalloc *je, const struct heap_context *context)
{
	_cleanup_(free) struct base_search *search = calloc(1, sizeof(*search));

	TRY_MEMORY(search);
	search->je = je;
	search->view.image = context->image;
	search->words.image = context->image;
	TRY(data_visit_words(context->image, je->start, je->end, look_for_arena, search));
	je->bases.count = memory_ranges_join(je->bases.items, je->bases.count);
	array_for_each(extent, &je->extents)
		search->bytes[arena_index(extent)] += extent->bytes;
	return list_arenas(search);
}

const struct memory_range *jemalloc_find_base(const struct jemalloc *je, uint64_t address)
{
	size_t number = LIST_ABOVE(je->bases.items, je->bases.count, end, address);

	return number < je->bases.count && address >= je->bases.items[number].start
		       ? &je->bases.items[number]
		       : NULL;
}

/* Metadata of extents that are in no block of a known base are claimed one by one. */
struct error *jemalloc_claim_metadata(const struct jemalloc *je, struct block_sink *sink)
{
	array_for_each(base, &je->bases)
		TRY(block_sink_claim(sink, base->start, base->end));
	array_for_each(leaf, &je->leaves)
		if (!jemalloc_find_base(je, leaf->start))
			TRY(block_sink_claim(sink, leaf->start, leaf->end));
	array_for_each(extent, &je->extents)
		if (!jemalloc_find_base(je, extent->metadata))
			TRY(block_sink_claim(sink, extent->metadata,
					     extent->metadata + METADATA_BYTES));
	array_for_each(bins, &je->bins)
		TRY(block_sink_claim(sink, bins->start, bins->end));
	array_for_each(stack, &je->stacks) {
		struct memory_range range;
		unsigned int class;

		if (jemalloc_find_region(je, *stack, &range, &class))
			TRY(block_sink_claim(sink, range.start, range.end));
	}
	return NULL;
}
