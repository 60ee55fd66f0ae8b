#include "analyzer/types/siblings_search.h"

enum {
	MOST_TESTED = 16, /* elements */
	MOST_PLAIN = 1 << 12,
};

bool siblings_may_be_array(struct typing *typing, type_number type)
{
	const struct data_type *element = typing_type(typing, type);
	enum type_kind target;

	if (element->kind == TYPE_STRUCTURE || element->kind == TYPE_UNION ||
	    element->kind == TYPE_NUMBER)
		return element->size > 0;
	if (element->kind != TYPE_POINTER)
		return false;
	target = typing_type(typing, element->target)->kind;
	return target == TYPE_STRUCTURE || target == TYPE_UNION || target == TYPE_CHARACTER;
}

static bool is_of_pointers(const struct typing *typing, const struct data_type *type)
{
	const struct type_member *members = type_members(typing->table, type);
	bool is_plain = type->kind == TYPE_STRUCTURE && type->member_count > 0;

	for (size_t i = 0; is_plain && i < type->member_count; i++)
		is_plain = typing_type(typing, members[i].type)->kind == TYPE_POINTER;
	return is_plain;
}

/* Find structures of nothing but pointers that something points to, once. */
static struct error *find_plain(struct sibling_search *search)
{
	struct typing *typing = search->typing;
	_cleanup_(bitmap_deinit) struct bitmap pointed = { 0 };

	if (search->has_plain)
		return NULL;
	search->has_plain = true;
	TRY(bitmap_init(&pointed, type_count(typing->table), typing->input.account));
	for (type_number i = 1; i < type_count(typing->table); i++)
		if (typing_type(typing, i)->kind == TYPE_POINTER)
			bitmap_set(&pointed, typing_type(typing, i)->target);
	bitmap_for_each(i, &pointed)
		if (search->plain.count < MOST_PLAIN &&
		    is_of_pointers(typing, typing_type(typing, (type_number)i)))
			TRY(array_append(&search->plain, (type_number)i));
	return NULL;
}

struct error *siblings_may_be_plain(struct sibling_search *search, allocation_id id, bool *ret)
{
	struct memory_range range = range_of(search->typing, id);

	TRY(find_plain(search));
	*ret = search->plain.count == MOST_PLAIN;
	for (size_t i = 0; i < search->plain.count && !*ret; i++) {
		type_number type = search->plain.items[i];
		struct conformity conformity;

		if (typing_fit_of_one(search->typing, range, type) != FIT_ONE)
			continue;
		TRY(typing_conforms(search->typing, range.start, type, &conformity));
		*ret = !conformity.is_violated;
	}
	return NULL;
}

static struct error *compare_pointers(struct typing *typing, struct memory_range range,
				      type_number type, enum resemblance *ret)
{
	struct conformity conformity;

	TRY(typing_conforms_pointers(typing, range, type, &conformity));
	if (!conformity.is_violated && conformity.confirmed > 0)
		*ret = LIKE;
	return NULL;
}

static bool is_zero(const struct typing *typing, struct memory_range range)
{
	uint64_t word = 0;

	while (range.start < range.end && read_word(typing, range.start, &word) && word == 0)
		range.start += typing->word;
	return word == 0;
}

static struct error *compare_structures(struct typing *typing, struct memory_range range,
					type_number type, enum resemblance *ret)
{
	uint64_t size = typing_type(typing, type)->size, tested = 0;
	uint32_t confirmed = 0, vague = 0, doubtful = 0;
	enum type_fit fit;

	TRY(typing_find_fit(typing, range, type, &fit));
	if (fit != FIT_ARRAY)
		return NULL;
	for (; tested < MOST_TESTED && (tested + 1) * size <= range.end - range.start; tested++) {
		struct conformity one;

		TRY(typing_conforms(typing, range.start + tested * size, type, &one));
		confirmed += one.confirmed;
		vague += one.vague;
		doubtful += one.doubtful;
	}
	/* Members of unions may lead anywhere, and those of something else do. */
	if (confirmed > 2 * vague + doubtful && 2 * confirmed >= tested)
		*ret = LIKE;
	else if (vague == 0 && doubtful == 0 && !is_zero(typing, range))
		*ret = LIKE_IF_ALONE;
	return NULL;
}

struct error *siblings_compare_array(struct sibling_search *search, allocation_id id,
				     const struct sibling_type *type, enum resemblance *ret)
{
	struct typing *typing = search->typing;
	struct memory_range range = range_of(typing, id);

	*ret = UNLIKE;
	if (is_text(typing, range.start))
		return NULL;
	switch (typing_type(typing, type->type)->kind) {
	case TYPE_POINTER:
		return compare_pointers(typing, range, type->type, ret);
	case TYPE_NUMBER:
		if (!typing_refers_to_heap(typing, range) && !is_zero(typing, range))
			*ret = LIKE_IF_ALONE;
		return NULL;
	default:
		return compare_structures(typing, range, type->type, ret);
	}
}
