#include "analyzer/types/typing_parts.h"

#include "analyzer/base/bytes.h"

enum { MOST_CONTEXTS = 1 << 20, DEEPEST_CONTEXT = 8 };

uint32_t typing_enter_context(struct typing *typing, uint32_t parent, uint64_t way, uint32_t place)
{
	uint32_t depth = typing->paths.items[parent].depth + 1, at = parent;
	const struct context *known;
	struct error *error;

	while (at != NO_CONTEXT && typing->paths.items[at].way != way)
		at = typing->paths.items[at].parent;
	if (at != NO_CONTEXT)
		return at;
	if (depth > DEEPEST_CONTEXT) {
		while (typing->paths.items[parent].depth > 1)
			parent = typing->paths.items[parent].parent;
		depth = 2;
	}
	known = table_find(&typing->paths, hash_add(way, parent), item,
			   item->way == way && item->parent == parent);
	if (known)
		return (uint32_t)(known - typing->paths.items);
	if (typing->paths.count >= MOST_CONTEXTS) {
		typing_reach_limit(typing,
				   "more than 1,048,576 paths of members lead to allocations");
		return NO_CONTEXT;
	}
	error = table_append(&typing->paths, hash_add(way, parent),
			     (struct context){ way, place, parent, depth });
	if (error) {
		error_destroy(error);
		return NO_CONTEXT;
	}
	return (uint32_t)(typing->paths.count - 1);
}

/* Elements of what a variable itself leads to are not told apart from it. */
uint32_t typing_enter_slot(struct typing *typing, uint32_t context, const struct slot *slot)
{
	struct context whole = typing->paths.items[context];

	if (slot->member != NO_MEMBER)
		return typing_enter_context(typing, context, slot->way, slot->member);
	return whole.place == NO_MEMBER
		       ? context
		       : typing_enter_context(typing, context, whole.way | OF_ELEMENT,
					      ELEMENT_OF(whole.place));
}
