#include "analyzer/classify/classifier.h"
#include "analyzer/classify/loader.h"

/* Names, lists of dependencies and of scopes, versions: all of a link map. */
static bool may_match(const struct reader *reader, const struct reference *reference)
{
	uint64_t before = reference->address - reference->holder.start;
	uint64_t size = range_size(reference->holder);

	return reference->source != NO_ALLOCATION &&
	       is_link_map(reader, reference->holder, reference->bytes - before, size);
}

/* All of a link map, or nothing. */
static uint64_t suspect(const struct reader *reader, const struct reference *first, uint64_t mask)
{
	return may_match(reader, first) ? mask : 0;
}

static void match(struct reader *reader, const struct reference *reference)
{
	if (may_match(reader, reference))
		reader_claim(reader, reference->target, reference->holder.start);
}

/*
 * glibc, elf/dl-find_object.c: a table of mappings of libraries, somewhere in the first 64 bytes,
 * knows what to free in the end:
 *
 *	| previous | to free | size | allocated | 32 bytes for each ... |
 */
enum { TABLE_HEADER = 32, ENTRY = 32, SLACK = 128 };

static bool is_mapping_table(const struct subject *subject, uint64_t gap)
{
	uint64_t words[4], rest;

	/* First the word that tells nearly all others. */
	memcpy(&words[1], subject->bytes + gap + sizeof(*words), sizeof(*words));
	if (words[1] != subject->range.start)
		return false;
	memcpy(words, subject->bytes + gap, sizeof(words));
	rest = range_size(subject->range) - gap - sizeof(words);
	return words[2] <= words[3] && words[3] > 0 && words[3] <= rest / ENTRY &&
	       rest - words[3] * ENTRY <= SLACK;
}

static void inspect(struct reader *reader, const struct subject *subject)
{
	for (uint64_t gap = 0; gap <= 64 && subject->size >= gap + TABLE_HEADER + ENTRY; gap += 16)
		if (is_mapping_table(subject, gap))
			reader_claim(reader, subject->id, 0);
}

const struct classifier classifier_loader_data = {
	.name = "LoaderData",
	.summary = "names and lists of a library loaded later",
	.role = "data of the loader, of the link map",
	.strength = STRENGTH_RELATED,
	.match = match,
	.suspect = suspect,
	.inspect = inspect,
};
