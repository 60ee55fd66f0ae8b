#include "analyzer/graph/dominators.h"

#include "tests/analyzer/graph/made_world.h"

/* Small heaps are taken for large ones, in which references lead far. */
static bool leads_far;

/* The members are anchored; regions and own may be NULL. */
static struct error *find_all(struct world *world, struct dominator_roots roots,
			      const struct bitmap *regions, const struct bitmap *own,
			      struct graph **spent, struct dominators **ret)
{
	const struct dominators_input input = {
		.graph = &world->graph,
		.roots = roots,
		.regions = regions,
		.own = own,
		.spent = spent,
		.index = world->index,
		.entries = &world->roots,
		.anchored = &world->members,
		.leaked = &world->leaked,
		.account = &world->account,
		.progress = &world->progress,
		.leads_far = leads_far,
	};

	TRY(dominators_create(&input, ret));
	return dominators_find_positions(*ret);
}

static struct error *find_with(struct world *world, struct dominator_roots roots,
			       const struct bitmap *regions, struct graph **spent,
			       struct dominators **ret)
{
	return find_all(world, roots, regions, NULL, spent, ret);
}

static struct error *find_with_own(struct world *world, struct dominator_roots roots,
				   const struct bitmap *own, struct dominators **ret)
{
	return find_all(world, roots, NULL, own, NULL, ret);
}

static struct error *find_below(struct world *world, struct dominator_roots roots,
				struct graph **spent, struct dominators **ret)
{
	return find_with(world, roots, NULL, spent, ret);
}

static struct error *find_spending(struct world *world, struct graph **spent,
				   struct dominators **ret)
{
	return find_below(world, (struct dominator_roots){ 0 }, spent, ret);
}

static struct error *find(struct world *world, struct dominators **ret)
{
	return find_spending(world, NULL, ret);
}

/* Two roots, of which the first refers to a and c, and the second, of that rank, to d and e. */
static struct error *find_below_two(struct world *world, uint8_t rank, struct dominators **ret)
{
	static const uint32_t offsets[] = { 0, 2, 4 };
	static const allocation_id targets[] = { 0, 2, 3, 4 };
	const uint8_t ranks[] = { 0, rank };

	return find_below(world, (struct dominator_roots){ 2, ranks, offsets, targets }, NULL, ret);
}

static uint64_t held_by_root(const struct dominators *tree, size_t root)
{
	struct positions held = dominators_root(tree, root);

	return dominators_bytes(tree, held.begin, held.end);
}

static size_t root_of(const struct dominators *tree, allocation_id id)
{
	size_t position;

	assert_true(dominators_position(tree, id, &position));
	return dominators_root_of(tree, position);
}

static size_t first_root_of(const struct dominators *tree, allocation_id id)
{
	size_t position;

	assert_true(dominators_position(tree, id, &position));
	return dominators_first_root(tree, position);
}

static bool dominates(const struct dominators *tree, allocation_id holder, allocation_id id)
{
	size_t above, below;

	assert_true(dominators_position(tree, holder, &above));
	assert_true(dominators_position(tree, id, &below));
	return above <= below && below < dominators_end(tree, above);
}

/* Assert the retained size of each, in the order of their letters. */
static void assert_retained(const struct dominators *tree, size_t count, const uint64_t *expected)
{
	for (size_t i = 0; i < count; i++)
		assert_int_equal(dominators_retained(tree, (allocation_id)i), expected[i]);
}

#define ASSERT_RETAINED(tree, ...)                                                      \
	assert_retained((tree), sizeof((uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t), \
			(const uint64_t[]){ __VA_ARGS__ })

TEST(what_two_ways_lead_to_is_retained_where_they_part)
{
	_cleanup_(world_deinit) struct world world;
	_cleanup_(dominators_destroy) struct dominators *tree = NULL;

	world_draw(&world, "root>a a>bc>d>e>a");
	assert_no_error(find(&world, &tree));
	ASSERT_RETAINED(tree, 8 + 9 + 10 + 11 + 12, 9, 10, 11 + 12, 12);
	assert_true(dominates(tree, 0, 4));
	assert_false(dominates(tree, 1, 3));
	assert_false(dominates(tree, 4, 3));
}

TEST(what_an_entry_is_no_other_retains)
{
	_cleanup_(world_deinit) struct world world;
	_cleanup_(dominators_destroy) struct dominators *tree = NULL;

	world_draw(&world, "root>ac a>b>c");
	assert_no_error(find(&world, &tree));
	ASSERT_RETAINED(tree, 8 + 9, 9, 10);
}

TEST(all_that_a_root_refers_to_is_held_by_it)
{
	_cleanup_(world_deinit) struct world world;
	_cleanup_(dominators_destroy) struct dominators *tree = NULL;

	world_draw(&world, "a>b c>b d>f e>f");
	assert_no_error(find_below_two(&world, 0, &tree));
	ASSERT_RETAINED(tree, 8, 9, 10, 11, 12, 13);
	assert_int_equal(dominators_count(tree), 6);
	assert_int_equal(held_by_root(tree, 0), 8 + 9 + 10);
	assert_int_equal(held_by_root(tree, 1), 11 + 12 + 13);
	assert_int_equal(root_of(tree, 1), 0);
	assert_int_equal(root_of(tree, 5), 1);
}

/* a and b are of a region, d and e of another. */
TEST(only_its_root_holds_what_is_in_a_region)
{
	static const uint32_t offsets[] = { 0, 2, 4 };
	static const allocation_id targets[] = { 0, 1, 3, 4 };
	static const uint8_t ranks[] = { 0, 0 };
	_cleanup_(world_deinit) struct world world;
	_cleanup_(dominators_destroy) struct dominators *tree = NULL;
	_cleanup_(bitmap_deinit) struct bitmap regions = { 0 };

	world_draw(&world, "a>dc b>e d>a e>f f>b");
	assert_no_error(bitmap_init(&regions, 6, &world.account));
	for (size_t i = 0; i < 4; i++)
		bitmap_set(&regions, targets[i]);
	assert_no_error(find_with(&world, (struct dominator_roots){ 2, ranks, offsets, targets },
				  &regions, NULL, &tree));
	assert_int_equal(held_by_root(tree, 0), 8 + 9 + 10);
	assert_int_equal(held_by_root(tree, 1), 11 + 12 + 13);
	assert_true(dominates(tree, 0, 2));
}

/* a is an object of the language that b leads to; c to e are of the program that embeds it. */
TEST(what_a_program_has_for_itself_is_not_held_by_objects)
{
	static const uint32_t offsets[] = { 0, 1, 2 };
	static const allocation_id targets[] = { 1, 3 };
	static const uint8_t ranks[] = { 0, 1 };
	_cleanup_(world_deinit) struct world world;
	_cleanup_(dominators_destroy) struct dominators *tree = NULL;
	_cleanup_(bitmap_deinit) struct bitmap own = { 0 };

	world_draw(&world, "b>a a>c d>c c>e d>a");
	assert_no_error(bitmap_init(&own, 5, &world.account));
	bitmap_set(&own, 2);
	bitmap_set(&own, 3);
	bitmap_set(&own, 4);
	assert_no_error(find_with_own(
		&world, (struct dominator_roots){ 2, ranks, offsets, targets }, &own, &tree));
	assert_int_equal(held_by_root(tree, 0), 8 + 9);
	assert_int_equal(held_by_root(tree, 1), 10 + 11 + 12);
	assert_true(dominates(tree, 2, 4));
}

TEST(what_roots_of_one_rank_lead_to_is_held_by_neither)
{
	_cleanup_(world_deinit) struct world world;
	_cleanup_(dominators_destroy) struct dominators *tree = NULL;

	world_draw(&world, "a>b c>b d>b e>b");
	assert_no_error(find_below_two(&world, 0, &tree));
	assert_int_equal(held_by_root(tree, 0), 8 + 10);
	assert_int_equal(held_by_root(tree, 1), 11 + 12);
	assert_int_equal(root_of(tree, 1), NO_ROOT);
}

/* Both roots lead to b, f and its leaf g; c is of the first, e of the second, h of neither. */
TEST(the_first_root_that_leads_to_what_several_hold_is_known)
{
	_cleanup_(world_deinit) struct world world;
	_cleanup_(dominators_destroy) struct dominators *tree = NULL, *by_levels = NULL;

	world_draw(&world, "root>h a>b>f>g d>b e>f h>i");
	assert_no_error(find_below_two(&world, 0, &tree));
	for (const char *at = "abcfg"; *at; at++)
		assert_int_equal(first_root_of(tree, (allocation_id)(*at - 'a')), 0);
	assert_int_equal(first_root_of(tree, 4), 1);
	assert_int_equal(root_of(tree, 5), NO_ROOT);
	assert_int_equal(first_root_of(tree, 7), NO_ROOT);
	assert_int_equal(first_root_of(tree, 8), NO_ROOT);
	leads_far = true;
	assert_no_error(find_below_two(&world, 0, &by_levels));
	leads_far = false;
	assert_int_equal(root_of(by_levels, 5), NO_ROOT);
	assert_int_equal(first_root_of(by_levels, 5), NO_ROOT);
}

TEST(a_root_of_a_later_rank_takes_nothing_from_an_earlier_one)
{
	_cleanup_(world_deinit) struct world world;
	_cleanup_(dominators_destroy) struct dominators *tree = NULL;

	world_draw(&world, "a>b c>bd d>f e>f");
	assert_no_error(find_below_two(&world, 1, &tree));
	assert_int_equal(held_by_root(tree, 0), 8 + 9 + 10 + 11 + 13);
	assert_int_equal(held_by_root(tree, 1), 12);
	assert_true(dominates(tree, 2, 5));
}

/* A chain that is anchored, one of garbage, and one that is leaked. */
TEST(what_is_lost_holds_nothing_that_is_not)
{
	_cleanup_(world_deinit) struct world world;
	_cleanup_(dominators_destroy) struct dominators *tree = NULL;

	world_draw(&world, "root>adg a>b>c d>e>f g>h d>b g>bc h>ef");
	world.members.words[0] = 7 << 0;
	world.leaked.words[0] = 3 << 6;
	assert_no_error(find(&world, &tree));
	ASSERT_RETAINED(tree, 8 + 9 + 10, 9 + 10, 10, 11 + 12 + 13, 12 + 13, 13, 14 + 15, 15);
}

/* b and c are anchored, but only a leads to them, which is leaked. */
static void check_anchored_behind_leaked(void)
{
	_cleanup_(world_deinit) struct world world;
	_cleanup_(dominators_destroy) struct dominators *tree = NULL;

	world_draw(&world, "root>a a>b b>c");
	world.members.words[0] = 6;
	world.leaked.words[0] = 1;
	assert_no_error(find(&world, &tree));
	ASSERT_RETAINED(tree, 8, 9 + 10, 10);
}

TEST(what_is_anchored_is_an_entry_before_leaks_lead_to_it)
{
	check_anchored_behind_leaked();
	leads_far = true;
	check_anchored_behind_leaked();
	leads_far = false;
}

TEST(a_graph_that_is_not_needed_any_more_is_destroyed)
{
	_cleanup_(world_deinit) struct world world;
	_cleanup_(dominators_destroy) struct dominators *tree = NULL;
	struct graph *spent = &world.graph;

	world_draw(&world, "root>a a>bc>d>e>a");
	assert_no_error(find_spending(&world, &spent, &tree));
	assert_null(spent);
	assert_null(world.graph.targets);
	ASSERT_RETAINED(tree, 8 + 9 + 10 + 11 + 12, 9, 10, 11 + 12, 12);
}

TEST(free_allocations_take_no_part)
{
	_cleanup_(world_deinit) struct world world;
	_cleanup_(dominators_destroy) struct dominators *tree = NULL;
	size_t position;

	world_draw(&world, "root>a a>Bc");
	assert_no_error(find(&world, &tree));
	assert_int_equal(dominators_count(tree), 2);
	assert_false(dominators_position(tree, 1, &position));
	ASSERT_RETAINED(tree, 8 + 10, 0, 10);
}

TEST(what_no_entry_leads_to_is_one)
{
	_cleanup_(world_deinit) struct world world;
	_cleanup_(dominators_destroy) struct dominators *tree = NULL;

	world_draw(&world, "root>a b>c>ba");
	assert_no_error(find(&world, &tree));
	ASSERT_RETAINED(tree, 8, 9 + 10, 10);
}

TEST(a_heap_without_used_allocations_has_an_empty_tree)
{
	_cleanup_(world_deinit) struct world world;
	_cleanup_(dominators_destroy) struct dominators *tree = NULL;

	world_draw(&world, "A");
	assert_no_error(find(&world, &tree));
	assert_int_equal(dominators_count(tree), 0);
}

/*
 * A list of half of them, its last one an array of the other half, to which an array that the
 * list's head holds refers as well. To climb the list for each of these would take hours.
 */
TEST(long_lists_cost_little)
{
	enum { HALF = 200000, COUNT = 2 * HALF + 1, EDGES = 3 * HALF };
	_cleanup_(world_deinit) struct world world;
	_cleanup_(dominators_destroy) struct dominators *tree = NULL;
	struct edge *edges = calloc(EDGES, sizeof(*edges));
	size_t count = 0;

	for (uint32_t i = 0; i + 1 < HALF; i++)
		edges[count++] = (struct edge){ i, i + 1 };
	for (uint32_t i = 0; i < HALF; i++) {
		edges[count++] = (struct edge){ HALF - 1, HALF + i };
		edges[count++] = (struct edge){ COUNT - 1, HALF + i };
	}
	edges[count++] = (struct edge){ 0, COUNT - 1 };
	world_make(&world, COUNT, NULL, edges, count);
	bitmap_set(&world.roots, 0);
	assert_no_error(find(&world, &tree));
	assert_int_equal(dominators_end(tree, 0), COUNT);
	assert_int_equal(dominators_retained(tree, HALF), size_of(HALF));
	assert_int_equal(dominators_retained(tree, HALF - 1), size_of(HALF - 1));
	assert_int_equal(dominators_retained(tree, HALF - 2),
			 size_of(HALF - 2) + size_of(HALF - 1));
	free(edges);
}

enum { MOST = 24 };

/* Mark what is reached from the entries if one of the blocks is gone. */
static void reach(const struct world *world, allocation_id from, allocation_id gone, bool *reached)
{
	struct edges edges = graph_outgoing(&world->graph, from);

	if (from == gone || reached[from] || allocation_state(world->index, from) != BLOCK_USED)
		return;
	reached[from] = true;
	for (size_t i = 0; i < edges.count; i++)
		reach(world, edges.targets[i], gone, reached);
}

/* True if it has no targets and only one referrer, perhaps by several words. */
static bool is_leaf(const struct world *world, allocation_id id)
{
	struct edges sources = graph_outgoing(&world->incoming, id);

	for (size_t i = 1; i < sources.count; i++)
		if (sources.targets[i] != sources.targets[0])
			return false;
	return sources.count && graph_outgoing(&world->graph, id).count == 0;
}

/* Make vertices that no entry reaches entries, by address, except for leaves of others. */
static void complete_entries(struct world *world)
{
	bool reached[MOST] = { false };

	bitmap_for_each(id, &world->roots)
		reach(world, (allocation_id)id, NO_ALLOCATION, reached);
	bitmap_for_each(id, allocation_used(world->index)) {
		if (reached[id] || is_leaf(world, (allocation_id)id))
			continue;
		bitmap_set(&world->roots, id);
		reach(world, (allocation_id)id, NO_ALLOCATION, reached);
	}
}

/* Take each block away, and look what is not reached any more. */
static void check_all(const struct world *world, const struct dominators *tree)
{
	bitmap_for_each(gone, allocation_used(world->index)) {
		bool reached[MOST] = { false };
		uint64_t bytes = 0;

		bitmap_for_each(id, &world->roots)
			reach(world, (allocation_id)id, (allocation_id)gone, reached);
		bitmap_for_each(id, allocation_used(world->index)) {
			assert_int_equal(dominates(tree, (allocation_id)gone, (allocation_id)id),
					 !reached[id]);
			if (!reached[id])
				bytes += size_of(id);
		}
		assert_int_equal(dominators_retained(tree, (allocation_id)gone), bytes);
	}
}

static void check_random(unsigned int seed)
{
	_cleanup_(world_deinit) struct world world;
	_cleanup_(dominators_destroy) struct dominators *tree = NULL;
	bool is_free[MOST];
	struct edge edges[3 * MOST];
	size_t count, edge_count = 0, density;

	srand(seed);
	count = 1 + (size_t)rand() % MOST;
	density = 1 + (size_t)rand() % 3;
	for (size_t i = 0; i < count; i++)
		is_free[i] = rand() % 8 == 0;
	for (size_t i = 0; i < density * count; i++) {
		struct edge edge = { (uint32_t)((size_t)rand() % count),
				     (uint32_t)((size_t)rand() % count) };

		if (!is_free[edge.from] && edge.from != edge.to)
			edges[edge_count++] = edge;
	}
	world_make(&world, count, is_free, edges, edge_count);
	for (size_t i = 0; i < count; i++)
		if (!is_free[i] && rand() % 6 == 0)
			bitmap_set(&world.roots, i);
	assert_no_error(find(&world, &tree));
	complete_entries(&world);
	check_all(&world, tree);
}

TEST(random_heaps_retain_what_is_lost_without_each)
{
	for (unsigned int seed = 0; seed < 8000; seed++)
		check_random(seed);
}

TEST(random_heaps_whose_references_lead_far_retain_the_same)
{
	leads_far = true;
	for (unsigned int seed = 0; seed < 8000; seed++)
		check_random(seed);
	leads_far = false;
}

TEST(an_interrupt_ends_the_search)
{
	enum { COUNT = 1 << 17 };
	_cleanup_(world_deinit) struct world world;
	struct dominators *tree;

	world_make(&world, COUNT, NULL, NULL, 0);
	atomic_store(&world.progress.interrupted, true);
	assert_error(find(&world, &tree), ERROR_INTERRUPTED, "interrupted");
}
