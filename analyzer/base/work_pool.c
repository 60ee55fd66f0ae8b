#include "analyzer/base/work_pool.h"

#include <stdlib.h>
#include <string.h>

struct error *work_pool_create(struct work_pool **ret)
{
	struct work_pool *pool = calloc(1, sizeof(*pool));

	if (!pool)
		return &error_no_memory;
	/* With no attributes, these do not fail. */
	pthread_mutex_init(&pool->mutex, NULL);
	pthread_cond_init(&pool->changed, NULL);
	*ret = pool;
	return NULL;
}

void work_pool_destroy(struct work_pool *pool)
{
	pthread_cond_destroy(&pool->changed);
	pthread_mutex_destroy(&pool->mutex);
	free(pool);
}

void work_pool_enter(struct work_pool *pool)
{
	pthread_mutex_lock(&pool->mutex);
	pool->working++;
	pthread_mutex_unlock(&pool->mutex);
}

bool work_pool_give(struct work_pool *pool, const uint32_t *items, size_t count)
{
	bool taken;

	pthread_mutex_lock(&pool->mutex);
	taken = pool->waiting > 0 && pool->count == 0 && !pool->ended;
	if (taken) {
		memcpy(pool->items, items, count * sizeof(*items));
		pool->count = count;
		pthread_cond_broadcast(&pool->changed);
	}
	pthread_mutex_unlock(&pool->mutex);
	return taken;
}

size_t work_pool_take(struct work_pool *pool, uint32_t *ret_items)
{
	size_t count = 0;

	pthread_mutex_lock(&pool->mutex);
	pool->working--;
	pool->waiting++;
	while (pool->count == 0 && pool->working > 0 && !pool->ended)
		pthread_cond_wait(&pool->changed, &pool->mutex);
	if (!pool->ended && pool->count > 0) {
		/* The others who wait have as much each. */
		count = (pool->count + pool->waiting - 1) / pool->waiting;
		pool->count -= count;
		memcpy(ret_items, pool->items + pool->count, count * sizeof(*ret_items));
		pool->working++;
	} else {
		pool->ended = true;
		pthread_cond_broadcast(&pool->changed);
	}
	pool->waiting--;
	pthread_mutex_unlock(&pool->mutex);
	return count;
}

void work_pool_end(struct work_pool *pool)
{
	pthread_mutex_lock(&pool->mutex);
	pool->working--;
	pool->ended = true;
	pthread_cond_broadcast(&pool->changed);
	pthread_mutex_unlock(&pool->mutex);
}
