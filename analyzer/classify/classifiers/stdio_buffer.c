#include "analyzer/classify/classifier.h"

/*
 * glibc, libio/bits/types/struct_FILE.h, in words:
 *
 *	| magic, flags | read: pointer, end, base |
 *	| write: base, pointer, end | buffer: base, end |
 */
enum { MAGIC = 0xfbad, WORD_BASE = 7, WORD_END = 8 };

static bool may_match(const struct reader *reader, const struct reference *reference)
{
	uint64_t flags;

	return reference_words(reference, -WORD_BASE, 1, &flags) && (uint32_t)flags >> 16 == MAGIC;
}

static uint64_t suspect(const struct reader *reader, const struct reference *first, uint64_t mask)
{
	return references_filter(reader, first, mask, may_match);
}

static void match(struct reader *reader, const struct reference *reference)
{
	uint64_t words[2]; /* base, end */
	uint64_t size;

	if (!may_match(reader, reference) || !reference_words(reference, 0, 2, words))
		return;
	size = words[1] - words[0];
	if (size > 0 && reader_fits(reader, reference->range, size))
		reader_claim(reader, reference->target, reference->address - 8 * WORD_BASE);
}

static void tell(struct reader *reader, struct memory_range range, struct pattern_facts *facts)
{
	uint64_t words[2];

	if (!reader_words(reader, facts->owner + 8 * WORD_BASE, 2, words))
		return;
	facts->unit = "bytes";
	facts->length = words[1] - words[0];
}

/* What is in it, is there only until it is read or written. */
static bool measure(struct reader *reader, struct memory_range range, uint64_t owner,
		    struct pattern_extent *ret)
{
	uint64_t words[2];

	if (!reader_words(reader, owner + 8 * WORD_BASE, 2, words) || words[0] != range.start ||
	    words[1] <= words[0])
		return false;
	ret->asked = words[1] - words[0];
	ret->live_end = ret->asked;
	return true;
}

const struct classifier classifier_stdio_buffer = {
	.name = "StdioBuffer",
	.summary = "the buffer of a FILE",
	.role = "the buffer of the FILE",
	.strength = STRENGTH_MARKED,
	.match = match,
	.suspect = suspect,
	.tell = tell,
	.measure = measure,
};
