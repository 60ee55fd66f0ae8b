#include "analyzer/classify/classifier.h"

/*
 * glibc, libio/bits/types/struct_FILE.h, in words:
 *
 *	| magic, flags | read: pointer, end, base |
 *	| write: base, pointer, end | buffer: base, end |
 */
enum { MAGIC = 0xfbad, WORD_BASE = 7, WORD_END = 8 };

static void match(struct reader *reader, const struct reference *reference)
{
	uint64_t words[WORD_END + 1];
	uint64_t size;

	if (!reference_words(reference, -WORD_BASE, WORD_END + 1, words) ||
	    (uint32_t)words[0] >> 16 != MAGIC)
		return;
	size = words[WORD_END] - words[WORD_BASE];
	if (size > 0 && size_fits(range_size(reference->range), size))
		reader_claim(reader, reference->target,
			     reference->address - 8 * WORD_BASE);
}

static void tell(struct reader *reader, struct memory_range range,
		 struct pattern_facts *facts)
{
	uint64_t words[2];

	if (!reader_words(reader, facts->owner + 8 * WORD_BASE, 2, words))
		return;
	facts->unit = "bytes";
	facts->length = words[1] - words[0];
}

/* What is in it, is there only until it is read or written. */
static bool measure(struct reader *reader, struct memory_range range,
		    uint64_t owner, struct pattern_extent *ret)
{
	uint64_t words[2];

	if (!reader_words(reader, owner + 8 * WORD_BASE, 2, words) ||
	    words[0] != range.start || words[1] <= words[0])
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
	.tell = tell,
	.measure = measure,
};
