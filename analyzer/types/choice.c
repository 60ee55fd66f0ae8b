#include "analyzer/types/inference.h"

enum { LONG_TEXT = 40 };

/* True if it is one of the first candidates. */
static bool is_among(const struct inference *inference, type_number type, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (inference->candidates.items[i] == type)
			return true;
	return false;
}

/* The pointer to the allocation, in a value that numbers beside it are members of, too. */
static bool find_link(struct typing *typing, allocation_id id, struct link *ret)
{
	const struct slot *slot;

	*ret = (struct link){ .value = allocation_start(typing->input.index, id) };
	slot = inference_slot_to(typing, id, &ret->address, &ret->whole);
	if (!slot)
		return false;
	ret->offset = slot->offset;
	/* Numbers of the next element are not beside the pointer. */
	while (typing_type(typing, ret->whole)->kind == TYPE_ARRAY) {
		ret->whole = typing_type(typing, ret->whole)->target;
		if (typing_type(typing, ret->whole)->size == 0)
			return false;
		ret->offset %= (uint32_t)typing_type(typing, ret->whole)->size;
	}
	return true;
}

/* The elements that numbers beside the pointer to the allocation count; false: none do. */
static bool find_counted(const struct inference *inference, allocation_id id, type_number element,
			 struct memory_range *ret)
{
	struct link link;

	*ret = range_of(inference->typing, id);
	return find_link(inference->typing, id, &link) &&
	       typing_find_counted(inference->typing, &link, element, ret);
}

/* True if a number beside the pointer to the text says how long it is: any letters may be in it. */
static bool is_counted_text(struct typing *typing, allocation_id id, type_number character)
{
	struct link link;

	return find_link(typing, id, &link) &&
	       typing_is_counted(typing, range_of(typing, id), &link,
				 typing_type(typing, character));
}

/* Compare elements with the structure; behind those that are counted, anything may stand. */
static struct error *test_structures(struct typing *typing, struct memory_range range,
				     type_number type, struct conformity *ret)
{
	enum { MOST_TESTED = 16 };
	uint64_t size = typing_type(typing, type)->size;

	*ret = (struct conformity){ 0 };
	for (uint64_t i = 0; i < MOST_TESTED && size <= range.end - range.start - i * size; i++) {
		struct conformity one;

		TRY(typing_conforms(typing, range.start + i * size, type, &one));
		ret->is_violated |= one.is_violated;
		ret->confirmed += one.confirmed;
		ret->vague += one.vague;
		ret->known += one.known;
		ret->exact += one.exact;
		ret->doubtful += one.doubtful;
	}
	return NULL;
}

/* Set *ret if pointers of the first elements do not lead to what looks like their types. */
static struct error *leads_elsewhere(struct typing *typing, struct memory_range range,
				     type_number type, bool *ret)
{
	enum { MOST_TESTED = 16 };
	uint64_t size = typing_type(typing, type)->size;

	*ret = false;
	for (uint64_t i = 0; !*ret && i < MOST_TESTED && size <= range.end - range.start - i * size;
	     i++) {
		struct conformity led_to;

		TRY(typing_conforms_led_to(typing, range.start + i * size, type, &led_to));
		*ret = led_to.is_violated;
	}
	return NULL;
}

/*
 * Test whether the allocation may be an array of the structures that a union's member leads to; or
 * of those that code takes it for, which may mean something else: so what they lead to must look
 * right, too.
 */
static struct error *test_array(const struct inference *inference, allocation_id id,
				type_number type, bool is_choice, struct score *score,
				enum type_fit *ret_fit)
{
	struct typing *typing = inference->typing;
	struct memory_range range = range_of(typing, id);
	bool is_counted = find_counted(inference, id, type, &range);
	struct conformity all;

	if (!is_counted)
		TRY(typing_find_fit(typing, range, type, ret_fit));
	if (!is_counted && *ret_fit != FIT_ARRAY) {
		*ret_fit = FIT_NONE;
		return NULL;
	}
	*ret_fit = FIT_NONE;
	TRY(test_structures(typing, range, type, &all));
	if (!all.is_violated && !is_choice)
		TRY(leads_elsewhere(typing, range, type, &all.is_violated));
	if (all.is_violated)
		return NULL;
	*ret_fit = FIT_ARRAY;
	score->right++;
	score->exact++;
	score->confirmed += is_counted || all.confirmed > 0;
	score->told += is_counted || all.confirmed > all.vague;
	score->known += all.known;
	score->pointers += all.exact;
	/* A few lead to the first pieces of slabs. */
	score->doubts += all.doubtful * ENOUGH > all.confirmed ? all.doubtful : 0;
	return NULL;
}

/*
 * Test whether the range may be the target of a union's member, cut short: a rival of the type that
 * fits.
 */
static struct error *test_part(struct typing *typing, struct memory_range range, type_number type,
			       struct score *score, enum type_fit *ret_fit)
{
	uint64_t part;

	TRY(typing_find_cut(typing, range, type, &part));
	if (!part)
		return NULL;
	*ret_fit = FIT_PART;
	score->right++;
	score->parts++;
	score->confirmed++;
	score->told++;
	score->exact++;
	return NULL;
}

/* Set *ret if an array of pointers may be a structure of nothing but pointers. */
static struct error *is_rivalled(const struct inference *inference, struct memory_range range,
				 bool *ret)
{
	*ret = false;
	for (size_t i = 0; i < inference->rivals.count && !*ret; i++) {
		type_number rival = inference->rivals.items[i];
		struct conformity conformity;

		if (typing_fit_of_one(inference->typing, range, rival) == FIT_NONE)
			continue;
		TRY(typing_conforms(inference->typing, range.start, rival, &conformity));
		*ret = !conformity.is_violated;
	}
	return NULL;
}

/* Text, or an array of pointers, each to what it should. */
static struct error *test_elements(const struct inference *inference, allocation_id id,
				   type_number type, struct score *score, enum type_fit *ret_fit)
{
	struct typing *typing = inference->typing;
	bool is_character = typing_type(typing, type)->kind == TYPE_CHARACTER;
	struct memory_range range = range_of(typing, id);
	struct conformity conformity = { .is_violated = !is_text(typing, range.start) };
	bool is_counted = !is_character && find_counted(inference, id, type, &range);

	if (is_character)
		conformity.confirmed = is_filled_with_text(typing, range, range.start);
	if (is_character && !conformity.confirmed && is_counted_text(typing, id, type))
		conformity = (struct conformity){ .confirmed = 1 };
	else if (!is_character)
		TRY(typing_conforms_pointers(typing, range, type, &conformity));
	if (!conformity.is_violated && !is_character && !is_counted)
		TRY(is_rivalled(inference, range, &conformity.is_violated));
	if (conformity.is_violated)
		return NULL;
	*ret_fit = FIT_ARRAY;
	score->right++;
	score->confirmed += conformity.confirmed > 0;
	score->told += conformity.confirmed > 0;
	score->exact += conformity.confirmed > 0 || !is_character;
	score->known += conformity.known;
	score->pointers += conformity.exact;
	score->doubts += conformity.doubtful;
	return NULL;
}

/*
 * True if it is nothing but text, although it may look like a structure that ends with text.
 * Shorter ones may be pointers whose bytes are all letters.
 */
static bool is_long_text(const struct typing *typing, struct memory_range range)
{
	return range.end - range.start >= LONG_TEXT &&
	       is_filled_with_text(typing, range, range.start);
}

struct error *inference_test(const struct inference *inference, allocation_id id, type_number type,
			     struct score *score, enum type_fit *ret_fit)
{
	struct typing *typing = inference->typing;
	struct memory_range range = range_of(typing, id);
	struct conformity conformity, behind = { .is_violated = false };
	enum type_fit fit = typing_fit_of_one(typing, range, type);
	bool leads_to_text;

	*ret_fit = FIT_NONE;
	if (!is_aggregate(typing_type(typing, type)))
		return test_elements(inference, id, type, score, ret_fit);
	if (votes_refute(typing, &inference->votes, range.start, type) ||
	    is_long_text(typing, range))
		return NULL;
	if (fit == FIT_NONE && is_among(inference, type, inference->cast_count)) {
		bool is_choice = is_among(inference, type, inference->choice_count);

		TRY(test_array(inference, id, type, is_choice, score, ret_fit));
		return *ret_fit == FIT_ARRAY || !is_choice
			       ? NULL
			       : test_part(typing, range, type, score, ret_fit);
	}
	if (fit == FIT_NONE)
		return NULL;
	TRY(typing_conforms(typing, range.start, type, &conformity));
	if (!conformity.is_violated)
		TRY(typing_conforms_behind(typing, range, type, &behind));
	if (conformity.is_violated || behind.is_violated)
		return NULL;
	TRY(typing_leads_to_text(typing, range.start, type, &leads_to_text));
	if (leads_to_text)
		return NULL;
	/* Arrays of pointers, which are rivals, are looked at as closely. */
	if (inference->has_pointers) {
		struct conformity led_to;

		TRY(typing_conforms_led_to(typing, range.start, type, &led_to));
		if (led_to.is_violated)
			return NULL;
	}
	*ret_fit = fit;
	score->right++;
	score->confirmed += conformity.confirmed + behind.confirmed > 0;
	score->told += conformity.confirmed + behind.confirmed > conformity.vague + behind.vague;
	score->known += conformity.known;
	score->exact += behind.has_tail || fit == FIT_PREFIX ||
			is_just_as_large(typing, range, typing_type(typing, type)->size);
	score->pointers += conformity.exact;
	score->doubts += conformity.doubtful + behind.doubtful;
	return NULL;
}

static allocation_id sample_of(const struct group *group, size_t number)
{
	return group->items[number * group->count / sample_size(group->count)].id;
}

static struct error *test_group(struct inference *inference, const struct group *group,
				type_number type, struct score *ret)
{
	struct error *error = NULL;
	enum type_fit fit;

	*ret = (struct score){ 0 };
	for (size_t i = 0; !error && i < sample_size(group->count); i++) {
		/* It cannot be accepted any more, nor come near to what is. */
		if (i >= ENOUGH && ret->right * 4 < i)
			break;
		inference->tests++;
		error = inference_test(inference, sample_of(group, i), type, ret, &fit);
	}
	return error;
}

/*
 * Nearly all are right, most are just as large, and pointers of half of them lead to what they
 * should; of a group that a tag of its own tells apart, some may be known wrongly. Of a few, no
 * pointer may be doubtful, or else one is right.
 */
static bool is_accepted(const struct score *score, size_t count, bool is_headed)
{
	return score->right * 100 >= count * (is_headed ? 90 : 98) &&
	       score->exact * 10 >= count * 8 && score->confirmed * 2 >= count &&
	       score->told * 4 >= count &&
	       (count >= ENOUGH || score->doubts == 0 || score->pointers > 0);
}

/*
 * Like is_accepted(), if few have pointers, and nothing else fits as many. Pointers with any target
 * count if the group is large.
 */
static bool is_accepted_alone(const struct score *score, size_t count, size_t other_right)
{
	return score->right * 100 >= count * 98 && score->exact * 10 >= count * 8 &&
	       score->confirmed >= ENOUGH && (score->told >= ENOUGH || count == SAMPLE) &&
	       other_right * 4 < score->right * 3;
}

/* True if the candidate fits most only where it is cut short, and the other one as a whole. */
static bool is_cut_rather(const struct score *score, const struct score *other)
{
	return score->parts * 2 > score->right && other->parts == 0 &&
	       other->right >= score->right && other->exact >= score->exact &&
	       other->told * 10 >= other->right * 9;
}

/* True if one candidate is right far more often than another one. */
static bool is_better(const struct score *score, const struct score *other)
{
	if (is_cut_rather(score, other) || is_cut_rather(other, score))
		return is_cut_rather(other, score);
	return score->exact > 2 * other->exact + 1 ||
	       (10 * score->exact >= 9 * other->exact &&
		(4 * score->pointers > 5 * other->pointers ||
		 (score->pointers >= other->pointers && 4 * score->doubts < other->doubts)));
}

/* True if a candidate competes with one that does not fit all of the group. */
static bool is_rival(const struct score *score, const struct score *best, size_t count,
		     bool is_headed)
{
	return is_accepted(score, count, is_headed) ||
	       (best->right * 100 < count * 98 && score->right * 2 >= best->right);
}

/*
 * True if a candidate says no more than a member of the union: it begins with that member, and
 * malloc rounds both to one size.
 */
static bool is_extended(const struct inference *inference, size_t number, size_t other)
{
	const struct score *scores = inference->scores.items;
	const type_number *types = inference->candidates.items;

	return number < inference->choice_count && scores[other].exact == scores[number].exact &&
	       scores[other].right == scores[number].right &&
	       !is_better(&scores[other], &scores[number]) &&
	       type_begins_with(inference->typing, types[other], types[number]);
}

bool inference_is_chosen(const struct inference *inference, size_t number, size_t count,
			 bool is_headed)
{
	const struct score *scores = inference->scores.items;

	if (!is_accepted(&scores[number], count, is_headed))
		return false;
	for (size_t i = 0; i < inference->scores.count; i++)
		if (i != number && is_rival(&scores[i], &scores[number], count, is_headed) &&
		    !is_better(&scores[number], &scores[i]) &&
		    (is_headed || !is_extended(inference, number, i)))
			return false;
	return true;
}

/* The first candidate that is accepted because nothing else comes near; their count: none is. */
static size_t choose_alone(const struct inference *inference, size_t count)
{
	const struct score *scores = inference->scores.items;
	size_t best = 0, next = 0, number = 0; /* how many are right of the best two */

	for (size_t i = 0; i < inference->scores.count; i++) {
		size_t right = scores[i].right;

		next = right > best ? best : right > next ? right : next;
		best = right > best ? right : best;
	}
	while (number < inference->scores.count &&
	       !is_accepted_alone(&scores[number], count,
				  scores[number].right == best ? next : best))
		number++;
	return number;
}

static size_t choose_accepted(const struct inference *inference, const struct group *group)
{
	size_t number = 0;

	while (number < inference->scores.count &&
	       !inference_is_chosen(inference, number, sample_size(group->count), group->is_headed))
		number++;
	return number;
}

struct error *inference_choose(struct inference *inference, const struct group *group,
			       type_number *ret)
{
	size_t count = sample_size(group->count), choice;
	bool is_any = false;

	*ret = NO_TYPE;
	inference->scores.count = 0;
	for (size_t i = 0; i < inference->candidates.count; i++) {
		struct score score;

		TRY(test_group(inference, group, inference->candidates.items[i], &score));
		TRY(array_append(&inference->scores, score));
		is_any |= is_accepted(&score, count, group->is_headed);
	}
	choice = is_any ? choose_accepted(inference, group) : choose_alone(inference, count);
	if (choice == inference->scores.count)
		return NULL;
	inference->chosen = inference->scores.items[choice];
	*ret = inference->candidates.items[choice];
	return NULL;
}

struct error *inference_choose_for_one(struct inference *inference, allocation_id id,
				       type_number *ret)
{
	struct score best = { 0 };
	bool is_rivalled = false;

	*ret = NO_TYPE;
	for (size_t i = 0; i < inference->candidates.count; i++) {
		type_number type = inference->candidates.items[i];
		struct score score = { 0 };
		enum type_fit fit;

		TRY(inference_test(inference, id, type, &score, &fit));
		if (!score.exact || !score.known || (*ret && is_better(&best, &score)))
			continue;
		is_rivalled = *ret && !is_better(&score, &best);
		best = score;
		*ret = type;
	}
	if (is_rivalled)
		*ret = NO_TYPE;
	return NULL;
}
