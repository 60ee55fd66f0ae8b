
#include "analyzer/base/parallel.h"
#include "tests/assertions.h"

#include <sched.h>

enum { CHUNKS = 1000, THREADS = 8 };

struct race {
	struct relay relay;
	size_t order[CHUNKS], count; /* of chunks that had the baton */
	size_t bad;		     /* this chunk fails */
};

static struct error *work(void *data, size_t chunk, unsigned int thread)
{
	struct race *race = data;

	for (size_t i = 0; i < chunk * 7 % 5; i++)
		sched_yield();
	if (chunk == race->bad) {
		relay_end(&race->relay);
		return error_create(ERROR_BAD_DUMP, "chunk is bad");
	}
	if (!relay_take(&race->relay, chunk))
		return NULL;
	race->order[race->count++] = chunk;
	relay_pass(&race->relay);
	return NULL;
}

TEST(baton_goes_from_chunk_to_turn_in_order)
{
	struct race race = { .bad = CHUNKS };

	relay_init(&race.relay);
	assert_no_error(parallel_for(CHUNKS, THREADS, work, &race));
	assert_int_equal(race.count, CHUNKS);
	for (size_t i = 0; i < CHUNKS; i++)
		assert_int_equal(race.order[i], i);
	relay_deinit(&race.relay);
}

TEST(nobody_waits_for_a_chunk_that_failed)
{
	struct race race = { .bad = CHUNKS / 2 };

	relay_init(&race.relay);
	assert_error(parallel_for(CHUNKS, THREADS, work, &race), ERROR_BAD_DUMP, "chunk is bad");
	assert_true(race.count <= CHUNKS / 2);
	for (size_t i = 0; i < race.count; i++)
		assert_int_equal(race.order[i], i);
	relay_deinit(&race.relay);
}
