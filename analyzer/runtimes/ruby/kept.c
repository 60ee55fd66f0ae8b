#include "analyzer/runtimes/ruby/kept.h"

enum { WORD = 8 };

struct error *ruby_keep_numbers(struct ruby_structure *structure, uint64_t start, uint64_t end)
{
	enum { MOST = 1 << 21, LEAST = -(1 << 10) };
	int32_t half;

	for (uint64_t at = start; at + sizeof(half) <= end; at += sizeof(half))
		if (view_read(&structure->view, at, &half, sizeof(half)) && half > LEAST &&
		    half < MOST && half != 0)
			TRY(ruby_keep(structure, at, sizeof(half)));
	return NULL;
}

static bool is_kept(const struct ruby_structure *structure, uint64_t value)
{
	enum { SYMBOL_BITS = 0xff, SYMBOL = 0xc, MOST_SPECIAL = 0x40, FLOAT_BITS = 3, FLOAT = 2 };

	if (value & 1)
		return allocation_find(structure->slots->index, value >> 1) != NO_ALLOCATION;
	return (value & FLOAT_BITS) != FLOAT &&
	       (value < MOST_SPECIAL ||
		((value & SYMBOL_BITS) == SYMBOL &&
		 ruby_serial(value >> 8) < structure->symbols->strings.count));
}

struct error *ruby_keep_values(struct ruby_structure *structure, uint64_t start, uint64_t count)
{
	uint64_t value;

	for (uint64_t at = start; count-- > 0 && view_word(&structure->view, at, &value);
	     at += WORD)
		if (value != 0 && is_kept(structure, value))
			TRY(ruby_keep(structure, at, WORD));
	return NULL;
}

struct error *ruby_keep_text(struct ruby_structure *structure, uint64_t string)
{
	enum { MOST_TEXT = 1 << 16 };
	uint64_t text, length;

	return string % WORD == 0 &&
			       ruby_find_text(structure->slots, &structure->view, string, &text,
					      &length) &&
			       length <= MOST_TEXT
		       ? structure->visitor->name(structure->visitor->data, text, length)
		       : NULL;
}

uint64_t ruby_block_size(const struct ruby_structure *structure, uint64_t address)
{
	const struct allocation_index *index = structure->slots->index;
	allocation_id id = address ? allocation_used_at(index, address) : NO_ALLOCATION;

	return id != NO_ALLOCATION && !bitmap_get(&structure->slots->slots, id)
		       ? allocation_size(index, id)
		       : 0;
}
