/*
 * Work that is spread over the processors: loops, a baton for what must go in order, and a pool of
 * work for threads that follow a graph.
 */
#pragma once

#include "analyzer/base/error.h"
#include "analyzer/base/progress.h"

#include <pthread.h>

/* How many threads a loop may use: the processors this process may run on. */
unsigned int parallel_threads(void);

/* The number of threads for loops, unless the front end set it. */
unsigned int parallel_threads_for(const struct progress *progress);

/* How much each thread did of a loop that is split; all 0 at first. */
struct split_work {
	uint64_t done[MOST_LOOP_THREADS], largest[MOST_LOOP_THREADS];
	uint64_t *amounts; /* by chunk; NULL: nobody wants to know, or none */
	size_t chunks;
};

/* The loop will have so many chunks. */
void split_work_begin(struct split_work *work, const struct progress *progress, size_t chunks);

/*
 * Count what a chunk took, and tell progress of it: false when the loop must end. Each thread
 * counts for itself.
 */
static inline bool split_work_step(struct split_work *work, size_t chunk, unsigned int thread,
				   struct progress *progress, uint64_t amount)
{
	work->done[thread] += amount;
	if (amount > work->largest[thread])
		work->largest[thread] = amount;
	if (work->amounts)
		work->amounts[chunk] = amount;
	return progress_step(progress, amount);
}

/* Like split_work_step(), but returns NULL or the error that ends the loop. */
static inline struct error *split_work_check(struct split_work *work, size_t chunk,
					     unsigned int thread, struct progress *progress,
					     uint64_t amount)
{
	return split_work_step(work, chunk, thread, progress, amount)
		       ? NULL
		       : error_create(ERROR_INTERRUPTED, "interrupted");
}

/* Keep how the loop was split among so many threads, when it is done, if the front end wants it. */
void split_work_keep(struct split_work *work, unsigned int threads, struct progress *progress);

/*
 * Call work(data, chunk, thread) for every chunk below chunks, on up to threads threads, the
 * calling one among them; thread is below threads. Chunks are handed out in order. The first error
 * stops handing out and is returned.
 */
struct error *parallel_for(size_t chunks, unsigned int threads,
			   struct error *(*work)(void *data, size_t chunk, unsigned int thread),
			   void *data);

/* Like parallel_for(), and keep how the loop was split. */
struct error *split_work_run(struct split_work *work, struct progress *progress, size_t chunks,
			     unsigned int threads,
			     struct error *(*take)(void *data, size_t chunk, unsigned int thread),
			     void *data);

/*
 * A baton that the chunks of a loop pass on in order, so that each appends its results behind those
 * of the chunks before it.
 *
 * Chunks run side by side and end in any order. Each waits until the one before it has passed the
 * baton on. No chunk waits for one that is handed out later, so one always proceeds.
 */
struct relay {
	pthread_mutex_t mutex;
	/* Waiters, by number modulo their count: no more of them wait at once. */
	pthread_cond_t passed[MOST_LOOP_THREADS];
	size_t next;
	bool ended;
};

void relay_init(struct relay *relay);
void relay_deinit(struct relay *relay);
DEFINE_DEINIT(relay_deinit, struct relay)

/* Wait until all chunks below number, from 0 on, have passed the baton on; false: one ended it. */
bool relay_take(struct relay *relay, size_t number);

/* Pass the turn to the next one. */
void relay_pass(struct relay *relay);

/* A chunk failed, whether or not it has the baton: nobody else gets it. */
void relay_end(struct relay *relay);

/*
 * A pool of work for threads that follow a graph, where one has nothing left to follow and another
 * has plenty.
 *
 * Each thread keeps its own worklist, and looks here now and then: one that has plenty gives some
 * if others wait; one that has nothing left waits until some is given, or until all wait. So the
 * lock is taken a few times in a thousand steps at most, and one thread follows a chain of links,
 * which nobody can split, while the others sleep.
 */
enum { WORK_POOL_ITEMS = 1 << 14 };

struct work_pool {
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	unsigned int working; /* threads */
	atomic_uint waiting;
	bool ended;
	atomic_size_t count;
	uint32_t items[WORK_POOL_ITEMS];
};

struct error *work_pool_create(struct work_pool **ret);
void work_pool_destroy(struct work_pool *pool);
DEFINE_CLEANUP(work_pool_destroy, struct work_pool *)

/* The calling thread begins to work. */
void work_pool_enter(struct work_pool *pool);

/* True if a thread waits for work; may be out of date. */
static inline bool work_pool_wants(const struct work_pool *pool)
{
	return atomic_load_explicit(&pool->waiting, memory_order_relaxed) > 0 &&
	       atomic_load_explicit(&pool->count, memory_order_relaxed) == 0;
}

/*
 * Give count items, at most WORK_POOL_ITEMS; whether they were taken, which they are not if someone
 * else was faster.
 */
bool work_pool_give(struct work_pool *pool, const uint32_t *items, size_t count);

/*
 * Take up to WORK_POOL_ITEMS of what others give, and wait for it. Returns 0 when no thread has
 * anything left, or after work_pool_end(); the calling one no longer works then.
 */
size_t work_pool_take(struct work_pool *pool, uint32_t *ret_items);

/* The calling thread gives up, and so shall all that wait. */
void work_pool_end(struct work_pool *pool);
