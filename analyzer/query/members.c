#include "analyzer/query/members.h"

struct error *members_init(struct members *members, size_t count, struct memory_account *account)
{
	*members = (struct members){
		.order.memory.account = account,
		.comments.memory.account = account,
		.states.memory.account = account,
	};
	return bitmap_init(&members->set, count, account);
}

void members_deinit(struct members *members)
{
	bitmap_deinit(&members->set);
	arrays_release(&members->order, &members->comments, &members->states);
}

struct error *members_append(struct members *members, allocation_id id)
{
	TRY(array_append(&members->order, id));
	members->is_ordered = true;
	bitmap_set(&members->set, id);
	return NULL;
}

struct error *members_set_state(struct members *members, allocation_id id, uint16_t state)
{
	TRY(array_reserve(&members->states, members->set.count));
	members->states.items[id] = state;
	return NULL;
}

struct error *members_comment(struct members *members, struct member_comment comment)
{
	comment.position = members->order.count;
	return array_append(&members->comments, comment);
}

/* Selects the members of a sample. */
struct sample {
	uint64_t base, number, wanted;
};

static void sample_next(struct sample *sample, struct bitmap *set, size_t id)
{
	if (++sample->number != sample->wanted)
		bitmap_clear(set, id);
	else if (sample->wanted <= UINT64_MAX / sample->base)
		sample->wanted *= sample->base;
}

void members_sample(struct members *members, uint64_t base)
{
	const allocation_id *order = members->order.items;
	struct sample sample = { .base = base, .wanted = 1 };
	struct bitmap *set = &members->set;

	for (size_t i = 0; members->is_ordered && i < members->order.count; i++)
		if (bitmap_get(set, order[i]))
			sample_next(&sample, set, order[i]);
	if (members->is_ordered)
		return;
	bitmap_for_each(id, set)
		sample_next(&sample, set, id);
}

struct error *members_add_comments(struct members *members, const struct members *others)
{
	const struct member_comment *comments = others->comments.items;

	for (size_t i = 0; i < others->comments.count; i++)
		TRY(members_comment(members, comments[i]));
	return NULL;
}
