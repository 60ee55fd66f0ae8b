#include "analyzer/runtimes/object_items.h"

enum { WORD = 8 };

bool object_items_fit(struct reader *reader, struct memory_range range, uint64_t length,
		      uint64_t capacity, struct item_contents *ret)
{
	*ret = (struct item_contents){
		.asked = WORD * capacity,
		.live_end = WORD * length,
		.length = length,
		.capacity = capacity,
	};
	return length <= capacity && capacity <= range_size(range) / WORD &&
	       reader_fits(reader, range, WORD * capacity);
}

static bool read_owner(const struct item_layout *layout, struct reader *reader,
		       struct memory_range range, uint64_t owner, struct item_contents *ret)
{
	uint64_t words[MOST_OBJECT_WORDS];

	return reader_words(reader, owner, layout->words, words) &&
	       words[layout->items] == range.start && layout->read(reader, range, words, ret);
}

void object_items_match(const struct item_layout *layout, struct reader *reader,
			const struct reference *reference)
{
	uint64_t words[MOST_OBJECT_WORDS];
	struct item_contents contents;

	if (reference_words(reference, -(int)layout->items, layout->words, words) &&
	    words[layout->items] == reference->range.start &&
	    layout->read(reader, reference->range, words, &contents))
		reader_claim(reader, reference->target, reference->address - WORD * layout->items);
}

void object_items_tell(const struct item_layout *layout, struct reader *reader,
		       struct memory_range range, struct pattern_facts *facts)
{
	struct item_contents contents;

	if (!read_owner(layout, reader, range, facts->owner, &contents))
		return;
	facts->unit = layout->unit;
	facts->length = contents.length;
	facts->has_capacity = layout->dead != NULL;
	facts->capacity = layout->dead ? contents.capacity : 0;
	facts->dead = layout->dead;
	facts->live_start = contents.live_start;
	facts->live_end = contents.live_end;
	facts->is_measured = true;
	facts->asked = contents.asked;
}
