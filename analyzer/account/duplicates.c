#include "analyzer/account/duplicates.h"

#include "analyzer/base/parallel.h"

#include <string.h>

/* Numbers are sorted by a byte at a time, from the highest on. */
enum { BYTE = 8, VALUES = 1 << BYTE, TOP_SHIFT = 64 - BYTE, HASH_SHIFT = 32 };

/* The numbers whose highest byte is the same are a part. */
struct part {
	size_t start, end;
};

struct finder {
	const uint64_t *numbers;
	struct part parts[VALUES];
	struct worker *workers;
	struct bitmap *copies;
	struct progress *progress;
	size_t most;
};

/* One for each thread. */
struct worker {
	struct extents left, right;
	struct duplicate_group *largest; /* a heap, the least on top */
	size_t count;
	uint64_t group_count;
};

static uint8_t byte_of(uint64_t number, unsigned int shift)
{
	return (uint8_t)(number >> shift);
}

static void sort_few(uint64_t *numbers, size_t count)
{
	for (size_t i = 1; i < count; i++) {
		uint64_t number = numbers[i];
		size_t at = i;

		for (; at > 0 && numbers[at - 1] > number; at--)
			numbers[at] = numbers[at - 1];
		numbers[at] = number;
	}
}

/* Put each where numbers with its byte belong; their ends go to ret_ends. */
static void distribute(uint64_t *numbers, size_t count, unsigned int shift,
		       size_t ret_ends[static VALUES])
{
	size_t next[VALUES], sum = 0;

	memset(ret_ends, 0, VALUES * sizeof(*ret_ends));
	for (size_t i = 0; i < count; i++)
		ret_ends[byte_of(numbers[i], shift)]++;
	for (size_t i = 0; i < VALUES; i++) {
		next[i] = sum;
		sum += ret_ends[i];
		ret_ends[i] = sum;
	}
	for (size_t i = 0; i < VALUES; i++) {
		while (next[i] < ret_ends[i]) {
			uint64_t number = numbers[next[i]];
			uint8_t byte = byte_of(number, shift);

			if (byte == i) {
				next[i]++;
				continue;
			}
			numbers[next[i]] = numbers[next[byte]];
			numbers[next[byte]++] = number;
		}
	}
}

/* It goes no deeper than a number has bytes. */
static void sort_from(uint64_t *numbers, size_t count, unsigned int shift)
{
	enum { FEW = 24 };
	size_t ends[VALUES], start = 0;

	if (count <= FEW) {
		sort_few(numbers, count);
		return;
	}
	distribute(numbers, count, shift, ends);
	for (size_t i = 0; shift > 0 && i < VALUES; i++) {
		sort_from(numbers + start, ends[i] - start, shift - BYTE);
		start = ends[i];
	}
}

static bool is_less(const struct duplicate_group *left, const struct duplicate_group *right)
{
	uint64_t bytes = duplicate_bytes(left);
	uint64_t other = duplicate_bytes(right);

	return bytes != other ? bytes < other : left->first > right->first;
}

static int compare_groups(const void *a, const void *b)
{
	return is_less(a, b) ? 1 : is_less(b, a) ? -1 : 0;
}

/* Put the group where the top was, or below it. */
static void sink(struct duplicate_group *heap, size_t count, struct duplicate_group group)
{
	size_t at = 0, below;

	for (; (below = 2 * at + 1) < count; at = below) {
		if (below + 1 < count && is_less(&heap[below + 1], &heap[below]))
			below++;
		if (!is_less(&heap[below], &group))
			break;
		heap[at] = heap[below];
	}
	heap[at] = group;
}

static void keep_group(struct worker *worker, size_t most, struct duplicate_group group)
{
	size_t at = worker->count;

	if (group.copies < 2)
		return;
	worker->group_count++;
	if (most == 0)
		return;
	if (worker->count == most) {
		if (is_less(&worker->largest[0], &group))
			sink(worker->largest, most, group);
		return;
	}
	worker->count++;
	for (; at > 0 && is_less(&group, &worker->largest[(at - 1) / 2]); at = (at - 1) / 2)
		worker->largest[at] = worker->largest[(at - 1) / 2];
	worker->largest[at] = group;
}

static allocation_id id_of(uint64_t number)
{
	return (allocation_id)number;
}

/* The different contents of one hash. */
struct contents_list {
	struct duplicate_group groups[MOST_COLLISIONS];
	uint64_t starts[MOST_COLLISIONS];
	size_t count;
};

/* Count it as a copy of the one that it is equal to, or as a new one. */
static void add_contents(struct finder *finder, struct worker *worker, struct contents_list *list,
			 allocation_id id)
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

/* The numbers from start to end have one hash. */
static void look_at_run(struct finder *finder, struct worker *worker, size_t start, size_t end)
{
	struct contents_list list;

	list.count = 0;
	for (size_t i = start; i < end; i++)
		add_contents(finder, worker, &list, id_of(finder->numbers[i]));
	for (size_t i = 0; i < list.count; i++)
		keep_group(worker, finder->most, list.groups[i]);
}

static struct error *look_at_part(void *data, size_t chunk, unsigned int thread)
{
	struct finder *finder = data;
	struct worker *worker = &finder->workers[thread];
	const struct part part = finder->parts[chunk];
	const uint64_t *numbers = finder->numbers;
	size_t start = part.start, end;

	sort_from((uint64_t *)numbers + start, part.end - start, TOP_SHIFT - BYTE);
	for (; start < part.end; start = end) {
		uint64_t hash = numbers[start] >> HASH_SHIFT;

		end = start + 1;
		while (end < part.end && numbers[end] >> HASH_SHIFT == hash)
			end++;
		if (end - start > 1)
			look_at_run(finder, worker, start, end);
	}
	if (!progress_step(finder->progress, part.end - part.start))
		return error_create(ERROR_INTERRUPTED, "interrupted");
	return NULL;
}

/* The largest of all workers' groups. */
static struct error *collect(const struct finder *finder, unsigned int threads,
			     struct duplicates *ret)
{
	size_t count = 0;

	for (unsigned int i = 0; i < threads; i++)
		count += finder->workers[i].count;
	ret->largest = calloc(count + 1, sizeof(*ret->largest));
	if (!ret->largest)
		return &error_no_memory;
	for (unsigned int i = 0; i < threads; i++) {
		const struct worker *worker = &finder->workers[i];

		ret->group_count += worker->group_count;
		for (size_t j = 0; j < worker->count; j++)
			ret->largest[ret->largest_count++] = worker->largest[j];
	}
	qsort(ret->largest, count, sizeof(*ret->largest), compare_groups);
	if (ret->largest_count > finder->most)
		ret->largest_count = finder->most;
	return NULL;
}

static struct error *init_workers(struct analysis *analysis, unsigned int threads,
				  struct finder *finder)
{
	finder->workers = calloc(threads, sizeof(*finder->workers));
	if (!finder->workers)
		return &error_no_memory;
	for (unsigned int i = 0; i < threads; i++) {
		struct worker *worker = &finder->workers[i];

		extents_init(&worker->left, analysis);
		extents_init(&worker->right, analysis);
		worker->largest = calloc(finder->most + 1, sizeof(*worker->largest));
		if (!worker->largest)
			return &error_no_memory;
	}
	return NULL;
}

static void free_workers(struct finder *finder, unsigned int threads)
{
	for (unsigned int i = 0; finder->workers && i < threads; i++)
		free(finder->workers[i].largest);
	free(finder->workers);
}

struct error *duplicates_find(struct analysis *analysis, uint64_t *numbers, size_t count,
			      size_t most, struct duplicates *ret)
{
	struct finder finder = { .numbers = numbers,
				 .copies = &ret->copies,
				 .progress = analysis_progress(analysis),
				 .most = most };
	unsigned int threads = parallel_threads_for(finder.progress);
	size_t ends[VALUES], start = 0;
	struct error *error = bitmap_init(&ret->copies, allocation_count(analysis_index(analysis)),
					  analysis_account(analysis));

	if (!error)
		error = init_workers(analysis, threads, &finder);
	if (!error) {
		progress_begin(finder.progress, "comparing contents", count);
		distribute(numbers, count, TOP_SHIFT, ends);
		for (size_t i = 0; i < VALUES; i++) {
			finder.parts[i] = (struct part){ start, ends[i] };
			start = ends[i];
		}
		error = parallel_for(VALUES, threads, look_at_part, &finder);
	}
	if (!error)
		error = collect(&finder, threads, ret);
	free_workers(&finder, threads);
	return error;
}

void duplicates_deinit(struct duplicates *duplicates)
{
	bitmap_deinit(&duplicates->copies);
	free(duplicates->largest);
	*duplicates = (struct duplicates){ 0 };
}
