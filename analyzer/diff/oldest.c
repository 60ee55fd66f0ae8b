#include "analyzer/diff/oldest.h"

#include "analyzer/gate/label.h"

/*
 * Of the start, its lower 48 bits, which is all that programs get; of the size, its lower 32 bits;
 * of the type, a hash, 0 if there is none.
 */
struct entry {
	uint64_t start : 48;
	uint64_t type : 16;
	uint32_t size;
	uint32_t group; /* plus 1; 0: of none */
};

static struct entry make_entry(const struct matching *matching, allocation_id id,
			       struct memory_range range)
{
	uint64_t key = census_type_key(matching->analysis, id);

	return (struct entry){
		.start = range.start & ((UINT64_C(1) << 48) - 1),
		.type = key ? hash_add(0, key) >> 48 | 1 : 0,
		.size = (uint32_t)(range.end - range.start),
		.group = matching->numbers[id],
	};
}

static struct entry *entry_at(const struct oldest *oldest, size_t number)
{
	return (struct entry *)oldest->list.bytes + number;
}

void oldest_deinit(struct oldest *oldest)
{
	memory_release(&oldest->list);
	bitmap_deinit(&oldest->everywhere);
	oldest->count = 0;
}

struct error *oldest_keep(struct matching *matching)
{
	struct oldest *oldest = matching->oldest;
	const struct allocation_index *index = analysis_index(matching->analysis);
	const struct bitmap *used = allocation_used(index);
	size_t count = bitmap_weight(used), hint = 0;
	struct error *error = memory_resize(&oldest->list, count * sizeof(struct entry));

	if (!error)
		error = bitmap_init(&oldest->everywhere, count, oldest->list.account);
	if (error)
		return error;
	bitmap_for_each(id, used) {
		struct memory_range range = allocation_range_near(index, (allocation_id)id, &hint);

		*entry_at(oldest, oldest->count++) = make_entry(matching, (allocation_id)id, range);
	}
	bitmap_fill(&oldest->everywhere);
	return NULL;
}

/*
 * The number of the entry that the allocation is, or the count of all; *next is the first entry at
 * or above it. Allocations come by address. Of another type, what was freed there was given out
 * again.
 */
static size_t find_entry(const struct oldest *oldest, struct entry wanted, size_t *next)
{
	const struct entry *entry;

	while (*next < oldest->count && entry_at(oldest, *next)->start < wanted.start)
		++*next;
	if (*next == oldest->count)
		return oldest->count;
	entry = entry_at(oldest, *next);
	return entry->start == wanted.start && entry->size == wanted.size &&
			       entry->type == wanted.type
		       ? *next
		       : oldest->count;
}

/* Call found with each allocation in use, and the entry that it is. */
static struct error *match(struct matching *matching,
			   void (*found)(void *data, allocation_id id, size_t entry), void *data)
{
	const struct allocation_index *index = analysis_index(matching->analysis);
	const struct bitmap *used = allocation_used(index);
	size_t next = 0, hint = 0;
	uint64_t told = 0;

	progress_begin(matching->progress, "comparing", used->count);
	bitmap_for_each(id, used) {
		struct memory_range range = allocation_range_near(index, (allocation_id)id, &hint);

		found(data, (allocation_id)id,
		      find_entry(matching->oldest, make_entry(matching, (allocation_id)id, range),
				 &next));
		if (!progress_pass(matching->progress, id, &told))
			return error_create(ERROR_INTERRUPTED, "interrupted");
	}
	return NULL;
}

static void note_found(void *data, allocation_id id, size_t entry)
{
	struct bitmap *seen = data;

	if (entry < seen->count)
		bitmap_set(seen, entry);
}

struct error *oldest_narrow(struct matching *matching)
{
	struct oldest *oldest = matching->oldest;
	_cleanup_(bitmap_deinit) struct bitmap seen = { 0 };
	struct error *error = bitmap_init(&seen, oldest->count, oldest->list.account);

	if (!error)
		error = match(matching, note_found, &seen);
	if (!error)
		bitmap_and(&oldest->everywhere, &seen);
	return error;
}

/* What becomes of the newest core's allocations. */
struct outcome {
	const struct matching *matching;
	struct bitmap *added, *survived;
	struct bitmap seen; /* entries */
};

static void sort_out(void *data, allocation_id id, size_t entry)
{
	struct outcome *outcome = data;
	const struct matching *matching = outcome->matching;
	struct diff_group nobody = { 0 }, *group = &nobody;

	if (matching->numbers[id])
		group = group_at(matching->groups, matching->numbers[id] - 1);
	if (entry == matching->oldest->count) {
		bitmap_set(outcome->added, id);
		group->added++;
		return;
	}
	bitmap_set(&outcome->seen, entry);
	if (!bitmap_get(&matching->oldest->everywhere, entry))
		return;
	bitmap_set(outcome->survived, id);
	group->survived++;
}

static void count_gone(const struct outcome *outcome)
{
	const struct matching *matching = outcome->matching;

	for (size_t i = 0; i < matching->oldest->count; i++) {
		uint32_t group = entry_at(matching->oldest, i)->group;

		if (group && !bitmap_get(&outcome->seen, i))
			group_at(matching->groups, group - 1)->gone++;
	}
}

struct error *oldest_finish(struct matching *matching, struct bitmap *added,
			    struct bitmap *survived)
{
	struct outcome outcome = { matching, added, survived, { 0 } };
	struct error *error =
		bitmap_init(&outcome.seen, matching->oldest->count, matching->oldest->list.account);

	if (!error)
		error = match(matching, sort_out, &outcome);
	if (!error)
		count_gone(&outcome);
	bitmap_deinit(&outcome.seen);
	return error;
}
