#include "analyzer/classify/containers.h"

/*
 * libstdc++, <bits/stl_deque.h>; start and finish are iterators:
 *
 *	| map | map size | start: current, first, last, node | finish: ... |
 *
 * libc++, <deque>; the blocks in use are those from begin to end:
 *
 *	| map | begin | end | end of capacity | start | size |
 */
enum { WORDS = 10, LIBCXX_WORDS = 6, LIBCXX_LEAST_BLOCK = 3840 };

struct iterator {
	uint64_t current, first, last, node;
};

static bool is_iterator(struct reader *reader, const struct memory_range *map,
			const struct iterator *iterator)
{
	struct memory_range block = { 0 };
	uint64_t first;

	return iterator->node % 8 == 0 && iterator->node - map->start < range_size(*map) &&
	       iterator->current >= iterator->first && iterator->current < iterator->last &&
	       reader_word(reader, iterator->node, &first) && first == iterator->first &&
	       reader_start(reader, first, &block) != NO_ALLOCATION &&
	       iterator->last <= block.end && reader_fits(reader, block, iterator->last - first);
}

static bool read_libstdcxx(struct reader *reader, const uint64_t *words, struct deque *deque)
{
	struct iterator start, finish;

	if (words[1] == 0 || words[1] > range_size(deque->map) / 8 ||
	    !reader_fits(reader, deque->map, 8 * words[1]))
		return false;
	memcpy(&start, words + 2, sizeof(start));
	memcpy(&finish, words + 6, sizeof(finish));
	deque->first = start.node;
	deque->last = finish.node;
	deque->begin = start.current;
	deque->end = finish.current;
	deque->block_size = start.last - start.first;
	deque->map_size = 8 * words[1];
	return start.node <= finish.node &&
	       start.last - start.first == finish.last - finish.first &&
	       (start.node < finish.node || start.current <= finish.current) &&
	       is_iterator(reader, &deque->map, &start) &&
	       is_iterator(reader, &deque->map, &finish);
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

static bool read_libcxx(struct reader *reader, const uint64_t *words, struct deque *deque)
{
	const struct memory_range *map = &deque->map;

	if (words[1] % 8 || words[2] % 8 || words[1] < map->start || words[2] <= words[1] ||
	    words[3] < words[2] || words[3] > map->end ||
	    !reader_fits(reader, *map, words[3] - map->start) ||
	    !are_blocks(reader, words[1], words[2]))
		return false;
	deque->first = words[1];
	deque->last = words[2] - 8;
	deque->map_size = words[3] - map->start;
	/* There may be a block more at either end than elements need. */
	return words[4] + words[5] <= (words[2] - words[1]) / 8 * 4096;
}

bool deque_read_elements(struct reader *reader, uint64_t address, struct memory_range map,
			 struct deque *ret)
{
	struct deque deque = { .address = address, .map = map };
	uint64_t words[WORDS];

	if (!(reader->cxx & LIBSTDCXX) || !reader_words(reader, address, WORDS, words) ||
	    words[0] != map.start || !read_libstdcxx(reader, words, &deque))
		return false;
	*ret = deque;
	return true;
}

bool deque_read(struct reader *reader, uint64_t address, struct memory_range map, struct deque *ret)
{
	struct deque deque = { .address = address, .map = map };
	uint64_t words[LIBCXX_WORDS];

	if (deque_read_elements(reader, address, map, ret))
		return true;
	if (!(reader->cxx & LIBCXX) || !reader_words(reader, address, LIBCXX_WORDS, words) ||
	    words[0] != map.start || !read_libcxx(reader, words, &deque))
		return false;
	*ret = deque;
	return true;
}
