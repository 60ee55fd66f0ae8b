
#include "analyzer/base/parallel.h"
#include "tests/assertions.h"

#include <string.h>

enum { THREADS = 4, DEPTH = 14, ROOM = 2 * WORK_POOL_ITEMS };

/* A tree of that depth is followed: each item is the height of a subtree. */
struct tree {
	struct work_pool *pool;
	atomic_uint nodes;
	unsigned int bad_from; /* nodes, from which on each is an error */
};

/* Follow all that is pending; give half of it to those that want some. */
static struct error *follow(struct tree *tree, uint32_t *pending, size_t count)
{
	while (count > 0) {
		uint32_t height = pending[--count];

		if (atomic_fetch_add(&tree->nodes, 1) >= tree->bad_from)
			return error_create(ERROR_BAD_DUMP, "node is bad");
		if (height == 0)
			continue;
		pending[count++] = height - 1;
		pending[count++] = height - 1;
		if (work_pool_wants(tree->pool) &&
		    work_pool_give(tree->pool, pending + count - count / 2, count / 2))
			count -= count / 2;
	}
	return NULL;
}

static struct error *work(void *data, size_t chunk, unsigned int thread)
{
	struct tree *tree = data;
	_cleanup_(free) uint32_t *pending = calloc(ROOM, sizeof(*pending));
	struct error *error;
	size_t count = chunk == 0;

	assert_non_null(pending);
	pending[0] = DEPTH;
	work_pool_enter(tree->pool);
	do {
		error = follow(tree, pending, count);
		if (error)
			work_pool_end(tree->pool);
		else
			count = work_pool_take(tree->pool, pending);
	} while (!error && count > 0);
	return error;
}

TEST(all_is_followed_once_on_any_number_of_threads)
{
	for (unsigned int threads = 1; threads <= THREADS; threads++) {
		_cleanup_(work_pool_destroy) struct work_pool *pool = NULL;
		struct tree tree = { .bad_from = UINT32_MAX };

		assert_no_error(work_pool_create(&pool));
		tree.pool = pool;
		assert_no_error(parallel_for(threads, threads, work, &tree));
		assert_int_equal(tree.nodes, (2 << DEPTH) - 1);
	}
}

TEST(nothing_is_given_when_nobody_waits)
{
	_cleanup_(work_pool_destroy) struct work_pool *pool = NULL;
	uint32_t item = 1;

	assert_no_error(work_pool_create(&pool));
	work_pool_enter(pool);
	assert_false(work_pool_wants(pool));
	assert_false(work_pool_give(pool, &item, 1));
	assert_int_equal(work_pool_take(pool, &item), 0);
}

/* Waiting threads do not wait forever. */
TEST(error_of_one_thread_ends_all)
{
	_cleanup_(work_pool_destroy) struct work_pool *pool = NULL;
	struct tree tree = { .bad_from = 1 << (DEPTH - 1) };

	assert_no_error(work_pool_create(&pool));
	tree.pool = pool;
	assert_error(parallel_for(THREADS, THREADS, work, &tree), ERROR_BAD_DUMP, "node is bad");
}
