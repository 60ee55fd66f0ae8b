#include "analyzer/base/macros.h"
#include "analyzer/base/sort.h"
#include "analyzer/types/siblings_search.h"

/*
 * Types of which nothing was seen where pointers were left out. A structure that something points
 * to is one of these if a leaked allocation looks like it that is just as large. Three others must
 * look like it, and like none that was seen, for all pointers to be worth following.
 */

enum {
	SAMPLED_LEAKS = 16, /* of each size */
	MOST_UNSEEN = 1024,
	MOST_TESTS = 1 << 22,
};

struct structure {
	uint64_t size;
	type_number type;
};

struct unseen {
	uint64_t size; /* of the leaked allocations */
	type_number type;
	uint32_t others; /* that look like it */
};

struct unseen_search {
	struct sibling_search *search;
	ARRAY(struct structure) structures; /* by size */
	ARRAY(struct unseen) unseen;	    /* by size once all are found */
	struct address_map sampled;	    /* sizes of leaks, and how many were looked at */
	uint64_t tests;
};

static void unseen_search_deinit(struct unseen_search *unseen)
{
	arrays_release(&unseen->structures, &unseen->unseen);
	table_release(&unseen->sampled);
}
DEFINE_DEINIT(unseen_search_deinit, struct unseen_search)

DEFINE_COMPARE(compare_structures, struct structure, ASCENDING(size), ASCENDING(type))
DEFINE_COMPARE(compare_unseen, struct unseen, ASCENDING(size), ASCENDING(type))

/* Structures with pointers that something points to. */
static struct error *gather_structures(struct unseen_search *unseen)
{
	struct typing *typing = unseen->search->typing;
	_cleanup_(bitmap_deinit) struct bitmap pointed = { 0 };

	TRY(bitmap_init(&pointed, type_count(typing->table), typing->input.account));
	for (type_number i = 1; i < type_count(typing->table); i++)
		if (typing_type(typing, i)->kind == TYPE_POINTER)
			bitmap_set(&pointed, typing_type(typing, i)->target);
	bitmap_for_each(i, &pointed) {
		const struct data_type *type = typing_type(typing, (type_number)i);
		const struct slot *slots;
		size_t count;

		if (type->kind != TYPE_STRUCTURE || type->size == 0)
			continue;
		TRY(slots_of(&typing->slots, (type_number)i, &slots, &count));
		if (count > 0)
			TRY(array_append(&unseen->structures,
					 (struct structure){ type->size, (type_number)i }));
	}
	array_sort(&unseen->structures, compare_structures);
	return NULL;
}

static bool is_seen(const struct sibling_types *types, uint64_t size, type_number type)
{
	struct sibling_range range = siblings_of_size(types, size);

	for (size_t i = range.first; i < range.end; i++)
		if (types->items[i].type == type)
			return true;
	return false;
}

static bool is_listed(const struct unseen_search *unseen, uint64_t size, type_number type)
{
	for (size_t i = unseen->unseen.count; i-- > 0;)
		if (unseen->unseen.items[i].size == size && unseen->unseen.items[i].type == type)
			return true;
	return false;
}

/* The structures that were not seen, and that the leaked allocation looks like. */
static struct error *add_unseen(struct unseen_search *unseen, allocation_id id)
{
	enum { MOST_ROUNDED = 64 };
	struct sibling_search *search = unseen->search;
	const struct allocation_index *index = search->typing->input.index;
	struct memory_range range = range_of(search->typing, id);
	const struct structure *items = unseen->structures.items;
	uint64_t size = range.end - range.start,
		 least = size > MOST_ROUNDED ? size - MOST_ROUNDED : 0;
	size_t i = BISECT(at, 0, unseen->structures.count, items[at].size < least);

	for (; i < unseen->structures.count && items[i].size <= size; i++) {
		enum resemblance resemblance;

		if (unseen->tests >= MOST_TESTS || unseen->unseen.count >= MOST_UNSEEN)
			return NULL;
		if (!allocation_fits(index, range, items[i].size, true) ||
		    is_seen(search->types, size, items[i].type) ||
		    is_listed(unseen, size, items[i].type))
			continue;
		unseen->tests++;
		TRY(siblings_compare(search, id,
				     &(struct sibling_type){ .type = items[i].type, .size = size },
				     &resemblance));
		if (resemblance == LIKE)
			TRY(array_append(&unseen->unseen,
					 (struct unseen){ size, items[i].type, 0 }));
	}
	return NULL;
}

static struct error *sample_leaks(struct unseen_search *unseen)
{
	struct sibling_search *search = unseen->search;

	bitmap_for_each(id, search->leaked) {
		uint64_t size = allocation_size(search->typing->input.index, (allocation_id)id);
		struct address_number *known =
			table_find(&unseen->sampled, size, item, item->address == size);

		if (known_fit(search->typing, (allocation_id)id) != FIT_NONE ||
		    (known && known->number >= SAMPLED_LEAKS))
			continue;
		if (known)
			known->number++;
		else
			TRY(address_map_add(&unseen->sampled, size, 1));
		TRY(add_unseen(unseen, (allocation_id)id));
	}
	array_sort(&unseen->unseen, compare_unseen);
	return NULL;
}

static struct error *resembles_seen(struct unseen_search *unseen, allocation_id id, uint64_t size,
				    bool *ret)
{
	struct sibling_search *search = unseen->search;
	struct sibling_range range = siblings_of_size(search->types, size);

	*ret = false;
	for (size_t i = range.first; i < range.end && !*ret; i++) {
		enum resemblance resemblance;

		unseen->tests++;
		TRY(siblings_compare(search, id, &search->types->items[i], &resemblance));
		*ret = resemblance != UNLIKE;
	}
	return NULL;
}

/* Count it for the unseen types that it looks like, unless it looks like one that was seen. */
static struct error *compare_held(struct unseen_search *unseen, allocation_id id, bool *ret_suffice)
{
	uint64_t size = allocation_size(unseen->search->typing->input.index, id);
	struct unseen *items = unseen->unseen.items;
	size_t i = BISECT(at, 0, unseen->unseen.count, items[at].size < size);
	bool is_of_seen;

	if (i == unseen->unseen.count || items[i].size != size)
		return NULL;
	TRY(resembles_seen(unseen, id, size, &is_of_seen));
	for (; !is_of_seen && i < unseen->unseen.count && items[i].size == size; i++) {
		enum resemblance resemblance;

		unseen->tests++;
		TRY(siblings_compare(unseen->search, id,
				     &(struct sibling_type){ .type = items[i].type, .size = size },
				     &resemblance));
		items[i].others += resemblance == LIKE;
		*ret_suffice &= items[i].others < LEAST_SIBLINGS;
	}
	return NULL;
}

struct error *siblings_find_unseen(struct sibling_search *search, bool *ret_suffice)
{
	struct typing *typing = search->typing;
	struct memory_account *account = typing->input.account;
	_cleanup_(unseen_search_deinit) struct unseen_search unseen = {
		.search = search,
	};
	uint64_t told = 0;

	arrays_use(account, &unseen.structures, &unseen.unseen, &unseen.sampled);
	TRY(gather_structures(&unseen));
	TRY(sample_leaks(&unseen));
	if (unseen.unseen.count == 0)
		return NULL;
	bitmap_for_each(id, allocation_used(typing->input.index)) {
		if (!*ret_suffice || unseen.tests >= MOST_TESTS)
			break;
		if (known_fit(typing, (allocation_id)id) == FIT_NONE &&
		    !bitmap_get(search->leaked, id))
			TRY(compare_held(&unseen, (allocation_id)id, ret_suffice));
		if (!progress_pass(typing->input.progress, id, &told))
			return error_create(ERROR_INTERRUPTED, "interrupted");
	}
	return NULL;
}
