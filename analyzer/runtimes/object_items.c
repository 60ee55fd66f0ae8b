#include "analyzer/runtimes/object_items.h"

enum { WORD = 8 };

static bool is_owner(const struct object_items *layout, struct reader *reader,
		     struct memory_range range, const uint64_t *words)
{
	uint64_t capacity = words[layout->capacity];

	return words[layout->items] == range.start && words[layout->length] <= capacity &&
	       capacity <= range_size(range) / WORD &&
	       reader_fits(reader, range, WORD * capacity) && layout->is_owner(reader, words);
}

static bool read_owner(const struct object_items *layout, struct reader *reader,
		       struct memory_range range, uint64_t owner,
		       uint64_t words[OBJECT_ITEMS_WORDS])
{
	return reader_words(reader, owner, OBJECT_ITEMS_WORDS, words) &&
	       is_owner(layout, reader, range, words);
}

void object_items_match(const struct object_items *layout, struct reader *reader,
			const struct reference *reference)
{
	uint64_t words[OBJECT_ITEMS_WORDS];

	if (reference_words(reference, -(int)layout->items, OBJECT_ITEMS_WORDS, words) &&
	    is_owner(layout, reader, reference->range, words))
		reader_claim(reader, reference->target, reference->address - WORD * layout->items);
}

bool object_items_measure(const struct object_items *layout, struct reader *reader,
			  struct memory_range range, uint64_t owner, struct pattern_extent *ret)
{
	uint64_t words[OBJECT_ITEMS_WORDS];

	if (!read_owner(layout, reader, range, owner, words))
		return false;
	ret->asked = WORD * words[layout->capacity];
	ret->spare = WORD * (words[layout->capacity] - words[layout->length]);
	ret->live_end = WORD * words[layout->length];
	return true;
}

void object_items_tell(const struct object_items *layout, struct reader *reader,
		       struct memory_range range, struct pattern_facts *facts)
{
	uint64_t words[OBJECT_ITEMS_WORDS];

	if (!read_owner(layout, reader, range, facts->owner, words))
		return;
	facts->unit = layout->unit;
	facts->length = words[layout->length];
	facts->has_capacity = true;
	facts->capacity = words[layout->capacity];
	facts->dead = layout->dead;
	facts->live_end = WORD * words[layout->length];
}
