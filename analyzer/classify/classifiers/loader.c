/*
 * What the dynamic loader keeps of libraries that were loaded later.
 *
 * glibc, include/link.h; real is the link map itself:
 *
 *	| address | name | dynamic section | next | previous | real | ...
 */
#include "analyzer/classify/classifier.h"

/* A link map has been larger since glibc 2.3. */
enum { LINK_MAP_LEAST_SIZE = 0x300 };

struct link_map {
	uint64_t address, name, dynamic, next, previous, real;
};

/* Whether an allocation, of which size bytes are at hand, is a struct link_map. */
static bool is_link_map(const struct reader *reader, struct memory_range range,
			const uint8_t *bytes, uint64_t size)
{
	struct link_map map;

	if (size < LINK_MAP_LEAST_SIZE)
		return false;
	memcpy(&map, bytes, sizeof(map));
	return map.real == range.start && map.name && map.previous % 8 == 0 && map.next % 8 == 0 &&
	       reader_in_module(reader, map.dynamic) && map.dynamic > map.address;
}

static void inspect_link_map(struct reader *reader, const struct subject *subject)
{
	if (is_link_map(reader, subject->range, subject->bytes, subject->size))
		reader_claim(reader, subject->id, 0);
}

const struct classifier classifier_link_map = {
	.name = "LinkMap",
	.summary = "what the loader knows of a library loaded later",
	.role = "a link map of the loader",
	.strength = STRENGTH_MARKED,
	.inspect = inspect_link_map,
	.least_size = LINK_MAP_LEAST_SIZE,
};

/* Whether a link map refers to it: names, lists of dependencies and of scopes, versions. */
static bool is_of_link_map(const struct reader *reader, const struct reference *reference)
{
	uint64_t before = reference->address - reference->holder.start;

	return reference->source != NO_ALLOCATION &&
	       is_link_map(reader, reference->holder, reference->bytes - before,
			   range_size(reference->holder));
}

/* All of a link map, or nothing. */
static uint64_t suspect_data(const struct reader *reader, const struct reference *first,
			     uint64_t mask)
{
	return is_of_link_map(reader, first) ? mask : 0;
}

static void match_data(struct reader *reader, const struct reference *reference)
{
	if (is_of_link_map(reader, reference))
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

	memcpy(words, subject->bytes + gap, sizeof(words));
	if (words[1] != subject->range.start)
		return false;
	rest = range_size(subject->range) - gap - sizeof(words);
	return words[2] <= words[3] && words[3] > 0 && words[3] <= rest / ENTRY &&
	       rest - words[3] * ENTRY <= SLACK;
}

static void inspect_table(struct reader *reader, const struct subject *subject)
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
	.match = match_data,
	.suspect = suspect_data,
	.inspect = inspect_table,
};
