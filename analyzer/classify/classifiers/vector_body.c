#include "analyzer/classify/classifier.h"

/*
 * The same in libstdc++ and libc++: three pointers.
 *
 *	| begin | end | end of capacity |
 *
 * libstdc++'s std::vector<bool> has the number of a bit behind both of the
 * first, and rounds the capacity up to words.
 */
static bool is_span(const struct memory_range *range, uint64_t end,
		    uint64_t capacity_end)
{
	return end >= range->start && end <= capacity_end &&
	       capacity_end > range->start && capacity_end <= range->end &&
	       size_fits(range_size(*range), capacity_end - range->start);
}

static bool is_bits(const struct reference *reference)
{
	uint64_t words[4];

	return reference_words(reference, 1, 4, words) &&
	       (uint32_t)words[0] == 0 && (uint32_t)words[2] < 64 &&
	       words[1] % 8 == 0 && words[3] % 8 == 0 &&
	       is_span(&reference->range, words[1], words[3]);
}

static void match(struct reader *reader, const struct reference *reference)
{
	uint64_t words[2];

	if ((reference_words(reference, 1, 2, words) &&
	     is_span(&reference->range, words[0], words[1])) ||
	    is_bits(reference))
		reader_claim(reader, reference->target, reference->address);
}

static void tell(struct reader *reader, struct memory_range range,
		 struct pattern_facts *facts)
{
	uint64_t words[5];

	if (!reader_words(reader, facts->owner, 3, words))
		return;
	if (!is_span(&range, words[1], words[2])) {
		if (!reader_words(reader, facts->owner, 5, words))
			return;
		words[1] = words[2] + ((uint32_t)words[3] + 7) / 8;
		words[2] = words[4];
	}
	facts->unit = "bytes";
	facts->has_capacity = true;
	facts->length = words[1] - range.start;
	facts->capacity = words[2] - range.start;
	facts->dead = "spare capacity of a vector";
	facts->live_end = facts->length;
}

const struct classifier classifier_vector_body = {
	.name = "VectorBody",
	.summary = "the elements of a std::vector",
	.role = "the body of the std::vector",
	.strength = STRENGTH_SPAN,
	.for_cxx = true,
	.match = match,
	.tell = tell,
};
