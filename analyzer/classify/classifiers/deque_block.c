#include "analyzer/classify/classifier.h"
#include "analyzer/classify/containers.h"

/* The reference is that to the map, which holds those to the blocks. */
static void match(struct reader *reader, const struct reference *reference)
{
	struct memory_range range;
	uint64_t words[2], block;
	struct deque deque;

	if (!reference_words(reference, 1, 2, words) ||
	    !deque_read(reader, reference->address, reference->range, &deque))
		return;
	for (uint64_t at = deque.first; at <= deque.last; at += 8) {
		allocation_id id;

		if (!reader_step(reader) || !reader_word(reader, at, &block))
			return;
		id = reader_start(reader, block, &range);
		if (id != NO_ALLOCATION)
			reader_claim(reader, id, deque.address);
	}
}

static bool holds(struct memory_range range, uint64_t address)
{
	return address >= range.start && address < range.end;
}

/* The deque at owner, if it tells where its elements are. */
static bool read_elements(struct reader *reader, uint64_t owner, struct deque *ret)
{
	struct memory_range map;
	uint64_t word;

	return reader_word(reader, owner, &word) &&
	       reader_start(reader, word, &map) != NO_ALLOCATION &&
	       deque_read_elements(reader, owner, map, ret);
}

static void tell(struct reader *reader, struct memory_range range, struct pattern_facts *facts)
{
	struct deque deque;

	if (!read_elements(reader, facts->owner, &deque))
		return;
	facts->dead = "unused end of a deque";
	facts->live_end = range_size(range);
	if (holds(range, deque.begin))
		facts->live_start = deque.begin - range.start;
	if (holds(range, deque.end))
		facts->live_end = deque.end - range.start;
}

static bool measure(struct reader *reader, struct memory_range range, uint64_t owner,
		    struct pattern_extent *ret)
{
	struct deque deque;

	if (!read_elements(reader, owner, &deque))
		return false;
	ret->asked = deque.block_size;
	ret->live_end = deque.block_size;
	if (holds(range, deque.begin))
		ret->live_start = deque.begin - range.start;
	if (holds(range, deque.end))
		ret->live_end = deque.end - range.start;
	ret->spare = ret->asked - (ret->live_end - ret->live_start);
	return true;
}

/* By the map, which is where the first word of the deque leads. */
static bool favors(struct reader *reader, struct memory_range range, uint64_t owner,
		   uint64_t address)
{
	struct memory_range map = { 0 };
	uint64_t word;

	return reader_word(reader, owner, &word) &&
	       reader_start(reader, word, &map) != NO_ALLOCATION &&
	       address - map.start < range_size(map);
}

const struct classifier classifier_deque_block = {
	.name = "DequeBlock",
	.summary = "some elements of a std::deque",
	.role = "a block of the std::deque",
	.strength = STRENGTH_LINKED,
	.for_cxx = true,
	.walks = true,
	.match = match,
	.tell = tell,
	.measure = measure,
	.favors = favors,
};
