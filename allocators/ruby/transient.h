/*
 * The transient heap of MRI: transient_heap.c, 2.7 to 3.2. What young arrays, hashes, objects and
 * structs hold is in pieces of its blocks; a piece that its owner does not lead to any more is
 * dropped, and the block is used again once all of its pieces are.
 *
 *	block, 32 KiB      | head | piece | piece ... | not used yet |
 *	piece              | u16 0xfeab, u16 size, ... | owner | contents |
 */
#pragma once

#include "allocators/ruby/ruby.h"

enum { RUBY_TRANSIENT_BLOCK = 32 << 10, RUBY_TRANSIENT_HEAD = 16 };

struct ruby_transient {
	uint64_t address;
	uint32_t used; /* bytes behind the head */
};

struct ruby_transients {
	ARRAY(struct ruby_transient) list; /* by address */
};

struct ruby_piece {
	uint64_t start, owner;
	uint32_t size;
};

/* Find all blocks of the dump. */
struct error *ruby_find_transients(const struct image *image, struct ruby_transients *ret);

/* Read the piece behind so many bytes of a block. */
bool ruby_read_piece(struct view *view, uint64_t block, uint32_t at, struct ruby_piece *ret);
bool ruby_piece_is_used(struct view *view, const struct ruby_piece *piece);
