#include "analyzer/classify/classifier.h"

/*
 * True for a vector of libstdc++ or libc++: three pointers.
 *
 *	| begin | end | end of capacity |
 *
 * libstdc++'s std::vector<bool> has the number of a bit behind both of the first pointers:
 *
 *	| begin | 0 | end | bit | end of capacity |
 *
 * libc++'s is a pointer and two small numbers, as many other things are, and left alone.
 */
static bool is_span(const struct reader *reader, const struct memory_range *range, uint64_t end,
		    uint64_t capacity_end)
{
	return end >= range->start && end <= capacity_end && capacity_end > range->start &&
	       capacity_end <= range->end &&
	       reader_fits(reader, *range, capacity_end - range->start);
}

static bool is_bits(const struct reader *reader, const struct memory_range *range,
		    const uint64_t *words)
{
	return (uint32_t)words[0] == 0 && (uint32_t)words[2] < 8 * reader->word &&
	       words[1] % reader->word == 0 && words[3] % reader->word == 0 &&
	       is_span(reader, range, words[1], words[3]);
}

/* True if the three may be pointers into one allocation. */
static bool are_ordered(const struct reader *reader, uint64_t begin, uint64_t end,
			uint64_t capacity_end)
{
	return begin <= end && end <= capacity_end && begin < capacity_end &&
	       heap_bounds_hold(&reader->bounds, capacity_end - 1);
}

static bool may_be_vector(const struct reader *reader, const struct reference *reference)
{
	uint64_t words[5];

	return reference_words(reference, 0, 3, words) &&
	       (are_ordered(reader, words[0], words[1], words[2]) ||
		((reader->cxx & LIBSTDCXX) && (uint32_t)words[1] == 0 &&
		 reference_words(reference, 0, 5, words) &&
		 are_ordered(reader, words[0], words[2], words[4])));
}

DEFINE_SUSPECT(suspect, may_be_vector)

static void match(struct reader *reader, const struct reference *reference)
{
	const struct memory_range *range = &reference->range;
	uint64_t words[4]; /* behind the reference */

	if (!reference_words(reference, 1, 2, words))
		return;
	if (is_span(reader, range, words[0], words[1]) ||
	    ((reader->cxx & LIBSTDCXX) && reference_words(reference, 1, 4, words) &&
	     is_bits(reader, range, words)))
		reader_claim(reader, reference->target, reference->address);
}

/* Read the ends of the elements and of the capacity. */
static bool read_ends(struct reader *reader, struct memory_range range, uint64_t owner,
		      uint64_t *ret_end, uint64_t *ret_capacity_end)
{
	uint64_t words[4]; /* behind the reference */

	if (!reader_words(reader, owner + reader->word, 2, words))
		return false;
	*ret_end = words[0];
	*ret_capacity_end = words[1];
	if (is_span(reader, &range, words[0], words[1]))
		return true;
	if (!reader_words(reader, owner + reader->word, 4, words))
		return false;
	*ret_end = words[1] + ((uint32_t)words[2] + 7) / 8;
	*ret_capacity_end = words[3];
	return true;
}

static void tell(struct reader *reader, struct memory_range range, struct pattern_facts *facts)
{
	uint64_t end, capacity_end;

	if (!read_ends(reader, range, facts->owner, &end, &capacity_end))
		return;
	facts->unit = "bytes";
	facts->length = end - range.start;
	facts->has_capacity = true;
	facts->capacity = capacity_end - range.start;
	facts->dead = "spare capacity of a vector";
	facts->live_end = facts->length;
	facts->is_measured = true;
	facts->asked = facts->capacity;
}

CLASSIFIER(vector_body, "VectorBody", "the elements of a std::vector",
	   "the body of the std::vector", .strength = STRENGTH_SPAN, .narrow = true,
	   .for_cxx = true, .match = match, .suspect = suspect, .tell = tell, .measures = true,
	   .favors = favors_first_word);
