#include "analyzer/classify/classifier.h"

/*
 * glibc, libio/iogetdelim.c: getline() and getdelim() allocate 120 bytes at first, and double that.
 * The caller keeps pointer and size, mostly beside each other; what was read ends by a newline.
 */
enum { FIRST_SIZE = 120, DOUBLINGS = 24, NEAR = 2 };

static bool is_size(const struct reader *reader, struct memory_range range, uint64_t size)
{
	for (int i = 0; i < DOUBLINGS; i++)
		if (size == (uint64_t)FIRST_SIZE << i)
			return reader_fits(reader, range, size);
	return false;
}

static bool is_line(struct reader *reader, struct memory_range range)
{
	uint64_t size;
	const uint8_t *bytes = reader_bytes(reader, range.start, &size);
	const uint8_t *end;

	if (!bytes)
		return false;
	if (size > range_size(range))
		size = range_size(range);
	end = memchr(bytes, 0, size);
	return end && end > bytes && end[-1] == '\n';
}

/* It is below 2^31: that ends nearly all looks at what stands beside. */
static bool may_be_size(uint64_t word)
{
	return word - 1 < INT32_MAX && word % FIRST_SIZE == 0;
}

static bool may_match(const struct reader *reader, const struct reference *reference)
{
	uint64_t word;

	for (int at = -NEAR; at <= NEAR; at++)
		if (at && reference_words(reference, at, 1, &word) && may_be_size(word))
			return true;
	return false;
}

static uint64_t suspect(const struct reader *reader, const struct reference *first, uint64_t mask)
{
	return references_filter(reader, first, mask, may_match);
}

static void match(struct reader *reader, const struct reference *reference)
{
	uint64_t word;

	if (range_size(reference->range) < FIRST_SIZE)
		return;
	for (int at = -NEAR; at <= NEAR; at++)
		if (at && reference_words(reference, at, 1, &word) &&
		    is_size(reader, reference->range, word) && is_line(reader, reference->range))
			reader_claim(reader, reference->target, reference->address);
}

const struct classifier classifier_getdelim_line = {
	.name = "GetdelimLine",
	.summary = "a line read by getline() or getdelim()",
	.role = "the line read by getline() for the pointer",
	.strength = STRENGTH_SPAN,
	.match = match,
	.suspect = suspect,
};
