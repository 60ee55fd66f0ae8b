#include "analyzer/query/order.h"

#include "analyzer/kinds/tally.h"

void largest_init(struct largest *largest, size_t limit, struct memory_account *account)
{
	*largest = (struct largest){
		.entries.memory.account = account,
		.limit = limit ? limit : SIZE_MAX,
	};
}

void largest_deinit(struct largest *largest)
{
	array_release(&largest->entries);
}

/* True if left comes behind right. */
static bool is_less(const struct entry *left, const struct entry *right)
{
	if (left->value != right->value)
		return left->value < right->value;
	return left->id > right->id;
}

/* Put the entry where the top was, or below it, among the first count. */
static void sink(struct entry *heap, size_t count, struct entry entry)
{
	size_t at = 0;

	while (2 * at + 1 < count) {
		size_t below = 2 * at + 1;

		if (below + 1 < count && is_less(&heap[below + 1], &heap[below]))
			below++;
		if (!is_less(&heap[below], &entry))
			break;
		heap[at] = heap[below];
		at = below;
	}
	heap[at] = entry;
}

static void rise(struct entry *heap, size_t at, struct entry entry)
{
	while (at > 0 && is_less(&entry, &heap[(at - 1) / 2])) {
		heap[at] = heap[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	heap[at] = entry;
}

struct error *largest_offer(struct largest *largest, allocation_id id, uint64_t value)
{
	const struct entry entry = { value, id };

	if (largest->entries.count < largest->limit) {
		TRY(array_append(&largest->entries, entry));
		rise(largest->entries.items, largest->entries.count - 1, entry);
	} else if (is_less(largest->entries.items, &entry)) {
		sink(largest->entries.items, largest->entries.count, entry);
	}
	return NULL;
}

/* The least of those left goes behind them, again and again. */
void largest_sort(struct largest *largest)
{
	struct entry *heap = largest->entries.items;

	for (size_t left = largest->entries.count; left > 1; left--) {
		struct entry least = heap[0];

		sink(heap, left - 1, heap[left - 1]);
		heap[left - 1] = least;
	}
}

allocation_id largest_at(const struct largest *largest, size_t number)
{
	return largest->entries.items[number].id;
}

struct visit {
	struct analysis *analysis;
	const struct bitmap *members;
	const struct member_visitor *visitor;
	uint64_t limit; /* members to show at most */
};

static struct error *visit_next(const struct visit *visit, allocation_id id, bool *ret_more)
{
	struct progress *progress = analysis_progress(visit->analysis);

	TRY(progress_glance(progress));
	*ret_more = visit->visitor->member(visit->visitor->data, id);
	return NULL;
}

static struct error *visit_by_address(const struct visit *visit)
{
	uint64_t left = visit->limit;
	bool more = true;

	bitmap_for_each(id, visit->members) {
		if (!more || left-- == 0)
			break;
		TRY(visit_next(visit, (allocation_id)id, &more));
	}
	return NULL;
}

static struct error *count_sizes(const struct visit *visit, struct tally_table *table)
{
	const struct allocation_index *index = analysis_index(visit->analysis);

	bitmap_for_each(id, visit->members) {
		uint64_t size = allocation_size(index, (allocation_id)id);

		TRY(tally_add(table, (struct tally){ .key = size, .count = 1 }));
	}
	return NULL;
}

/* Put each size's first position in the order into bytes. Returns how many members to show. */
static uint64_t place_sizes(struct tally_table *table, struct tally_table *sorted, uint64_t limit)
{
	uint64_t place = 0;

	array_sort(sorted, tally_compare_keys_down);
	for (size_t i = 0; i < sorted->count; i++) {
		struct tally *tally = tally_find(table, sorted->items[i].key);

		tally->bytes = place;
		place += tally->count;
	}
	return place < limit ? place : limit;
}

static void place_members(const struct visit *visit, struct tally_table *table, uint64_t shown,
			  allocation_id *ret)
{
	const struct allocation_index *index = analysis_index(visit->analysis);

	bitmap_for_each(id, visit->members) {
		uint64_t size = allocation_size(index, (allocation_id)id);
		uint64_t place = tally_find(table, size)->bytes++;

		if (place < shown)
			ret[place] = (allocation_id)id;
	}
}

static struct error *visit_by_size(const struct visit *visit)
{
	struct memory_account *account = analysis_account(visit->analysis);
	_cleanup_(table_release) struct tally_table table = { .memory.account = account };
	_cleanup_(table_release) struct tally_table sorted = { .memory.account = account };
	_cleanup_(memory_release) struct memory ids = { .account = account };
	uint64_t shown;
	bool more = true;

	TRY(count_sizes(visit, &table));
	for (size_t i = 0; i < table.count; i++)
		TRY(tally_add(&sorted, table.items[i]));
	shown = place_sizes(&table, &sorted, visit->limit);
	TRY(memory_resize(&ids, shown * sizeof(allocation_id)));
	place_members(visit, &table, shown, ids.bytes);
	for (uint64_t i = 0; more && i < shown; i++)
		TRY(visit_next(visit, ((allocation_id *)ids.bytes)[i], &more));
	return NULL;
}

/* In the order of the tree, which is much quicker than that of addresses. */
static struct error *offer_retained(const struct visit *visit, struct largest *largest)
{
	const struct dominators *tree = analysis_dominators(visit->analysis);
	const struct bitmap *used = allocation_used(analysis_index(visit->analysis));

	for (size_t i = 0; i < dominators_count(tree); i++) {
		allocation_id id = dominators_at(tree, i);
		uint64_t bytes = dominators_bytes(tree, i, dominators_end(tree, i));

		if (bitmap_get(visit->members, id))
			TRY(largest_offer(largest, id, bytes));
	}
	if (bitmap_within(visit->members, used))
		return NULL;
	bitmap_for_each(id, visit->members) {
		if (!bitmap_get(used, id))
			TRY(largest_offer(largest, (allocation_id)id, 0));
	}
	return NULL;
}

/* Free allocations, which retain nothing, come last. */
static struct error *visit_by_retained(const struct visit *visit)
{
	_cleanup_(largest_deinit) struct largest largest;
	bool more = true;

	largest_init(&largest, visit->limit, analysis_account(visit->analysis));
	TRY(analysis_need(visit->analysis, STAGE_RETAINED)); /* to say what each retains */
	TRY(offer_retained(visit, &largest));
	largest_sort(&largest);
	for (size_t i = 0; more && i < largest.entries.count; i++)
		TRY(visit_next(visit, largest_at(&largest, i), &more));
	return NULL;
}

/*
 * Show the comments from *number on that belong in front of the member of that number; only
 * warnings once the limit is reached.
 */
static void show_comments(const struct visit *visit, const struct members *members, size_t *number,
			  size_t position, bool only_warnings)
{
	const struct member_comment *comments = members->comments.items;
	const struct member_visitor *visitor = visit->visitor;

	for (; *number < members->comments.count; ++*number) {
		const struct member_comment *comment = &comments[*number];

		if (comment->position > position)
			return;
		if (visitor->comment && (!only_warnings || comment_is_warning(comment)))
			visitor->comment(visitor->data, comment);
	}
}

/* Members removed from the set since are still in the order. */
static struct error *visit_in_order(const struct visit *visit, const struct members *members)
{
	const allocation_id *order = members->order.items;
	uint64_t left = visit->limit;
	size_t commented = 0;
	bool more = true;

	for (size_t i = 0; more && left > 0 && i < members->order.count; i++) {
		show_comments(visit, members, &commented, i, false);
		if (!bitmap_get(&members->set, order[i]))
			continue;
		left--;
		TRY(visit_next(visit, order[i], &more));
	}
	if (more)
		show_comments(visit, members, &commented, SIZE_MAX, left == 0);
	return NULL;
}

struct error *query_visit(struct analysis *analysis, const struct set_query *query,
			  const struct members *members, const struct member_visitor *visitor)
{
	const struct visit all = {
		.analysis = analysis,
		.members = &members->set,
		.visitor = visitor,
		.limit = query->limit ? query->limit : UINT64_MAX,
	};

	if (members->is_ordered && query->sort == SORT_DEFAULT)
		return visit_in_order(&all, members);
	query_visit_comments(members, visitor);
	switch (query->sort) {
	case SORT_BYTES:
		return visit_by_size(&all);
	case SORT_RETAINED:
		return visit_by_retained(&all);
	default:
		return visit_by_address(&all);
	}
}

void query_visit_comments(const struct members *members, const struct member_visitor *visitor)
{
	const struct visit all = { .visitor = visitor };
	size_t commented = 0;

	show_comments(&all, members, &commented, SIZE_MAX, false);
}
