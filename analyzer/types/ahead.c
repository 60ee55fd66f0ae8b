#include "analyzer/types/typing_parts.h"

/*
 * Allocations stand anywhere in memory, and so does what they point to: each of these would be
 * waited for. So a turn of the queue is taken at once: while it is worked off, what the next turns
 * need is fetched, the last of it the targets of the first pointers.
 */
enum { TURN = 8, WORDS = MOST_ADDRESSES / TURN, LINE = 64, LINES = 3 };

static size_t turn_end(const struct typing *typing, size_t first)
{
	size_t count = typing->queue.count;

	return count - first < TURN ? count : first + TURN;
}

static void fetch_extents(const struct typing *typing, size_t first)
{
	for (size_t i = first; i < turn_end(typing, first); i++)
		allocation_fetch_size(typing->input.index, typing->queue.items[i]);
}

static void fetch_contents(const struct typing *typing, size_t first)
{
	for (size_t i = first; i < turn_end(typing, first); i++) {
		allocation_id id = typing->queue.items[i];
		uint64_t start = range_of(typing, id).start;

		view_fetch(&typing->last->view, start);
		view_fetch(&typing->last->view, start + LINE);
		__builtin_prefetch(&typing->allocations.items[id]);
		if (typing->contexts.count > 0)
			__builtin_prefetch(&typing->contexts.items[id]);
	}
}

/* Those of the first words that may be pointers into the heap. */
static size_t read_words(const struct typing *typing, size_t first, uint64_t *ret)
{
	const uint64_t width = typing->word;
	size_t count = 0;

	for (size_t i = first; i < turn_end(typing, first); i++) {
		struct memory_range range = range_of(typing, typing->queue.items[i]);
		uint64_t left = range.end - range.start;

		if (left > WORDS * width)
			left = WORDS * width;
		for (uint64_t at = range.start; left >= width; at += width, left -= width) {
			if (!read_word(typing, at, &ret[count]))
				break;
			count += heap_bounds_hold(&typing->last->bounds, ret[count]);
		}
	}
	return count;
}

/* What is known of the targets of a turn, which tells whether they are going to be read. */
static void fetch_targets(const struct typing *typing, size_t first)
{
	struct targets_ahead *ahead = &typing->last->ahead;
	const uint64_t *used = allocation_used(typing->input.index)->words;

	ahead->count = read_words(typing, first, ahead->words);
	allocation_find_many(typing->input.index, ahead->words, ahead->count, &typing->last->hint,
			     ahead->ids);
	for (size_t i = 0; i < ahead->count; i++) {
		allocation_id id = ahead->ids[i];

		*found_place(typing->last, ahead->words[i]) =
			(struct found_address){ ahead->words[i], id };
		if (id == NO_ALLOCATION)
			continue;
		__builtin_prefetch(&used[id / 64]);
		__builtin_prefetch(&typing->allocations.items[id]);
	}
}

/* What is not known yet is read; most of what lists and trees point to is known. */
static void fetch_unknown(const struct typing *typing)
{
	const struct targets_ahead *ahead = &typing->last->ahead;

	for (size_t i = 0; i < ahead->count; i++) {
		if (ahead->ids[i] == NO_ALLOCATION || known_fit(typing, ahead->ids[i]) > FIT_REGION)
			continue;
		for (uint64_t line = 0; line < LINES; line++)
			view_fetch(&typing->last->view, ahead->words[i] + line * LINE);
	}
}

void typing_fetch_ahead(const struct typing *typing)
{
	size_t first = typing->queued_from;

	if (first % TURN != 0)
		return;
	fetch_unknown(typing);
	for (size_t turn = 1; turn <= 3; turn++) {
		first += TURN;
		if (first >= typing->queue.count)
			break;
		if (turn == 1)
			fetch_targets(typing, first);
		else if (turn == 2)
			fetch_contents(typing, first);
		else
			fetch_extents(typing, first);
	}
}
