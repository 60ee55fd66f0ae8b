#include "analyzer/query/largest.h"

struct entry {
	uint64_t value;
	allocation_id id;
};

static struct entry *entries(const struct largest *largest)
{
	return largest->memory.bytes;
}

void largest_init(struct largest *largest, size_t limit, struct memory_account *account)
{
	*largest = (struct largest){
		.memory.account = account,
		.limit = limit ? limit : SIZE_MAX,
	};
}

void largest_deinit(struct largest *largest)
{
	memory_release(&largest->memory);
}

/* Whether left comes behind right. */
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
	struct error *error;

	if (largest->count == largest->limit) {
		if (is_less(entries(largest), &entry))
			sink(entries(largest), largest->count, entry);
		return NULL;
	}
	error = memory_reserve(&largest->memory, (largest->count + 1) * sizeof(entry));
	if (error)
		return error;
	rise(entries(largest), largest->count++, entry);
	return NULL;
}

/* The least of those left goes behind them, again and again. */
void largest_sort(struct largest *largest)
{
	struct entry *heap = entries(largest);

	for (size_t left = largest->count; left > 1; left--) {
		struct entry least = heap[0];

		sink(heap, left - 1, heap[left - 1]);
		heap[left - 1] = least;
	}
}

allocation_id largest_at(const struct largest *largest, size_t number)
{
	return entries(largest)[number].id;
}
