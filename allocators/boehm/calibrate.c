#include "allocators/boehm/calibrate.h"

enum {
	HEADER_INVERSE = 28, /* hb_inv_sz, of variant C */
	HEADER_TAIL = 48,    /* what differs begins here */

	INVERSE_OF_LARGE = 1 << 16,
};

/* Where hb_marks is. */
static uint64_t marks_offset(enum boehm_variant variant)
{
	switch (variant) {
	case VARIANT_A:
		return 72;
	case VARIANT_B:
		return 64;
	case VARIANT_C:
		return 56;
	}
	return 0;
}

/* There is a mark for each granule of a block, or for as many objects. */
static uint64_t mark_count(const struct collector *collector)
{
	return block_bytes(collector) / GRANULE;
}

/* Which mark is that of the block's slot-th object. */
static uint64_t mark_number(const struct collector *collector, const struct boehm_block *block,
			    uint64_t slot)
{
	return collector->variant == VARIANT_C ? slot : slot * block->size / GRANULE;
}

uint64_t boehm_header_size(const struct collector *collector)
{
	uint64_t count = mark_count(collector) + 1;
	uint64_t size = collector->byte_marks ? count : (count + 63) / 64 * 8;

	return marks_offset(collector->variant) + ((size + 7) & ~UINT64_C(7));
}

/* What the header says of its variant; false if nothing. */
static bool tell_variant(const struct collector *collector, const struct image *image,
			 const struct boehm_block *block, enum boehm_variant *ret)
{
	uint64_t inverse = (UINT64_C(1) << 32) / block->size;
	uint64_t tail[2];
	uint32_t stated;

	if (is_free(block) || !image_read_u32(image, block->header + HEADER_INVERSE, &stated) ||
	    !image_read(image, block->header + HEADER_TAIL, tail, sizeof(tail)))
		return false;
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
	const struct boehm_block *blocks = boehm_blocks(collector);
	size_t votes[VARIANT_C + 1] = { 0 };
	enum boehm_variant best = VARIANT_B, told;

	for (size_t i = 0; i < collector->blocks.count; i++)
		if (tell_variant(collector, image, &blocks[i], &told))
			votes[told]++;
	for (told = VARIANT_A; told <= VARIANT_C; told++)
		if (votes[told] > votes[best])
			best = told;
	return best;
}

/*
 * Whether the block's marks can be bytes, or bits: the mark one past that of the last object is
 * always set, and a byte is 0 or 1.
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
	const struct boehm_block *blocks = boehm_blocks(collector);
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
	/* As many are read as there would be of bytes. */
	collector->byte_marks = true;
	collector->byte_marks = vote_bytes(collector, image);
}

void boehm_read_marks(const struct collector *collector, const struct image *image,
		      const struct boehm_block *block, struct marks *ret)
{
	uint64_t count = mark_count(collector) + 1;
	uint64_t size = collector->byte_marks ? count : (count + 7) / 8;

	if (!image_read(image, block->header + marks_offset(collector->variant), ret->bytes, size))
		__builtin_memset(ret->bytes, 0, size);
}

bool boehm_is_marked(const struct collector *collector, const struct boehm_block *block,
		     const struct marks *marks, uint64_t slot)
{
	uint64_t number = mark_number(collector, block, slot);

	return collector->byte_marks ? marks->bytes[number] != 0
				     : marks->bytes[number / 8] >> (number % 8) & 1;
}
