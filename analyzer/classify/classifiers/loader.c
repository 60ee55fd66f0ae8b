/*
 * The dynamic loader's data about libraries that were loaded later.
 *
 * glibc, include/link.h; real is the link map itself:
 *
 *	| address | name | dynamic section | next | previous | real | ...
 */
#include "analyzer/classify/classifier.h"

/* A link map has been larger since glibc 2.3. */
enum { LINK_MAP_LEAST_SIZE = 0x300, NARROW_LEAST_SIZE = 0x180, LINK_MAP_WORDS = 6 };

struct link_map {
	uint64_t address, name, dynamic, next, previous, real;
};

/* True if an allocation, with size bytes readable, is a struct link_map. */
static inline __attribute__((always_inline)) bool is_link_map(const struct reader *reader,
							      struct memory_range range,
							      const uint8_t *bytes, uint64_t size)
{
	const unsigned int word = reader->word;
	union {
		uint64_t words[LINK_MAP_WORDS];
		struct link_map map;
	} read;

	if (size < (word == sizeof(uint32_t) ? NARROW_LEAST_SIZE : LINK_MAP_LEAST_SIZE) ||
	    load_word(bytes + (LINK_MAP_WORDS - 1) * word, word) != range.start)
		return false;
	for (unsigned int i = 0; i < LINK_MAP_WORDS; i++)
		read.words[i] = load_word(bytes + i * word, word);
	return read.map.name && read.map.previous % word == 0 && read.map.next % word == 0 &&
	       reader_in_module(reader, read.map.dynamic) && read.map.dynamic > read.map.address;
}

static void inspect_link_map(struct reader *reader, const struct subject *subject)
{
	if (is_link_map(reader, subject->range, subject->bytes, subject->size))
		reader_claim(reader, subject->id, 0);
}

CLASSIFIER(link_map, "LinkMap", "the loader's record of a library loaded later",
	   "a link map of the loader", .narrow = true, .strength = STRENGTH_MARKED,
	   .inspect = inspect_link_map, .least_size = NARROW_LEAST_SIZE);

/*
 * True if the referrer is a link map: it refers to names, lists of dependencies and of scopes, and
 * versions.
 */
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
 *	| previous | to free | size | allocated | 4 words for each, or 5 on i386 ... |
 */
enum { HEADER_WORDS = 4, ENTRY = 32, NARROW_ENTRY = 20, SLACK = 128 };

static inline __attribute__((always_inline)) bool is_mapping_table(const struct subject *subject,
								   uint64_t gap, unsigned int word)
{
	const uint64_t entry = word == sizeof(uint32_t) ? NARROW_ENTRY : ENTRY;
	uint64_t words[HEADER_WORDS], rest;

	if (load_word(subject->bytes + gap + word, word) != subject->range.start)
		return false;
	for (unsigned int i = 0; i < HEADER_WORDS; i++)
		words[i] = load_word(subject->bytes + gap + i * word, word);
	rest = range_size(subject->range) - gap - HEADER_WORDS * (uint64_t)word;
	return words[2] <= words[3] && words[3] > 0 && words[3] <= rest / entry &&
	       rest - words[3] * entry <= SLACK;
}

static inline __attribute__((always_inline)) void inspect_table_of(struct reader *reader,
								   const struct subject *subject,
								   unsigned int word)
{
	const uint64_t least = HEADER_WORDS * (uint64_t)word + ENTRY;

	for (uint64_t gap = 0; gap <= 64 && subject->size >= gap + least; gap += 16)
		if (is_mapping_table(subject, gap, word))
			reader_claim(reader, subject->id, 0);
}

static void inspect_table(struct reader *reader, const struct subject *subject)
{
	if (reader->word == sizeof(uint64_t))
		inspect_table_of(reader, subject, sizeof(uint64_t));
	else
		inspect_table_of(reader, subject, sizeof(uint32_t));
}

CLASSIFIER(loader_data, "LoaderData", "names and lists of a library loaded later",
	   "data of the loader, of the link map", .narrow = true, .strength = STRENGTH_RELATED,
	   .match = match_data, .suspect = suspect_data, .inspect = inspect_table,
	   .numbers = { .own = 0xffc }); /* the third and fourth word behind a gap */
