#include "analyzer/classify/containers.h"

#include <math.h>

/*
 * libstdc++, <bits/hashtable.h>:
 *
 *	| buckets | bucket count | first node | size | load | next resize | one
 * |
 *
 * A table of one bucket keeps it in itself, as its last word.
 *
 * libc++, <__hash_table>:
 *
 *	| buckets | bucket count | first node | size | load |
 *
 * In both a bucket points at what points at its first node, which for one of them is the table
 * itself.
 */
enum { COMMON_WORDS = 5, WORD_ONE = 6 };

/* The load factor is a float; the rest of its word may be anything. */
static bool is_load(uint64_t word, float *ret)
{
	uint32_t bits = (uint32_t)word;

	memcpy(ret, &bits, sizeof(*ret));
	return isfinite(*ret) && *ret >= 0.01F && *ret <= 1000;
}

static bool has_bucket(struct reader *reader, const struct hash_table *table)
{
	uint64_t word;

	for (uint64_t i = 0; i < table->bucket_count; i++) {
		if (!reader_step(reader) || !reader_word(reader, table->buckets + 8 * i, &word))
			return false;
		if (word == table->link)
			return true;
	}
	return false;
}

/* Without nodes, no bucket leads to any. */
static bool is_consistent(struct reader *reader, const struct hash_table *table)
{
	struct memory_range range;
	uint64_t word;

	if ((table->first == 0) != (table->size == 0))
		return false;
	if (table->first)
		return reader_start(reader, table->first, &range) != NO_ALLOCATION &&
		       has_bucket(reader, table);
	for (uint64_t i = 0; i < table->bucket_count; i++)
		if (!reader_step(reader) || !reader_word(reader, table->buckets + 8 * i, &word) ||
		    word)
			return false;
	return true;
}

bool hash_table_read(struct reader *reader, uint64_t address, struct hash_table *ret)
{
	struct hash_table table = { .address = address, .link = address + 16 };
	struct memory_range range = { 0 };
	uint64_t words[COMMON_WORDS];

	if (!reader_words(reader, address, COMMON_WORDS, words) ||
	    !is_load(words[4], &table.load) || words[1] == 0 || words[1] > UINT64_MAX / 8 ||
	    words[3] > allocation_count(reader->index))
		return false;
	table.buckets = words[0];
	table.bucket_count = words[1];
	table.first = words[2];
	table.size = words[3];
	if (table.buckets == address + 8 * WORD_ONE) {
		if (!(reader->cxx & LIBSTDCXX) || table.bucket_count != 1)
			return false;
	} else if (reader_start(reader, table.buckets, &range) == NO_ALLOCATION ||
		   !reader_fits(reader, range, 8 * table.bucket_count)) {
		return false;
	}
	if (!is_consistent(reader, &table))
		return false;
	*ret = table;
	return true;
}
