/*
 * The graph here is made up, and so is how its members are marked.
 */
#include "analyzer/kinds/reach.h"

#include "tests/analyzer/graph/made_world.h"
#include "tests/random.h"

enum { COUNT = 60, GROUPS = 150 };

static void mark_from(const struct graph *graph, const struct bitmap *within, allocation_id id,
		      struct bitmap *reached)
{
	struct edges edges = graph_outgoing(graph, id);

	if (!bitmap_get(within, id) || bitmap_get(reached, id))
		return;
	bitmap_set(reached, id);
	for (size_t i = 0; i < edges.count; i++)
		mark_from(graph, within, edges.targets[i], reached);
}

struct error *graph_mark_within(const struct graph *graph, const struct bitmap *within,
				const struct bitmap *from, struct bitmap *reached,
				struct memory_account *account, struct progress *progress)
{
	bitmap_for_each(id, from)
		mark_from(graph, within, (allocation_id)id, reached);
	return NULL;
}

static struct reach_input input_of(struct world *world, const uint32_t *groups)
{
	return (struct reach_input){
		.graph = &world->graph,
		.index = world->index,
		.members = &world->members,
		.groups = groups,
		.group_count = GROUPS,
		.account = &world->account,
		.progress = &world->progress,
	};
}

TEST(group_reaches_what_it_leads_to_once)
{
	static const uint32_t groups[] = { 7, 7, NO_GROUP, 8, NO_GROUP };
	_cleanup_(world_deinit) struct world world;
	uint64_t bytes[GROUPS];
	struct reach_input input;

	world_draw(&world, "a>c b>d c>d>ce");
	input = input_of(&world, groups);
	assert_no_error(reach_by_group(&input, bytes));
	assert_int_equal(bytes[7], size_of(0) + size_of(1) + size_of(2) + size_of(3) + size_of(4));
	assert_int_equal(bytes[8], size_of(2) + size_of(3) + size_of(4));
	assert_int_equal(bytes[9], 0);
}

TEST(what_is_no_member_leads_nowhere)
{
	static const uint32_t groups[] = { 0, NO_GROUP, NO_GROUP };
	_cleanup_(world_deinit) struct world world;
	uint64_t bytes[GROUPS];
	struct reach_input input;

	world_draw(&world, "a>b>c");
	bitmap_clear(&world.members, 1);
	input = input_of(&world, groups);
	assert_no_error(reach_by_group(&input, bytes));
	assert_int_equal(bytes[0], size_of(0));
}

static void make_random(struct world *world, uint32_t *groups)
{
	struct edge edges[3 * COUNT];
	size_t count = random_below(3 * COUNT);

	for (size_t i = 0; i < count; i++)
		edges[i] = (struct edge){ (allocation_id)random_below(COUNT),
					  (allocation_id)random_below(COUNT) };
	world_make(world, COUNT, NULL, edges, count);
	for (allocation_id id = 0; id < COUNT; id++) {
		groups[id] = NO_GROUP;
		if (random_below(10) == 0)
			bitmap_clear(&world->members, id);
		else if (random_below(4))
			groups[id] = (uint32_t)random_below(GROUPS);
	}
}

/* The bytes that the group reaches by marking from its members. */
static uint64_t marked(struct world *world, const uint32_t *groups, uint32_t group)
{
	_cleanup_(bitmap_deinit) struct bitmap reached = { 0 };
	uint64_t bytes = 0;

	assert_no_error(bitmap_init(&reached, COUNT, &world->account));
	bitmap_for_each(id, &world->members)
		if (groups[id] == group)
			mark_from(&world->graph, &world->members, (allocation_id)id, &reached);
	bitmap_for_each(id, &reached)
		bytes += size_of(id);
	return bytes;
}

/* Check count groups, without the others. */
static void check_random(size_t count)
{
	_cleanup_(world_deinit) struct world world;
	uint32_t groups[COUNT];
	uint64_t bytes[GROUPS];
	struct reach_input input;

	make_random(&world, groups);
	input = input_of(&world, groups);
	input.group_count = count;
	assert_no_error(reach_by_group(&input, bytes));
	for (uint32_t group = 0; group < count; group++)
		assert_int_equal(bytes[group], marked(&world, groups, group));
}

TEST(many_groups_reach_what_marking_finds)
{
	for (int i = 0; i < 300; i++)
		check_random(GROUPS);
}

TEST(groups_beyond_the_last_do_not_matter)
{
	for (size_t count = 1; count < GROUPS; count += 31)
		check_random(count);
}

TEST(groups_are_as_many_as_there_is_time_for)
{
	const uint64_t fewest = 1 << 27, bytes = UINT64_C(1) << 32;
	_cleanup_(world_deinit) struct world world;
	struct reach_input input;

	world_make(&world, COUNT, NULL, (struct edge[]){ { 0, 1 } }, 1);
	input = input_of(&world, NULL);
	assert_int_equal(reach_most_groups(&input, 0), GROUPS);
	input.group_count = SIZE_MAX / 2;
	assert_in_range(reach_most_groups(&input, 0), 64 * (fewest / (COUNT + 4)),
			64 * fewest / COUNT);
	assert_in_range(reach_most_groups(&input, bytes), 32 * (bytes / (COUNT + 4)),
			32 * bytes / COUNT);
	input.group_count = 64 * 1000;
	assert_int_equal(reach_most_groups(&input, 0), 64 * 1000);
}

TEST(one_reaches_what_it_leads_to)
{
	_cleanup_(world_deinit) struct world world;
	struct reach_input input;
	uint64_t bytes = 0;

	world_draw(&world, "a>b>ac d>a");
	input = input_of(&world, NULL);
	assert_no_error(reach_of(&input, 0, &bytes));
	assert_int_equal(bytes, size_of(0) + size_of(1) + size_of(2));
}

TEST(interrupt_ends_it)
{
	static const uint32_t groups[] = { 0 };
	_cleanup_(world_deinit) struct world world;
	uint64_t bytes[GROUPS];
	struct reach_input input;

	world_draw(&world, "a");
	atomic_store(&world.progress.interrupted, true);
	input = input_of(&world, groups);
	assert_error(reach_by_group(&input, bytes), ERROR_INTERRUPTED, "interrupted");
}
