#include "analyzer/types/typing_parts.h"

#include "analyzer/base/bytes.h"
#include "analyzer/base/sort.h"

/*
 * A "char *" to the name at the end of a structure leads to the structure, too: code subtracts
 * where the name begins.
 *
 *	struct item { union value value; char flags; char name[1]; };
 *	table->keys[i] = item->name;
 *
 * Pointers of one member that lead equally far into blocks, to text that fills the rest of them,
 * are a group. It is of the only structure of the program whose last member is an array of
 * characters there, if nearly all of the group look like it. What an allocator of the program's own
 * puts in front of any text is a multiple of a word; then pointers must be right, too.
 */

enum {
	ENOUGH = 10,
	SAMPLE = 100,
	MOST_CONTAINERS = 1 << 16,
};

/* A structure that ends in text. */
struct container {
	uint32_t offset; /* of the text */
	type_number type;
};

/* A block, and how far into it a pointer of that member leads. */
struct contained {
	uint32_t place, offset;
	const struct entered *entered;
};

struct containing {
	struct typing *typing;
	ARRAY(struct container) containers; /* by offset */
	ARRAY(struct contained) list;
};

DEFINE_COMPARE(compare_containers, struct container, ASCENDING(offset), ASCENDING(type))
DEFINE_COMPARE(compare_contained, struct contained, ASCENDING(place), ASCENDING(offset),
	       ASCENDING(entered->id))

static struct error *find_containers(struct containing *search)
{
	struct typing *typing = search->typing;

	for (type_number i = 1; i < type_count(typing->table); i++) {
		type_number element;
		uint64_t offset;

		if (typing_type(typing, i)->kind == TYPE_STRUCTURE &&
		    type_find_tail(typing, i, &offset, &element) && offset > 0 &&
		    offset <= UINT32_MAX && search->containers.count < MOST_CONTAINERS &&
		    typing_type(typing, element)->kind == TYPE_CHARACTER)
			TRY(array_append(&search->containers,
					 (struct container){ (uint32_t)offset, i }));
	}
	if (search->containers.count)
		SORT(search->containers.items, search->containers.count, compare_containers);
	return NULL;
}

/* True if nothing is known of a block except its text. */
static bool is_open(const struct typing *typing, allocation_id id)
{
	return known_fit(typing, id) == FIT_NONE ||
	       (known_fit(typing, id) == FIT_ARRAY && !typing_is_stated(typing, id) &&
		typing_type(typing, known_type(typing, id))->kind == TYPE_CHARACTER);
}

static struct error *gather(struct containing *search)
{
	struct typing *typing = search->typing;

	for (size_t i = 0; i < typing->entered.count; i++) {
		const struct entered *entered = &typing->entered.items[i];
		struct memory_range range = range_of(typing, entered->id);
		uint64_t pointer;

		if (!is_open(typing, entered->id) ||
		    !typing_read_step(typing, entered->step, &pointer) || pointer <= range.start ||
		    pointer >= range.end || pointer - range.start > UINT32_MAX ||
		    !is_filled_with_text(typing, (struct memory_range){ pointer, range.end },
					 pointer))
			continue;
		TRY(array_append(&search->list,
				 (struct contained){ typing->paths.items[entered->context].place,
						     (uint32_t)(pointer - range.start), entered }));
	}
	if (search->list.count)
		SORT(search->list.items, search->list.count, compare_contained);
	return NULL;
}

static struct error *looks_like(struct typing *typing, const struct contained *contained,
				type_number type, bool *ret, bool *ret_confirmed)
{
	struct memory_range range = range_of(typing, contained->entered->id);
	struct conformity conformity;

	*ret = *ret_confirmed = false;
	if (contained->offset >= range.end - range.start)
		return NULL;
	TRY(typing_conforms(typing, range.start, type, &conformity));
	*ret = !conformity.is_violated;
	*ret_confirmed = *ret && conformity.confirmed > conformity.vague;
	return NULL;
}

/* Set *ret if nearly all of a sample of the group look like the type. */
static struct error *fits_group(struct typing *typing, const struct contained *group, size_t count,
				type_number type, bool *ret)
{
	enum { LEAST_RIGHT = 98 };
	size_t step = (count + SAMPLE - 1) / SAMPLE, all = 0, right = 0, confirmed = 0;

	for (size_t i = 0; i < count; i += step) {
		bool is_right, is_confirmed;

		TRY(looks_like(typing, &group[i], type, &is_right, &is_confirmed));
		all++;
		right += is_right;
		confirmed += is_confirmed;
	}
	*ret = right * 100 >= all * LEAST_RIGHT &&
	       (group->offset % typing->word != 0 || confirmed * 2 >= all);
	return NULL;
}

/* The only structure with text at that offset that the group looks like. */
static struct error *choose(const struct containing *search, const struct contained *group,
			    size_t count, type_number *ret)
{
	*ret = NO_TYPE;
	array_for_each(container, &search->containers) {
		bool fits;

		if (container->offset != group->offset)
			continue;
		TRY(fits_group(search->typing, group, count, container->type, &fits));
		if (fits && *ret != NO_TYPE) {
			*ret = NO_TYPE;
			return NULL;
		}
		if (fits)
			*ret = container->type;
	}
	return NULL;
}

/* A group of a later round gets the type of the earlier round's, however few it has. */
static struct error *find_type(struct containing *search, const struct contained *group,
			       size_t count, type_number *ret)
{
	struct typing *typing = search->typing;
	uint64_t hash = hash_add(hash_add(4, group->place), group->offset);
	uint32_t known = address_map_find(&typing->nodes, hash);

	*ret = known == NOT_IN_MAP ? NO_TYPE : known;
	if (known != NOT_IN_MAP || count < ENOUGH)
		return NULL;
	TRY(choose(search, group, count, ret));
	return *ret == NO_TYPE ? NULL : address_map_add(&typing->nodes, hash, *ret);
}

static struct error *assign(struct typing *typing, const struct contained *contained,
			    type_number type)
{
	allocation_id id = contained->entered->id;
	bool is_right, is_confirmed;

	TRY(looks_like(typing, contained, type, &is_right, &is_confirmed));
	if (!is_right || typing_is_denied(typing, id, type))
		return NULL;
	if (!has_step(typing, id))
		TRY(typing_set_step(typing, id, contained->entered->step));
	typing->contexts.items[id] = contained->entered->context;
	return typing_set(typing, id, type, FIT_TAIL, true);
}

static struct error *infer_groups(struct containing *search)
{
	const struct contained *list = search->list.items;

	for (size_t i = 0, next; i < search->list.count; i = next) {
		type_number type;

		for (next = i + 1; next < search->list.count && list[next].place == list[i].place &&
				   list[next].offset == list[i].offset;
		     next++)
			;
		TRY(find_type(search, &list[i], next - i, &type));
		for (size_t j = i; type != NO_TYPE && j < next; j++)
			TRY(assign(search->typing, &list[j], type));
	}
	return NULL;
}

struct error *typing_find_containing(struct typing *typing)
{
	struct containing search = {
		.typing = typing,
		.containers.memory.account = typing->input.account,
		.list.memory.account = typing->input.account,
	};
	struct error *error = typing->entered.count ? gather(&search) : NULL;

	if (!error && search.list.count)
		error = find_containers(&search);
	if (!error)
		error = infer_groups(&search);
	arrays_release(&search.containers, &search.list);
	return error;
}
