#include "analyzer/classify/classifier.h"

/*
 * The list is a ring, of which the container itself is a part. libstdc++:
 *
 *	container  | next | previous | size |
 *	node	   | next | previous | element ...
 *
 * In libc++ next and previous are the other way round, which makes no
 * difference to who points at whom.
 */
struct list {
	uint64_t address;
	uint64_t first; /* the node that the container's first word leads to */
	uint64_t size;
};

/* The nodes, whose number is that which the container tells. */
static bool visit(struct reader *reader, const struct list *list, bool claim)
{
	uint64_t node = list->first, back = list->address, words[2];

	for (uint64_t i = 0; i < list->size; i++) {
		struct memory_range range;
		allocation_id id = reader_start(reader, node, &range);

		if (id == NO_ALLOCATION || !reader_step(reader) ||
		    range_size(range) < sizeof(words) + 1 ||
		    !reader_words(reader, node, 2, words) || words[1] != back)
			return false;
		if (claim)
			reader_claim(reader, id, list->address);
		back = node;
		node = words[0];
	}
	return node == list->address;
}

static void match(struct reader *reader, const struct reference *reference)
{
	struct list list = { .address = reference->address };
	uint64_t words[3], back;

	if (!reference_words(reference, 0, 3, words) || words[2] == 0 ||
	    words[2] > allocation_count(reader->index) ||
	    !heap_bounds_hold(&reader->bounds, words[1]) ||
	    !reader_word(reader, words[0] + 8, &back) ||
	    back != reference->address)
		return;
	list.first = words[0];
	list.size = words[2];
	if (visit(reader, &list, false))
		visit(reader, &list, true);
}

static void tell(struct reader *reader, struct memory_range range,
		 struct pattern_facts *facts)
{
	facts->unit = "elements";
	reader_word(reader, facts->owner + 16, &facts->length);
}

const struct classifier classifier_list_node = {
	.name = "ListNode",
	.summary = "an element of a std::list",
	.role = "a node of the std::list",
	.strength = STRENGTH_LINKED,
	.for_cxx = true,
	.match = match,
	.tell = tell,
};
