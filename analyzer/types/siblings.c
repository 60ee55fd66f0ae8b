#include "analyzer/types/siblings.h"

#include "analyzer/base/bytes.h"
#include "analyzer/base/sort.h"
#include "analyzer/base/table.h"
#include "analyzer/types/typing_parts.h"

enum {
	LEAST_SIBLINGS = 3,
	MOST_STRANGERS = 64, /* compared of each size */
	MOST_TYPES_OF_SIZE = 16,
	MOST_SIBLING_TYPES = 1 << 16,
};

struct siblings {
	const struct typing *typing;
	HASH_TABLE(struct sibling_type) types; /* by size once they are found */
	ARRAY(uint32_t) numbers;	       /* by allocation: of its type, plus 1 */
	size_t count;
};

void siblings_destroy(struct siblings *siblings)
{
	if (!siblings)
		return;
	table_release(&siblings->types);
	array_release(&siblings->numbers);
	free(siblings);
}

/* What is looked for in which allocations. */
struct sibling_search {
	struct typing *typing;
	const struct bitmap *leaked;
	struct siblings *siblings;
};

static struct error *add_sibling(struct sibling_search *search, allocation_id id)
{
	struct typing *typing = search->typing;
	struct siblings *siblings = search->siblings;
	uint64_t size = allocation_size(typing->input.index, id);
	type_number type = known_type(typing, id);
	uint64_t hash = hash_add(hash_add(0, size), type);
	const struct sibling_type *known;

	known = table_find(&siblings->types, hash, item, item->type == type && item->size == size);
	if (known) {
		siblings->types.items[known - siblings->types.items].count++;
		return NULL;
	}
	if (siblings->types.count >= MOST_SIBLING_TYPES)
		return NULL;
	return table_append(&siblings->types, hash, (struct sibling_type){ type, size, 1, 0, id });
}

DEFINE_COMPARE(compare_sizes, struct sibling_type, ASCENDING(size), ASCENDING(type))

/* The types of that size: how many, and the number of the first. */
static size_t find_size(const struct siblings *siblings, uint64_t size, size_t *ret_first)
{
	const struct sibling_type *types = siblings->types.items;
	size_t first = 0, end = siblings->types.count, count = 0;

	while (first < end) {
		size_t middle = first + (end - first) / 2;

		if (types[middle].size < size)
			first = middle + 1;
		else
			end = middle;
	}
	while (first + count < siblings->types.count && types[first + count].size == size)
		count++;
	*ret_first = first;
	return count;
}

static struct error *looks_like(struct sibling_search *search, allocation_id id, type_number type,
				bool *ret)
{
	struct conformity conformity;

	TRY(typing_conforms(search->typing, range_of(search->typing, id).start, type, &conformity));
	*ret = !conformity.is_violated && conformity.confirmed > conformity.doubtful;
	return NULL;
}

static struct error *compare_stranger(struct sibling_search *search, allocation_id id)
{
	struct siblings *siblings = search->siblings;
	uint64_t size = allocation_size(search->typing->input.index, id);
	size_t first, count = find_size(siblings, size, &first);

	for (size_t i = first; i < first + count && i < first + MOST_TYPES_OF_SIZE; i++) {
		struct sibling_type *type = &siblings->types.items[i];
		bool is_same;

		if (type->strangers >= MOST_STRANGERS || type->strangers >= type->count)
			continue;
		TRY(looks_like(search, id, type->type, &is_same));
		type->strangers += is_same;
	}
	return NULL;
}

/* Which type it looks like, if only one of its size. */
static struct error *compare_leaked(struct sibling_search *search, allocation_id id)
{
	struct siblings *siblings = search->siblings;
	uint64_t size = allocation_size(search->typing->input.index, id);
	size_t first, found = 0, count = find_size(siblings, size, &first), fits = 0;

	if (count > MOST_TYPES_OF_SIZE)
		return NULL;
	for (size_t i = first; i < first + count; i++) {
		bool is_same;

		TRY(looks_like(search, id, siblings->types.items[i].type, &is_same));
		if (!is_same || typing_is_denied(search->typing, id, siblings->types.items[i].type))
			continue;
		found = i;
		fits++;
	}
	if (fits != 1 || siblings->types.items[found].count < LEAST_SIBLINGS ||
	    siblings->types.items[found].strangers >= siblings->types.items[found].count)
		return NULL;
	siblings->numbers.items[id] = (uint32_t)found + 1;
	siblings->count++;
	return NULL;
}

enum sibling_pass { FIND_SIBLINGS, COMPARE_STRANGERS, COMPARE_LEAKED, SIBLING_PASSES };

static struct error *visit(struct sibling_search *search, enum sibling_pass pass, allocation_id id)
{
	struct typing *typing = search->typing;
	enum type_fit fit = known_fit(typing, id);
	bool is_leaked = search->leaked && bitmap_get(search->leaked, id);

	if (pass == COMPARE_LEAKED)
		return is_leaked && fit == FIT_NONE ? compare_leaked(search, id) : NULL;
	if (is_leaked)
		return NULL;
	if (pass == COMPARE_STRANGERS)
		return fit == FIT_NONE ? compare_stranger(search, id) : NULL;
	return fit == FIT_ONE && typing_type(typing, known_type(typing, id))->kind == TYPE_STRUCTURE
		       ? add_sibling(search, id)
		       : NULL;
}

/* Whether it looks like a type that some of its size are of, whether they leaked or not. */
static struct error *resembles_any(struct sibling_search *search, allocation_id id, bool *ret)
{
	const struct siblings *siblings = search->siblings;
	size_t first, count = find_size(siblings, allocation_size(search->typing->input.index, id),
					&first);

	for (size_t i = first; i < first + count && count <= MOST_TYPES_OF_SIZE && !*ret; i++)
		if (siblings->types.items[i].count >= LEAST_SIBLINGS)
			TRY(looks_like(search, id, siblings->types.items[i].type, ret));
	return NULL;
}

static struct error *run_pass(struct sibling_search *search, enum sibling_pass pass)
{
	struct progress *progress = search->typing->input.progress;
	uint64_t passed = 0;

	bitmap_for_each(id, allocation_used(search->typing->input.index)) {
		TRY(visit(search, pass, (allocation_id)id));
		if (!progress_pass(progress, id, &passed))
			return error_create(ERROR_INTERRUPTED, "interrupted");
	}
	return NULL;
}

static struct error *find_siblings(struct sibling_search *search)
{
	TRY(run_pass(search, FIND_SIBLINGS));
	if (search->siblings->types.count)
		SORT(search->siblings->types.items, search->siblings->types.count, compare_sizes);
	return NULL;
}

struct error *siblings_expect(struct typing *typing, struct memory_account *account, bool *ret)
{
	struct siblings siblings = { .types.memory.account = account };
	struct sibling_search search = { typing, NULL, &siblings };
	uint64_t passed = 0;
	struct error *error;

	*ret = false;
	if (!typing || typing->allocations.count == 0)
		return NULL;
	progress_begin(typing->input.progress, "looking for what may look like a type",
		       2 * allocation_count(typing->input.index));
	error = find_siblings(&search);
	bitmap_for_each(id, allocation_used(typing->input.index)) {
		if (error || *ret)
			break;
		if (known_fit(typing, (allocation_id)id) == FIT_NONE)
			error = resembles_any(&search, (allocation_id)id, ret);
		if (!error)
			error = progress_check_at(typing->input.progress, id, &passed);
	}
	table_release(&siblings.types);
	return error;
}

struct error *siblings_create(struct typing *typing, const struct bitmap *leaked,
			      struct memory_account *account, struct siblings **ret)
{
	_cleanup_(siblings_destroy) struct siblings *siblings = calloc(1, sizeof(*siblings));
	struct sibling_search search = { typing, leaked, siblings };

	if (!siblings)
		return &error_no_memory;
	siblings->typing = typing;
	siblings->types.memory.account = siblings->numbers.memory.account = account;
	if (typing && typing->allocations.count && bitmap_weight(leaked) > 0) {
		size_t count = allocation_count(typing->input.index);

		progress_begin(typing->input.progress, "comparing leaks with types",
			       SIBLING_PASSES * count);
		TRY(array_resize(&siblings->numbers, count));
		TRY(find_siblings(&search));
		TRY(run_pass(&search, COMPARE_STRANGERS));
		TRY(run_pass(&search, COMPARE_LEAKED));
	}
	*ret = take(siblings);
	return NULL;
}

const struct sibling_type *siblings_of(const struct siblings *siblings, allocation_id id)
{
	uint32_t number =
		siblings && id < siblings->numbers.count ? siblings->numbers.items[id] : 0;

	return number ? &siblings->types.items[number - 1] : NULL;
}

bool siblings_typed(const struct siblings *siblings, allocation_id id, struct typed *ret)
{
	const struct sibling_type *like = siblings_of(siblings, id);

	if (like)
		*ret = (struct typed){ like->type, FIT_LIKE };
	return like;
}

size_t siblings_count(const struct siblings *siblings)
{
	return siblings->count;
}
