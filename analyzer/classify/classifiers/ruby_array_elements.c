#include "analyzer/classify/ruby.h"

/* struct RArray: | flags | class | length | capacity | elements | */
enum { WORDS = 5, LENGTH = 2, CAPACITY = 3, ELEMENTS = 4, WORD = 8 };

static bool is_array(struct reader *reader, struct memory_range range,
		     const uint64_t *words)
{
	return words[ELEMENTS] == range.start &&
	       words[LENGTH] <= words[CAPACITY] &&
	       words[CAPACITY] <= range_size(range) / WORD &&
	       size_fits(range_size(range), WORD * words[CAPACITY]) &&
	       ruby_holds(reader, words, RUBY_ARRAY);
}

static void match(struct reader *reader, const struct reference *reference)
{
	uint64_t words[WORDS];

	if (reference_words(reference, -ELEMENTS, WORDS, words) &&
	    is_array(reader, reference->range, words))
		reader_claim(reader, reference->target,
			     reference->address - WORD * ELEMENTS);
}

static bool measure(struct reader *reader, struct memory_range range,
		    uint64_t owner, struct pattern_extent *ret)
{
	uint64_t words[WORDS];

	if (!reader_words(reader, owner, WORDS, words) ||
	    !is_array(reader, range, words))
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
	    !is_array(reader, range, words))
		return;
	facts->unit = "elements";
	facts->length = words[LENGTH];
	facts->has_capacity = true;
	facts->capacity = words[CAPACITY];
	facts->dead = "spare capacity of an Array";
	facts->live_end = WORD * words[LENGTH];
}

const struct classifier classifier_ruby_array_elements = {
	.name = "RubyArrayElements",
	.summary = "the elements of an Array of Ruby",
	.role = "the elements of the Array",
	.strength = STRENGTH_MARKED,
	.for_library = "libruby",
	.match = match,
	.tell = tell,
	.measure = measure,
};
