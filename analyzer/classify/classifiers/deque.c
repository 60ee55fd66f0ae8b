/*
 * The map and the blocks of a std::deque.
 *
 * libstdc++, <bits/stl_deque.h>; start and finish are iterators:
 *
 *	| map | map size | start: current, first, last, node | finish: ... |
 *
 * libc++, <deque>; the blocks in use are those from begin to end:
 *
 *	| map | begin | end | end of capacity | start | size |
 */
#include "analyzer/classify/classifier.h"

enum { WORDS = 10, LIBCXX_WORDS = 6, LIBCXX_LEAST_BLOCK = 3840 };

struct deque {
	uint64_t first, last; /* where the pointers to blocks in use stand in the map */
	uint64_t begin, end;  /* of the elements; 0: unknown */
	uint64_t block_size;  /* bytes asked for each block; 0: unknown */
	uint64_t map_size;    /* bytes asked for the map */
};

struct iterator {
	uint64_t current, first, last, node;
};

static bool is_iterator(struct reader *reader, struct memory_range map,
			const struct iterator *iterator)
{
	struct memory_range block = { 0 };
	uint64_t first;

	return iterator->node % reader->word == 0 && iterator->node - map.start < range_size(map) &&
	       iterator->current >= iterator->first && iterator->current < iterator->last &&
	       reader_word(reader, iterator->node, &first) && first == iterator->first &&
	       reader_start(reader, first, &block) != NO_ALLOCATION &&
	       iterator->last <= block.end && reader_fits(reader, block, iterator->last - first);
}

/* This takes a few steps for any number of blocks, so it may be asked for each. */
static bool read_libstdcxx(struct reader *reader, uint64_t address, struct memory_range map,
			   struct deque *ret)
{
	struct iterator start, finish;
	uint64_t words[WORDS];

	if (!(reader->cxx & LIBSTDCXX) || !reader_words(reader, address, WORDS, words) ||
	    words[0] != map.start || words[1] == 0 || words[1] > range_size(map) / reader->word ||
	    !reader_fits(reader, map, reader->word * words[1]))
		return false;
	memcpy(&start, words + 2, sizeof(start));
	memcpy(&finish, words + 6, sizeof(finish));
	*ret = (struct deque){
		.first = start.node,
		.last = finish.node,
		.begin = start.current,
		.end = finish.current,
		.block_size = start.last - start.first,
		.map_size = reader->word * words[1],
	};
	return start.node <= finish.node &&
	       start.last - start.first == finish.last - finish.first &&
	       (start.node < finish.node || start.current <= finish.current) &&
	       is_iterator(reader, map, &start) && is_iterator(reader, map, &finish);
}

/* All blocks are as large as the first. */
static bool are_blocks(struct reader *reader, uint64_t begin, uint64_t end)
{
	uint64_t size = 0, block;

	for (uint64_t at = begin; at < end; at += 8) {
		struct memory_range range = { 0 };

		if (!reader_step(reader) || !reader_word(reader, at, &block) ||
		    reader_start(reader, block, &range) == NO_ALLOCATION ||
		    range_size(range) < LIBCXX_LEAST_BLOCK ||
		    (size && range_size(range) + 16 - size > 32))
			return false;
		size = range_size(range);
	}
	return size != 0;
}

static bool read_libcxx(struct reader *reader, uint64_t address, struct memory_range map,
			struct deque *ret)
{
	uint64_t words[LIBCXX_WORDS];

	if (!(reader->cxx & LIBCXX) || !reader_words(reader, address, LIBCXX_WORDS, words) ||
	    words[0] != map.start || words[1] % 8 || words[2] % 8 || words[1] < map.start ||
	    words[2] <= words[1] || words[3] < words[2] || words[3] > map.end ||
	    !reader_fits(reader, map, words[3] - map.start) ||
	    !are_blocks(reader, words[1], words[2]))
		return false;
	*ret = (struct deque){
		.first = words[1],
		.last = words[2] - 8,
		.map_size = words[3] - map.start,
	};
	/* There may be a block more at either end than elements need. */
	return words[4] + words[5] <= (words[2] - words[1]) / 8 * 4096;
}

/* Read a deque at address whose map is the allocation; true if its fields are consistent. */
static bool read_deque(struct reader *reader, uint64_t address, struct memory_range map,
		       struct deque *ret)
{
	return read_libstdcxx(reader, address, map, ret) || read_libcxx(reader, address, map, ret);
}

/* The reference from a deque to its map. */
static bool read_referrer(struct reader *reader, const struct reference *reference,
			  struct deque *ret)
{
	return read_deque(reader, reference->address, reference->range, ret);
}

static bool is_in_map(const struct reader *reader, const uint64_t *words, uint64_t node)
{
	return node - words[0] < reader->word * words[1];
}

/* True if the words are consistent with a deque. */
static bool may_be_deque(const struct reader *reader, const struct reference *reference)
{
	uint64_t words[WORDS];

	return ((reader->cxx & LIBSTDCXX) && reference_words(reference, 0, WORDS, words) &&
		words[1] > 0 && words[1] <= UINT64_MAX / 8 && is_in_map(reader, words, words[5]) &&
		is_in_map(reader, words, words[9])) ||
	       ((reader->cxx & LIBCXX) && reference_words(reference, 0, LIBCXX_WORDS, words) &&
		words[1] >= words[0] && words[2] > words[1] && words[3] >= words[2]);
}

DEFINE_SUSPECT(suspect, may_be_deque)

static void match_map(struct reader *reader, const struct reference *reference)
{
	struct deque deque;

	if (read_referrer(reader, reference, &deque))
		reader_claim(reader, reference->target, reference->address);
}

/* Blocks outside of those in use were freed, but pointers to them remain. */
static void tell_map(struct reader *reader, struct memory_range range, struct pattern_facts *facts)
{
	struct deque deque;

	if (!read_deque(reader, facts->owner, range, &deque))
		return;
	facts->unit = "blocks";
	facts->length = (deque.last - deque.first) / reader->word + 1;
	facts->dead = "unused part of a deque's map";
	facts->live_start = deque.first - range.start;
	facts->live_end = deque.last + reader->word - range.start;
	facts->is_measured = true;
	facts->asked = deque.map_size;
}

CLASSIFIER(deque_map, "DequeMap", "the pointers to the blocks of a std::deque",
	   "the map of the std::deque", .strength = STRENGTH_LINKED, .narrow = true,
	   .for_cxx = true, .match = match_map, .suspect = suspect, .tell = tell_map,
	   .measures = true, .favors = favors_first_word, .numbers = { .owner = 1 << 1 });

/* The map holds the references to the blocks. */
static void match_block(struct reader *reader, const struct reference *reference)
{
	struct memory_range range;
	struct deque deque;
	uint64_t block;

	if (!read_referrer(reader, reference, &deque))
		return;
	for (uint64_t at = deque.first; at <= deque.last; at += reader->word) {
		allocation_id id;

		if (!reader_step(reader) || !reader_word(reader, at, &block))
			return;
		id = reader_start(reader, block, &range);
		if (id != NO_ALLOCATION)
			reader_claim(reader, id, reference->address);
	}
}

/* The map, to which the deque's first word points. */
static bool find_map(struct reader *reader, uint64_t owner, struct memory_range *ret)
{
	uint64_t word;

	return reader_word(reader, owner, &word) &&
	       reader_start(reader, word, ret) != NO_ALLOCATION;
}

/* The part of a block that has elements; only libstdc++'s deques say where these are. */
static bool find_elements(struct reader *reader, struct memory_range block, uint64_t owner,
			  struct deque *ret_deque, struct memory_range *ret)
{
	struct memory_range map;

	if (!find_map(reader, owner, &map) || !read_libstdcxx(reader, owner, map, ret_deque))
		return false;
	*ret = (struct memory_range){ 0, UINT64_MAX };
	if (ret_deque->begin >= block.start && ret_deque->begin < block.end)
		ret->start = ret_deque->begin - block.start;
	if (ret_deque->end >= block.start && ret_deque->end < block.end)
		ret->end = ret_deque->end - block.start;
	return true;
}

static void tell_block(struct reader *reader, struct memory_range range,
		       struct pattern_facts *facts)
{
	struct memory_range live;
	struct deque deque;

	if (!find_elements(reader, range, facts->owner, &deque, &live))
		return;
	facts->dead = "unused end of a deque";
	facts->live_start = live.start;
	facts->live_end = live.end;
	facts->is_measured = true;
	facts->asked = deque.block_size;
}

static bool favors_map(struct reader *reader, struct memory_range range, uint64_t owner,
		       uint64_t address)
{
	struct memory_range map = { 0 };

	return find_map(reader, owner, &map) && address - map.start < range_size(map);
}

CLASSIFIER(deque_block, "DequeBlock", "some elements of a std::deque", "a block of the std::deque",
	   .strength = STRENGTH_LINKED, .narrow = true, .for_cxx = true, .walks = true,
	   .match = match_block, .suspect = suspect, .tell = tell_block, .measures = true,
	   .favors = favors_map);
