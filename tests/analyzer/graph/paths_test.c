#include "analyzer/graph/paths.h"

#include "tests/analyzer/graph/made_world.h"

enum { COUNT = 64 };

static struct error *find(struct world *world, allocation_id target, struct path *ret)
{
	return path_find(&world->graph, &world->incoming, &world->roots, target, &world->account,
			 &world->progress, ret);
}

/* The path from the nearest source to target; all are given by letter. */
static void check_path(const char *sources, char target, const char *expected)
{
	_cleanup_(world_deinit) struct world world;
	_cleanup_(path_deinit) struct path path = { 0 };

	world_draw(&world, "a>b>c>d>e>d f>d g>g h");
	for (; *sources; sources++)
		bitmap_set(&world.roots, drawn_id(*sources));
	assert_no_error(find(&world, drawn_id(target), &path));
	assert_int_equal(path.count, strlen(expected));
	for (size_t i = 0; i < path.count; i++)
		assert_int_equal(path.ids[i], drawn_id(expected[i]));
}

TEST(path_leads_from_the_nearest_source_to_the_target)
{
	check_path("a", 'e', "abcde");
	check_path("ac", 'e', "cde");
	check_path("af", 'e', "fde");
}

TEST(target_that_is_a_source_is_the_whole_path)
{
	check_path("cd", 'd', "d");
	check_path("g", 'g', "g");
}

TEST(there_may_be_no_path)
{
	check_path("h", 'e', "");
	check_path("", 'g', "");
	check_path("e", 'a', "");
}

TEST(interrupt_ends_the_search)
{
	_cleanup_(world_deinit) struct world world;
	struct path path = { 0 };

	world_draw(&world, "root>a>b>c>d>e");
	world.progress.interrupted = true;
	assert_error(find(&world, 4, &path), ERROR_INTERRUPTED, "interrupted");
	assert_null(path.ids);
}

/* Random edges that lead no farther ahead than that. */
static void make_random(struct world *world, allocation_id forth)
{
	struct edge edges[COUNT * COUNT];
	size_t count = 0;

	for (allocation_id from = 0; from < COUNT; from++)
		for (allocation_id to = 0; to < COUNT; to++)
			if (from != to && to <= from + forth &&
			    (to == from + forth || rand() % 4 == 0))
				edges[count++] = (struct edge){ from, to };
	world_make(world, COUNT, NULL, edges, count);
	for (int i = rand() % 3; i >= 0; i--)
		bitmap_set(&world->roots, (size_t)rand() % COUNT);
}

/* A long path is there without its middle. */
static void check_same_path(struct world *world, struct distances *distances, allocation_id target)
{
	_cleanup_(path_deinit) struct path expected = { 0 }, path = { 0 };

	assert_no_error(find(world, target, &expected));
	assert_no_error(distances_path(distances, &world->incoming, target, &path));
	assert_int_equal(expected.gap, 0);
	assert_int_equal(path.count + path.gap, expected.count);
	if (path.gap)
		assert_int_equal(path.count, 2 * PATH_END);
	for (size_t i = 0; i < path.count; i++)
		assert_int_equal(path.ids[i], expected.ids[i < PATH_END ? i : i + path.gap]);
}

TEST(distances_lead_the_way_that_a_search_finds)
{
	for (unsigned int seed = 0; seed < 500; seed++) {
		_cleanup_(world_deinit) struct world world;
		struct distances *distances;

		srand(seed);
		make_random(&world, seed % 2 ? COUNT : 1 + (unsigned int)rand() % 3);
		assert_no_error(distances_create(&world.graph, &world.roots, &world.account,
						 &world.progress, &distances));
		for (allocation_id target = 0; target < COUNT; target++)
			check_same_path(&world, distances, target);
		distances_destroy(distances);
	}
}
