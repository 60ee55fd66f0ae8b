#include "analyzer/types/siblings_search.h"

/*
 * Leaked allocations whose pointers would all be null say nothing of their type. But those of their
 * size that are held and say as little do: if nearly all of these have one type, so may they.
 */

enum {
	FEW_IN = 50,		   /* of which at least so many are held */
	MOST_COUNTED = 1 << 20,	   /* of each type */
	MOST_TYPED_ANEW = 1 << 20, /* allocations of a heap */
};

/* Set *ret if no word speaks for the type or against it; all its words may be zero. */
static struct error *says_nothing(struct sibling_search *search, allocation_id id, type_number type,
				  bool *ret, bool *ret_is_zero)
{
	struct typing *typing = search->typing;
	const uint64_t start = allocation_start(typing->input.index, id);
	const uint64_t size = typing_type(typing, type)->size;
	struct conformity conformity;
	const struct slot *slots;
	uint64_t word;
	size_t count;

	*ret = false;
	TRY(slots_of(&typing->slots, type, &slots, &count));
	if (count == 0 || is_text(typing, start))
		return NULL;
	TRY(typing_conforms(typing, start, type, &conformity));
	*ret = !conformity.is_violated && conformity.confirmed == 0 && conformity.doubtful == 0;
	*ret_is_zero = true;
	for (uint64_t at = 0; *ret && at + typing->word <= size; at += typing->word)
		*ret_is_zero &= read_word(typing, start + at, &word) && word == 0;
	return NULL;
}

static bool may_be_wanted(const struct sibling_type *type)
{
	return !type->is_array && type->count >= LEAST_SIBLINGS;
}

struct error *siblings_want_silent(struct sibling_search *search, allocation_id id,
				   struct sibling_range range, bool *ret)
{
	bool is, is_zero;

	*ret = false;
	for (size_t i = range.first; i < range.end; i++) {
		const struct sibling_type *type = &search->types->items[i];

		if (!may_be_wanted(type))
			continue;
		TRY(says_nothing(search, id, type->type, &is, &is_zero));
		if (is && search->silent.count == 0)
			TRY(array_resize(&search->silent, search->types->count));
		if (is)
			search->silent.items[i].is_wanted = *ret = true;
	}
	return NULL;
}

/* Set *ret if it is one value of a type with pointers: then those are counted by themselves. */
static struct error *is_counted_apart(struct sibling_search *search, allocation_id id, bool *ret)
{
	const struct slot *slots;
	size_t count = 0;

	if (known_fit(search->typing, id) == FIT_ONE)
		TRY(slots_of(&search->typing->slots, known_type(search->typing, id), &slots,
			     &count));
	*ret = count > 0;
	return NULL;
}

struct error *siblings_count_silent(struct sibling_search *search, allocation_id id, size_t number)
{
	const struct typing *typing = search->typing;
	const type_number type = search->types->items[number].type;
	struct silent_counts *counts =
		number < search->silent.count ? &search->silent.items[number] : NULL;
	bool is, is_zero, is_apart;

	if (!counts || !counts->is_wanted || counts->compared == MOST_COUNTED)
		return NULL;
	counts->compared++;
	TRY(says_nothing(search, id, type, &is, &is_zero));
	if (!is)
		return NULL;
	TRY(is_counted_apart(search, id, &is_apart));
	if (known_fit(typing, id) == FIT_ONE && known_type(typing, id) == type)
		counts->of_type[is_zero]++;
	else if (known_fit(typing, id) == FIT_NONE)
		counts->unknown[is_zero]++;
	else if (!is_apart)
		counts->others[is_zero]++;
	return NULL;
}

/*
 * Tell whether nearly all that say as little have the type. Where only a part of a heap that is not
 * large has types, ask for all rather than count those without one as others.
 */
static bool is_usual(struct sibling_search *search, const struct silent_counts *counts,
		     bool is_zero, uint64_t all)
{
	const uint64_t count = counts->of_type[is_zero], unknown = counts->unknown[is_zero];
	const uint64_t others = all - count + counts->others[is_zero];

	if (count < FEW_IN || others > count / FEW_IN)
		return false;
	if (others + unknown <= count / FEW_IN)
		return true;
	if (typing_is_partial(search->typing) &&
	    allocation_count(search->typing->input.index) <= MOST_TYPED_ANEW)
		search->siblings->suffice = false;
	return false;
}

struct error *siblings_settle_silent(struct sibling_search *search, allocation_id id,
				     uint32_t *ret_number)
{
	struct sibling_range range =
		siblings_of_size(search->types, allocation_size(search->typing->input.index, id));
	const struct silent_counts *best = NULL;
	bool is, is_zero, is_best_zero = false;
	uint64_t all = 0;
	size_t number = 0;

	*ret_number = 0;
	for (size_t i = range.first; i < range.end; i++) {
		const struct silent_counts *counts = &search->silent.items[i];

		if (!counts->is_wanted)
			continue;
		TRY(says_nothing(search, id, search->types->items[i].type, &is, &is_zero));
		if (!is)
			continue;
		all += counts->of_type[is_zero];
		if (best && counts->of_type[is_zero] <= best->of_type[is_best_zero])
			continue;
		best = counts;
		is_best_zero = is_zero;
		number = i;
	}
	if (best && is_usual(search, best, is_best_zero, all) &&
	    !typing_is_denied(search->typing, id, search->types->items[number].type))
		*ret_number = (uint32_t)number + 1;
	return NULL;
}
