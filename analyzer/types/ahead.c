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

		for (uint64_t line = 0; line < LINES; line++)
			view_fetch(&typing->last->view, start + line * LINE);
		__builtin_prefetch(&typing->allocations.items[id]);
		if (typing->contexts.count > 0)
			__builtin_prefetch(&typing->contexts.items[id]);
	}
}

/* True if the word at that offset points into the heap. */
static bool read_word_at(const struct typing *typing, struct memory_range range, uint64_t offset,
			 uint64_t *ret)
{
	return offset + typing->word <= range.end - range.start &&
	       read_word(typing, range.start + offset, ret) &&
	       heap_bounds_hold(&typing->last->bounds, *ret);
}

/*
 * The first pointers of an allocation: where its type has some, or, if that is not known or is a
 * pointer of which there is an array, in its first words.
 */
static size_t read_pointers(const struct typing *typing, allocation_id id, uint64_t *ret)
{
	struct memory_range range = range_of(typing, id);
	type_number number = known_type(typing, id);
	const struct slot_range *slots = &typing->slots.ranges.items[number];
	bool has_slots = is_aggregate(typing_type(typing, number)) &&
			 slots->first != NO_SLOTS_YET && slots->count > 0;
	size_t count = 0;

	if (typing_type(typing, number)->kind == TYPE_CHARACTER)
		return 0;
	for (size_t i = 0; i < (has_slots && slots->count < WORDS ? slots->count : WORDS); i++)
		count += read_word_at(typing, range,
				      has_slots ? typing->slots.slots.items[slots->first + i].offset
						: i * typing->word,
				      &ret[count]);
	return count;
}

static size_t read_words(const struct typing *typing, size_t first, uint64_t *ret)
{
	size_t count = 0;

	for (size_t i = first; i < turn_end(typing, first); i++)
		count += read_pointers(typing, typing->queue.items[i], &ret[count]);
	return count;
}

/*
 * Prefetch what is known of the targets of a block of pointers, which decides whether to read them.
 */
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
		if (typing->contexts.count > 0)
			__builtin_prefetch(&typing->contexts.items[id]);
	}
}

void typing_fetch_ahead(const struct typing *typing)
{
	size_t first = typing->queued_from;

	if (first % TURN != 0)
		return;
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
