/*
 * The tree by which pymalloc knows whether an address is its own, from Python 3.10 on:
 * Objects/obmalloc.c, on 64 bits.
 *
 *	arena_map_mid	| 32,768 addresses of arena_map_bot, mostly 0 |
 *	arena_map_bot	| 16,384 times two numbers of 32 bits |
 */
#include "analyzer/classify/classifier.h"

enum { WORD = 8, MIDDLE = 32768 * WORD, BOTTOM = 16384 * WORD, ROUNDED = 4096 };

extern const struct runtime runtime_python;

/* True if malloc gave that many bytes for so many that were asked for. */
static bool is_for(struct memory_range range, uint64_t asked)
{
	return range_size(range) >= asked && range_size(range) - asked < ROUNDED;
}

/* The number of lower parts that the middle one leads to; 0: it leads elsewhere, too. */
static size_t read_middle(struct reader *reader, struct memory_range middle,
			  void (*visit)(struct reader *reader, allocation_id id, uint64_t owner))
{
	size_t count = 0;

	for (uint64_t at = middle.start; at < middle.start + MIDDLE; at += WORD) {
		struct memory_range range;
		allocation_id id;
		uint64_t word;

		if (!reader_word(reader, at, &word) || !word)
			continue;
		id = reader_start(reader, word, &range);
		if (id == NO_ALLOCATION || !is_for(range, BOTTOM))
			return 0;
		count++;
		if (visit)
			visit(reader, id, middle.start);
	}
	return count;
}

static void inspect(struct reader *reader, const struct subject *subject)
{
	if (!is_for(subject->range, MIDDLE) || !read_middle(reader, subject->range, NULL))
		return;
	reader_claim(reader, subject->id, 0);
	read_middle(reader, subject->range, reader_claim);
}

CLASSIFIER(python_arena_map, "PythonArenaMap",
	   "the tree by which Python knows which addresses are of its own heap",
	   "a part of the tree of Python's arenas", .strength = STRENGTH_MARKED,
	   .runtime = &runtime_python, .inspect = inspect, .is_reserve = true, .is_plain = true,
	   .least_size = WORD);
