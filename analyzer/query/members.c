#include "analyzer/query/members.h"

struct error *members_init(struct members *members, size_t count, struct memory_account *account)
{
	*members = (struct members){
		.order.account = account,
		.comments.account = account,
		.states.account = account,
	};
	return bitmap_init(&members->set, count, account);
}

void members_deinit(struct members *members)
{
	bitmap_deinit(&members->set);
	memory_release(&members->order);
	memory_release(&members->comments);
	memory_release(&members->states);
}

struct error *members_append(struct members *members, allocation_id id)
{
	allocation_id *order;
	struct error *error =
		memory_reserve(&members->order, (members->order_count + 1) * sizeof(*order));

	if (error)
		return error;
	order = members->order.bytes;
	order[members->order_count++] = id;
	members->is_ordered = true;
	bitmap_set(&members->set, id);
	return NULL;
}

struct error *members_set_state(struct members *members, allocation_id id, uint16_t state)
{
	struct error *error = memory_reserve(&members->states, members->set.count * sizeof(state));

	if (!error)
		((uint16_t *)members->states.bytes)[id] = state;
	return error;
}

struct error *members_comment(struct members *members, struct member_comment comment)
{
	struct member_comment *comments;
	struct error *error = memory_reserve(&members->comments,
					     (members->comment_count + 1) * sizeof(*comments));

	if (error)
		return error;
	comment.position = members->order_count;
	comments = members->comments.bytes;
	comments[members->comment_count++] = comment;
	return NULL;
}

/* Which members a sample takes. */
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
	const allocation_id *order = members->order.bytes;
	struct sample sample = { .base = base, .wanted = 1 };
	struct bitmap *set = &members->set;

	for (size_t i = 0; members->is_ordered && i < members->order_count; i++)
		if (bitmap_get(set, order[i]))
			sample_next(&sample, set, order[i]);
	if (members->is_ordered)
		return;
	bitmap_for_each(id, set)
		sample_next(&sample, set, id);
}

struct error *members_add_comments(struct members *members, const struct members *others)
{
	const struct member_comment *comments = others->comments.bytes;
	struct error *error = NULL;

	for (size_t i = 0; !error && i < others->comment_count; i++)
		error = members_comment(members, comments[i]);
	return error;
}
