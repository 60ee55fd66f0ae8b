/*
 * The sampler of jemalloc, include/jemalloc/internal/prof_structs.h of 5.2 and 5.3, where opt.prof
 *is on. A sampled allocation has an extent of its own, whose metadata lead to its thread's counts
 *for the calls that allocated it, and these to the calls:
 *
 *	metadata  | ... | time, from 5.3 on size, counts * | behind the size of the extent
 *	counts    | thread | numbers | objects, bytes, ... in use | as many of all times | calls * |
 *... calls     | lock | in use | tree | the same numbers | address of what follows | how many | |
 *return addresses, the innermost first |
 *
 * From 5.3 on, each number stands there twice: as sampled, and as estimated of all allocations;
 * objects then in units of an eighth. jeprof shows these: it scales what a dump has.
 */
#include "allocators/jemalloc/jemalloc.h"

#include "analyzer/base/address_map.h"

enum {
	WORD = 8,
	PLACES_START = METADATA_UNIT - 2 * WORD, /* of the pointer to the counts */
	MOST_CALLS = 1024,
	MOST_NUMBERS = 4,
};

/* The layout of the counts. */
struct counts_layout {
	unsigned int first, in_calls; /* number, in bytes; the same in the calls */
	unsigned int numbers;	      /* in use; there are as many of all times */
	unsigned int objects, bytes;  /* which numbers these are, */
	unsigned int unit;	      /* and how many units an object is */
};

static const struct counts_layout layouts[] = {
	{ 4 * WORD, 5 * WORD, 4, 1, 3, 8 }, /* 5.3 */
	{ 3 * WORD, 3 * WORD, 2, 0, 1, 1 }, /* 5.2 */
};

struct sampling {
	struct view view;
	const struct counts_layout *layout;
	uint64_t calls; /* of the counts found last: the address and number of return addresses */
};

/* Learn the layout and the calls of the counts; false: there are none. */
static bool find_calls(struct sampling *sampling, uint64_t counts)
{
	uint64_t calls, words[2];

	if (counts < METADATA_UNIT || counts % WORD)
		return false;
	list_for_each(layout, layouts, sizeof(layouts) / sizeof(*layouts)) {
		uint64_t size = 2 * (uint64_t)layout->numbers * WORD;

		if (!view_word(&sampling->view, counts + layout->first + size, &calls) || !calls ||
		    calls % WORD)
			continue;
		calls += layout->in_calls + size;
		if (view_read(&sampling->view, calls, words, sizeof(words)) &&
		    words[0] == calls + sizeof(words) && (uint32_t)words[1] > 0 &&
		    (uint32_t)words[1] <= MOST_CALLS) {
			sampling->layout = layout;
			sampling->calls = calls;
			return true;
		}
	}
	return false;
}

/* The counts that the extent is one of; 0: it is not sampled. */
static uint64_t find_counts(struct sampling *sampling, const struct jemalloc_extent *extent)
{
	uint64_t counts;

	for (uint64_t at = PLACES_START; at < METADATA_BYTES; at += WORD)
		if (view_word(&sampling->view, extent->metadata + at, &counts) &&
		    find_calls(sampling, counts))
			return counts;
	return 0;
}

static struct error *visit_counts(struct sampling *sampling, uint64_t counts, noted_visitor *visit,
				  void *data)
{
	const struct counts_layout *layout = sampling->layout;
	uint64_t numbers[MOST_NUMBERS];
	struct noted_blocks noted = { .calls = sampling->calls };

	if (!view_read(&sampling->view, counts + layout->first, numbers, layout->numbers * WORD))
		return NULL;
	noted.count = numbers[layout->objects] / layout->unit;
	noted.bytes = numbers[layout->bytes];
	return noted.count ? visit(data, &noted) : NULL;
}

static struct error *visit_extents(const struct jemalloc *je, struct sampling *sampling,
				   struct address_map *known, noted_visitor *visit, void *data)
{
	array_for_each(extent, &je->extents) {
		uint64_t counts;

		if (is_slab(extent) || !is_active(&je->layout, extent))
			continue;
		counts = find_counts(sampling, extent);
		if (!counts || address_map_find(known, counts) != NOT_IN_MAP)
			continue;
		TRY(address_map_add(known, counts, 0));
		TRY(visit_counts(sampling, counts, visit, data));
	}
	return NULL;
}

static struct error *visit_sampled(void *owner, noted_visitor *visit, void *data)
{
	const struct jemalloc_heap *heap = owner;
	struct sampling sampling = { .view = { heap->context.image } };
	_cleanup_(table_release) struct address_map known = {
		.memory.account = heap->context.account,
		.slots.memory.account = heap->context.account,
	};

	array_for_each(je, &heap->list)
		if (je->geometry.word == WORD)
			TRY(visit_extents(je, &sampling, &known, visit, data));
	return NULL;
}

static size_t read_calls(void *owner, uint64_t calls, uint64_t *ret, size_t most)
{
	const struct jemalloc_heap *heap = owner;
	struct view view = { heap->context.image };
	uint64_t words[2];
	size_t count;

	if (!view_read(&view, calls, words, sizeof(words)))
		return 0;
	count = (uint32_t)words[1] < most ? (uint32_t)words[1] : most;
	return view_read(&view, words[0], ret, count * sizeof(*ret)) ? count : 0;
}

const struct noting jemalloc_noting = {
	.name = "jemalloc",
	.is_sampled = true,
	.visit = visit_sampled,
	.read_calls = read_calls,
};
