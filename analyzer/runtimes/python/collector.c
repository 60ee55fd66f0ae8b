/*
 * struct _gc_runtime_state of Include/internal/pycore_gc.h of 3.11, in the data of the
 * interpreter's module:
 *
 *	| ... enabled, debug, - | generation 0 | 1 | 2 | its address | permanent generation |
 *	| statistics of each generation: 3 words | collecting, - |
 *
 * A generation is | next | previous | threshold, count |, and heads a ring of its objects' links.
 * enabled, debug and collecting are ints. Other versions may have them elsewhere: then nothing is
 *known.
 */
#include "analyzer/runtimes/python/collector.h"

#include "analyzer/runtimes/python/types.h"

enum {
	WORD = 8,
	GENERATION = 24,
	GENERATIONS = 3,
	ADDRESS = GENERATIONS * GENERATION, /* offsets from generation 0 */
	PERMANENT = ADDRESS + WORD,
	COLLECTING = PERMANENT + GENERATION + GENERATIONS * 3 * WORD,
	ENABLED_BEFORE = 12, /* bytes before generation 0 */
};

static const uint64_t FLAGS = 3; /* of links */

/* Whether what follows the head leads back to it. */
static bool is_ring(struct view *view, uint64_t head)
{
	uint64_t next, back;

	return view_word(view, head, &next) && view_word(view, (next & ~FLAGS) + WORD, &back) &&
	       (back & ~FLAGS) == head;
}

/* In the middle of a collection, that of one generation has counts in place of links. */
static bool are_rings(struct view *view, uint64_t first)
{
	unsigned int rings = 0;

	for (uint64_t i = 0; i < GENERATIONS; i++)
		rings += is_ring(view, first + GENERATION * i);
	return rings >= GENERATIONS - 1;
}

/* Whether the word is the address of generation 0, which stands before it. */
static bool is_state(struct view *view, uint64_t place, uint64_t word, void *data)
{
	return word == place - ADDRESS && are_rings(view, word) && is_ring(view, word + PERMANENT);
}

static uint64_t count_ring(struct view *view, uint64_t head)
{
	enum { MOST = 1 << 26 };
	uint64_t count = 0, link;

	if (!view_word(view, head, &link))
		return 0;
	while ((link & ~FLAGS) != head && count < MOST) {
		if (!view_word(view, link & ~FLAGS, &link))
			break;
		count++;
	}
	return count;
}

bool python_collector_find(const struct image *image, const struct program *program,
			   struct python_collector *ret)
{
	uint64_t place = module_data_search(image, program, is_state, NULL),
		 first = place - ADDRESS;
	struct view view = { image };
	uint32_t enabled, collecting;

	if (!place || !view_read(&view, first - ENABLED_BEFORE, &enabled, sizeof(enabled)) ||
	    enabled > 1)
		return false;
	ret->is_enabled = enabled;
	ret->is_collecting =
		view_read(&view, first + COLLECTING, &collecting, sizeof(collecting)) &&
		collecting == 1;
	ret->frozen = count_ring(&view, first + PERMANENT);
	return true;
}
