#include "allocators/ruby/transient.h"

#include "analyzer/base/list.h"

enum {
	WORD = 8,
	HEAD = 16, /* of blocks, and of pieces */
	USABLE = RUBY_TRANSIENT_BLOCK - HEAD,
	MAGIC = 0xfeab,
};

/* Up to 3.0, a word with its size precedes this. */
struct block_head {
	int16_t words[4]; /* bytes in use, the piece marked last or -1, how many pieces */
	uint64_t next;
};

struct piece_head {
	uint16_t magic, size; /* with the head */
	int16_t next_marked, padding;
	uint64_t owner;
};

/* True if pieces fill the used part of it. */
static bool has_pieces(struct view *view, uint64_t address, uint32_t used)
{
	struct ruby_piece piece;
	uint32_t at = 0;

	while (at < used) {
		if (!ruby_read_piece(view, address, at, &piece))
			return false;
		at += HEAD + piece.size;
	}
	return at == used;
}

/* Read the head of the block at address, and check its pieces. */
static bool ruby_read_transient(struct view *view, uint64_t address, uint32_t *ret_used)
{
	enum { USED, MARKED, PIECES };
	struct block_head head;
	const int16_t *words;

	if (!view_read(view, address, &head, sizeof(head)) || head.next % RUBY_TRANSIENT_BLOCK != 0)
		return false;
	words = &head.words[head.words[0] == USABLE && head.words[1] != -1];
	if (words[USED] < 0 || words[USED] > USABLE || words[MARKED] < -1 || words[PIECES] < 0 ||
	    (words[USED] == 0 && (words[MARKED] != -1 || words[PIECES] != 0)) ||
	    !has_pieces(view, address, (uint32_t)words[USED]))
		return false;
	*ret_used = (uint32_t)words[USED];
	return true;
}

/* True if a word in the owner's slot points to it: to its elements, its pairs or its variables. */
static bool is_owned(struct view *view, uint64_t owner, uint64_t start)
{
	enum { FIRST = 2, WORDS = 5 };
	uint64_t words[WORDS];

	if (owner % WORD != 0 || !view_read(view, owner, words, sizeof(words)) ||
	    !(words[0] & RUBY_TYPE_BITS))
		return false;
	for (size_t i = FIRST; i < WORDS; i++)
		if (words[i] == start)
			return true;
	return false;
}

bool ruby_read_piece(struct view *view, uint64_t block, uint32_t at, struct ruby_piece *ret)
{
	struct piece_head head;
	uint64_t address = block + HEAD + at;

	if (!view_read(view, address, &head, sizeof(head)) || head.magic != MAGIC ||
	    head.size < HEAD || head.size % WORD != 0 || head.size > USABLE - at)
		return false;
	*ret = (struct ruby_piece){
		.start = address + HEAD,
		.size = head.size - HEAD,
		.owner = head.owner,
	};
	return true;
}

bool ruby_piece_is_used(struct view *view, const struct ruby_piece *piece)
{
	return is_owned(view, piece->owner, piece->start);
}

static struct error *find_in(const struct image *image, const struct region *region,
			     struct ruby_transients *ret)
{
	static const uint64_t MASK = RUBY_TRANSIENT_BLOCK - 1;
	struct view view = { image };
	uint32_t used;

	for (uint64_t at = (region->start + MASK) & ~MASK; at >= region->start && at < region->end;
	     at = (image_next_data(image, at + RUBY_TRANSIENT_BLOCK) + MASK) & ~MASK)
		if (region->end - at >= RUBY_TRANSIENT_BLOCK &&
		    ruby_read_transient(&view, at, &used))
			TRY(array_append(&ret->list, (struct ruby_transient){ at, used }));
	return NULL;
}

/* Leave rows of blocks of which some are used, or that are many: an empty one says little. */
static void keep_rows(struct ruby_transients *ret)
{
	enum { MANY = 16 };
	size_t kept = 0, end;

	for (size_t first = 0; first < ret->list.count; first = end) {
		bool is_used = false;

		for (end = first;
		     end < ret->list.count &&
		     ret->list.items[end].address ==
			     ret->list.items[first].address + (end - first) * RUBY_TRANSIENT_BLOCK;
		     end++)
			is_used |= ret->list.items[end].used > 0;
		for (size_t i = first; (is_used || end - first >= MANY) && i < end; i++)
			ret->list.items[kept++] = ret->list.items[i];
	}
	ret->list.count = kept;
}

struct error *ruby_find_transients(const struct image *image, struct ruby_transients *ret)
{
	list_for_each(region, image->regions, image->region_count) {
		if (region->bytes && (region->rights & RIGHT_WRITE) && !region->untouched)
			TRY(find_in(image, region, ret));
	}
	keep_rows(ret);
	return NULL;
}
