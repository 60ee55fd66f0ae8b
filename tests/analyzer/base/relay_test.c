#include "analyzer/base/relay.h"

#include "analyzer/base/parallel.h"
#include "tests/assertions.h"

#include <sched.h>

enum { TURNS = 1000, THREADS = 8 };

struct race {
	struct relay relay;
	size_t order[TURNS], count; /* of turns that had the baton */
	size_t bad;		    /* this turn fails */
};

static struct error *work(void *data, size_t turn, unsigned int thread)
{
	struct race *race = data;

	for (size_t i = 0; i < turn * 7 % 5; i++)
		sched_yield();
	if (turn == race->bad) {
		relay_end(&race->relay);
		return error_create(ERROR_BAD_DUMP, "turn is bad");
	}
	if (!relay_take(&race->relay, turn))
		return NULL;
	race->order[race->count++] = turn;
	relay_pass(&race->relay);
	return NULL;
}

static void test_baton_goes_from_turn_to_turn_in_order(void **state)
{
	struct race race = { .bad = TURNS };

	relay_init(&race.relay);
	assert_no_error(parallel_for(TURNS, THREADS, work, &race));
	assert_int_equal(race.count, TURNS);
	for (size_t i = 0; i < TURNS; i++)
		assert_int_equal(race.order[i], i);
	relay_deinit(&race.relay);
}

static void test_nobody_waits_for_a_turn_that_failed(void **state)
{
	struct race race = { .bad = TURNS / 2 };

	relay_init(&race.relay);
	assert_error(parallel_for(TURNS, THREADS, work, &race), ERROR_BAD_DUMP, "turn is bad");
	assert_true(race.count <= TURNS / 2);
	for (size_t i = 0; i < race.count; i++)
		assert_int_equal(race.order[i], i);
	relay_deinit(&race.relay);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_baton_goes_from_turn_to_turn_in_order),
		cmocka_unit_test(test_nobody_waits_for_a_turn_that_failed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
