#include "analyzer/account/contents.h"

#include "analyzer/base/bytes.h"
#include "analyzer/base/text.h"

#include <string.h>
#include <xxhash.h>

/* Bytes that are hashed at once, and bytes between searches for holes. */
enum { PIECE = 1 << 12, BETWEEN_HOLES = 1 << 20 };

/* The bytes of a piece, copied to buffer if two regions meet in it. */
static const uint8_t *read_piece(struct view *view, uint64_t address, uint64_t size,
				 uint8_t buffer[static PIECE])
{
	uint64_t known;
	const uint8_t *bytes = view_bytes(view, address, &known);

	if (!bytes || known >= size)
		return bytes;
	return image_read(view->image, address, buffer, size) ? buffer : NULL;
}

/* The zeros at the end of a piece that is not all zero. */
static uint64_t count_zeros(const uint8_t *bytes, uint64_t size)
{
	uint64_t count = 0, word;

	while (size - count >= sizeof(word)) {
		memcpy(&word, bytes + (size - count - sizeof(word)), sizeof(word));
		if (word != 0)
			return count + (uint64_t)__builtin_clzll(word) / 8;
		count += sizeof(word);
	}
	while (bytes[size - 1 - count] == 0)
		count++;
	return count;
}

/* The bytes of whole pieces in a hole at address. */
static uint64_t skip_hole(const struct view *view, uint64_t address, uint64_t size)
{
	uint64_t hole = image_next_data(view->image, address) - address;

	hole = MIN(hole, size);
	return hole - hole % PIECE;
}

/* Pieces of zeros are left out, so the offset of the others is part of the hash. */
static uint64_t add_hash(uint64_t hash, uint64_t offset, const uint8_t *bytes, uint64_t size)
{
	static const uint64_t odd = 0x9e3779b97f4a7c15;

	return (hash << 31 ^ hash >> 33 ^ XXH3_64bits(bytes, size)) * odd + offset;
}

bool contents_digest(struct view *view, uint64_t address, uint64_t size, struct digest *ret)
{
	struct digest digest = { .hash = size, .zeros = size };
	uint8_t buffer[PIECE];
	uint64_t offset = 0, piece;

	for (; offset < size; offset += piece) {
		const uint8_t *bytes;

		if (offset % BETWEEN_HOLES == 0 && size > BETWEEN_HOLES) {
			piece = skip_hole(view, address + offset, size - offset);
			if (piece)
				continue;
		}
		piece = size - offset < PIECE ? size - offset : PIECE;
		bytes = read_piece(view, address + offset, piece, buffer);
		if (!bytes)
			return false;
		if (bytes_are_zero(bytes, piece))
			continue;
		digest.hash = add_hash(digest.hash, offset, bytes, piece);
		digest.zeros = size - offset - piece + count_zeros(bytes, piece);
	}
	*ret = digest;
	return true;
}

/* The bytes of whole pieces that are in holes at both addresses. */
static uint64_t skip_holes(const struct view *view, uint64_t address, uint64_t other, uint64_t size)
{
	return skip_hole(view, address, skip_hole(view, other, size));
}

bool contents_equal(struct view *left, uint64_t address, struct view *right, uint64_t other,
		    uint64_t size)
{
	uint8_t buffers[2][PIECE];
	uint64_t offset = 0, piece;

	for (; offset < size; offset += piece) {
		const uint8_t *first, *second;

		if (offset % BETWEEN_HOLES == 0 && size > BETWEEN_HOLES) {
			piece = skip_holes(left, address + offset, other + offset, size - offset);
			if (piece)
				continue;
		}
		piece = size - offset < PIECE ? size - offset : PIECE;
		first = read_piece(left, address + offset, piece, buffers[0]);
		second = read_piece(right, other + offset, piece, buffers[1]);
		if (!first || !second || memcmp(first, second, piece) != 0)
			return false;
	}
	return true;
}

uint64_t contents_text(const uint8_t *bytes, uint64_t size)
{
	uint64_t length = text_run((const char *)bytes, size);

	return length < size && bytes[length] == 0 ? length : 0;
}
