#include "analyzer/query/members.h"

struct error *members_init(struct members *members, size_t count,
			   struct memory_account *account)
{
	*members = (struct members){
		.order.account = account,
		.comments.account = account,
	};
	return bitmap_init(&members->set, count, account);
}

void members_deinit(struct members *members)
{
	bitmap_deinit(&members->set);
	memory_release(&members->order);
	memory_release(&members->comments);
}

struct error *members_append(struct members *members, allocation_id id)
{
	allocation_id *order;
	struct error *error = memory_reserve(
		&members->order, (members->order_count + 1) * sizeof(*order));

	if (error)
		return error;
	order = members->order.bytes;
	order[members->order_count++] = id;
	members->is_ordered = true;
	bitmap_set(&members->set, id);
	return NULL;
}

struct error *members_comment(struct members *members,
			      struct member_comment comment)
{
	struct member_comment *comments;
	struct error *error = memory_reserve(&members->comments,
					     (members->comment_count + 1) *
						     sizeof(*comments));

	if (error)
		return error;
	comment.position = members->order_count;
	comments = members->comments.bytes;
	comments[members->comment_count++] = comment;
	return NULL;
}
