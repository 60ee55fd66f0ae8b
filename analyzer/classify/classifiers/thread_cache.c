#include "analyzer/classify/classifier.h"

/*
 * glibc, malloc/malloc.c, tcache_perthread_struct: how many are cached of each size, or from 2.42
 * on how many more may be, then the first of each. A thread refers to it from its static
 * thread-local variables, which end at the thread pointer.
 */
enum { MOST_BINS = 76, MOST_VARIABLES = 0x2000 };

static const struct layout {
	uint64_t size; /* what malloc makes of it */
	unsigned int bins, counter_size;
	bool counts;
} layouts[] = {
	{ 0x288, 64, 2, true },
	{ 0x2f8, 76, 2, false },
	{ 0x248, 64, 1, true },
};

static bool is_cache(struct reader *reader, struct memory_range range, const struct layout *layout)
{
	uint8_t counters[MOST_BINS * sizeof(uint16_t)];
	uint64_t entries[MOST_BINS];
	size_t size = layout->bins * layout->counter_size;

	if (!image_read(reader->image, range.start, counters, size) ||
	    !image_read(reader->image, range.start + size, entries,
			layout->bins * sizeof(*entries)))
		return false;
	for (unsigned int i = 0; i < layout->bins; i++) {
		const uint8_t *counter = counters + i * layout->counter_size;
		bool any = counter[0] || counter[layout->counter_size - 1];

		if (layout->counts && any != (entries[i] != 0))
			return false;
		if (entries[i] && !heap_bounds_hold(&reader->bounds, entries[i]))
			return false;
	}
	return true;
}

static void look_at(struct reader *reader, uint64_t word, uint64_t owner)
{
	struct memory_range range;
	allocation_id id = reader_start(reader, word, &range);

	if (id == NO_ALLOCATION)
		return;
	for (size_t i = 0; i < sizeof(layouts) / sizeof(*layouts); i++)
		if (range_size(range) == layouts[i].size && is_cache(reader, range, &layouts[i]))
			reader_claim(reader, id, owner);
}

static void finish(struct reader *reader, struct overview *overview)
{
	for (size_t i = 0; i < program_thread_count(overview->program); i++) {
		uint64_t pointer = program_thread(overview->program, i)->thread_pointer;
		uint64_t word;

		for (uint64_t at = 8; at <= MOST_VARIABLES && at < pointer; at += 8)
			if (reader_word(reader, pointer - at, &word))
				look_at(reader, word, pointer);
	}
}

const struct classifier classifier_thread_cache = {
	.name = "ThreadCache",
	.summary = "malloc's list of what a thread has freed (tcache)",
	.role = "malloc's cache of the thread",
	.strength = STRENGTH_MARKED,
	.finish = finish,
};
