#include "analyzer/classify/classifier.h"
#include "analyzer/classify/containers.h"

static void match(struct reader *reader, const struct reference *reference)
{
	uint64_t words[2];
	struct deque deque;

	/* A map of pointers has room for at least one. */
	if (reference_words(reference, 1, 2, words) &&
	    deque_read(reader, reference->address, reference->range, &deque))
		reader_claim(reader, reference->target, deque.address);
}

/* Blocks beyond those in use are gone, but not the pointers to them. */
static void tell(struct reader *reader, struct memory_range range, struct pattern_facts *facts)
{
	struct deque deque;

	if (!deque_read(reader, facts->owner, range, &deque))
		return;
	facts->unit = "blocks";
	facts->length = (deque.last - deque.first) / 8 + 1;
	facts->dead = "unused part of a deque's map";
	facts->live_start = deque.first - range.start;
	facts->live_end = deque.last + 8 - range.start;
}

static bool measure(struct reader *reader, struct memory_range range, uint64_t owner,
		    struct pattern_extent *ret)
{
	struct deque deque;

	if (!deque_read(reader, owner, range, &deque))
		return false;
	ret->asked = deque.map_size;
	ret->live_start = deque.first - range.start;
	ret->live_end = deque.last + 8 - range.start;
	ret->spare = deque.map_size - (ret->live_end - ret->live_start);
	return true;
}

const struct classifier classifier_deque_map = {
	.name = "DequeMap",
	.summary = "the pointers to the blocks of a std::deque",
	.role = "the map of the std::deque",
	.strength = STRENGTH_LINKED,
	.for_cxx = true,
	.match = match,
	.tell = tell,
	.measure = measure,
	.favors = favors_first_word,
};
