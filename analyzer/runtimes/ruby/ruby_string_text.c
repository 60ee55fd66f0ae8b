#include "analyzer/runtimes/ruby/ruby.h"

/* struct RString: | flags | class | length | text | capacity | */
enum { WORDS = 5, LENGTH = 2, TEXT = 3, CAPACITY = 4, WORD = 8 };

static bool is_string(struct reader *reader, struct memory_range range, const uint64_t *words)
{
	return words[TEXT] == range.start && words[LENGTH] <= words[CAPACITY] &&
	       words[CAPACITY] < range_size(range) &&
	       reader_fits(reader, range, words[CAPACITY] + 1) &&
	       ruby_holds(reader, words, RUBY_STRING);
}

static void match(struct reader *reader, const struct reference *reference)
{
	uint64_t words[WORDS];

	if (reference_words(reference, -TEXT, WORDS, words) &&
	    is_string(reader, reference->range, words))
		reader_claim(reader, reference->target, reference->address - WORD * TEXT);
}

/* One byte more ends the text, or a few in encodings of wider characters. */
static bool measure(struct reader *reader, struct memory_range range, uint64_t owner,
		    struct pattern_extent *ret)
{
	uint64_t words[WORDS];

	if (!reader_words(reader, owner, WORDS, words) || !is_string(reader, range, words))
		return false;
	ret->asked = words[CAPACITY] + 1;
	ret->spare = words[CAPACITY] - words[LENGTH];
	ret->live_end = words[LENGTH] + 1;
	return true;
}

static void tell(struct reader *reader, struct memory_range range, struct pattern_facts *facts)
{
	uint64_t words[WORDS];

	if (!reader_words(reader, facts->owner, WORDS, words) || !is_string(reader, range, words))
		return;
	facts->unit = "bytes";
	facts->length = words[LENGTH];
	facts->has_capacity = true;
	facts->capacity = words[CAPACITY];
	facts->dead = "unused end of a String";
	facts->live_end = words[LENGTH] + 1;
}

const struct classifier classifier_ruby_string_text = {
	.name = "RubyStringText",
	.summary = "the text of a String of Ruby",
	.role = "the text of the String",
	.strength = STRENGTH_MARKED,
	.runtime = &runtime_ruby,
	.match = match,
	.tell = tell,
	.measure = measure,
};
