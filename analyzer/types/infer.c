#include "analyzer/types/typing_parts.h"

#include "analyzer/base/bytes.h"
#include "analyzer/base/macros.h"

/*
 * Allocations that the same members of the same variable lead to, beside the same tag, are most
 * likely of one type. What it may be is known by evidence in the code (casts.h), by the members of
 * the union, or by the header that it begins with. Of these candidates a type is accepted if it
 * alone looks right in nearly all of them.
 */

enum {
	MOST_UNTYPED = 1 << 24,
	MOST_CANDIDATES = 1 << 10,
	SAMPLE = 100, /* of a group */
	ENOUGH = 10,  /* of it, to say anything */
	MOST_ROUNDS = 12,
	MOST_TESTS = 1 << 26,
	MOST_HEADERS = 1 << 10,
};

struct untyped {
	uint64_t group; /* a hash of what all of it share */
	uint32_t size;	/* in words */
	allocation_id id;
};

/* All of one group, or those of one size. */
struct group {
	const struct untyped *items;
	size_t count;
	bool is_headed; /* of these the header is known */
};

/* A type that begins as another one does, which is its header. */
struct heir {
	type_number header, type;
};

/* How many of a sample a candidate fits. */
struct score {
	size_t right, confirmed, exact;
	size_t told;	 /* confirmed by more than "void *" and unions, which may lead anywhere */
	size_t known;	 /* pointers to what is known to be of the type that they say */
	size_t pointers; /* that lead to what is just as large as they say */
	size_t doubts;	 /* to what is larger */
};

struct inference {
	struct typing *typing;
	struct casts casts;
	ARRAY(struct untyped) untyped;
	ARRAY(type_number) candidates; /* of the group */
	size_t choice_count;	       /* of these, the first are members of the union */
	bool has_pointers;	       /* a member of the union leads to an array of pointers */
	bool is_named;		       /* the only one, by the tag */
	bool is_rivalled;	       /* one is a structure of nothing but pointers */
	bool by_next_tag;	       /* the second number beside a slot tells what it is */
	bool is_exact;		       /* one leads to what is just as large as it says */
	ARRAY(struct score) scores;    /* of the candidates */
	ARRAY(struct heir) heirs;
	struct address_map headers; /* by type: where its heirs begin, which are looked for once */
	struct votes votes;
	uint64_t tests; /* of an allocation and a candidate */
};

static void inference_deinit(struct inference *inference)
{
	casts_deinit(&inference->casts);
	array_release(&inference->untyped);
	array_release(&inference->candidates);
	array_release(&inference->scores);
	array_release(&inference->heirs);
	table_release(&inference->headers);
	votes_release(&inference->votes);
}
DEFINE_DEINIT(inference_deinit, struct inference)

/* The slot that led to the allocation, of a value of the type; NULL: its type is not known. */
static const struct slot *slot_to(struct typing *typing, allocation_id id, uint64_t *ret_address,
				  type_number *ret_type)
{
	const struct kept_step *step = &typing->steps.items[id];
	const struct origin *in_region;
	const struct data_type *type;
	allocation_id from;
	uint64_t offset;

	if (step->from == FROM_ORIGIN) {
		const struct origin *origin = &typing->origins.items[step->offset];

		*ret_address = origin->address;
		*ret_type = origin->type;
		return slot_at(&typing->slots, origin->type, origin->offset);
	}
	from = step->from - FROM_ALLOCATION;
	offset = (uint64_t)step->offset * sizeof(uint64_t);
	*ret_address = allocation_start(typing->input.index, from) + offset;
	in_region = table_find(&typing->region_slots, *ret_address, item,
			       item->address == *ret_address);
	if (in_region) {
		*ret_type = in_region->type;
		return slot_at(&typing->slots, in_region->type, in_region->offset);
	}
	*ret_type = known_type(typing, from);
	type = typing_type(typing, *ret_type);
	if (known_fit(typing, from) <= FIT_REGION || type->size == 0)
		return NULL;
	if (offset >= type->size && known_fit(typing, from) != FIT_ARRAY) {
		type_number whole = *ret_type;
		uint64_t tail;

		if (!type_find_tail(typing, whole, &tail, ret_type) || offset < tail ||
		    typing_type(typing, *ret_type)->size == 0)
			return NULL;
		return slot_at(&typing->slots, *ret_type,
			       (offset - tail) % typing_type(typing, *ret_type)->size);
	}
	return slot_at(&typing->slots, *ret_type,
		       known_fit(typing, from) == FIT_ARRAY ? offset % type->size : offset);
}

static bool has_more_behind(const struct typing *typing, allocation_id id)
{
	enum type_fit fit = known_fit(typing, id);

	return (fit == FIT_PREFIX || fit == FIT_ONE) &&
	       allocation_size(typing->input.index, id) >=
		       typing_type(typing, known_type(typing, id))->size + 2 * sizeof(uint64_t);
}

/*
 * Whether the type of the allocation may be but its header: there is more behind it, and a byte in
 * it that may say what.
 */
static bool may_be_headed(const struct typing *typing, allocation_id id)
{
	return has_more_behind(typing, id) &&
	       tag_of(typing->table, typing_type(typing, known_type(typing, id))) != NO_TAG;
}

/* The byte that tells what the allocation is, as far as there is one: in it, or beside the slot. */
static unsigned int tag_for(struct typing *typing, allocation_id id, bool by_next)
{
	uint64_t address = allocation_start(typing->input.index, id);
	uint8_t byte = 0;

	if (known_fit(typing, id) != FIT_NONE) {
		address += tag_of(typing->table, typing_type(typing, known_type(typing, id)));
	} else {
		type_number type;
		const struct slot *slot = slot_to(typing, id, &address, &type);

		if (!slot || slot->tag == NO_TAG)
			return 0;
		address += (uint64_t)(by_next ? slot->next_tag : slot->tag) - slot->offset;
	}
	return image_read(typing->input.image, address, &byte, 1) ? byte + 1U : 0;
}

/* What unions or headers share whose tag says the same of them. */
static struct ballot ballot_of(struct typing *typing, allocation_id id, bool by_next)
{
	struct ballot ballot = { .header = NO_TYPE };
	const struct slot *slot;
	uint64_t address;
	type_number type;

	if (known_fit(typing, id) != FIT_NONE)
		return ballot_of_header(typing, known_type(typing, id),
					allocation_start(typing->input.index, id));
	slot = slot_to(typing, id, &address, &type);
	if (slot && slot->is_choice && slot->tag != NO_TAG)
		ballot.hash =
			hash_add(hash_add(1 + by_next, slot->member), tag_for(typing, id, by_next));
	return ballot;
}

/* What nothing told the type of, and what only the beginning is known of. */
static struct error *gather(struct inference *inference)
{
	struct typing *typing = inference->typing;
	struct error *error = NULL;

	inference->untyped.count = 0;
	for (allocation_id id = 0; !error && id < typing->types.count; id++) {
		uint64_t hash;

		if (!has_step(typing, id) || (typing->types.items[id] & IS_INFERRED) ||
		    typing_is_stated(typing, id) ||
		    (known_fit(typing, id) != FIT_NONE && !may_be_headed(typing, id)))
			continue;
		if (inference->untyped.count == MOST_UNTYPED) {
			typing_reach_limit(typing, "more than 16,777,216 allocations have no type");
			break;
		}
		hash = hash_add(hash_add(typing->contexts.items[id],
					 tag_for(typing, id, inference->by_next_tag)),
				known_type(typing, id));
		error = array_append(
			&inference->untyped,
			(struct untyped){
				.group = hash,
				.size = (uint32_t)(allocation_size(typing->input.index, id) /
						   sizeof(uint64_t)),
				.id = id,
			});
	}
	return error;
}

DEFINE_COMPARE(compare_untyped, struct untyped, ASCENDING(group), ASCENDING(size), ASCENDING(id))

/* Whether it is a pointer of which arrays can be told from others by what they lead to. */
static bool is_telling_pointer(const struct typing *typing, const struct data_type *type)
{
	const struct data_type *target = typing_type(typing, type->target);

	return type->kind == TYPE_POINTER &&
	       (target->kind == TYPE_CHARACTER || (is_aggregate(target) && target->size));
}

static struct error *add_candidate(struct inference *inference, type_number type, bool is_choice)
{
	const struct data_type *described = typing_type(inference->typing, type);
	bool is_rivalled = false;

	if (is_choice && inference->candidates.count < MOST_CANDIDATES &&
	    (described->kind == TYPE_CHARACTER ||
	     is_telling_pointer(inference->typing, described))) {
		for (size_t i = 0; i < inference->candidates.count; i++)
			if (inference->candidates.items[i] == type)
				return NULL;
		return array_append(&inference->candidates, type);
	}
	if (!is_aggregate(described) || inference->candidates.count == MOST_CANDIDATES)
		return NULL;
	/* Memory cannot tell it from the array that another member of the union leads to. */
	if (inference->has_pointers)
		TRY(slots_are_all(&inference->typing->slots, type, &is_rivalled));
	inference->is_rivalled |= is_rivalled;
	if (is_rivalled)
		return NULL;
	for (size_t i = 0; i < inference->candidates.count; i++)
		if (inference->candidates.items[i] == type)
			return NULL;
	return array_append(&inference->candidates, type);
}

/* Memory does not tell arrays of pointers from a structure of them. */
static void drop_pointers(struct inference *inference)
{
	size_t kept = 0;

	for (size_t i = 0; i < inference->candidates.count; i++) {
		type_number type = inference->candidates.items[i];

		if (typing_type(inference->typing, type)->kind != TYPE_POINTER)
			inference->candidates.items[kept++] = type;
	}
	inference->candidates.count = kept;
}

static struct error *find_heirs(struct inference *inference, type_number header, size_t *ret)
{
	const struct typing *typing = inference->typing;
	uint32_t known = address_map_find(&inference->headers, header);
	struct error *error;

	*ret = known == NOT_IN_MAP ? inference->heirs.count : known;
	if (known != NOT_IN_MAP || inference->headers.count == MOST_HEADERS)
		return NULL;
	error = address_map_add(&inference->headers, header, (uint32_t)*ret);
	for (type_number i = 1; !error && i < type_count(typing->table); i++)
		if (type_begins_with(typing, i, header))
			error = array_append(&inference->heirs, (struct heir){ header, i });
	return error;
}

/*
 * The members of the union that the slot is in are candidates, or the one that the tag names. The
 * slot is of a value of the type, and its pointer stands at the address.
 */
static struct error *add_choices(struct inference *inference, const struct slot *slot,
				 type_number type, uint64_t address)
{
	struct typing *typing = inference->typing;
	const struct type_member *named;
	const struct slot *slots;
	size_t count;

	if (!slot || !slot->is_choice)
		return NULL;
	named = tag_names(typing, type, slot, address);
	if (named && typing_type(typing, named->type)->kind == TYPE_POINTER) {
		inference->is_named = true;
		return add_candidate(inference, typing_type(typing, named->type)->target, true);
	}
	TRY(slots_of(&typing->slots, type, &slots, &count));
	for (size_t i = 0; i < count; i++)
		if (slots[i].offset == slot->offset && slots[i].member == slot->member)
			inference->has_pointers |=
				typing_type(typing, slots[i].target)->kind == TYPE_POINTER;
	for (size_t i = 0; i < count; i++)
		if (slots[i].offset == slot->offset && slots[i].member == slot->member)
			TRY(add_candidate(inference, slots[i].target, true));
	if (inference->is_rivalled)
		drop_pointers(inference);
	return NULL;
}

static struct error *add_heirs(struct inference *inference, type_number header)
{
	size_t i;

	TRY(find_heirs(inference, header, &i));
	for (; i < inference->heirs.count && inference->heirs.items[i].header == header; i++)
		TRY(add_candidate(inference, inference->heirs.items[i].type, false));
	return NULL;
}

/* What the slot, which stands at that place, may lead to; and what begins with such a candidate. */
static struct error *gather_for_slot(struct inference *inference, const struct slot *slot,
				     type_number type, uint64_t address, uint32_t place)
{
	const struct cast *casts;
	size_t count;

	inference->candidates.count = inference->choice_count = 0;
	inference->has_pointers = inference->is_named = inference->is_rivalled = false;
	TRY(add_choices(inference, slot, type, address));
	inference->choice_count = inference->candidates.count;
	if (inference->is_named)
		return NULL;
	count = casts_of(&inference->casts, place, &casts);
	for (size_t i = 0; i < count; i++)
		TRY(add_candidate(inference, casts[i].type, false));
	count = inference->candidates.count;
	for (size_t i = 0; i < count; i++)
		TRY(add_heirs(inference, inference->candidates.items[i]));
	return NULL;
}

/* Of a group, by one of it. */
static struct error *gather_candidates(struct inference *inference, allocation_id id)
{
	struct typing *typing = inference->typing;
	uint32_t place = typing->paths.items[typing->contexts.items[id]].place;
	const struct slot *slot;
	uint64_t address = 0;
	type_number type = NO_TYPE;

	inference->candidates.count = inference->choice_count = 0;
	inference->has_pointers = false;
	if (known_fit(typing, id) != FIT_NONE)
		return add_heirs(inference, known_type(typing, id));
	slot = slot_to(typing, id, &address, &type);
	return gather_for_slot(inference, slot, type, address, place);
}

/* Whether it may be what a member of the union leads to, cut short: a rival of what fits. */
static struct error *test_part(const struct inference *inference, struct memory_range range,
			       type_number type, struct score *score, enum type_fit *ret_fit)
{
	struct typing *typing = inference->typing;
	bool is_choice = false;
	uint64_t part;

	for (size_t i = 0; i < inference->choice_count; i++)
		is_choice |= inference->candidates.items[i] == type;
	if (!is_choice)
		return NULL;
	TRY(typing_find_cut(typing, range, type, &part));
	if (!part)
		return NULL;
	*ret_fit = FIT_PART;
	score->right++;
	score->confirmed++;
	score->told++;
	score->exact++;
	return NULL;
}

/* Text, or an array of pointers, each to what it should. */
static struct error *test_elements(struct typing *typing, struct memory_range range,
				   type_number type, struct score *score, enum type_fit *ret_fit)
{
	bool is_character = typing_type(typing, type)->kind == TYPE_CHARACTER;
	struct conformity conformity = { .is_violated = !is_text(typing, range.start) };

	if (is_character)
		conformity.confirmed = is_filled_with_text(typing, range, range.start);
	else
		TRY(typing_conforms_pointers(typing, range, type, &conformity));
	if (conformity.is_violated)
		return NULL;
	*ret_fit = FIT_ARRAY;
	score->right++;
	score->confirmed += conformity.confirmed > 0;
	score->told += conformity.confirmed > 0;
	score->exact += conformity.confirmed > 0 || !is_character;
	score->known += conformity.known;
	return NULL;
}

/* Whether the allocation may be of the type: it fits as one value, or with a tail, and conforms. */
static struct error *test_one(const struct inference *inference, allocation_id id, type_number type,
			      struct score *score, enum type_fit *ret_fit)
{
	struct typing *typing = inference->typing;
	struct memory_range range = range_of(typing, id);
	struct conformity conformity, behind = { .is_violated = false };
	enum type_fit fit = typing_fit_of_one(typing, range, type);

	*ret_fit = FIT_NONE;
	if (!is_aggregate(typing_type(typing, type)))
		return test_elements(typing, range, type, score, ret_fit);
	if (votes_refute(typing, &inference->votes, range.start, type))
		return NULL;
	if (fit == FIT_NONE)
		return test_part(inference, range, type, score, ret_fit);
	TRY(typing_conforms(typing, range.start, type, &conformity));
	if (!conformity.is_violated)
		TRY(typing_conforms_behind(typing, range, type, &behind));
	if (conformity.is_violated || behind.is_violated)
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
			is_just_as_large(range, typing_type(typing, type)->size);
	score->pointers += conformity.exact;
	score->doubts += conformity.doubtful + behind.doubtful;
	return NULL;
}

static size_t sample_size(const struct group *group)
{
	return group->count < SAMPLE ? group->count : SAMPLE;
}

static allocation_id sample_of(const struct group *group, size_t number)
{
	return group->items[number * group->count / sample_size(group)].id;
}

static struct error *test_group(struct inference *inference, const struct group *group,
				type_number type, struct score *ret)
{
	struct error *error = NULL;
	enum type_fit fit;

	*ret = (struct score){ 0 };
	for (size_t i = 0; !error && i < sample_size(group); i++) {
		/* It cannot be accepted any more, nor come near to what is. */
		if (i >= ENOUGH && ret->right * 4 < i)
			break;
		inference->tests++;
		error = test_one(inference, sample_of(group, i), type, ret, &fit);
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
 * The same where few have pointers, and nothing else fits as many. Pointers that may lead anywhere
 * count where the group is large.
 */
static bool is_accepted_alone(const struct score *score, size_t count, size_t other_right)
{
	return score->right * 100 >= count * 98 && score->exact * 10 >= count * 8 &&
	       score->confirmed >= ENOUGH && (score->told >= ENOUGH || count == SAMPLE) &&
	       other_right * 4 < score->right * 3;
}

/* Whether one candidate is right for far more than another one. */
static bool is_better(const struct score *score, const struct score *other)
{
	return score->exact > 2 * other->exact + 1 ||
	       (10 * score->exact >= 9 * other->exact &&
		(4 * score->pointers > 5 * other->pointers ||
		 (score->pointers >= other->pointers && 4 * score->doubts < other->doubts)));
}

/* Whether a candidate is a match for one that not all of the group look like. */
static bool is_rival(const struct score *score, const struct score *best, size_t count,
		     bool is_headed)
{
	return is_accepted(score, count, is_headed) ||
	       (best->right * 100 < count * 98 && score->right * 2 >= best->right);
}

/* Whether the candidate of that number is accepted, and better than all rivals. */
static bool is_chosen(const struct inference *inference, size_t number, size_t count,
		      bool is_headed)
{
	const struct score *scores = inference->scores.items;

	if (!is_accepted(&scores[number], count, is_headed))
		return false;
	for (size_t i = 0; i < inference->scores.count; i++)
		if (i != number && is_rival(&scores[i], &scores[number], count, is_headed) &&
		    !is_better(&scores[number], &scores[i]))
			return false;
	return true;
}

/* Whether it is accepted because nothing else comes near. */
static bool is_chosen_alone(const struct inference *inference, size_t number, size_t count)
{
	const struct score *scores = inference->scores.items;
	size_t other_right = 0;

	for (size_t i = 0; i < inference->scores.count; i++)
		if (i != number && scores[i].right > other_right)
			other_right = scores[i].right;
	return is_accepted_alone(&scores[number], count, other_right);
}

/* The candidate of the group, or NO_TYPE. */
static struct error *choose(struct inference *inference, const struct group *group,
			    type_number *ret)
{
	bool is_headed = group->is_headed;
	size_t count = sample_size(group), choice;
	bool is_any = false;

	*ret = NO_TYPE;
	inference->scores.count = 0;
	for (size_t i = 0; i < inference->candidates.count; i++) {
		struct score score;

		TRY(test_group(inference, group, inference->candidates.items[i], &score));
		TRY(array_append(&inference->scores, score));
		is_any |= is_accepted(&score, count, is_headed);
	}
	choice = inference->scores.count;
	for (size_t i = 0; i < inference->scores.count && choice == inference->scores.count; i++)
		if (is_any ? is_chosen(inference, i, count, is_headed)
			   : is_chosen_alone(inference, i, count))
			choice = i;
	if (choice == inference->scores.count)
		return NULL;
	inference->is_exact = inference->scores.items[choice].pointers > 0;
	*ret = inference->candidates.items[choice];
	return NULL;
}

/*
 * The candidate that is just as large as the allocation, refers to a structure that is just as
 * large as it says, and is better than all others.
 */
static struct error *choose_for_one(struct inference *inference, allocation_id id, type_number *ret)
{
	struct score best = { 0 };
	bool is_rivalled = false;

	*ret = NO_TYPE;
	for (size_t i = 0; i < inference->candidates.count; i++) {
		type_number type = inference->candidates.items[i];
		struct score score = { 0 };
		enum type_fit fit;

		TRY(test_one(inference, id, type, &score, &fit));
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

static struct error *assign(struct inference *inference, allocation_id id, type_number type)
{
	struct score score = { 0 };
	enum type_fit fit;
	struct error *error = test_one(inference, id, type, &score, &fit);

	if (error || fit == FIT_NONE || typing_is_denied(inference->typing, id, type))
		return error;
	return typing_set(inference->typing, id, type, fit, true);
}

/* Assign what was chosen, or what each by itself can only be. */
static struct error *assign_group(struct inference *inference, const struct group *group,
				  type_number type)
{
	for (size_t i = 0; i < group->count; i++) {
		type_number chosen = type;

		if (type == NO_TYPE)
			TRY(choose_for_one(inference, group->items[i].id, &chosen));
		if (chosen != NO_TYPE)
			TRY(assign(inference, group->items[i].id, chosen));
	}
	return NULL;
}

/* The candidate that the same tag stands for elsewhere, if so many percent look like it. */
static type_number elect(const struct inference *inference, const struct group *group,
			 type_number elected, size_t percent)
{
	for (size_t i = 0; i < inference->scores.count; i++)
		if (inference->candidates.items[i] == elected &&
		    inference->scores.items[i].right * 100 >= sample_size(group) * percent)
			return elected;
	return NO_TYPE;
}

/*
 * The candidate of the group, or NO_TYPE. Where tags of a header tell types apart, half of the
 * group may have members that were never written.
 */
static struct error *choose_by_tag(struct inference *inference, const struct group *group,
				   struct ballot ballot, type_number *ret)
{
	bool is_told;
	type_number elected;

	TRY(choose(inference, group, ret));
	if (*ret != NO_TYPE)
		return group->is_headed ? NULL
					: votes_add(&inference->votes, ballot, *ret, group->count);
	elected = votes_elect(&inference->votes, ballot, &is_told);
	*ret = elect(inference, group, elected, is_told ? 50 : 98);
	return NULL;
}

/* The same for those of each size, by which the group is sorted. */
static struct error *infer_sizes(struct inference *inference, const struct group *group,
				 struct ballot ballot)
{
	for (size_t i = 0, next; i < group->count; i = next) {
		struct group part = { group->items + i, 0, group->is_headed };
		type_number type = NO_TYPE;

		for (next = i; next < group->count && group->items[next].size == part.items->size;
		     next++)
			part.count++;
		if (part.count >= ENOUGH)
			TRY(group->is_headed ? choose_by_tag(inference, &part, ballot, &type)
					     : choose(inference, &part, &type));
		if (type != NO_TYPE || !group->is_headed)
			TRY(assign_group(inference, &part, type));
	}
	return NULL;
}

static struct error *infer_candidates(struct inference *inference, const struct group *group)
{
	struct ballot ballot =
		ballot_of(inference->typing, group->items->id, inference->by_next_tag);
	type_number type;

	TRY(choose_by_tag(inference, group, ballot, &type));
	return type == NO_TYPE ? infer_sizes(inference, group, ballot)
			       : assign_group(inference, group, type);
}

static struct error *infer_group(struct inference *inference, const struct group *group)
{
	struct typing *typing = inference->typing;
	const struct slot *slot;
	uint64_t address;
	type_number type;

	TRY(gather_candidates(inference, group->items->id));
	if (inference->candidates.count > 0)
		return infer_candidates(inference, group);
	/* Without evidence, what calls return may be meant by "void *". */
	slot = slot_to(typing, group->items->id, &address, &type);
	if (group->is_headed || !slot || typing_type(typing, slot->target)->kind != TYPE_NONE)
		return NULL;
	for (size_t i = 0; i < inference->casts.results.count; i++)
		TRY(add_candidate(inference, inference->casts.results.items[i], false));
	TRY(choose(inference, group, &type));
	if (type == NO_TYPE || (group->count < ENOUGH && !inference->is_exact))
		return NULL;
	return assign_group(inference, group, type);
}

/* What headers with each tag are of, as far as that is known, speaks for all others with it. */
static struct error *vote(struct inference *inference, const struct group *group)
{
	type_number type;

	if (!group->is_headed)
		return NULL;
	TRY(gather_candidates(inference, group->items->id));
	TRY(choose(inference, group, &type));
	return type == NO_TYPE ? NULL
			       : votes_add(&inference->votes,
					   ballot_of(inference->typing, group->items->id, false),
					   type, group->count);
}

static struct error *for_each_group(struct inference *inference,
				    struct error *(*visit)(struct inference *inference,
							   const struct group *group))
{
	struct error *error = NULL;

	for (size_t i = 0, next; !error && i < inference->untyped.count; i = next) {
		const struct untyped *first = &inference->untyped.items[i];

		for (next = i + 1; next < inference->untyped.count &&
				   inference->untyped.items[next].group == first->group;
		     next++)
			;
		if (!progress_step(inference->typing->input.progress, 0))
			return error_create(ERROR_INTERRUPTED, "interrupted");
		if (inference->tests > MOST_TESTS) {
			typing_reach_limit(inference->typing,
					   "more than 67,108,864 comparisons with candidates");
			break;
		}
		error = visit(inference, &(struct group){ first, next - i,
							  known_fit(inference->typing, first->id) !=
								  FIT_NONE });
	}
	return error;
}

static struct error *infer_all(struct inference *inference)
{
	TRY(gather(inference));
	array_sort(&inference->untyped, compare_untyped);
	TRY(for_each_group(inference, vote));
	return for_each_group(inference, infer_group);
}

/* ---- headers within blocks */

DEFINE_COMPARE(compare_addresses, struct headed, ASCENDING(type), ASCENDING(address))
DEFINE_COMPARE(compare_headed, struct headed, ASCENDING(type), ASCENDING(tag), ASCENDING(address))

/* How much room each has up to the next of its type, or the end of the block. */
static void measure_rooms(struct typing *typing)
{
	const struct headed *next = NULL;

	array_sort(&typing->headed, compare_addresses);
	for (size_t i = typing->headed.count; i-- > 0;) {
		struct headed *headed = &typing->headed.items[i];
		uint64_t end = range_of(typing, headed->in).end;

		if (next && next->type == headed->type && next->address < end)
			end = next->address;
		headed->room = end - headed->address;
		next = headed;
	}
}

static bool fills_room(const struct inference *inference, const struct headed *headed,
		       type_number type)
{
	uint64_t size = typing_type(inference->typing, type)->size;

	return size <= headed->room && headed->room - size < 2 * sizeof(uint64_t);
}

static struct error *test_region(struct inference *inference, const struct headed *headed,
				 type_number type, struct score *score)
{
	struct conformity conformity;

	inference->tests++;
	if (typing_type(inference->typing, type)->size > headed->room)
		return NULL;
	TRY(typing_conforms(inference->typing, headed->address, type, &conformity));
	if (conformity.is_violated)
		return NULL;
	score->right++;
	score->exact += fills_room(inference, headed, type);
	score->confirmed += conformity.confirmed > 0;
	score->pointers += conformity.exact;
	score->doubts += conformity.doubtful;
	return NULL;
}

/*
 * Whether it fills the room of most, as nothing else does, and has pointers that lead to what is
 * just as large; some of its members may never have been written.
 */
static bool is_chosen_by_room(const struct inference *inference, size_t number, size_t count)
{
	const struct score *scores = inference->scores.items, *score = &scores[number];
	bool is_chosen = score->exact * 10 >= count * 7 && score->pointers >= count;

	for (size_t i = 0; i < inference->scores.count; i++)
		is_chosen &= i == number || scores[i].exact * 4 < score->exact;
	return is_chosen;
}

/* What begins with the header of all these, which have the same tag. */
static struct error *infer_headed(struct inference *inference, const struct headed *first,
				  size_t count)
{
	size_t tested = count < SAMPLE ? count : SAMPLE;

	inference->candidates.count = inference->scores.count = 0;
	TRY(add_heirs(inference, first->type));
	for (size_t i = 0; i < inference->candidates.count; i++) {
		struct score score = { 0 };

		for (size_t j = 0; j < tested; j++)
			TRY(test_region(inference, &first[j * count / tested],
					inference->candidates.items[i], &score));
		TRY(array_append(&inference->scores, score));
	}
	for (size_t i = 0; i < inference->candidates.count; i++) {
		if (!is_chosen(inference, i, tested, false) &&
		    !is_chosen_by_room(inference, i, tested))
			continue;
		for (size_t j = 0; j < count; j++)
			if (fills_room(inference, &first[j], inference->candidates.items[i]))
				TRY(typing_add_region(inference->typing, &first[j],
						      inference->candidates.items[i]));
		break;
	}
	return NULL;
}

/* ---- what pointers without types lead to within blocks */

static uint64_t inner_group(const struct inference *inference, const struct inner *inner,
			    const struct slot *slot)
{
	uint32_t tag = !slot ? NO_TAG : inference->by_next_tag ? slot->next_tag : slot->tag;
	uint8_t byte = 0;

	if (tag != NO_TAG)
		image_read(inference->typing->input.image, inner->slot_address + tag - slot->offset,
			   &byte, 1);
	return hash_add(hash_add(inner->context, tag), byte);
}

/* Whether one of the type stands there, and all of its pointers are right. */
static struct error *test_inner(struct inference *inference, const struct inner *inner,
				type_number type, struct score *score)
{
	struct typing *typing = inference->typing;
	const struct data_type *described = typing_type(typing, type);
	struct conformity conformity;

	inference->tests++;
	if (!is_aggregate(described) || described->size < 2 * sizeof(uint64_t) ||
	    described->size > range_of(typing, inner->in).end - inner->address)
		return NULL;
	TRY(typing_conforms(typing, inner->address, type, &conformity));
	if (conformity.is_violated)
		return NULL;
	score->right++;
	score->exact++;
	score->confirmed += conformity.confirmed > 0;
	score->told += conformity.confirmed > conformity.vague;
	score->known += conformity.known;
	score->pointers += conformity.exact;
	score->doubts += conformity.doubtful;
	return NULL;
}

/*
 * Whether the candidate is right for nearly all, as pointers say that cannot lead just anywhere;
 * or it is the member of the union that is, and no other one is for half of them.
 */
static bool is_chosen_within(const struct inference *inference, size_t number, size_t count)
{
	const struct score *scores = inference->scores.items, *score = &scores[number];
	bool is_alone = score->right * 100 >= count * 98 && score->confirmed * 2 >= count;

	for (size_t i = 0; i < inference->choice_count; i++)
		is_alone &= i == number || scores[i].right * 2 < count;
	is_alone &= number < inference->choice_count;
	return is_alone || (score->told * 2 >= count && is_chosen(inference, number, count, false));
}

struct inner_member {
	uint64_t group;
	uint32_t number; /* of the inner one */
};

struct inner_members {
	ARRAY(struct inner_member) all;
};

DEFINE_COMPARE(compare_inner, struct inner_member, ASCENDING(group), ASCENDING(number))

/* All these, which the same pointers beside the same tag lead to, are what all of them look like.
 */
static struct error *infer_inner_group(struct inference *inference,
				       const struct inner_member *members, size_t count)
{
	struct typing *typing = inference->typing;
	struct inner *first = &typing->inner.items[members->number];
	size_t tested = count < SAMPLE ? count : SAMPLE, chosen = 0;

	TRY(gather_for_slot(inference, slot_at(&typing->slots, first->type, first->offset),
			    first->type, first->slot_address,
			    typing->paths.items[first->context].place));
	inference->scores.count = 0;
	for (size_t i = 0; i < inference->candidates.count; i++) {
		struct score score = { 0 };

		for (size_t j = 0; j < tested; j++)
			TRY(test_inner(inference,
				       &typing->inner.items[members[j * count / tested].number],
				       inference->candidates.items[i], &score));
		TRY(array_append(&inference->scores, score));
	}
	while (chosen < inference->scores.count && !is_chosen_within(inference, chosen, tested))
		chosen++;
	for (size_t j = 0; chosen < inference->scores.count && j < count; j++) {
		struct inner *inner = &typing->inner.items[members[j].number];
		const struct headed found = { .address = inner->address,
					      .in = inner->in,
					      .step = inner->step,
					      .context = inner->context };
		struct score score = { 0 };

		TRY(test_inner(inference, inner, inference->candidates.items[chosen], &score));
		inner->is_known |= score.right > 0;
		if (score.right)
			TRY(typing_add_region(typing, &found, inference->candidates.items[chosen]));
	}
	return NULL;
}

static struct error *sort_inner(struct inference *inference, struct inner_members *ret)
{
	struct typing *typing = inference->typing;

	for (size_t i = 0; i < typing->inner.count; i++) {
		const struct inner *inner = &typing->inner.items[i];

		if (!inner->is_known)
			TRY(array_append(&ret->all,
					 (struct inner_member){
						 inner_group(inference, inner,
							     slot_at(&typing->slots, inner->type,
								     inner->offset)),
						 (uint32_t)i }));
	}
	array_sort(&ret->all, compare_inner);
	return NULL;
}

static struct error *infer_inner(struct inference *inference)
{
	struct inner_members members = {
		.all.memory.account = inference->typing->input.account,
	};
	struct error *error = sort_inner(inference, &members);
	const struct inner_member *all = members.all.items;
	size_t count = members.all.count;

	for (size_t i = 0, next; !error && i < count; i = next) {
		for (next = i + 1; next < count && all[next].group == all[i].group; next++)
			;
		if (next - i >= ENOUGH && inference->tests <= MOST_TESTS)
			error = infer_inner_group(inference, &all[i], next - i);
	}
	array_release(&members.all);
	return error;
}

static struct error *infer_regions(struct inference *inference)
{
	struct typing *typing = inference->typing;
	const struct headed *headed;

	measure_rooms(typing);
	array_sort(&typing->headed, compare_headed);
	headed = typing->headed.items;
	for (size_t i = 0, next; i < typing->headed.count; i = next) {
		for (next = i + 1;
		     next < typing->headed.count && headed[next].type == headed[i].type &&
		     headed[next].tag == headed[i].tag;
		     next++)
			;
		if (next - i >= ENOUGH && inference->tests <= MOST_TESTS)
			TRY(infer_headed(inference, &headed[i], next - i));
	}
	return NULL;
}

/*
 * What has a header and room for one of the structures that begin with it is not just the header,
 * though malloc may have left so much of it.
 */
static struct error *doubt_headers(struct inference *inference)
{
	struct typing *typing = inference->typing;

	for (allocation_id id = 0; id < typing->types.count; id++) {
		type_number known = known_type(typing, id);
		size_t i;

		if (known_fit(typing, id) != FIT_ONE || (typing->types.items[id] & IS_INFERRED) ||
		    typing_is_stated(typing, id) || !has_more_behind(typing, id))
			continue;
		TRY(find_heirs(inference, known, &i));
		for (; i < inference->heirs.count && inference->heirs.items[i].header == known; i++)
			if (typing_type(typing, inference->heirs.items[i].type)->size <=
			    allocation_size(typing->input.index, id))
				typing->types.items[id] = known << TYPE_SHIFT | FIT_PREFIX;
	}
	return NULL;
}

struct error *typing_infer(struct typing *typing)
{
	struct memory_account *account = typing->input.account;
	_cleanup_(inference_deinit) struct inference inference = {
		.typing = typing,
		.untyped.memory.account = account,
		.candidates.memory.account = account,
		.scores.memory.account = account,
		.heirs.memory.account = account,
		.headers.memory.account = account,
		.votes.all.memory.account = account,
		.votes.headers.memory.account = account,
	};
	const struct casts_input input = {
		.image = typing->input.image,
		.debug = typing->input.debug,
		.types = typing->table,
		.slots = &typing->slots,
		.account = account,
		.progress = typing->input.progress,
	};
	struct error *error = gather(&inference);

	if (error || (inference.untyped.count == 0 && typing->headed.count == 0 &&
		      typing->entered.count == 0 && typing->inner.count == 0))
		return error;
	error = casts_read(&inference.casts, &input);
	for (size_t i = 0; !error && i < MOST_ROUNDS; i++) {
		error = typing_search_inside(typing, &inference.casts);
		if (!error)
			error = infer_all(&inference);
		if (!error)
			error = infer_inner(&inference);
		inference.by_next_tag = true;
		if (!error && typing->queued_from == typing->queue.count)
			error = infer_all(&inference);
		if (!error)
			error = infer_inner(&inference);
		inference.by_next_tag = false;
		if (!error)
			error = infer_regions(&inference);
		if (error || (typing->queued_from == typing->queue.count && !typing->places.count))
			break;
		error = typing_follow_queue(typing);
	}
	return error ? error : doubt_headers(&inference);
}
