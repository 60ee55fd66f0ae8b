#include "analyzer/classify/classifier.h"
#include "analyzer/classify/cxx.h"

/*
 * libstdc++, <bits/basic_string.h>: up to 15 bytes are kept in the string itself, where the
 * capacity stands otherwise.
 *
 *	| pointer | length | capacity | unused |
 *
 * libc++: see cxx_is_libcxx_size().
 *
 *	| size, 1 | length | pointer |
 */
static void match(struct reader *reader, const struct reference *reference)
{
	uint64_t words[STRING_WORDS_BEHIND];

	if ((reader->cxx & LIBSTDCXX) &&
	    reference_words(reference, 1, STRING_WORDS_BEHIND, words) &&
	    cxx_is_body(reader, reference->address, reference->range, words))
		reader_claim(reader, reference->target, reference->address);
	else if ((reader->cxx & LIBCXX) && reference_words(reference, -2, 2, words) &&
		 cxx_is_libcxx_size(words[0]) &&
		 cxx_is_libcxx_body(reader, reference->range, words[1], words[0] - 2))
		reader_claim(reader, reference->target, reference->address - 16);
}

static void tell(struct reader *reader, struct memory_range range, struct pattern_facts *facts)
{
	uint64_t words[3];

	if (!reader_words(reader, facts->owner, 3, words))
		return;
	facts->unit = "characters";
	facts->has_capacity = true;
	facts->length = words[1];
	facts->capacity = words[0] == range.start ? words[2] : words[0] - 2;
	facts->dead = "unused end of a string";
	facts->live_end = facts->length + 1;
}

/* One byte more ends the text. */
static bool measure(struct reader *reader, struct memory_range range, uint64_t owner,
		    struct pattern_extent *ret)
{
	uint64_t words[3];
	uint64_t capacity;

	if (!reader_words(reader, owner, 3, words))
		return false;
	capacity = words[0] == range.start ? words[2] : words[0] - 2;
	if (words[1] > capacity || capacity >= range_size(range))
		return false;
	ret->asked = capacity + 1;
	ret->spare = capacity - words[1];
	ret->live_end = words[1] + 1;
	return true;
}

/* The pointer is the first word in libstdc++, the third in libc++. */
static bool favors(struct reader *reader, struct memory_range range, uint64_t owner,
		   uint64_t address)
{
	return address == owner || address == owner + 16;
}

const struct classifier classifier_long_string = {
	.name = "LongString",
	.summary = "the text of a std::string too long to be kept in it",
	.role = "the text of the std::string",
	.strength = STRENGTH_BUFFER,
	.for_cxx = true,
	.match = match,
	.tell = tell,
	.measure = measure,
	.favors = favors,
};
