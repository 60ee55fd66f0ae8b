#include "analyzer/classify/classifier.h"

/*
 * libstdc++ with _GLIBCXX_USE_CXX11_ABI=0, <bits/cow_string.h>: a string is a pointer to its text,
 * in front of which stands
 *
 *	| length | capacity | references less 1, or -1 | text ... 0
 */
enum { TEXT = 24, MOST_REFERENCES = 1 << 24 };

static bool read_body(struct reader *reader, struct memory_range range, uint64_t *words)
{
	uint64_t size;
	const uint8_t *end;
	int32_t references;

	if (!reader_words(reader, range.start, 3, words))
		return false;
	references = (int32_t)words[2];
	if (words[0] > words[1] || words[1] == 0 || words[1] >= range_size(range) - TEXT ||
	    !reader_fits(reader, range, words[1] + TEXT + 1) || references < -1 ||
	    references > MOST_REFERENCES)
		return false;
	end = reader_bytes(reader, range.start + TEXT + words[0], &size);
	return end && *end == 0;
}

static void match(struct reader *reader, const struct reference *reference)
{
	uint64_t words[3];

	if (range_size(reference->range) > TEXT && read_body(reader, reference->range, words))
		reader_claim(reader, reference->target, reference->address);
}

static void tell(struct reader *reader, struct memory_range range, struct pattern_facts *facts)
{
	uint64_t words[3];

	if (!read_body(reader, range, words))
		return;
	facts->unit = "characters";
	facts->length = words[0];
	facts->has_capacity = true;
	facts->capacity = words[1];
	facts->dead = "unused end of a string";
	facts->live_end = TEXT + words[0] + 1;
}

static bool measure(struct reader *reader, struct memory_range range, uint64_t owner,
		    struct pattern_extent *ret)
{
	uint64_t words[3];

	if (!read_body(reader, range, words))
		return false;
	ret->asked = TEXT + words[1] + 1;
	ret->spare = words[1] - words[0];
	ret->live_end = TEXT + words[0] + 1;
	return true;
}

const struct classifier classifier_cow_string_body = {
	.name = "COWStringBody",
	.summary = "the text of a std::string that copies on write",
	.role = "the body of the copy-on-write std::string",
	.strength = STRENGTH_BUFFER,
	.for_cxx = true,
	.match = match,
	.offset = TEXT,
	.tell = tell,
	.measure = measure,
};
