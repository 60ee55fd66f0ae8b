/*
 * What threads that follow a graph give each other, when one has nothing left to follow and another
 * has plenty.
 *
 * Each thread keeps what it has to follow, and looks here now and then only: one that has plenty
 * gives some when others wait, and one that has nothing left waits until some is given, or all of
 * them wait. So the lock is taken a few times in a thousand steps at most, and one chain of links,
 * which nobody can split, is followed by one thread while the others sleep.
 */
#ifndef ANALYZER_BASE_WORK_POOL_H
#define ANALYZER_BASE_WORK_POOL_H

#include "analyzer/base/error.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/* Whether someone waits for what is not there; may be out of date. */
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

#endif
