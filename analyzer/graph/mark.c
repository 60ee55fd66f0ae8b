#include "analyzer/base/parallel.h"
#include "analyzer/graph/graph_parts.h"
#include "analyzer/graph/mark_parts.h"

/* What one thread marks. */
struct marking {
	const struct graph *graph;
	struct bitmap *reached;
	struct pending pending;
	struct progress *progress;
	size_t steps;
};

/* Tell now and then that one more is followed. */
static inline struct error *step(struct marking *marking)
{
	enum { PROGRESS_STEP = 1 << 16 };

	if (++marking->steps % PROGRESS_STEP != 0 ||
	    progress_step(marking->progress, PROGRESS_STEP))
		return NULL;
	return error_create(ERROR_INTERRUPTED, "interrupted");
}

/*
 * Follow these edges; what is new becomes pending. It cannot be foretold which is: so there is no
 * branch.
 */
static inline struct error *follow_edges(struct marking *marking, struct edges edges)
{
	struct pending *pending = &marking->pending;
	uint64_t *reached = marking->reached->words;
	size_t count = pending->count;
	struct error *error = pending_room(pending, edges.count);
	allocation_id *ids = pending->memory.bytes;

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
	pending->count = count;
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
	struct pending *pending = &marking->pending;
	const allocation_id *ids = pending->memory.bytes;
	const uint32_t *words = marking->graph->words.bytes;

	while (pending->count > 0 && queue->count < QUEUE) {
		allocation_id id = ids[--pending->count];

		__builtin_prefetch(words + id);
		queue->ids[(queue->head + queue->count++) % QUEUE] = id;
	}
}

static inline struct error *follow_first(struct marking *marking, struct queue *queue)
{
	allocation_id id = queue->ids[queue->head];
	struct error *error;

	queue->head = (queue->head + 1) % QUEUE;
	queue->count--;
	if (queue->count > 1)
		fetch_ahead(marking, queue);
	error = follow_row(marking, graph_row(marking->graph, id));
	return error ? error : step(marking);
}

/* Follow what is pending, and all that becomes so, but keep some in flight. */
static struct error *follow_pending(struct marking *marking, struct queue *queue, size_t keep)
{
	struct error *error = NULL;

	fill_queue(marking, queue);
	while (queue->count > keep && !error) {
		error = follow_first(marking, queue);
		fill_queue(marking, queue);
	}
	return error;
}

static struct error *follow_all(struct marking *marking, const struct bitmap *from)
{
	struct queue queue = { .count = 0 };

	bitmap_for_each(id, from) {
		struct error *error = pending_push(&marking->pending, (allocation_id)id);

		if (!error)
			error = follow_pending(marking, &queue, QUEUE - 1);
		if (error)
			return error;
	}
	return follow_pending(marking, &queue, 0);
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
		return graph_mark_jointly(graph, from, reached, threads, account, progress);
	error = follow_all(&marking, from);
	memory_release(&marking.pending.memory);
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
