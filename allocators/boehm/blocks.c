#include "allocators/boehm/boehm.h"

#include <string.h>

enum {
	GLANCE = 8,	    /* slots of an index, for a first test */
	DAMAGED_SHARE = 16, /* one in so many slots may be damaged */
	INVERSE_OF_LARGE = 1 << 16,
};

/*
 * True if the index at address has a neighbour that links back and whose key fits, or no neighbour.
 */
static bool is_linked(struct view *view, const struct boehm_geometry *geometry, uint64_t index,
		      uint64_t address, bool upward)
{
	uint64_t back, key, own_key;
	enum index_field link = upward ? INDEX_DOWNWARD : INDEX_UPWARD;

	if (index == 0)
		return true;
	return index % geometry->word == 0 &&
	       view_word(view, index_field(geometry, index, link), &back) && back == address &&
	       view_word(view, index_field(geometry, index, INDEX_KEY), &key) &&
	       view_word(view, index_field(geometry, address, INDEX_KEY), &own_key) &&
	       (upward ? key > own_key : key < own_key);
}

/*
 * On i386, the kernel gives memory from the lowest addresses on to who asks for it there, as bdwgc.
 * A small heap has one index then, whose key and links are 0: few programs have memory there.
 */
static bool may_lack_key(const struct view *view, const struct boehm_geometry *geometry,
			 uint64_t upward)
{
	return geometry->word == sizeof(uint32_t) &&
	       (upward != 0 || view->image->regions[0].start >> key_shift(geometry) == 0);
}

bool boehm_is_index(struct view *view, const struct boehm_geometry *geometry, uint64_t address)
{
	uint64_t key, upward, downward;

	return view_word(view, index_field(geometry, address, INDEX_KEY), &key) &&
	       key < UINT64_C(1) << (view->image->arch->address_bits - key_shift(geometry)) &&
	       view_word(view, index_field(geometry, address, INDEX_UPWARD), &upward) &&
	       view_word(view, index_field(geometry, address, INDEX_DOWNWARD), &downward) &&
	       (key != 0 || may_lack_key(view, geometry, upward)) &&
	       is_linked(view, geometry, upward, address, true) &&
	       is_linked(view, geometry, downward, address, false);
}

/* Read the header; returns true if it can be that of a block at start. */
static bool read_header(const struct boehm_geometry *geometry, const struct image *image,
			uint64_t header, uint64_t start, struct boehm_block *ret)
{
	uint8_t bytes[8 * HEADER_TAIL];
	const unsigned int word = geometry->word;
	const uint8_t *small = bytes + HEADER_BYTES * word;
	uint64_t mask = (UINT64_C(1) << geometry->log_block) - 1;

	if (header % word != 0 || !image_read(image, header, bytes, HEADER_TAIL * word))
		return false;
	*ret = (struct boehm_block){
		.start = start,
		.header = header,
		.size = load_word(bytes + HEADER_SIZE * word, word),
		.kind = small[HEADER_KIND],
		.flags = small[HEADER_FLAGS],
		.pointerless = load_word(bytes + HEADER_DESCRIPTOR * word, word) == 0,
	};
	memcpy(&ret->swept, small + HEADER_SWEPT, sizeof(ret->swept));
	if (ret->size == 0 || ret->size > UINT64_C(1) << 47 || (ret->flags & ~FLAGS_KNOWN))
		return false;
	/* The header of a free run keeps the kind and block that it had before. */
	if (is_free(ret))
		return (ret->size & mask) == 0;
	return ret->kind < MOST_KINDS && ret->size % granule(geometry) == 0 &&
	       load_word(bytes + HEADER_BLOCK * word, word) == start;
}

bool boehm_leads_to_blocks(struct view *view, const struct boehm_geometry *geometry,
			   uint64_t address)
{
	uint64_t base, slot;
	size_t valid = 0, seen = 0;

	if (!view_word(view, index_field(geometry, address, INDEX_KEY), &base))
		return false;
	base <<= key_shift(geometry);
	for (uint64_t i = 0; i < UINT64_C(1) << geometry->log_index && seen < GLANCE; i++) {
		struct boehm_block block;

		if (!view_word(view, address + geometry->word * i, &slot))
			return false;
		if (slot >> geometry->log_block == 0)
			continue;
		seen++;
		valid += read_header(geometry, view->image, slot, base + (i << geometry->log_block),
				     &block);
	}
	return valid > seen / 2;
}

static struct error *append_block(struct collector *collector, struct boehm_block block)
{
	struct boehm_block *blocks;

	TRY(array_reserve(&collector->blocks, 1));
	blocks = collector->blocks.items;
	/* A block must not begin within the run of the one before. */
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

	if (!view_word(view, index_field(geometry, index, INDEX_KEY), &base))
		return NULL;
	base <<= key_shift(geometry);
	for (uint64_t i = 0; i < UINT64_C(1) << geometry->log_index; i++) {
		struct boehm_block block;
		uint64_t slot;

		if (!view_word(view, index + geometry->word * i, &slot)) {
			collector->bad_slots++;
			return NULL;
		}
		/* 0: no block; a small number: the distance from the start of its run. */
		if (slot < block_bytes(collector))
			continue;
		if (!read_header(geometry, view->image, slot, base + (i << geometry->log_block),
				 &block)) {
			collector->bad_slots++;
			continue;
		}
		TRY(append_block(collector, block));
	}
	return NULL;
}

/*
 * Find GC_all_nils, which ends the list of indexes that share a place in GC_top_index: it has no
 * key and no used slot.
 */
static void find_nils(struct collector *collector, struct view *view, uint64_t index)
{
	const struct boehm_geometry *geometry = &collector->geometry;
	uint64_t nils, key, first;

	if (!collector->nils && geometry->word == sizeof(uint64_t) &&
	    view_word(view, index_field(geometry, index, INDEX_HASH_LINK), &nils) && nils &&
	    view_word(view, index_field(geometry, nils, INDEX_KEY), &key) && key == 0 &&
	    view_word(view, nils, &first) && first == 0)
		collector->nils = nils;
}

static bool has_used(const struct collector *collector)
{
	const struct boehm_block *blocks = collector->blocks.items;

	for (size_t i = 0; i < collector->blocks.count; i++)
		if (!is_free(&blocks[i]))
			return true;
	return false;
}

struct error *boehm_read_blocks(struct collector *collector, const struct heap_context *context,
				bool *ret_valid)
{
	struct view view = { context->image };
	uint64_t index = collector->index;

	/* Keys grow from one to the next, so there is an end. */
	while (index && boehm_is_index(&view, &collector->geometry, index)) {
		TRY(array_append(&collector->indexes, index));
		TRY(read_index(collector, &view, index));
		TRY(progress_check(context->progress, 0));
		find_nils(collector, &view, index);
		if (!view_word(&view, index_field(&collector->geometry, index, INDEX_UPWARD),
			       &index))
			break;
	}
	*ret_valid = has_used(collector) &&
		     collector->bad_slots <= collector->blocks.count / DAMAGED_SHARE;
	return NULL;
}

const struct boehm_block *boehm_find_block(const struct collector *collector, uint64_t address,
					   size_t *hint)
{
	const struct boehm_block *blocks = collector->blocks.items;
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

const struct boehm_block *boehm_find_object(const struct collector *collector, uint64_t address,
					    size_t *hint, uint64_t *ret_number)
{
	const struct boehm_block *block = boehm_find_block(collector, address, hint);
	uint64_t slot;

	if (!block || is_free(block) || (address - block->start) % block->size != 0)
		return NULL;
	slot = (address - block->start) / block->size;
	if (slot >= object_slots(collector, block))
		return NULL;
	*ret_number = block->first + slot;
	return block;
}

/* The offset of hb_marks in a header. */
static uint64_t marks_offset(const struct collector *collector)
{
	static const uint64_t numbers[] = {
		[VARIANT_A] = 9,
		[VARIANT_B] = 8,
		[VARIANT_C] = 7,
	};

	return words(collector, numbers[collector->variant]);
}

/* A block has a mark for each granule, or for as many objects. */
static uint64_t mark_count(const struct collector *collector)
{
	return block_bytes(collector) / granule(&collector->geometry);
}

/* The number of the mark of the block's slot-th object. */
static uint64_t mark_number(const struct collector *collector, const struct boehm_block *block,
			    uint64_t slot)
{
	return collector->variant == VARIANT_C ? slot
					       : slot * block->size / granule(&collector->geometry);
}

uint64_t boehm_header_size(const struct collector *collector)
{
	uint64_t count = mark_count(collector) + 1;
	uint64_t size = collector->byte_marks ? count : (count + 63) / 64 * 8;

	return marks_offset(collector) + ((size + 7) & ~UINT64_C(7));
}

/* The variant by a header; false: it does not tell. */
static bool tell_variant(const struct collector *collector, const struct image *image,
			 const struct boehm_block *block, enum boehm_variant *ret)
{
	uint64_t inverse = (UINT64_C(1) << 32) / block->size;
	uint64_t bytes = block->header + words(collector, HEADER_BYTES), tail[2];
	uint32_t stated;

	if (is_free(block) || !image_read_u32(image, bytes + HEADER_INVERSE, &stated) ||
	    !image_read_words(image, block->header + words(collector, HEADER_TAIL), tail, 2))
		return false;
	if (collector->geometry.word != sizeof(uint64_t))
		stated = 0;
	if (is_small(collector, block) ? stated - inverse <= 1 : stated == INVERSE_OF_LARGE)
		*ret = VARIANT_C;
	else if (tail[0] > UINT16_MAX) /* hb_map */
		*ret = VARIANT_B;
	else if (tail[0] <= UINT8_MAX && tail[1] > UINT16_MAX)
		*ret = VARIANT_A;
	else
		return false;
	return true;
}

static enum boehm_variant vote_variant(const struct collector *collector, const struct image *image)
{
	const struct boehm_block *blocks = collector->blocks.items;
	size_t votes[VARIANT_C + 1] = { 0 };
	enum boehm_variant best = VARIANT_B, variant;

	for (size_t i = 0; i < collector->blocks.count; i++)
		if (tell_variant(collector, image, &blocks[i], &variant))
			votes[variant]++;
	for (variant = VARIANT_A; variant <= VARIANT_C; variant++)
		if (votes[variant] > votes[best])
			best = variant;
	return best;
}

/*
 * Set whether the block's marks can be bytes, and whether they can be bits. the mark one past that
 * of the last object is always set, and a byte is 0 or 1.
 */
static void tell_marks(const struct collector *collector, const struct boehm_block *block,
		       const struct marks *marks, bool *ret_bytes, bool *ret_bits)
{
	uint64_t last = mark_number(collector, block, object_slots(collector, block));

	*ret_bits = marks->bytes[last / 8] >> (last % 8) & 1;
	*ret_bytes = marks->bytes[last] == 1;
	for (uint64_t i = 0; i < last && *ret_bytes; i++)
		*ret_bytes = marks->bytes[i] <= 1;
}

static bool vote_bytes(const struct collector *collector, const struct image *image)
{
	const struct boehm_block *blocks = collector->blocks.items;
	size_t bytes = 0, bits = 0;

	for (size_t i = 0; i < collector->blocks.count; i++) {
		bool can_be_bytes, can_be_bits;
		struct marks marks;

		if (!is_small(collector, &blocks[i]))
			continue;
		boehm_read_marks(collector, image, &blocks[i], &marks);
		tell_marks(collector, &blocks[i], &marks, &can_be_bytes, &can_be_bits);
		bytes += can_be_bytes;
		bits += can_be_bits && !can_be_bytes;
	}
	return bytes >= bits;
}

void boehm_calibrate(struct collector *collector, const struct image *image)
{
	collector->variant = vote_variant(collector, image);
	/* The vote reads as many marks as there would be bytes. */
	collector->byte_marks = true;
	collector->byte_marks = vote_bytes(collector, image);
}

void boehm_read_marks(const struct collector *collector, const struct image *image,
		      const struct boehm_block *block, struct marks *ret)
{
	uint64_t count = mark_count(collector) + 1;
	uint64_t size = collector->byte_marks ? count : (count + 7) / 8;

	if (!image_read(image, block->header + marks_offset(collector), ret->bytes, size))
		memset(ret->bytes, 0, size);
}

bool boehm_is_marked(const struct collector *collector, const struct boehm_block *block,
		     const struct marks *marks, uint64_t slot)
{
	uint64_t number = mark_number(collector, block, slot);

	return collector->byte_marks ? marks->bytes[number] != 0
				     : marks->bytes[number / 8] >> (number % 8) & 1;
}
