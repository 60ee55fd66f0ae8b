/*
 * What is reachable: found by one thread, or by several.
 *
 * Of several, each takes slices of what is to be marked from, and follows what it reaches. One that
 * has plenty gives half of it to those who have nothing left, which is looked at now and then only.
 * The bits are shared: the thread that sets one follows it.
 */
#include "analyzer/base/array.h"
#include "analyzer/base/parallel.h"
#include "analyzer/graph/graph_parts.h"

/* What one thread marks. */
struct marking {
	const struct graph *graph;
	struct bitmap *reached;
	ARRAY(allocation_id) pending; /* reached, and not followed yet */
	struct progress *progress;
	size_t steps;
};

/* Tell now and then that one more is followed. */
static inline struct error *step(struct marking *marking)
{
	enum { PROGRESS_STEP = 1 << 16 };

	return ++marking->steps % PROGRESS_STEP == 0
		       ? progress_check(marking->progress, PROGRESS_STEP)
		       : NULL;
}

/*
 * Follow these edges; what is new becomes pending. It cannot be foretold which is: so there is no
 * branch.
 */
static inline struct error *follow_edges(struct marking *marking, struct edges edges)
{
	uint64_t *reached = marking->reached->words;
	size_t count = marking->pending.count;
	struct error *error = array_reserve(&marking->pending, edges.count);
	allocation_id *ids = marking->pending.items;

	if (error)
		return error;
	for (size_t i = 0; i < edges.count; i++) {
		allocation_id target = edges.targets[i];
		uint64_t bit = UINT64_C(1) << (target % 64);
		uint64_t before = reached[target / 64];

		ids[count] = target;
		count += !(before & bit);
		reached[target / 64] = before | bit;
	}
	marking->pending.count = count;
	return NULL;
}

/* Of a large array, not all is new: there need not be room for all of it. */
static inline struct error *follow_row(struct marking *marking, struct edges row)
{
	enum { MOST = 1 << 12 };
	struct error *error = NULL;

	for (; row.count > MOST && !error; row.targets += MOST, row.count -= MOST)
		error = follow_edges(marking, (struct edges){ row.targets, MOST });
	return error ? error : follow_edges(marking, row);
}

/*
 * Allocations on their way from being pending to being followed, while what they need is fetched:
 * where the row is, then the row, then the bits that it leads to. Where nothing else is pending, as
 * along a list, none waits.
 */
enum { QUEUE = 32 };

struct queue {
	allocation_id ids[QUEUE];
	size_t head, count;
};

static inline allocation_id queued(const struct queue *queue, size_t number)
{
	return queue->ids[(queue->head + number) % QUEUE];
}

/*
 * Fetch for those who are half way, and for those who are there soon. Without the attribute, GCC
 * finds that this has no effect, and leaves it out.
 */
static inline __attribute__((always_inline)) void fetch_ahead(const struct marking *marking,
							      const struct queue *queue)
{
	enum { ROW_PART = 2, BITS_PART = 4, MOST_BITS = 4 };
	struct edges row = graph_row(marking->graph, queued(queue, queue->count / ROW_PART));
	struct edges edges = graph_row(marking->graph, queued(queue, queue->count / BITS_PART));

	__builtin_prefetch(row.targets);
	for (size_t i = 0; i < edges.count && i < MOST_BITS; i++)
		__builtin_prefetch(&marking->reached->words[edges.targets[i] / 64], 1);
}

/* Let what is pending in, as long as there is room. */
static inline void fill_queue(struct marking *marking, struct queue *queue)
{
	const allocation_id *ids = marking->pending.items;

	while (marking->pending.count > 0 && queue->count < QUEUE) {
		allocation_id id = ids[--marking->pending.count];

		__builtin_prefetch(marking->graph->words.items + id);
		queue->ids[(queue->head + queue->count++) % QUEUE] = id;
	}
}

static inline struct error *follow_first(struct marking *marking, struct queue *queue)
{
	allocation_id id = queue->ids[queue->head];

	queue->head = (queue->head + 1) % QUEUE;
	queue->count--;
	if (queue->count > 1)
		fetch_ahead(marking, queue);
	TRY(follow_row(marking, graph_row(marking->graph, id)));
	return step(marking);
}

/* Follow what is pending, and all that becomes so, but keep some in flight. */
static struct error *follow_pending(struct marking *marking, struct queue *queue, size_t keep)
{
	fill_queue(marking, queue);
	while (queue->count > keep) {
		TRY(follow_first(marking, queue));
		fill_queue(marking, queue);
	}
	return NULL;
}

static struct error *follow_all(struct marking *marking, const struct bitmap *from)
{
	struct queue queue = { .count = 0 };

	bitmap_for_each(id, from) {
		struct error *error = array_append(&marking->pending, (allocation_id)id);

		if (!error)
			error = follow_pending(marking, &queue, QUEUE - 1);
		if (error)
			return error;
	}
	return follow_pending(marking, &queue, 0);
}

/*
 * Allocations on their way from being pending to being followed. Each step of one round fetches
 * what the next needs, while others are at other steps: where its row is, then the row.
 */
enum { IN_FLIGHT = 16 };

struct flight {
	allocation_id ids[IN_FLIGHT]; /* or NO_ALLOCATION */
	size_t head, count;
};

/* One thread of several. */
struct worker {
	struct team *team;
	ARRAY(allocation_id) pending;
	struct flight flight;
	unsigned int thread;
	size_t steps;
	size_t followed; /* not told of yet */
};

struct team {
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
	struct team *team = worker->team;
	struct edges edges = graph_outgoing(team->graph, id);

	worker->followed++;
	for (size_t i = 0; i < edges.count; i++) {
		if (bitmap_set_was_atomic(team->reached, edges.targets[i]))
			continue;
		TRY(array_append(&worker->pending, edges.targets[i]));
	}
	return NULL;
}

/* Other threads write to these bits, so they are often far away. */
static void fetch_bits(const struct team *team, allocation_id id)
{
	enum { MOST = 4 };
	struct edges edges = graph_outgoing(team->graph, id);

	for (size_t i = 0; i < edges.count && i < MOST; i++)
		__builtin_prefetch(&team->reached->words[edges.targets[i] / 64], 1);
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
	const struct team *team = worker->team;
	struct flight *flight = &worker->flight;
	allocation_id landing = flight->ids[flight->head];
	allocation_id row = in_flight(flight, ROW_STEP);
	allocation_id bits = in_flight(flight, BITS_STEP);

	flight->ids[flight->head] = id;
	flight->head = (flight->head + 1) % IN_FLIGHT;
	if (id != NO_ALLOCATION)
		graph_fetch_offset(team->graph, id);
	if (row != NO_ALLOCATION)
		graph_fetch_row(team->graph, row);
	if (bits != NO_ALLOCATION)
		fetch_bits(team, bits);
	flight->count += (id != NO_ALLOCATION) - (landing != NO_ALLOCATION);
	return landing == NO_ALLOCATION ? NULL : follow(worker, landing);
}

/* Give half of what is pending to those who have nothing, if it is plenty. */
static void share(struct worker *worker)
{
	enum { PLENTY = 64 };
	struct work_pool *pool = worker->team->pool;
	const allocation_id *ids = worker->pending.items;
	size_t count = worker->pending.count, half = count / 2;

	if (count < PLENTY || !work_pool_wants(pool))
		return;
	if (half > WORK_POOL_ITEMS)
		half = WORK_POOL_ITEMS;
	if (work_pool_give(pool, ids + count - half, half))
		worker->pending.count -= half;
}

/* Count what was followed since the last time. */
static struct error *tell(struct worker *worker)
{
	struct team *team = worker->team;
	size_t followed = worker->followed;

	worker->followed = 0;
	return split_work_check(&team->work, 0, worker->thread, team->progress, followed);
}

/* Follow all that is pending, and all that becomes so, but keep in flight. */
static struct error *follow_more(struct worker *worker, size_t keep)
{
	enum { SHARE_STEP = 1 << 10, TELL_STEP = 1 << 16 };
	while (worker->pending.count > 0 || worker->flight.count > keep) {
		bool is_empty = worker->pending.count == 0;
		struct error *error =
			fly(worker, is_empty ? NO_ALLOCATION
					     : worker->pending.items[--worker->pending.count]);

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
	const struct bitmap *from = worker->team->from;
	size_t end = first + SLICE, words = bitmap_word_count(from);

	for (size_t i = first; i < end && i < words; i++)
		for (uint64_t word = from->words[i]; word; word &= word - 1) {
			size_t id = 64 * i + (size_t)__builtin_ctzll(word);
			struct error *error = array_append(&worker->pending, (allocation_id)id);

			if (!error)
				error = follow_more(worker, IN_FLIGHT);
			if (error)
				return error;
		}
	return NULL;
}

/* Follow what from has, as long as no other thread took it. */
static struct error *follow_slices(struct worker *worker)
{
	struct team *team = worker->team;
	size_t words = bitmap_word_count(team->from);

	for (;;) {
		size_t first = atomic_fetch_add(&team->next_slice, SLICE);

		if (first >= words)
			return follow_more(worker, 0);
		TRY(follow_slice(worker, first));
	}
}

/* More to follow, from other threads; nothing, when all is done. */
static struct error *take_more(struct worker *worker)
{
	struct error *error = array_reserve(&worker->pending, WORK_POOL_ITEMS);

	if (!error)
		worker->pending.count = work_pool_take(worker->team->pool, worker->pending.items);
	return error;
}

/* What one thread does. */
static struct error *work(void *data, size_t chunk, unsigned int thread)
{
	struct team *team = data;
	struct worker worker = {
		.team = team,
		.pending.memory.account = team->account,
		.thread = thread,
	};
	struct error *error = NULL;

	for (size_t i = 0; i < IN_FLIGHT; i++)
		worker.flight.ids[i] = NO_ALLOCATION;
	work_pool_enter(team->pool);
	do {
		error = follow_slices(&worker);
		if (!error)
			error = take_more(&worker);
	} while (!error && worker.pending.count > 0);
	if (error)
		work_pool_end(team->pool);
	if (!error)
		error = tell(&worker);
	array_release(&worker.pending);
	return error;
}

static struct error *mark_jointly(const struct graph *graph, const struct bitmap *from,
				  struct bitmap *reached, unsigned int threads,
				  struct memory_account *account, struct progress *progress)
{
	_cleanup_(work_pool_destroy) struct work_pool *pool = NULL;
	struct team team = {
		.graph = graph,
		.from = from,
		.reached = reached,
		.account = account,
		.progress = progress,
	};
	struct error *error;

	TRY(work_pool_create(&pool));
	team.pool = pool;
	error = parallel_for(threads, threads, work, &team);
	split_work_keep(&team.work, threads, progress);
	return error;
}

/*
 * What threads share costs half as much time again, which two or three of them hardly win back; nor
 * do more, below so many allocations for each.
 */
static unsigned int threads_for(const struct bitmap *reached, const struct progress *progress)
{
	enum { LEAST = 1 << 13, FEWEST = 4 };
	unsigned int threads = parallel_threads_for(progress);
	size_t most = reached->count / LEAST;

	if (most < threads)
		threads = (unsigned int)most;
	return threads < FEWEST ? 1 : threads;
}

/* What is in reached already counts as followed. */
static struct error *mark(const struct graph *graph, const struct bitmap *from,
			  struct bitmap *reached, struct memory_account *account,
			  struct progress *progress)
{
	unsigned int threads = threads_for(reached, progress);
	struct marking marking = { .graph = graph,
				   .reached = reached,
				   .pending.memory.account = account,
				   .progress = progress };
	struct error *error;

	progress_begin(progress, "finding what is reachable", reached->count);
	if (threads > 1)
		return mark_jointly(graph, from, reached, threads, account, progress);
	error = follow_all(&marking, from);
	array_release(&marking.pending);
	return error;
}

struct error *graph_mark(const struct graph *graph, const struct bitmap *from,
			 struct bitmap *reached, struct memory_account *account,
			 struct progress *progress)
{
	bitmap_copy(reached, from);
	return mark(graph, from, reached, account, progress);
}

struct error *graph_mark_within(const struct graph *graph, const struct bitmap *within,
				const struct bitmap *from, struct bitmap *reached,
				struct memory_account *account, struct progress *progress)
{
	struct error *error;

	/* What is outside stands for followed, until it is taken out again. */
	bitmap_fill(reached);
	bitmap_minus(reached, within);
	bitmap_or(reached, from);
	error = mark(graph, from, reached, account, progress);
	bitmap_and(reached, within);
	return error;
}
