/*
 * struct _gc_runtime_state of Include/internal/pycore_gc.h, the same from 3.8 to 3.13:
 *
 *	| ... enabled, debug, - | generation 0 | 1 | 2 | its address | permanent generation |
 *	| statistics of each generation: 3 words | collecting, - |
 *
 * A generation is | next | previous | threshold, count |, and heads a ring of its objects' links.
 * enabled, debug and collecting are ints. In 3.7 (pycore_mem.h), generations are aligned to 16
 * bytes; in the 3.13.5 of Debian 13 to 4, so that padding follows them, not debug. The state is in
 * the data of the interpreter's module, but in 3.9 and 3.10 in a block, that of the interpreter's
 * state, to which the data leads.
 */
#include "analyzer/runtimes/python/collector.h"

#include "analyzer/runtimes/module_data.h"

enum {
	WORD = 8,
	GENERATIONS = 3,
	STATISTICS = GENERATIONS * 3 * WORD,
	LEAST_STATE = 2 << 10, /* bytes of an interpreter's state */
	MOST_STATE = 1 << 20,
	MOST_BLOCKS = 256, /* that may be one */
};

/* Bytes: of a generation; from the first to its address, and the permanent one; back to enabled. */
static const struct geometry {
	uint64_t generation, address, permanent, enabled;
} geometries[] = { { 24, 72, 80, 12 }, { 24, 76, 84, 8 }, { 48, 144, 160, 20 } };

struct search {
	const struct runtime_context *context;
	const struct geometry *geometry;
	uint64_t first; /* generation 0 */
	unsigned int blocks;
};

static const uint64_t FLAGS = 3; /* of links */

/* True if the head's next element points back to it. */
static bool is_ring(struct view *view, uint64_t head)
{
	uint64_t next, back;

	return view_word(view, head, &next) && view_word(view, (next & ~FLAGS) + WORD, &back) &&
	       (back & ~FLAGS) == head;
}

/* In the middle of a collection, that of one generation has counts in place of links. */
static bool are_rings(struct view *view, uint64_t first, uint64_t generation)
{
	unsigned int rings = 0;

	for (uint64_t i = 0; i < GENERATIONS; i++)
		rings += is_ring(view, first + generation * i);
	return rings >= GENERATIONS - 1;
}

/* True if the word is the address of generation 0, which precedes it. */
static bool is_state(struct search *search, struct view *view, uint64_t place, uint64_t word)
{
	for (size_t i = 0; i < COUNT_OF(geometries); i++) {
		const struct geometry *geometry = &geometries[i];

		if (word != place - geometry->address ||
		    !are_rings(view, word, geometry->generation) ||
		    !is_ring(view, word + geometry->permanent))
			continue;
		search->geometry = geometry;
		search->first = word;
		return true;
	}
	return false;
}

static bool is_in_block(struct search *search, struct view *view, uint64_t address)
{
	const struct allocation_index *index = search->context->index;
	allocation_id id = allocation_find(index, address);
	uint64_t word;

	if (id == NO_ALLOCATION || allocation_start(index, id) != address ||
	    allocation_size(index, id) - LEAST_STATE > MOST_STATE - LEAST_STATE ||
	    search->blocks++ >= MOST_BLOCKS)
		return false;
	for (uint64_t i = 0; i + WORD <= allocation_size(index, id); i += WORD)
		if (view_word(view, address + i, &word) &&
		    is_state(search, view, address + i, word))
			return true;
	return false;
}

static bool leads_to_state(struct view *view, uint64_t place, uint64_t word, void *data)
{
	return is_state(data, view, place, word) || is_in_block(data, view, word);
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

bool python_collector_find(const struct runtime_context *context, struct python_collector *ret)
{
	struct search search = { context };
	struct view view = { context->image };
	uint32_t enabled, collecting;
	uint64_t permanent;

	if (!module_data_search(context->image, context->program, leads_to_state, &search) ||
	    !view_read(&view, search.first - search.geometry->enabled, &enabled, sizeof(enabled)) ||
	    enabled > 1)
		return false;
	permanent = search.first + search.geometry->permanent;
	ret->is_enabled = enabled;
	ret->is_collecting = view_read(&view, permanent + search.geometry->generation + STATISTICS,
				       &collecting, sizeof(collecting)) &&
			     collecting == 1;
	ret->frozen = count_ring(&view, permanent);
	return true;
}

struct error *python_collector_visit_structure(const struct runtime_context *context,
					       const struct structure_visitor *visitor)
{
	struct search search = { context };
	uint64_t start, end;

	if (!module_data_search(context->image, context->program, leads_to_state, &search))
		return NULL;
	start = search.first - search.geometry->enabled;
	end = search.first + search.geometry->permanent + search.geometry->generation + STATISTICS +
	      WORD;
	return visitor->number(visitor->data, start, end - start);
}
