#include "analyzer/account/duplicates.h"

#include "analyzer/base/array.h"
#include "analyzer/base/list.h"
#include "analyzer/base/parallel.h"
#include "analyzer/base/sort.h"

#include <string.h>

enum { BYTE = 8, VALUES = 1 << BYTE, BLOCK_NUMBERS = 127 };

/* A few numbers are sorted sooner than filtered. */
enum { FILTER_SHIFT = 19, FILTER_WORDS = 1 << FILTER_SHIFT >> 6, LEAST_FILTERED = 1 << 10 };

struct number_block {
	struct number_block *next; /* which is full */
	uint64_t numbers[BLOCK_NUMBERS];
};

struct group_list {
	ARRAY(struct duplicate_group);
};

/* One for each thread. */
struct worker {
	struct extents left, right;
	struct group_list groups; /* the largest, and some more */
	uint64_t group_count;
	struct number_block *blocks[VALUES]; /* by the highest byte of their numbers */
	size_t counts[VALUES];
	uint64_t once[FILTER_WORDS], twice[FILTER_WORDS];
	ARRAY(uint64_t) candidates;
};

struct duplicate_finder {
	struct memory blocks;
	atomic_size_t block_count;
	struct worker *workers;
	unsigned int threads;
	struct bitmap *copies;
	struct progress *progress;
	size_t most;
};

static int compare_groups(const void *a, const void *b)
{
	const struct duplicate_group *left = a, *right = b;
	uint64_t bytes = duplicate_bytes(left), other = duplicate_bytes(right);

	if (bytes != other)
		return bytes > other ? -1 : 1;
	return (left->first > right->first) - (left->first < right->first);
}

/* Sort the groups, and drop all but the most largest. */
static void keep_largest(struct group_list *groups, size_t most)
{
	array_sort(groups, compare_groups);
	groups->count = MIN(groups->count, most);
}

static struct error *keep_group(struct worker *worker, size_t most, struct duplicate_group group)
{
	if (group.copies < 2)
		return NULL;
	worker->group_count++;
	if (most == 0)
		return NULL;
	if (worker->groups.count / 2 >= most)
		keep_largest(&worker->groups, most);
	return array_append(&worker->groups, group);
}

/* The different contents of one hash. */
struct contents_list {
	struct duplicate_group groups[MOST_COLLISIONS];
	uint64_t starts[MOST_COLLISIONS];
	size_t count;
};

/* Count it as a copy of the one that it is equal to, or as a new one. */
static void add_contents(struct duplicate_finder *finder, struct worker *worker,
			 struct contents_list *list, allocation_id id)
{
	struct extent extent = extent_of(&worker->right, id);

	for (size_t i = 0; i < list->count; i++) {
		if (list->groups[i].size != extent.size ||
		    !contents_equal(&worker->left.view, list->starts[i], &worker->right.view,
				    extent.start, extent.size))
			continue;
		list->groups[i].copies++;
		bitmap_set_atomic(finder->copies, id);
		return;
	}
	if (list->count == MOST_COLLISIONS)
		return;
	list->starts[list->count] = extent.start;
	list->groups[list->count++] = (struct duplicate_group){ id, 1, extent.size };
}

/* The count numbers have one hash. */
static struct error *compare_run(struct duplicate_finder *finder, struct worker *worker,
				 const uint64_t *numbers, size_t count)
{
	struct contents_list list;

	list.count = 0;
	for (size_t i = 0; i < count; i++)
		add_contents(finder, worker, &list, (allocation_id)numbers[i]);
	for (size_t i = 0; i < list.count; i++)
		TRY(keep_group(worker, finder->most, list.groups[i]));
	return NULL;
}

/* Visit the numbers whose highest byte is value. */
static inline __attribute__((always_inline)) void visit_numbers(
	const struct duplicate_finder *finder, size_t value, struct worker *worker,
	void (*visit)(struct worker *worker, uint64_t number))
{
	for (unsigned int i = 0; i < finder->threads; i++) {
		const struct number_block *block = finder->workers[i].blocks[value];
		size_t left = finder->workers[i].counts[value];

		for (; left; block = block->next) {
			size_t first = (left - 1) / BLOCK_NUMBERS * BLOCK_NUMBERS;

			__builtin_prefetch(block->next);
			for (size_t j = 0; j < left - first; j++)
				visit(worker, block->numbers[j]);
			left = first;
		}
	}
}

static size_t filter_bit(uint64_t number)
{
	return number << BYTE >> (64 - FILTER_SHIFT);
}

static void note_number(struct worker *worker, uint64_t number)
{
	size_t bit = filter_bit(number);
	uint64_t mask = UINT64_C(1) << bit % 64;

	worker->twice[bit / 64] |= worker->once[bit / 64] & mask;
	worker->once[bit / 64] |= mask;
}

static void add_candidate(struct worker *worker, uint64_t number)
{
	worker->candidates.items[worker->candidates.count++] = number;
}

static void add_if_twice(struct worker *worker, uint64_t number)
{
	size_t bit = filter_bit(number);

	if (worker->twice[bit / 64] >> bit % 64 & 1)
		add_candidate(worker, number);
}

/* Collect the numbers whose hash another one may share. */
static struct error *find_candidates(const struct duplicate_finder *finder, size_t value,
				     struct worker *worker, size_t count)
{
	worker->candidates.count = 0;
	TRY(array_reserve(&worker->candidates, count));
	if (count < LEAST_FILTERED) {
		visit_numbers(finder, value, worker, add_candidate);
		return NULL;
	}
	memset(worker->once, 0, sizeof(worker->once));
	memset(worker->twice, 0, sizeof(worker->twice));
	visit_numbers(finder, value, worker, note_number);
	visit_numbers(finder, value, worker, add_if_twice);
	return NULL;
}

static struct error *compare_value(void *data, size_t value, unsigned int thread)
{
	struct duplicate_finder *finder = data;
	struct worker *worker = &finder->workers[thread];
	size_t count = 0, end;
	uint64_t *numbers;

	for (unsigned int i = 0; i < finder->threads; i++)
		count += finder->workers[i].counts[value];
	TRY(find_candidates(finder, value, worker, count));
	numbers = worker->candidates.items;
	SORT(numbers, worker->candidates.count, compare_u64);
	for (size_t start = 0; start < worker->candidates.count; start = end) {
		uint64_t hash = numbers[start] >> 32;

		end = start + 1;
		while (end < worker->candidates.count && numbers[end] >> 32 == hash)
			end++;
		if (end - start > 1)
			TRY(compare_run(finder, worker, numbers + start, end - start));
	}
	return progress_check(finder->progress, count);
}

/* The largest of all workers' groups. */
static struct error *collect(const struct duplicate_finder *finder, struct duplicates *ret)
{
	struct group_list groups = { .memory.account = finder->blocks.account };
	struct error *error = NULL;

	list_for_each(worker, finder->workers, finder->threads) {
		ret->group_count += worker->group_count;
		for (size_t j = 0; j < worker->groups.count && !error; j++)
			error = array_append(&groups, worker->groups.items[j]);
	}
	keep_largest(&groups, finder->most);
	ret->largest = calloc(groups.count + 1, sizeof(*ret->largest));
	if (!error && !ret->largest)
		error = &error_no_memory;
	if (!error && groups.count)
		memcpy(ret->largest, groups.items, groups.count * sizeof(*groups.items));
	ret->largest_count = error ? 0 : groups.count;
	array_release(&groups);
	return error;
}

static struct error *init_workers(struct duplicate_finder *finder, struct analysis *analysis)
{
	finder->workers = calloc(finder->threads, sizeof(*finder->workers));
	TRY_MEMORY(finder->workers);
	list_for_each(worker, finder->workers, finder->threads) {
		extents_init(&worker->left, analysis);
		extents_init(&worker->right, analysis);
		arrays_use(analysis_account(analysis), &worker->candidates, &worker->groups);
	}
	return NULL;
}

struct error *duplicate_finder_create(struct analysis *analysis, size_t count, unsigned int threads,
				      size_t most, struct duplicate_finder **ret)
{
	_cleanup_(duplicate_finder_destroy) struct duplicate_finder *finder =
		calloc(1, sizeof(*finder));
	size_t blocks = count / BLOCK_NUMBERS + (size_t)threads * VALUES;

	TRY_MEMORY(finder);
	finder->threads = threads;
	finder->progress = analysis_progress(analysis);
	finder->most = most;
	finder->blocks.account = analysis_account(analysis);
	TRY(memory_resize(&finder->blocks, MIN(blocks, count) * sizeof(struct number_block)));
	TRY(init_workers(finder, analysis));
	*ret = take(finder);
	return NULL;
}

void duplicate_finder_destroy(struct duplicate_finder *finder)
{
	for (unsigned int i = 0; finder->workers && i < finder->threads; i++)
		arrays_release(&finder->workers[i].groups, &finder->workers[i].candidates);
	free(finder->workers);
	memory_release(&finder->blocks);
	free(finder);
}

void duplicate_finder_add(struct duplicate_finder *finder, unsigned int thread, uint64_t hash,
			  allocation_id id)
{
	struct worker *worker = &finder->workers[thread];
	uint8_t value = hash >> (64 - BYTE);
	size_t place = worker->counts[value]++ % BLOCK_NUMBERS;
	struct number_block *block = worker->blocks[value];

	if (place == 0) {
		block = (struct number_block *)finder->blocks.bytes +
			atomic_fetch_add(&finder->block_count, 1);
		block->next = worker->blocks[value];
		worker->blocks[value] = block;
	}
	block->numbers[place] = (hash & ~(uint64_t)UINT32_MAX) | id;
}

struct error *duplicate_finder_finish(struct duplicate_finder *finder, struct duplicates *ret)
{
	finder->copies = &ret->copies;
	progress_begin(finder->progress, "comparing contents", ret->copies.count);
	TRY(parallel_for(VALUES, finder->threads, compare_value, finder));
	return collect(finder, ret);
}

void duplicates_deinit(struct duplicates *duplicates)
{
	bitmap_deinit(&duplicates->copies);
	free(duplicates->largest);
	*duplicates = (struct duplicates){ 0 };
}
