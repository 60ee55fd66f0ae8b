#include "analyzer/types/inference.h"

#include "analyzer/base/bytes.h"
#include "analyzer/base/macros.h"

enum {
	MOST_UNTYPED = 1 << 24,
	MOST_ROUNDS = 12,
};

static void inference_deinit(struct inference *inference)
{
	casts_deinit(&inference->casts);
	arrays_release(&inference->untyped, &inference->embedded, &inference->candidates,
		       &inference->rivals, &inference->scores, &inference->heirs,
		       &inference->structures, &inference->sized, &inference->with_member);
	tables_release(&inference->windows, &inference->headers, &inference->groups);
	votes_release(&inference->votes);
}
DEFINE_DEINIT(inference_deinit, struct inference)

/*
 * True if all members of the structure are pointers to its own type: it is never allocated alone.
 */
static bool is_link(const struct typing *typing, const struct data_type *type)
{
	enum { MOST_LINKS = 3 };
	const struct type_member *members = type_members(typing->table, type);
	bool is_link = type->kind == TYPE_STRUCTURE && type->member_count > 0 &&
		       type->member_count <= MOST_LINKS;

	for (size_t i = 0; is_link && i < type->member_count; i++) {
		const struct data_type *member = typing_type(typing, members[i].type);

		is_link =
			member->kind == TYPE_POINTER && typing_type(typing, member->target) == type;
	}
	return is_link;
}

/* True if the block has more behind the value of the known type than malloc's rounding. */
static bool has_more_behind(const struct typing *typing, allocation_id id)
{
	enum type_fit fit = known_fit(typing, id);
	const struct data_type *type = typing_type(typing, known_type(typing, id));

	return (fit == FIT_PREFIX || fit == FIT_ONE) &&
	       allocation_size(typing->input.index, id) >=
		       type->size + (is_link(typing, type) ? 1 : 2) * typing->word;
}

/* True if a byte of its header may tell what follows the header. */
static bool has_tag(const struct typing *typing, allocation_id id)
{
	return tag_of(typing->table, typing_type(typing, known_type(typing, id))) != NO_TAG;
}

/* The static structure that a pointer beside the slot leads to, such as a table of operations; or
 * 0. */
uint64_t inference_kind_beside(const struct typing *typing, const struct slot *slot,
			       uint64_t address)
{
	uint64_t word;

	return slot->kind != NO_TAG && slot->kind != slot->offset &&
			       read_word(typing, address + slot->kind - slot->offset, &word) &&
			       address_map_find(&typing->variables, word) != NOT_IN_MAP
		       ? word
		       : 0;
}

/*
 * The byte that tells what the allocation is, as far as there is one: in it, or beside the slot. A
 * static structure to which a pointer beside the slot leads tells more.
 */
static uint64_t tag_for(struct typing *typing, allocation_id id, bool by_next)
{
	uint64_t address = allocation_start(typing->input.index, id);
	uint64_t kind = 0;
	uint8_t byte = 0;

	if (known_fit(typing, id) != FIT_NONE) {
		address += tag_of(typing->table, typing_type(typing, known_type(typing, id)));
	} else {
		type_number type;
		const struct slot *slot = inference_slot_to(typing, id, &address, &type);

		if (slot)
			kind = inference_kind_beside(typing, slot, address);
		if (!slot || slot->tag == NO_TAG)
			return kind;
		address += (uint64_t)(by_next ? slot->next_tag : slot->tag) - slot->offset;
	}
	return kind + (read_bytes(typing, address, &byte, 1) ? byte + 1U : 0);
}

/* The ballot that unions or headers with the same tag share. */
static struct ballot ballot_of(struct typing *typing, allocation_id id, bool by_next)
{
	struct ballot ballot = { .header = NO_TYPE };
	const struct slot *slot;
	uint64_t address;
	type_number type;

	if (known_fit(typing, id) != FIT_NONE)
		return ballot_of_header(typing, known_type(typing, id),
					allocation_start(typing->input.index, id));
	slot = inference_slot_to(typing, id, &address, &type);
	if (slot && slot->is_choice &&
	    (slot->tag != NO_TAG || inference_kind_beside(typing, slot, address)))
		ballot.hash = hash_add(hash_add(hash_add(1 + by_next, slot->member), slot->place),
				       tag_for(typing, id, by_next));
	return ballot;
}

/* The number of its group: by the first of it, so that groups come in an order of the program's. */
static struct error *find_group(struct inference *inference, allocation_id id, uint32_t *ret)
{
	const struct typing *typing = inference->typing;
	uint64_t hash = hash_add(hash_add(typing->contexts.items[id],
					  tag_for(inference->typing, id, inference->by_next_tag)),
				 known_type(typing, id));
	uint32_t known = address_map_find(&inference->groups, hash);

	*ret = known == NOT_IN_MAP ? (uint32_t)inference->groups.count : known;
	return known == NOT_IN_MAP ? address_map_add(&inference->groups, hash, *ret) : NULL;
}

/* Gather allocations without a type, and those of which only the beginning is known. */
static struct error *gather(struct inference *inference)
{
	struct typing *typing = inference->typing;

	inference->untyped.count = inference->embedded.count = 0;
	table_release(&inference->groups);
	bitmap_for_each(reached, &typing->reached) {
		const allocation_id id = (allocation_id)reached;
		uint32_t group;
		bool has_more;

		if (!has_step(typing, id) || (typing->allocations.items[id].type & IS_INFERRED) ||
		    typing_is_settled(typing, id))
			continue;
		has_more = has_more_behind(typing, id);
		if (known_fit(typing, id) == FIT_REGION ||
		    (has_more && (known_fit(typing, id) == FIT_PREFIX ||
				  is_link(typing, typing_type(typing, known_type(typing, id))))))
			TRY(inference_add_embedded(inference, id));
		if (known_fit(typing, id) != FIT_NONE && !(has_more && has_tag(typing, id)))
			continue;
		if (inference->untyped.count == MOST_UNTYPED) {
			typing_reach_limit(typing, "more than 16,777,216 allocations have no type");
			break;
		}
		TRY(find_group(inference, id, &group));
		TRY(array_append(
			&inference->untyped,
			(struct untyped){
				.group = group,
				.size = (uint32_t)(allocation_size(typing->input.index, id) /
						   typing->word),
				.id = id,
			}));
	}
	return NULL;
}

DEFINE_COMPARE(compare_untyped, struct untyped, ASCENDING(group), ASCENDING(size), ASCENDING(id))

static struct error *assign(struct inference *inference, allocation_id id, type_number type)
{
	struct score score = { 0 };
	enum type_fit fit;
	struct error *error = inference_test(inference, id, type, &score, &fit);

	if (error || fit == FIT_NONE || typing_is_denied(inference->typing, id, type))
		return error;
	return typing_set(inference->typing, id, type, fit, true);
}

struct error *inference_assign_group(struct inference *inference, const struct group *group,
				     type_number type)
{
	for (size_t i = 0; i < group->count; i++) {
		type_number chosen = type;

		if (type == NO_TYPE)
			TRY(inference_choose_for_one(inference, group->items[i].id, &chosen));
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
		    inference->scores.items[i].right * 100 >= sample_size(group->count) * percent)
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

	TRY(inference_choose(inference, group, ret));
	if (*ret != NO_TYPE)
		return group->is_headed ? NULL
					: votes_add(&inference->votes, ballot, *ret, group->count);
	elected = votes_elect(&inference->votes, ballot, &is_told);
	*ret = elect(inference, group, elected, is_told ? 50 : 98);
	return NULL;
}

/* Infer allocations of each size by themselves; the group is sorted by size. */
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
					     : inference_choose(inference, &part, &type));
		if (type != NO_TYPE || !group->is_headed)
			TRY(inference_assign_group(inference, &part, type));
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
			       : inference_assign_group(inference, group, type);
}

static struct error *infer_group(struct inference *inference, const struct group *group)
{
	struct typing *typing = inference->typing;
	const struct slot *slot;
	uint64_t address;
	type_number type;

	TRY(inference_gather_candidates(inference, group->items->id));
	if (inference->candidates.count > 0)
		return infer_candidates(inference, group);
	/* Without evidence, what calls return may be meant by "void *". */
	slot = inference_slot_to(typing, group->items->id, &address, &type);
	if (group->is_headed || !slot || typing_type(typing, slot->target)->kind != TYPE_NONE)
		return NULL;
	for (size_t i = 0; i < inference->casts.results.count; i++)
		TRY(inference_add_candidate(inference, inference->casts.results.items[i], false));
	TRY(inference_choose(inference, group, &type));
	if (type == NO_TYPE || (group->count < ENOUGH && inference->chosen.known == 0) ||
	    inference->chosen.doubts > inference->chosen.right)
		return NULL;
	return inference_assign_group(inference, group, type);
}

/* Headers with a known type vote for all others with the same tag. */
static struct error *vote(struct inference *inference, const struct group *group)
{
	type_number type;

	if (!group->is_headed)
		return NULL;
	TRY(inference_gather_candidates(inference, group->items->id));
	TRY(inference_choose(inference, group, &type));
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
		if (inference->tests > MOST_TESTS)
			break;
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

/*
 * An allocation with a header, and room for one of the structures that begin with it, is not just
 * the header, although malloc may have rounded so much.
 */
static struct error *doubt_headers(struct inference *inference)
{
	struct typing *typing = inference->typing;

	bitmap_for_each(reached, &typing->reached) {
		const allocation_id id = (allocation_id)reached;
		type_number known = known_type(typing, id);
		size_t i;

		if (known_fit(typing, id) != FIT_ONE ||
		    (typing->allocations.items[id].type & IS_INFERRED) ||
		    typing_is_settled(typing, id) || !has_more_behind(typing, id))
			continue;
		TRY(inference_find_heirs(inference, known, &i));
		for (; i < inference->heirs.count && inference->heirs.items[i].header == known; i++)
			if (typing_type(typing, inference->heirs.items[i].type)->size <=
			    allocation_size(typing->input.index, id))
				typing->allocations.items[id].type =
					known << TYPE_SHIFT | FIT_PREFIX;
	}
	return NULL;
}

struct error *typing_infer(struct typing *typing)
{
	struct memory_account *account = typing->input.account;
	_cleanup_(inference_deinit) struct inference inference = { .typing = typing };
	const struct casts_input input = {
		.image = typing->input.image,
		.debug = typing->input.debug,
		.types = typing->table,
		.slots = &typing->slots,
		.account = account,
		.progress = typing->input.progress,
	};
	struct error *error;

	arrays_use(account, &inference.untyped, &inference.embedded, &inference.candidates,
		   &inference.rivals, &inference.scores, &inference.heirs, &inference.structures,
		   &inference.sized, &inference.with_member, &inference.windows, &inference.headers,
		   &inference.groups, &inference.votes.all, &inference.votes.headers);
	error = gather(&inference);
	if (!error && (inference.untyped.count || typing->headed.count || typing->entered.count ||
		       typing->inner.count))
		error = casts_read(&inference.casts, &input);
	for (size_t i = 0; !error && i < MOST_ROUNDS; i++) {
		error = typing_find_containing(typing);
		if (!error)
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
		if (!error)
			error = infer_embedded(&inference);
		if (!error && typing->queued_from == typing->queue.count)
			error = infer_shapes(&inference);
		if (error || (typing->queued_from == typing->queue.count && !typing->places.count))
			break;
		error = typing_follow_queue(typing);
	}
	if (inference.tests > MOST_TESTS)
		typing_reach_limit(typing, "more than 67,108,864 comparisons with candidates");
	if (!error)
		error = infer_silent(typing);
	if (!error)
		error = infer_arrays(typing);
	return error ? error : doubt_headers(&inference);
}
