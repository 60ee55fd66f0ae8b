#include "analyzer/classify/classifier.h"

/*
 * glibc, <obstack.h>: a program takes objects from the chunk in order, and gives all of a chunk
 * back at once.
 *
 *	| limit: the chunk's end | the chunk before, or null | objects ...
 */
enum { LEAST_SIZE = 64 };

/* Whether the first word of the allocation at range says where it ends. */
static bool names_its_end(const struct reader *reader, struct memory_range range, uint64_t limit)
{
	return limit > range.start && reader_fits(reader, range, limit - range.start);
}

static void inspect(struct reader *reader, const struct subject *subject)
{
	struct memory_range before;
	uint64_t words[2], limit;

	memcpy(words, subject->bytes, sizeof(words));
	if (!names_its_end(reader, subject->range, words[0]))
		return;
	if (words[1] != 0 &&
	    (reader_start(reader, words[1], &before) == NO_ALLOCATION ||
	     !reader_word(reader, words[1], &limit) || !names_its_end(reader, before, limit)))
		return;
	reader_claim(reader, subject->id, 0);
}

const struct classifier classifier_obstack_chunk = {
	.name = "ObstackChunk",
	.summary = "memory from which an obstack takes objects in order",
	.role = "a chunk of an obstack",
	.strength = STRENGTH_BUFFER,
	.inspect = inspect,
	.least_size = LEAST_SIZE,
};
