/*
 * The graph here is made up: this file answers what is asked of it.
 */
#include "analyzer/kinds/reach.h"

#include "tests/analyzer/heap/made_index.h"

#include <stdlib.h>
#include <string.h>

enum { COUNT = 60, GROUPS = 150 };

struct graph {
	allocation_id targets[COUNT][COUNT];
	size_t counts[COUNT];
};

struct edges graph_outgoing(const struct graph *graph, allocation_id id)
{
	return (struct edges){ graph->targets[id], graph->counts[id] };
}

uint64_t graph_edge_count(const struct graph *graph)
{
	uint64_t count = 0;

	for (size_t i = 0; i < COUNT; i++)
		count += graph->counts[i];
	return count;
}

static void mark_from(const struct graph *graph, const struct bitmap *within, allocation_id id,
		      struct bitmap *reached)
{
	if (!bitmap_get(within, id) || bitmap_get(reached, id))
		return;
	bitmap_set(reached, id);
	for (size_t i = 0; i < graph->counts[id]; i++)
		mark_from(graph, within, graph->targets[id][i], reached);
}

struct error *graph_mark_within(const struct graph *graph, const struct bitmap *within,
				const struct bitmap *from, struct bitmap *reached,
				struct memory_account *account, struct progress *progress)
{
	bitmap_for_each(id, from)
		mark_from(graph, within, (allocation_id)id, reached);
	return NULL;
}

struct world {
	struct memory_account account;
	struct progress progress;
	struct graph graph;
	struct allocation_index *index;
	struct bitmap members; /* all, at first */
	uint32_t groups[COUNT];
};

static void world_init(struct world *world)
{
	*world = (struct world){ 0 };
	world->index = index_make(&world->account, COUNT, NULL);
	assert_no_error(bitmap_init(&world->members, COUNT, &world->account));
	bitmap_fill(&world->members);
	for (size_t i = 0; i < COUNT; i++)
		world->groups[i] = NO_GROUP;
}

static void world_deinit(struct world *world)
{
	allocation_index_destroy(world->index);
	bitmap_deinit(&world->members);
	assert_int_equal(world->account.used, 0);
}
DEFINE_DEINIT(world_deinit, struct world)

static void refer(struct world *world, allocation_id from, allocation_id to)
{
	struct graph *graph = &world->graph;

	if (graph->counts[from] < COUNT)
		graph->targets[from][graph->counts[from]++] = to;
}

static struct reach_input input_of(struct world *world)
{
	return (struct reach_input){
		.graph = &world->graph,
		.index = world->index,
		.members = &world->members,
		.groups = world->groups,
		.group_count = GROUPS,
		.account = &world->account,
		.progress = &world->progress,
	};
}

static void find(struct world *world, uint64_t bytes[static GROUPS])
{
	struct reach_input input = input_of(world);

	assert_no_error(reach_by_group(&input, bytes));
}

static void test_group_reaches_what_it_leads_to_once(void **state)
{
	_cleanup_(world_deinit) struct world world;
	uint64_t bytes[GROUPS];

	/* 0 and 1 are of a group, and both lead to 3; 3 leads back to 2. */
	world_init(&world);
	world.groups[0] = world.groups[1] = 7;
	world.groups[3] = 8;
	refer(&world, 0, 2);
	refer(&world, 1, 3);
	refer(&world, 2, 3);
	refer(&world, 3, 2);
	refer(&world, 3, 4);
	find(&world, bytes);
	assert_int_equal(bytes[7], size_of(0) + size_of(1) + size_of(2) + size_of(3) + size_of(4));
	assert_int_equal(bytes[8], size_of(2) + size_of(3) + size_of(4));
	assert_int_equal(bytes[9], 0);
}

static void test_what_is_no_member_leads_nowhere(void **state)
{
	_cleanup_(world_deinit) struct world world;
	uint64_t bytes[GROUPS];

	world_init(&world);
	world.groups[0] = 0;
	refer(&world, 0, 1);
	refer(&world, 1, 2);
	bitmap_clear(&world.members, 1);
	find(&world, bytes);
	assert_int_equal(bytes[0], size_of(0));
}

static unsigned int random_below(unsigned int limit)
{
	static uint64_t state = 1;

	state = state * 6364136223846793005 + 1442695040888963407;
	return (unsigned int)(state >> 33) % limit;
}

static void fill_at_random(struct world *world)
{
	unsigned int edges = random_below(3 * COUNT);

	for (unsigned int i = 0; i < edges; i++)
		refer(world, random_below(COUNT), random_below(COUNT));
	for (allocation_id id = 0; id < COUNT; id++) {
		if (random_below(10) == 0)
			bitmap_clear(&world->members, id);
		else if (random_below(4))
			world->groups[id] = random_below(GROUPS);
	}
}

/* What the group reaches by marking from its members. */
static uint64_t marked(struct world *world, uint32_t group)
{
	_cleanup_(bitmap_deinit) struct bitmap reached = { 0 };
	uint64_t bytes = 0;

	assert_no_error(bitmap_init(&reached, COUNT, &world->account));
	bitmap_for_each(id, &world->members)
		if (world->groups[id] == group)
			mark_from(&world->graph, &world->members, (allocation_id)id, &reached);
	bitmap_for_each(id, &reached)
		bytes += size_of(id);
	return bytes;
}

static void test_many_groups_reach_what_marking_finds(void **state)
{
	for (int i = 0; i < 300; i++) {
		_cleanup_(world_deinit) struct world world;
		uint64_t bytes[GROUPS];

		world_init(&world);
		fill_at_random(&world);
		find(&world, bytes);
		for (uint32_t group = 0; group < GROUPS; group++)
			assert_int_equal(bytes[group], marked(&world, group));
	}
}

static void test_groups_beyond_the_last_do_not_matter(void **state)
{
	for (size_t count = 1; count < GROUPS; count += 31) {
		_cleanup_(world_deinit) struct world world;
		struct reach_input input;
		uint64_t bytes[GROUPS];

		world_init(&world);
		fill_at_random(&world);
		input = input_of(&world);
		input.group_count = count;
		assert_no_error(reach_by_group(&input, bytes));
		for (uint32_t group = 0; group < count; group++)
			assert_int_equal(bytes[group], marked(&world, group));
	}
}

static void test_groups_are_as_many_as_there_is_time_for(void **state)
{
	const uint64_t fewest = 1 << 27, bytes = UINT64_C(1) << 32;
	_cleanup_(world_deinit) struct world world;
	struct reach_input input;

	world_init(&world);
	refer(&world, 0, 1);
	input = input_of(&world);
	assert_int_equal(reach_most_groups(&input, 0), GROUPS);
	input.group_count = SIZE_MAX / 2;
	assert_in_range(reach_most_groups(&input, 0), 64 * (fewest / (COUNT + 4)),
			64 * fewest / COUNT);
	assert_in_range(reach_most_groups(&input, bytes), 32 * (bytes / (COUNT + 4)),
			32 * bytes / COUNT);
	input.group_count = 64 * 1000;
	assert_int_equal(reach_most_groups(&input, 0), 64 * 1000);
}

static void test_one_reaches_what_it_leads_to(void **state)
{
	_cleanup_(world_deinit) struct world world;
	struct reach_input input;
	uint64_t bytes = 0;

	world_init(&world);
	refer(&world, 0, 1);
	refer(&world, 1, 0);
	refer(&world, 1, 2);
	refer(&world, 3, 0);
	input = input_of(&world);
	assert_no_error(reach_of(&input, 0, &bytes));
	assert_int_equal(bytes, size_of(0) + size_of(1) + size_of(2));
}

static void test_interrupt_ends_it(void **state)
{
	_cleanup_(world_deinit) struct world world;
	uint64_t bytes[GROUPS];
	struct reach_input input;

	world_init(&world);
	atomic_store(&world.progress.interrupted, true);
	input = input_of(&world);
	assert_error(reach_by_group(&input, bytes), ERROR_INTERRUPTED, "interrupted");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_group_reaches_what_it_leads_to_once),
		cmocka_unit_test(test_what_is_no_member_leads_nowhere),
		cmocka_unit_test(test_many_groups_reach_what_marking_finds),
		cmocka_unit_test(test_groups_beyond_the_last_do_not_matter),
		cmocka_unit_test(test_groups_are_as_many_as_there_is_time_for),
		cmocka_unit_test(test_one_reaches_what_it_leads_to),
		cmocka_unit_test(test_interrupt_ends_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
