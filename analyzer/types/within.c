#include "analyzer/types/inference.h"

#include "analyzer/base/bytes.h"

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

	return size <= headed->room && headed->room - size < MALLOC_UNIT;
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
 * True if it fills the room of most, as nothing else does, and its pointers' targets have exactly
 * the right size; some of its members may never have been written.
 */
static bool is_chosen_by_room(const struct inference *inference, size_t number, size_t count)
{
	const struct score *scores = inference->scores.items, *score = &scores[number];
	bool is_chosen = score->exact * 10 >= count * 7 && score->pointers >= count;

	for (size_t i = 0; i < inference->scores.count; i++)
		is_chosen &= i == number || scores[i].exact * 4 < score->exact;
	return is_chosen;
}

/* Infer the type that begins with the header of all these, which have the same tag. */
static struct error *infer_headed(struct inference *inference, const struct headed *first,
				  size_t count)
{
	size_t tested = sample_size(count);

	inference->candidates.count = inference->scores.count = 0;
	TRY(inference_add_heirs(inference, first->type));
	for (size_t i = 0; i < inference->candidates.count; i++) {
		struct score score = { 0 };

		for (size_t j = 0; j < tested; j++)
			TRY(test_region(inference, &first[j * count / tested],
					inference->candidates.items[i], &score));
		TRY(array_append(&inference->scores, score));
	}
	for (size_t i = 0; i < inference->candidates.count; i++) {
		if (!inference_is_chosen(inference, i, tested, false) &&
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
	uint64_t kind = 0;
	uint8_t byte = 0;

	if (tag != NO_TAG)
		read_bytes(inference->typing, inner->slot_address + tag - slot->offset, &byte, 1);
	if (slot)
		kind = inference_kind_beside(inference->typing, slot, inner->slot_address);
	/* Elements of one array have their tags at the same distance. */
	return hash_add(hash_add(inner->context, tag == NO_TAG ? tag : tag - slot->offset),
			kind + byte);
}

/* Test whether a value of the type is there, with all pointers right. */
static struct error *test_inner(struct inference *inference, const struct inner *inner,
				type_number type, struct score *score)
{
	struct typing *typing = inference->typing;
	const struct data_type *described = typing_type(typing, type);
	struct conformity conformity;

	inference->tests++;
	if (!is_aggregate(described) || described->size < 2 * typing->word ||
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
 * True if the candidate is right for nearly all, by pointers with narrow targets; or if it is the
 * member of the union that is, and no other one is for half of them.
 */
static bool is_chosen_within(const struct inference *inference, size_t number, size_t count)
{
	const struct score *scores = inference->scores.items, *score = &scores[number];
	bool is_alone = score->right * 100 >= count * 98 && score->confirmed * 2 >= count;

	/* Nothing may speak for another one if they are a few. */
	for (size_t i = 0; i < inference->choice_count; i++)
		is_alone &= i == number || (scores[i].right * 2 < count &&
					    (count >= ENOUGH || scores[i].confirmed == 0));
	is_alone &= number < inference->choice_count;
	return is_alone || (count >= ENOUGH && score->told * 2 >= count &&
			    inference_is_chosen(inference, number, count, false));
}

/* So many within blocks are enough to tell members of a union apart. */
enum { A_FEW = 3 };

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
	size_t tested = sample_size(count), chosen = 0;

	TRY(inference_gather_for_slot(
		inference, slot_at(&typing->slots, first->type, first->offset), first->type,
		first->slot_address, typing->paths.items[first->context].place));
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

struct error *infer_inner(struct inference *inference)
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
		if (next - i >= A_FEW && inference->tests <= MOST_TESTS)
			error = infer_inner_group(inference, &all[i], next - i);
	}
	array_release(&members.all);
	return error;
}

struct error *infer_regions(struct inference *inference)
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
