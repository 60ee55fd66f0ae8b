#include "analyzer/classify/classifier.h"

/*
 * The list is a ring, of which the container itself is a part. libstdc++:
 *
 *	container  | next | previous | size |
 *	node	   | next | previous | element ...
 *
 * In libc++ next and previous are the other way round, which makes no difference to who points at
 * whom.
 */
struct list {
	uint64_t address;
	uint64_t first; /* the node that the container's first word leads to */
	uint64_t size;
};

/* Visit the nodes, of which there must be as many as the container says. */
static bool visit(struct reader *reader, const struct list *list, bool claim)
{
	uint64_t node = list->first, back = list->address, words[2];

	for (uint64_t i = 0; i < list->size; i++) {
		struct memory_range range;
		allocation_id id = reader_start(reader, node, &range);

		if (id == NO_ALLOCATION || !reader_step(reader) ||
		    range_size(range) < 2 * (uint64_t)reader->word + 1 ||
		    !reader_words(reader, node, 2, words) || words[1] != back)
			return false;
		if (claim)
			reader_claim(reader, id, list->address);
		back = node;
		node = words[0];
	}
	return node == list->address;
}

static bool may_be_list(const struct reader *reader, const struct reference *reference)
{
	uint64_t words[3];

	return reference_words(reference, 0, 3, words) && words[2] != 0 &&
	       words[2] <= allocation_count(reader->index) &&
	       heap_bounds_hold(&reader->bounds, words[1]);
}

DEFINE_SUSPECT(suspect, may_be_list)

/*
 * A node looks like a container whose size is the element. To follow the ring from each would take
 * forever, so what begins an allocation is only noted: a container that does has a ring of nothing
 * but beginnings of allocations. Any other ends the ring of all others, and may be followed at
 * once.
 */
static void match(struct reader *reader, const struct reference *reference)
{
	struct list list = { .address = reference->address };
	uint64_t words[3], back;

	if (!reference_words(reference, 0, 3, words) ||
	    !reader_word(reader, words[0] + reader->word, &back) || back != reference->address)
		return;
	list.first = words[0];
	list.size = words[2];
	if (reference->source != NO_ALLOCATION && reference->address == reference->holder.start)
		bitmap_set_atomic(&reader->overview->noted, reference->source);
	else if (visit(reader, &list, false))
		visit(reader, &list, true);
}

/*
 * Go around a ring of allocations, once for all of its members, and find the only one that counts
 * the others.
 */
static bool find_container(struct reader *reader, struct overview *overview, allocation_id start,
			   struct list *ret)
{
	uint64_t first = allocation_start(reader->index, start), node = first;
	uint64_t members = 0, words[3];
	struct memory_range range;
	size_t found = 0;

	do {
		allocation_id id = reader_start(reader, node, &range);

		if (id == NO_ALLOCATION || bitmap_get(&overview->ringed, id) ||
		    !reader_step(reader) || !reader_words(reader, node, 2, words))
			return false;
		bitmap_set(&overview->ringed, id);
		members++;
		node = words[0];
	} while (node != first);
	do {
		if (!reader_words(reader, node, 3, words))
			return false;
		if (words[2] == members - 1) {
			*ret = (struct list){ node, words[0], words[2] };
			found++;
		}
		node = words[0];
	} while (node != first);
	return found == 1;
}

static void finish(struct reader *reader, struct overview *overview)
{
	bitmap_for_each(id, &overview->noted) {
		struct list list;

		if (!bitmap_get(&overview->ringed, id) &&
		    (reader->owners || !reader_has_claim(reader, (allocation_id)id)) &&
		    find_container(reader, overview, (allocation_id)id, &list) &&
		    visit(reader, &list, false))
			visit(reader, &list, true);
	}
}

static void tell(struct reader *reader, struct memory_range range, struct pattern_facts *facts)
{
	facts->unit = "elements";
	reader_word(reader, facts->owner + 2 * (uint64_t)reader->word, &facts->length);
}

/* True for the link to which the node's second word points back. */
static bool favors(struct reader *reader, struct memory_range range, uint64_t owner,
		   uint64_t address)
{
	uint64_t words[2];

	return reader_words(reader, range.start, 2, words) && words[1] == address;
}

CLASSIFIER(list_node, "ListNode", "an element of a std::list", "a node of the std::list",
	   .strength = STRENGTH_LINKED, .narrow = true, .for_cxx = true, .walks = true,
	   .match = match, .suspect = suspect, .finish = finish, .tell = tell, .favors = favors,
	   .numbers = { .owner = 1 << 2 });
