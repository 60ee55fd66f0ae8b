#include "analyzer/base/parallel.h"

#include <sched.h>
#include <string.h>

struct loop {
	size_t chunks;
	struct error *(*work)(void *data, size_t chunk, unsigned int thread);
	void *data;
	atomic_size_t next_chunk;
	atomic_uint next_thread;
	struct error *_Atomic error;
};

unsigned int parallel_threads(void)
{
	cpu_set_t set;
	int count;

	if (sched_getaffinity(0, sizeof(set), &set) < 0)
		return 1;
	count = CPU_COUNT(&set);
	return count < 1 ? 1 : count > MOST_LOOP_THREADS ? MOST_LOOP_THREADS : (unsigned int)count;
}

unsigned int parallel_threads_for(const struct progress *progress)
{
	if (progress->threads == 0)
		return parallel_threads();
	return progress->threads < MOST_LOOP_THREADS ? progress->threads : MOST_LOOP_THREADS;
}

void split_work_begin(struct split_work *work, const struct progress *progress, size_t chunks)
{
	*work = (struct split_work){ .chunks = chunks };
	if (progress->splits && progress->split_count < MOST_SPLITS)
		work->amounts = calloc(chunks + 1, sizeof(*work->amounts));
}

/* The most of one of so many threads, each chunk going to who has done least. */
static uint64_t divide_evenly(const struct split_work *work, unsigned int threads)
{
	uint64_t done[MOST_LOOP_THREADS] = { 0 }, most = 0;

	for (size_t chunk = 0; chunk < work->chunks; chunk++) {
		unsigned int least = 0;

		for (unsigned int i = 1; i < threads; i++)
			if (done[i] < done[least])
				least = i;
		done[least] += work->amounts[chunk];
		if (done[least] > most)
			most = done[least];
	}
	return most;
}

void split_work_keep(struct split_work *work, unsigned int threads, struct progress *progress)
{
	struct work_split *split;

	if (!progress->splits || progress->split_count == MOST_SPLITS)
		return;
	split = &progress->splits[progress->split_count++];
	*split = (struct work_split){ .task = progress->task };
	if (work->amounts)
		split->even = divide_evenly(work, threads);
	free(work->amounts);
	work->amounts = NULL;
	for (unsigned int i = 0; i < MOST_LOOP_THREADS; i++) {
		split->threads += work->done[i] > 0;
		split->total += work->done[i];
		if (work->done[i] > split->most)
			split->most = work->done[i];
		if (work->largest[i] > split->largest)
			split->largest = work->largest[i];
	}
}

static void *run(void *argument)
{
	struct loop *loop = argument;
	unsigned int thread = atomic_fetch_add(&loop->next_thread, 1);

	while (!atomic_load(&loop->error)) {
		size_t chunk = atomic_fetch_add(&loop->next_chunk, 1);
		struct error *error, *none = NULL;

		if (chunk >= loop->chunks)
			break;
		error = loop->work(loop->data, chunk, thread);
		if (error && !atomic_compare_exchange_strong(&loop->error, &none, error))
			error_destroy(error);
	}
	return NULL;
}

struct error *parallel_for(size_t chunks, unsigned int threads,
			   struct error *(*work)(void *data, size_t chunk, unsigned int thread),
			   void *data)
{
	struct loop loop = { .chunks = chunks, .work = work, .data = data };
	pthread_t others[MOST_LOOP_THREADS];
	unsigned int started = 0;

	/* A thread that cannot be had leaves its chunks to the others. */
	while (started + 1 < threads && started < MOST_LOOP_THREADS && started + 1 < chunks &&
	       pthread_create(&others[started], NULL, run, &loop) == 0)
		started++;
	run(&loop);
	for (unsigned int i = 0; i < started; i++)
		pthread_join(others[i], NULL);
	return atomic_load(&loop.error);
}

struct error *split_work_run(struct split_work *work, struct progress *progress, size_t chunks,
			     unsigned int threads,
			     struct error *(*take)(void *data, size_t chunk, unsigned int thread),
			     void *data)
{
	struct error *error;

	split_work_begin(work, progress, chunks);
	error = parallel_for(chunks, threads, take, data);
	split_work_keep(work, threads, progress);
	return error;
}

/* With no attributes, none of this fails. */
void relay_init(struct relay *relay)
{
	*relay = (struct relay){ .next = 0 };
	pthread_mutex_init(&relay->mutex, NULL);
	for (size_t i = 0; i < MOST_LOOP_THREADS; i++)
		pthread_cond_init(&relay->passed[i], NULL);
}

void relay_deinit(struct relay *relay)
{
	for (size_t i = 0; i < MOST_LOOP_THREADS; i++)
		pthread_cond_destroy(&relay->passed[i]);
	pthread_mutex_destroy(&relay->mutex);
}

static pthread_cond_t *passed_to(struct relay *relay, size_t number)
{
	return &relay->passed[number % MOST_LOOP_THREADS];
}

bool relay_take(struct relay *relay, size_t number)
{
	bool ended;

	pthread_mutex_lock(&relay->mutex);
	while (relay->next != number && !relay->ended)
		pthread_cond_wait(passed_to(relay, number), &relay->mutex);
	ended = relay->ended;
	pthread_mutex_unlock(&relay->mutex);
	return !ended;
}

void relay_pass(struct relay *relay)
{
	pthread_mutex_lock(&relay->mutex);
	relay->next++;
	pthread_cond_broadcast(passed_to(relay, relay->next));
	pthread_mutex_unlock(&relay->mutex);
}

void relay_end(struct relay *relay)
{
	pthread_mutex_lock(&relay->mutex);
	relay->ended = true;
	for (size_t i = 0; i < MOST_LOOP_THREADS; i++)
		pthread_cond_broadcast(&relay->passed[i]);
	pthread_mutex_unlock(&relay->mutex);
}

struct error *work_pool_create(struct work_pool **ret)
{
	struct work_pool *pool = calloc(1, sizeof(*pool));

	TRY_MEMORY(pool);
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
