/*
 * The buckets and nodes of std::unordered_map, std::unordered_set and the like.
 *
 * libstdc++, <bits/hashtable.h>:
 *
 *	| buckets | bucket count | first node | size | load | next resize | one |
 *
 * A table of one bucket keeps it in itself, as its last word.
 *
 * libc++, <__hash_table>:
 *
 *	| buckets | bucket count | first node | size | load |
 *
 * In both a bucket points at what points at its first node, which for one of them is the table
 * itself. All nodes are in one chain, whatever their buckets.
 */
#include "analyzer/classify/classifier.h"

#include <math.h>

enum { COMMON_WORDS = 5, WORD_ONE = 6 };

struct hash_table {
	uint64_t address;
	uint64_t buckets, bucket_count;
	uint64_t first; /* node; 0: none */
	uint64_t size;	/* nodes */
	float load;	/* nodes for each bucket, at most */
};

/* The load factor is a float; the rest of its word may be anything. */
static bool is_load(uint64_t word, float *ret)
{
	uint32_t bits = (uint32_t)word;

	memcpy(ret, &bits, sizeof(*ret));
	return isfinite(*ret) && *ret >= 0.01F && *ret <= 1000;
}

/*
 * True if a bucket points at the table's link to the first node, or all are empty and there are no
 * nodes.
 */
static bool are_buckets(struct reader *reader, const struct hash_table *table)
{
	uint64_t word, link = table->address + 2 * (uint64_t)reader->word;

	for (uint64_t i = 0; i < table->bucket_count; i++) {
		if (!reader_step(reader) ||
		    !reader_word(reader, table->buckets + reader->word * i, &word))
			return false;
		if (table->first ? word == link : word != 0)
			return table->first != 0;
	}
	return table->first == 0;
}

/* True if the words from the pointer to the buckets on may be a table's. */
static bool are_common(const struct reader *reader, const uint64_t *words, float *ret_load)
{
	return words[1] > 0 && words[1] <= UINT64_MAX / 8 &&
	       words[3] <= allocation_count(reader->index) && (words[2] == 0) == (words[3] == 0) &&
	       is_load(words[4], ret_load);
}

/* The table at the address of its pointer to its buckets, checked against itself. */
static bool read_table(struct reader *reader, uint64_t address, struct hash_table *ret)
{
	struct memory_range range = { 0 };
	uint64_t words[COMMON_WORDS];

	if (!reader_words(reader, address, COMMON_WORDS, words) ||
	    !are_common(reader, words, &ret->load))
		return false;
	ret->address = address;
	ret->buckets = words[0];
	ret->bucket_count = words[1];
	ret->first = words[2];
	ret->size = words[3];
	if (ret->buckets == address + reader->word * (uint64_t)WORD_ONE) {
		if (!(reader->cxx & LIBSTDCXX) || ret->bucket_count != 1)
			return false;
	} else if (reader_start(reader, ret->buckets, &range) == NO_ALLOCATION ||
		   !reader_fits(reader, range, reader->word * ret->bucket_count)) {
		return false;
	}
	return (!ret->first || reader_start(reader, ret->first, &range) != NO_ALLOCATION) &&
	       are_buckets(reader, ret);
}

static bool may_be_to_buckets(const struct reader *reader, const struct reference *reference)
{
	uint64_t words[COMMON_WORDS];
	float load;

	return reference_words(reference, 0, COMMON_WORDS, words) &&
	       are_common(reader, words, &load);
}

DEFINE_SUSPECT(suspect_buckets, may_be_to_buckets)

static void match_buckets(struct reader *reader, const struct reference *reference)
{
	struct hash_table table;
	uint64_t words[4]; /* bucket count, first node, size, load */

	if (reference_words(reference, 1, 4, words) && words[0] > 0 &&
	    words[0] <= range_size(reference->range) / reader->word &&
	    reader_fits(reader, reference->range, reader->word * words[0]) &&
	    read_table(reader, reference->address, &table))
		reader_claim(reader, reference->target, table.address);
}

/* Spare are the buckets that its nodes do not need, wherever they are. */
static void tell_buckets(struct reader *reader, struct memory_range range,
			 struct pattern_facts *facts)
{
	struct hash_table table;
	double buckets;
	uint64_t needed;

	if (!read_table(reader, facts->owner, &table))
		return;
	facts->unit = "elements";
	facts->length = table.size;
	buckets = (double)table.size / (double)table.load;
	needed = (uint64_t)buckets;
	needed += (double)needed < buckets;
	facts->is_measured = table.buckets == range.start;
	facts->asked = facts->live_end = reader->word * table.bucket_count;
	if (needed < table.bucket_count)
		facts->scattered = reader->word * (table.bucket_count - needed);
}

CLASSIFIER(unordered_map_or_set_buckets, "UnorderedMapOrSetBuckets",
	   "the hash table of a std::unordered_map or the like",
	   "the buckets of the std::unordered_map or std::unordered_set",
	   .strength = STRENGTH_LINKED, .narrow = true, .for_cxx = true, .match = match_buckets,
	   .suspect = suspect_buckets, .tell = tell_buckets, .measures = true,
	   .favors = favors_first_word,
	   .numbers = { .owner = 1 << 1 | 1 << 3 | 1 << 5, .owner_halves = 1 << 4 });

/* The reference is that to the first node. */
static bool may_be_to_node(const struct reader *reader, const struct reference *reference)
{
	uint64_t words[COMMON_WORDS];
	float load;

	return reference_words(reference, -2, COMMON_WORDS, words) &&
	       words[0] % reference->word == 0 && words[3] > 0 && are_common(reader, words, &load);
}

DEFINE_SUSPECT(suspect_node, may_be_to_node)

static void match_node(struct reader *reader, const struct reference *reference)
{
	struct hash_table table;

	if (!read_table(reader, reference->address - 2 * (uint64_t)reader->word, &table))
		return;
	for (uint64_t i = 0, node = table.first; i < table.size && node; i++) {
		struct memory_range range;
		allocation_id id = reader_start(reader, node, &range);

		if (id == NO_ALLOCATION || !reader_step(reader))
			return;
		reader_claim(reader, id, table.address);
		if (!reader_word(reader, node, &node))
			return;
	}
}

static void tell_node(struct reader *reader, struct memory_range range, struct pattern_facts *facts)
{
	facts->unit = "elements";
	reader_word(reader, facts->owner + 3 * (uint64_t)reader->word, &facts->length);
}

/*
 * True for the table's link to the first node, or the link of the node in front of it. Nodes begin
 * with their link, as the buckets do, and have one size, which malloc may round up by 16 bytes.
 */
static bool favors_link(struct reader *reader, struct memory_range range, uint64_t owner,
			uint64_t address)
{
	struct memory_range node = { 0 };
	uint64_t buckets, word;

	if (address == owner + 2 * (uint64_t)reader->word)
		return true;
	return reader_word(reader, address, &word) && word == range.start &&
	       reader_start(reader, address, &node) != NO_ALLOCATION &&
	       range_size(node) + 16 - range_size(range) <= 32 &&
	       reader_word(reader, owner, &buckets) && buckets != address;
}

CLASSIFIER(unordered_map_or_set_node, "UnorderedMapOrSetNode",
	   "an element of a std::unordered_map or the like",
	   "a node of the std::unordered_map or std::unordered_set", .strength = STRENGTH_LINKED,
	   .narrow = true, .for_cxx = true, .walks = true, .match = match_node,
	   .suspect = suspect_node, .tell = tell_node, .favors = favors_link,
	   .numbers = { .owner = 1 << 1 | 1 << 3 | 1 << 5, .owner_halves = 1 << 4 });
