#include "analyzer/classify/python.h"

/* PyListObject: | references | type | length | items | capacity | */
enum { WORDS = 5, LENGTH = 2, ITEMS = 3, CAPACITY = 4, WORD = 8 };

static bool is_list(struct reader *reader, struct memory_range range,
		    const uint64_t *words)
{
	return words[ITEMS] == range.start &&
	       words[LENGTH] <= words[CAPACITY] &&
	       words[CAPACITY] <= range_size(range) / WORD &&
	       size_fits(range_size(range), WORD * words[CAPACITY]) &&
	       python_is(reader, words, PYTHON_LIST);
}

static void match(struct reader *reader, const struct reference *reference)
{
	uint64_t words[WORDS];

	if (reference_words(reference, -ITEMS, WORDS, words) &&
	    is_list(reader, reference->range, words))
		reader_claim(reader, reference->target,
			     reference->address - WORD * ITEMS);
}

static bool measure(struct reader *reader, struct memory_range range,
		    uint64_t owner, struct pattern_extent *ret)
{
	uint64_t words[WORDS];

	if (!reader_words(reader, owner, WORDS, words) ||
	    !is_list(reader, range, words))
		return false;
	ret->asked = WORD * words[CAPACITY];
	ret->spare = WORD * (words[CAPACITY] - words[LENGTH]);
	ret->live_end = WORD * words[LENGTH];
	return true;
}

static void tell(struct reader *reader, struct memory_range range,
		 struct pattern_facts *facts)
{
	uint64_t words[WORDS];

	if (!reader_words(reader, facts->owner, WORDS, words) ||
	    !is_list(reader, range, words))
		return;
	facts->unit = "items";
	facts->length = words[LENGTH];
	facts->has_capacity = true;
	facts->capacity = words[CAPACITY];
	facts->dead = "spare capacity of a list";
	facts->live_end = WORD * words[LENGTH];
}

const struct classifier classifier_python_list_items = {
	.name = "PythonListItems",
	.summary = "the items of a list of Python",
	.role = "the items of the list",
	.strength = STRENGTH_MARKED,
	.for_library = PYTHON_LIBRARY,
	.match = match,
	.tell = tell,
	.measure = measure,
};
