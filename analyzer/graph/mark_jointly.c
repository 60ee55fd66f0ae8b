/*
 * Marking by several threads.
 *
 * Each takes slices of what is to be marked from, and follows what it reaches. One that has plenty
 * gives half of it to those who have nothing left, which is looked at now and then only. The bits
 * are shared: the thread that sets one follows it.
 */
#include "analyzer/base/parallel.h"
#include "analyzer/graph/mark_parts.h"

/* What one thread marks. */
struct worker {
	struct marking *marking;
	struct pending pending;
	struct flight flight;
	unsigned int thread;
	size_t steps;
	size_t followed; /* not told of yet */
};

struct marking {
	const struct graph *graph;
	const struct bitmap *from;
	struct bitmap *reached;
	struct memory_account *account;
	struct progress *progress;
	struct work_pool *pool;
	atomic_size_t next_slice;
	struct split_work work; /* in allocations */
};

/* So many words of from are taken in one go. */
enum { SLICE = 64 };

/* Follow all edges from id; what is new becomes pending. */
static struct error *follow(struct worker *worker, allocation_id id)
{
	struct marking *marking = worker->marking;
	struct edges edges = graph_outgoing(marking->graph, id);

	worker->followed++;
	for (size_t i = 0; i < edges.count; i++) {
		struct error *error;

		if (bitmap_set_was_atomic(marking->reached, edges.targets[i]))
			continue;
		error = pending_push(&worker->pending, edges.targets[i]);
		if (error)
			return error;
	}
	return NULL;
}

/* Other threads write to these bits, so they are often far away. */
static void fetch_bits(const struct marking *marking, allocation_id id)
{
	enum { MOST = 4 };
	struct edges edges = graph_outgoing(marking->graph, id);

	for (size_t i = 0; i < edges.count && i < MOST; i++)
		__builtin_prefetch(&marking->reached->words[edges.targets[i] / 64], 1);
}

/* The allocation that is so many steps from taking off, or NO_ALLOCATION. */
static allocation_id in_flight(const struct flight *flight, size_t steps)
{
	return flight->ids[(flight->head + IN_FLIGHT - steps) % IN_FLIGHT];
}

/* Let one more take off; the one that lands is followed. */
static struct error *fly(struct worker *worker, allocation_id id)
{
	enum { ROW_STEP = IN_FLIGHT / 2, BITS_STEP = IN_FLIGHT * 3 / 4 };
	const struct marking *marking = worker->marking;
	struct flight *flight = &worker->flight;
	allocation_id landing = flight->ids[flight->head];
	allocation_id row = in_flight(flight, ROW_STEP);
	allocation_id bits = in_flight(flight, BITS_STEP);

	flight->ids[flight->head] = id;
	flight->head = (flight->head + 1) % IN_FLIGHT;
	if (id != NO_ALLOCATION)
		graph_fetch_offset(marking->graph, id);
	if (row != NO_ALLOCATION)
		graph_fetch_row(marking->graph, row);
	if (bits != NO_ALLOCATION)
		fetch_bits(marking, bits);
	flight->count += (id != NO_ALLOCATION) - (landing != NO_ALLOCATION);
	return landing == NO_ALLOCATION ? NULL : follow(worker, landing);
}

/* Give half of what is pending to those who have nothing, if it is plenty. */
static void share(struct worker *worker)
{
	enum { PLENTY = 64 };
	struct work_pool *pool = worker->marking->pool;
	struct pending *pending = &worker->pending;
	const allocation_id *ids = pending->memory.bytes;
	size_t half = pending->count / 2;

	if (pending->count < PLENTY || !work_pool_wants(pool))
		return;
	if (half > WORK_POOL_ITEMS)
		half = WORK_POOL_ITEMS;
	if (work_pool_give(pool, ids + pending->count - half, half))
		pending->count -= half;
}

/* Count what was followed since the last time. */
static struct error *tell(struct worker *worker)
{
	struct marking *marking = worker->marking;
	size_t followed = worker->followed;

	worker->followed = 0;
	if (split_work_step(&marking->work, 0, worker->thread, marking->progress, followed))
		return NULL;
	return error_create(ERROR_INTERRUPTED, "interrupted");
}

/* Follow all that is pending, and all that becomes so, but keep in flight. */
static struct error *follow_all(struct worker *worker, size_t keep)
{
	enum { SHARE_STEP = 1 << 10, TELL_STEP = 1 << 16 };
	struct pending *pending = &worker->pending;

	while (pending->count > 0 || worker->flight.count > keep) {
		const allocation_id *ids = pending->memory.bytes;
		allocation_id id = pending->count > 0 ? ids[--pending->count] : NO_ALLOCATION;
		struct error *error = fly(worker, id);

		worker->steps++;
		if (!error && worker->steps % SHARE_STEP == 0)
			share(worker);
		if (!error && worker->steps % TELL_STEP == 0)
			error = tell(worker);
		if (error)
			return error;
	}
	return NULL;
}

static struct error *follow_slice(struct worker *worker, size_t first)
{
	const struct bitmap *from = worker->marking->from;
	size_t end = first + SLICE, words = bitmap_word_count(from);

	for (size_t i = first; i < end && i < words; i++)
		for (uint64_t word = from->words[i]; word; word &= word - 1) {
			size_t id = 64 * i + (size_t)__builtin_ctzll(word);
			struct error *error = pending_push(&worker->pending, (allocation_id)id);

			if (!error)
				error = follow_all(worker, IN_FLIGHT);
			if (error)
				return error;
		}
	return NULL;
}

/* Follow what from has, as long as no other thread took it. */
static struct error *follow_slices(struct worker *worker)
{
	struct marking *marking = worker->marking;
	size_t words = bitmap_word_count(marking->from);

	for (;;) {
		size_t first = atomic_fetch_add(&marking->next_slice, SLICE);
		struct error *error;

		if (first >= words)
			return follow_all(worker, 0);
		error = follow_slice(worker, first);
		if (error)
			return error;
	}
}

/* More to follow, from other threads; nothing, when all is done. */
static struct error *take_more(struct worker *worker)
{
	struct pending *pending = &worker->pending;
	struct error *error =
		memory_reserve(&pending->memory, WORK_POOL_ITEMS * sizeof(allocation_id));

	if (!error)
		pending->count = work_pool_take(worker->marking->pool, pending->memory.bytes);
	return error;
}

/* What one thread does. */
static struct error *work(void *data, size_t chunk, unsigned int thread)
{
	struct marking *marking = data;
	struct worker worker = {
		.marking = marking,
		.pending.memory.account = marking->account,
		.thread = thread,
	};
	struct error *error = NULL;

	flight_init(&worker.flight);
	work_pool_enter(marking->pool);
	do {
		error = follow_slices(&worker);
		if (!error)
			error = take_more(&worker);
	} while (!error && worker.pending.count > 0);
	if (error)
		work_pool_end(marking->pool);
	if (!error)
		error = tell(&worker);
	memory_release(&worker.pending.memory);
	return error;
}

struct error *graph_mark_jointly(const struct graph *graph, const struct bitmap *from,
				 struct bitmap *reached, unsigned int threads,
				 struct memory_account *account, struct progress *progress)
{
	_cleanup_(work_pool_destroy) struct work_pool *pool = NULL;
	struct marking marking = {
		.graph = graph,
		.from = from,
		.reached = reached,
		.account = account,
		.progress = progress,
	};
	struct error *error = work_pool_create(&pool);

	if (error)
		return error;
	marking.pool = pool;
	error = parallel_for(threads, threads, work, &marking);
	split_work_keep(&marking.work, threads, progress);
	return error;
}
