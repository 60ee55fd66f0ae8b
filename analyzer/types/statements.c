#include "analyzer/types/typing_parts.h"

#include "analyzer/base/sort.h"

static const struct type_statement *find_first(const struct typing *typing, allocation_id id)
{
	const struct type_statement *items = typing->statements.items;

	return items + BISECT(i, 0, typing->statements.count, items[i].id < id);
}

/* True if there is such a statement; NO_TYPE: of any type. */
static bool has_statement(const struct typing *typing, allocation_id id, type_number type,
			  bool is_denied)
{
	const struct type_statement *statement, *end;

	/* Nearly always. */
	if (typing->statements.count == 0)
		return false;
	end = typing->statements.items + typing->statements.count;
	for (statement = find_first(typing, id); statement < end && statement->id == id;
	     statement++)
		if (statement->is_denied == is_denied && (!type || statement->type == type))
			return true;
	return false;
}

bool typing_is_stated(const struct typing *typing, allocation_id id)
{
	return has_statement(typing, id, NO_TYPE, false);
}

bool typing_is_denied(const struct typing *typing, allocation_id id, type_number number)
{
	return has_statement(typing, id, number, true);
}

/* The types found for all allocations, under these statements. */
struct found {
	ARRAY(struct known_allocation) allocations;
	struct bitmap reached;
	ARRAY(struct kept_step) far_steps;
	ARRAY(struct origin) origins;
	ARRAY(struct type_statement) statements;
	struct region_values values;
	size_t count;
	const char *limit;
};

static void found_deinit(struct found *found)
{
	array_release(&found->allocations);
	bitmap_deinit(&found->reached);
	arrays_release(&found->far_steps, &found->origins, &found->statements);
	table_release(&found->values);
}
DEFINE_DEINIT(found_deinit, struct found)

static void swap_found(struct typing *typing, struct found *found)
{
	struct region_values values = typing->values;
	struct bitmap reached = typing->reached;
	size_t count = typing->count;
	const char *limit = typing->limit;

	array_swap(&typing->allocations, &found->allocations);
	array_swap(&typing->far_steps, &found->far_steps);
	array_swap(&typing->origins, &found->origins);
	array_swap(&typing->statements, &found->statements);
	typing->values = found->values;
	typing->reached = found->reached;
	typing->count = found->count;
	typing->limit = found->limit;
	found->values = values;
	found->reached = reached;
	found->count = count;
	found->limit = limit;
}

/* One statement per (allocation, type), and one type per allocation. */
static bool is_replaced(const struct type_statement *old, const struct type_statement *by)
{
	return old->id == by->id && (old->type == by->type || (!old->is_denied && !by->is_denied));
}

/* Copy the statements, and the new one to its place; or without the one that it withdraws. */
static struct error *add_statement(const struct typing *typing, const struct type_statement *added,
				   struct found *found)
{
	bool is_added = added->is_denied && has_statement(typing, added->id, added->type, false);

	array_for_each(old, &typing->statements) {
		if (!is_added && old->id > added->id) {
			TRY(array_append(&found->statements, *added));
			is_added = true;
		}
		if (!is_replaced(old, added))
			TRY(array_append(&found->statements, *old));
	}
	return is_added ? NULL : array_append(&found->statements, *added);
}

static struct type_changes compare(const struct typing *typing, const struct found *before,
				   allocation_id except)
{
	struct type_changes changes = { 0, 0 };

	for (allocation_id id = 0; id < typing->allocations.count; id++) {
		uint32_t old = before->allocations.items[id].type,
			 now = typing->allocations.items[id].type;
		struct typed typed;

		if (old == now || id == except)
			continue;
		if (typing_decode(typing, now, &typed))
			changes.typed += (old ^ now) != IS_INFERRED;
		else
			changes.untyped += typing_decode(typing, old, &typed);
	}
	return changes;
}

struct error *typing_state(struct typing *typing, const struct type_statement *statement,
			   struct type_changes *ret)
{
	struct memory_account *account = typing->input.account;
	_cleanup_(found_deinit) struct found found = { 0 };
	struct error *error;

	arrays_use(account, &found.allocations, &found.far_steps, &found.origins, &found.statements,
		   &found.values);
	TRY(add_statement(typing, statement, &found));
	swap_found(typing, &found);
	error = typing_find_all(typing);
	typing_release_work(typing);
	if (error)
		swap_found(typing, &found);
	else
		*ret = compare(typing, &found, statement->id);
	return error;
}
