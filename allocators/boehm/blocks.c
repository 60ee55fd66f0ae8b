#include "allocators/boehm/blocks.h"

#include "analyzer/base/list.h"

enum {
	HEADER_BLOCK = 16,
	HEADER_KIND = 24,
	HEADER_FLAGS = 25,
	HEADER_SWEPT = 26,
	HEADER_SIZE = 32,
	HEADER_DESCRIPTOR = 40,
	HEADER_READ = 48,

	GLANCE = 8, /* slots to look at first */
	/* One in so many slots may be damaged. */
	SOUND_SHARE = 16,
};

/* Whether the index is there, and linked to the one at address by link. */
static bool is_linked(struct view *view, const struct boehm_geometry *geometry, uint64_t index,
		      uint64_t address, bool upward)
{
	uint64_t back, key, own_key;
	uint64_t link = upward ? index_downward(geometry) : index_upward(geometry);

	if (index == 0)
		return true;
	return index % 8 == 0 && view_word(view, index + link, &back) && back == address &&
	       view_word(view, index + index_key(geometry), &key) &&
	       view_word(view, address + index_key(geometry), &own_key) &&
	       (upward ? key > own_key : key < own_key);
}

bool boehm_is_index(struct view *view, const struct boehm_geometry *geometry, uint64_t address)
{
	uint64_t key, upward, downward;

	return view_word(view, address + index_key(geometry), &key) && key != 0 &&
	       key < UINT64_C(1) << (47 - key_shift(geometry)) &&
	       view_word(view, address + index_upward(geometry), &upward) &&
	       view_word(view, address + index_downward(geometry), &downward) &&
	       is_linked(view, geometry, upward, address, true) &&
	       is_linked(view, geometry, downward, address, false);
}

/* Whether the header can be that of a block at start; what it says. */
static bool read_header(const struct boehm_geometry *geometry, const struct image *image,
			uint64_t header, uint64_t start, struct boehm_block *ret)
{
	uint8_t bytes[HEADER_READ];
	uint64_t block, descriptor;
	uint64_t mask = (UINT64_C(1) << geometry->log_block) - 1;

	if (header % 8 != 0 || !image_read(image, header, bytes, sizeof(bytes)))
		return false;
	*ret = (struct boehm_block){
		.start = start,
		.header = header,
		.kind = bytes[HEADER_KIND],
		.flags = bytes[HEADER_FLAGS],
	};
	__builtin_memcpy(&block, bytes + HEADER_BLOCK, sizeof(block));
	__builtin_memcpy(&ret->swept, bytes + HEADER_SWEPT, sizeof(ret->swept));
	__builtin_memcpy(&ret->size, bytes + HEADER_SIZE, sizeof(ret->size));
	__builtin_memcpy(&descriptor, bytes + HEADER_DESCRIPTOR, sizeof(descriptor));
	ret->pointerless = descriptor == 0;
	if (ret->size == 0 || ret->size > UINT64_C(1) << 47 || (ret->flags & ~FLAGS_KNOWN))
		return false;
	/* A free run keeps the kind and block that its header had before. */
	if (is_free(ret))
		return (ret->size & mask) == 0;
	return ret->kind < MOST_KINDS && block == start && ret->size % GRANULE == 0;
}

bool boehm_leads_to_blocks(struct view *view, const struct boehm_geometry *geometry,
			   uint64_t address)
{
	uint64_t base, slot;
	size_t sound = 0, seen = 0;

	if (!view_word(view, address + index_key(geometry), &base))
		return false;
	base <<= key_shift(geometry);
	for (uint64_t i = 0; i < index_slots(geometry) && seen < GLANCE; i++) {
		struct boehm_block block;

		if (!view_word(view, address + 8 * i, &slot))
			return false;
		if (slot >> geometry->log_block == 0)
			continue;
		seen++;
		sound += read_header(geometry, view->image, slot, base + (i << geometry->log_block),
				     &block);
	}
	return sound > seen / 2;
}

static struct error *add_block(struct collector *collector, struct boehm_block block)
{
	struct boehm_block *blocks;
	struct error *error = array_reserve(&collector->blocks, 1);

	if (error)
		return error;
	blocks = collector->blocks.items;
	/* None may begin in the run of the one before. */
	if (collector->blocks.count > 0 &&
	    block_end(collector, &blocks[collector->blocks.count - 1]) > block.start) {
		collector->bad_slots++;
		return NULL;
	}
	block.first = collector->object_count;
	collector->object_count += object_slots(collector, &block);
	blocks[collector->blocks.count++] = block;
	if (is_unmapped(&block))
		collector->unmapped += block_end(collector, &block) - block.start;
	else
		collector->size += block_end(collector, &block) - block.start;
	return NULL;
}

/* Read the blocks that one bottom_index knows. */
static struct error *read_index(struct collector *collector, struct view *view, uint64_t index)
{
	const struct boehm_geometry *geometry = &collector->geometry;
	uint64_t base;

	if (!view_word(view, index + index_key(geometry), &base))
		return NULL;
	base <<= key_shift(geometry);
	for (uint64_t i = 0; i < index_slots(geometry); i++) {
		struct boehm_block block;
		struct error *error;
		uint64_t slot;

		if (!view_word(view, index + 8 * i, &slot)) {
			collector->bad_slots++;
			return NULL;
		}
		/* 0: not ours; a small number: so far above its start. */
		if (slot < block_bytes(collector))
			continue;
		if (!read_header(geometry, view->image, slot, base + (i << geometry->log_block),
				 &block)) {
			collector->bad_slots++;
			continue;
		}
		error = add_block(collector, block);
		if (error)
			return error;
	}
	return NULL;
}

/*
 * Note GC_all_nils, which ends the list of indexes that share a place in GC_top_index: it has no
 * key, and no slot of it is used.
 */
static void find_nils(struct collector *collector, struct view *view, uint64_t index)
{
	const struct boehm_geometry *geometry = &collector->geometry;
	uint64_t nils, key, first;

	if (!collector->nils && view_word(view, index + index_hash_link(geometry), &nils) && nils &&
	    view_word(view, nils + index_key(geometry), &key) && key == 0 &&
	    view_word(view, nils, &first) && first == 0)
		collector->nils = nils;
}

static bool has_used(const struct collector *collector)
{
	const struct boehm_block *blocks = boehm_blocks(collector);

	for (size_t i = 0; i < collector->blocks.count; i++)
		if (!is_free(&blocks[i]))
			return true;
	return false;
}

struct error *boehm_read_blocks(struct collector *collector, const struct heap_context *context,
				bool *ret_sound)
{
	struct view view = { context->image };
	uint64_t index = collector->index;

	/* Keys grow from one to the next, so there is an end. */
	while (index && boehm_is_index(&view, &collector->geometry, index)) {
		struct error *error = array_append(&collector->indexes, index);

		if (!error)
			error = read_index(collector, &view, index);
		if (!error && !progress_step(context->progress, 0))
			error = error_create(ERROR_INTERRUPTED, "interrupted");
		if (error)
			return error;
		find_nils(collector, &view, index);
		if (!view_word(&view, index + index_upward(&collector->geometry), &index))
			break;
	}
	*ret_sound = has_used(collector) &&
		     collector->bad_slots <= collector->blocks.count / SOUND_SHARE;
	return NULL;
}

const struct boehm_block *boehm_find_block(const struct collector *collector, uint64_t address,
					   size_t *hint)
{
	const struct boehm_block *blocks = boehm_blocks(collector);
	size_t low;

	if (*hint < collector->blocks.count && address >= blocks[*hint].start &&
	    address < block_end(collector, &blocks[*hint]))
		return &blocks[*hint];
	low = LIST_ABOVE(blocks, collector->blocks.count, start, address);
	if (low == 0 || address >= block_end(collector, &blocks[low - 1]))
		return NULL;
	*hint = low - 1;
	return &blocks[low - 1];
}
