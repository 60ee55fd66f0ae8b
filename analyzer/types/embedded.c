#include "analyzer/types/inference.h"

#include "analyzer/base/bytes.h"
#include "analyzer/base/sort.h"

/*
 * Lists and trees of which the links are members of what they link:
 *
 *	struct link { struct link *next, *previous; };
 *	struct job { char *name; struct link jobs; };
 *
 * Their pointers lead to the link, and code subtracts where it stands in the structure. Allocations
 * of one size, equally far into which pointers from the same members lead to a link, are a group.
 * Candidates are the structures that are just as large and have such a member there.
 */

enum { MOST_ROUNDING = 32 }; /* bytes that malloc gives more than was asked for */

DEFINE_COMPARE(compare_sizes, struct sized, ASCENDING(size), ASCENDING(type))
DEFINE_COMPARE(compare_embedded, struct untyped, ASCENDING(group), ASCENDING(size), ASCENDING(id))

struct error *inference_find_structures(struct inference *inference)
{
	const struct typing *typing = inference->typing;

	if (inference->structures.count > 0)
		return NULL;
	for (type_number i = 1; i < type_count(typing->table); i++) {
		const struct data_type *type = typing_type(typing, i);

		if (type->kind == TYPE_STRUCTURE && type->size >= 2 * typing->word)
			TRY(array_append(&inference->structures, (struct sized){ type->size, i }));
	}
	array_sort(&inference->structures, compare_sizes);
	return NULL;
}

/* True if the structure has a member of that type there, perhaps within another member. */
static bool has_member_at(const struct typing *typing, type_number number, type_number member,
			  uint64_t offset)
{
	enum { DEEPEST = 8 };

	for (size_t i = 0; i < DEEPEST && number != NO_TYPE; i++) {
		number = typing_enter(typing, number, &offset);
		if (number == member && offset == 0)
			return true;
	}
	return false;
}

/* Find the offset of the link in the allocation; false: no pointer to it led there. */
static bool find_link(const struct typing *typing, allocation_id id, uint64_t *ret)
{
	struct memory_range range = range_of(typing, id);
	uint64_t pointer;

	if (!typing_read_step(typing, typing_step(typing, id), &pointer) || pointer < range.start ||
	    pointer >= range.end)
		return false;
	*ret = pointer - range.start;
	return true;
}

struct error *inference_add_embedded(struct inference *inference, allocation_id id)
{
	const struct typing *typing = inference->typing;
	uint64_t size = allocation_size(typing->input.index, id), offset, hash;
	uint32_t group;

	if (!find_link(typing, id, &offset))
		return NULL;
	hash = hash_add(hash_add(hash_add(1, known_type(typing, id)), offset),
			typing->contexts.items[id]);
	group = address_map_find(&inference->groups, hash);
	if (group == NOT_IN_MAP) {
		group = (uint32_t)inference->groups.count;
		TRY(address_map_add(&inference->groups, hash, group));
	}
	return array_append(&inference->embedded,
			    (struct untyped){ group, (uint32_t)(size / typing->word), id });
}

/*
 * Structures of up to that size, from the first on, which have the link at the offset: groups ask
 * for the same ones again and again.
 */
static struct error *find_with_member(struct inference *inference, type_number link, uint64_t size,
				      uint64_t offset, struct with_member *ret)
{
	const struct sized *all = inference->structures.items;
	uint64_t hash = hash_add(hash_add(hash_add(1, link), size), offset);
	uint32_t known = address_map_find(&inference->windows, hash);
	size_t i = BISECT(j, 0, inference->structures.count, all[j].size + MOST_ROUNDING < size);
	size_t before = i;

	if (known != NOT_IN_MAP) {
		*ret = inference->with_member.items[known];
		return NULL;
	}
	*ret = (struct with_member){ .first = inference->sized.count };
	for (; i < inference->structures.count && all[i].size <= size; i++)
		if (has_member_at(inference->typing, all[i].type, link, offset))
			TRY(array_append(&inference->sized, all[i]));
	ret->count = inference->sized.count - ret->first;
	ret->looked_at = i - before;
	TRY(address_map_add(&inference->windows, hash, (uint32_t)inference->with_member.count));
	return array_append(&inference->with_member, *ret);
}

/* Gather types of the allocation's size that have the link at its offset. */
static struct error *gather_candidates(struct inference *inference, allocation_id id)
{
	struct typing *typing = inference->typing;
	struct memory_range range = range_of(typing, id);
	uint64_t offset = 0, last = 0;
	struct with_member found;
	bool is_fitting = false;

	inference->candidates.count = inference->choice_count = 0;
	inference->has_pointers = inference->is_named = false;
	inference->rivals.count = 0;
	if (!find_link(typing, id, &offset))
		return NULL;
	TRY(find_with_member(inference, known_type(typing, id), range.end - range.start, offset,
			     &found));
	inference->tests += found.looked_at;
	for (size_t i = 0; i < found.count && inference->candidates.count < MOST_CANDIDATES; i++) {
		const struct sized *sized = &inference->sized.items[found.first + i];

		if (sized->size != last)
			is_fitting = allocation_fits(typing->input.index, range, sized->size, true);
		last = sized->size;
		/* Each type is there once. */
		if (is_fitting)
			TRY(array_append(&inference->candidates, sized->type));
	}
	return NULL;
}

/*
 * Set *ret if more than the link says that most of a few allocations have the type: pointers beside
 * the link have right targets. Everything in the list has the link.
 */
static struct error *is_more_than_link(struct inference *inference, const struct group *group,
				       type_number type, bool *ret)
{
	struct typing *typing = inference->typing;
	size_t count = 0;

	for (size_t i = 0; i < group->count; i++) {
		allocation_id id = group->items[i].id;
		uint64_t start = allocation_start(typing->input.index, id), offset = 0;
		struct conformity whole, link;

		if (!find_link(typing, id, &offset))
			continue;
		TRY(typing_conforms(typing, start, type, &whole));
		TRY(typing_conforms(typing, start + offset, known_type(typing, id), &link));
		count += whole.confirmed > link.confirmed;
	}
	*ret = count * 2 > group->count;
	return NULL;
}

/*
 * True if a word where the type has no pointer is the address of a variable, such as one of its
 * class.
 */
static bool names_variable(struct typing *typing, uint64_t start, type_number type)
{
	enum { SEARCHED = 256 };
	uint64_t size = typing_type(typing, type)->size, word;

	for (uint64_t i = 0; i + typing->word <= size && i < SEARCHED; i += typing->word)
		if (!slot_at(&typing->slots, type, i) && read_word(typing, start + i, &word) &&
		    address_map_find(&typing->variables, word) != NOT_IN_MAP)
			return true;
	return false;
}

/* True if most of the group refer to variables where the type has no pointers. */
static bool is_refuted(struct typing *typing, const struct group *group, type_number type)
{
	enum { MOST_LOOKED_AT = 64 };
	size_t count = 0, looked_at = 0;

	for (; looked_at < group->count && looked_at < MOST_LOOKED_AT; looked_at++)
		count += names_variable(
			typing, allocation_start(typing->input.index, group->items[looked_at].id),
			type);
	return count * 2 > looked_at;
}

static struct error *infer_group(struct inference *inference, const struct group *group)
{
	bool is_sure = group->count >= ENOUGH;
	type_number type;

	TRY(gather_candidates(inference, group->items->id));
	TRY(inference_choose(inference, group, &type));
	if (type != NO_TYPE && !is_sure && inference->chosen.pointers > 0)
		TRY(is_more_than_link(inference, group, type, &is_sure));
	if (type == NO_TYPE || !is_sure || is_refuted(inference->typing, group, type))
		return NULL;
	return inference_assign_group(inference, group, type);
}

struct error *infer_embedded(struct inference *inference)
{
	const struct untyped *all = inference->embedded.items;
	size_t count = inference->embedded.count;

	array_sort(&inference->embedded, compare_embedded);
	if (count > 0)
		TRY(inference_find_structures(inference));
	for (size_t i = 0, next; i < count && inference->tests <= MOST_TESTS; i = next) {
		for (next = i + 1; next < count && all[next].group == all[i].group &&
				   all[next].size == all[i].size;
		     next++)
			;
		TRY(infer_group(inference, &(struct group){ &all[i], next - i, false }));
	}
	return NULL;
}
