/*
 * Marks reachable allocations, on one thread or several.
 *
 * Each takes slices of what is to be marked from, and follows what it reaches. Of several, one that
 * has plenty gives half of it to those who have nothing left; each checks for that now and then
 * only. The bits are shared: the thread that sets one follows it.
 */
#include "analyzer/base/array.h"
#include "analyzer/base/parallel.h"
#include "analyzer/graph/graph_parts.h"

enum {
	SLICE = 64,	      /* words of from that are taken in one go */
	SHARE_STEP = 1 << 10, /* allocations followed, between checks for threads that wait */
	TELL_STEP = 1 << 16,  /* a multiple of it, between reports of progress */
};

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

struct team {
	const struct graph *graph;
	const struct bitmap *from;
	struct bitmap *reached;
	struct memory_account *account;
	struct progress *progress;
	unsigned int threads;
	struct work_pool *pool;
	atomic_size_t next_slice;
	struct split_work work; /* in allocations */
};

/* One thread. */
struct worker {
	struct team *team;
	ARRAY(allocation_id) pending; /* reached, and not followed yet */
	struct queue queue;
	unsigned int thread;
	size_t steps, reported; /* allocations followed; those that progress knows of */
};

/* Follow these edges; what is new becomes pending. */
static inline struct error *follow_edges(struct worker *worker, struct edges edges)
{
	struct bitmap *reached = worker->team->reached;
	uint64_t *words = reached->words;
	size_t count = worker->pending.count;
	size_t alone = worker->team->threads == 1 ? edges.count : 0;
	allocation_id *ids;

	TRY(array_reserve(&worker->pending, edges.count));
	ids = worker->pending.items;
	/* Which are new is unpredictable, so one thread, which owns the bits, avoids branches. */
	for (size_t i = 0; i < alone; i++) {
		allocation_id target = edges.targets[i];
		uint64_t bit = UINT64_C(1) << (target % 64);
		uint64_t before = words[target / 64];

		ids[count] = target;
		count += !(before & bit);
		words[target / 64] = before | bit;
	}
	for (size_t i = alone; i < edges.count; i++) {
		ids[count] = edges.targets[i];
		count += !bitmap_set_was_atomic(reached, edges.targets[i]);
	}
	worker->pending.count = count;
	return NULL;
}

/* Not all rows of a large array are new, so there need not be room for all of it. */
static inline struct error *follow_row(struct worker *worker, struct edges row)
{
	enum { MOST = 1 << 12 };

	for (; row.count > MOST; row.targets += MOST, row.count -= MOST)
		TRY(follow_edges(worker, (struct edges){ row.targets, MOST }));
	return follow_edges(worker, row);
}

/* The row of the allocation that stands there in the queue. */
static inline struct edges queued_row(const struct worker *worker, size_t number)
{
	const struct queue *queue = &worker->queue;

	return graph_row(worker->team->graph, queue->ids[(queue->head + number) % QUEUE]);
}

/*
 * Fetch for those who are half way, and for those who are there soon. Without the attribute, GCC
 * finds that this has no effect, and leaves it out.
 */
static inline __attribute__((always_inline)) void fetch_ahead(const struct worker *worker)
{
	enum { ROW_PART = 2, BITS_PART = 4, MOST_BITS = 4 };
	struct edges row = queued_row(worker, worker->queue.count / ROW_PART);
	struct edges edges = queued_row(worker, worker->queue.count / BITS_PART);

	__builtin_prefetch(row.targets);
	for (size_t i = 0; i < edges.count && i < MOST_BITS; i++)
		__builtin_prefetch(&worker->team->reached->words[edges.targets[i] / 64], 1);
}

/* Move pending allocations to the queue while there is room. */
static inline void fill_queue(struct worker *worker)
{
	const allocation_id *ids = worker->pending.items;
	struct queue *queue = &worker->queue;

	while (worker->pending.count > 0 && queue->count < QUEUE) {
		allocation_id id = ids[--worker->pending.count];

		__builtin_prefetch(worker->team->graph->words.items + id);
		queue->ids[(queue->head + queue->count++) % QUEUE] = id;
	}
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
	half = MIN(half, WORK_POOL_ITEMS);
	if (work_pool_give(pool, ids + count - half, half))
		worker->pending.count -= half;
}

/* Report what was followed since the last time. */
static struct error *tell(struct worker *worker)
{
	struct team *team = worker->team;
	size_t followed = worker->steps - worker->reported;

	worker->reported = worker->steps;
	return split_work_check(&team->work, 0, worker->thread, team->progress, followed);
}

static inline struct error *follow_first(struct worker *worker)
{
	struct queue *queue = &worker->queue;
	allocation_id id = queue->ids[queue->head];

	queue->head = (queue->head + 1) % QUEUE;
	queue->count--;
	if (queue->count > 1)
		fetch_ahead(worker);
	TRY(follow_row(worker, graph_row(worker->team->graph, id)));
	if (++worker->steps % SHARE_STEP == 0)
		share(worker);
	return worker->steps % TELL_STEP == 0 ? tell(worker) : NULL;
}

/* Follow what is pending, and all that becomes so, but keep some in the queue. */
static struct error *follow_pending(struct worker *worker, size_t keep)
{
	fill_queue(worker);
	while (worker->queue.count > keep) {
		TRY(follow_first(worker));
		fill_queue(worker);
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

			TRY(array_append(&worker->pending, (allocation_id)id));
			TRY(follow_pending(worker, QUEUE - 1));
		}
	return NULL;
}

/* Follow what from has, as long as no other thread took it. */
static struct error *follow_slices(struct worker *worker)
{
	struct team *team = worker->team;
	size_t words = bitmap_word_count(team->from), first;

	while ((first = atomic_fetch_add(&team->next_slice, SLICE)) < words)
		TRY(follow_slice(worker, first));
	return follow_pending(worker, 0);
}

/* Follow all, and then what other threads give. */
static struct error *follow_all(struct worker *worker)
{
	do {
		TRY(follow_slices(worker));
		TRY(array_reserve(&worker->pending, WORK_POOL_ITEMS));
		worker->pending.count = work_pool_take(worker->team->pool, worker->pending.items);
	} while (worker->pending.count > 0);
	return NULL;
}

/* The work of one thread. */
static struct error *work(void *data, size_t chunk, unsigned int thread)
{
	struct team *team = data;
	struct worker worker = {
		.team = team,
		.pending.memory.account = team->account,
		.thread = thread,
	};
	struct error *error;

	work_pool_enter(team->pool);
	error = follow_all(&worker);
	if (error)
		work_pool_end(team->pool);
	else
		error = tell(&worker);
	array_release(&worker.pending);
	return error;
}

/*
 * Sharing adds half to the cost, which two or three threads hardly win back. Nor do more threads,
 * with fewer than this many allocations for each.
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

/* Mark from these; allocations in reached count as followed. */
static struct error *mark(const struct graph *graph, const struct bitmap *from,
			  struct bitmap *reached, struct memory_account *account,
			  struct progress *progress)
{
	_cleanup_(work_pool_destroy) struct work_pool *pool = NULL;
	struct team team = {
		.graph = graph,
		.from = from,
		.reached = reached,
		.account = account,
		.progress = progress,
		.threads = threads_for(reached, progress),
	};
	struct error *error;

	progress_begin(progress, "marking reachable allocations", reached->count);
	TRY(work_pool_create(&pool));
	team.pool = pool;
	error = parallel_for(team.threads, team.threads, work, &team);
	if (team.threads > 1)
		split_work_keep(&team.work, team.threads, progress);
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

	/* Count allocations outside as followed, and take them out later. */
	bitmap_fill(reached);
	bitmap_minus(reached, within);
	bitmap_or(reached, from);
	error = mark(graph, from, reached, account, progress);
	bitmap_and(reached, within);
	return error;
}
