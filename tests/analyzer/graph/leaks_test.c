#include "analyzer/graph/leaks.h"

#include "tests/analyzer/graph/made_world.h"
#include "tests/random.h"

/* The members are leaked. */
static struct error *find(struct world *world, struct leaks **ret)
{
	return leaks_create(&world->graph, world->index, NULL, &world->members, &world->account,
			    &world->progress, ret);
}

/* Bytes of the allocations from the first to the last. */
static uint64_t bytes_of(uint64_t first, uint64_t last)
{
	uint64_t bytes = 0;

	for (uint64_t id = first; id <= last; id++)
		bytes += size_of(id);
	return bytes;
}

static void assert_root(const struct leaks *leaks, size_t number, allocation_id id,
			uint32_t members, uint64_t owned_count, uint64_t owned_bytes)
{
	const struct leak_root *root = &leaks->roots[number];

	assert_int_equal(root->id, id);
	assert_int_equal(root->members, members);
	assert_int_equal(root->owned_count, owned_count);
	assert_int_equal(root->owned_bytes, owned_bytes);
	assert_ptr_equal(leak_root_find(leaks, id), root);
}

static void assert_shared(const struct leaks *leaks, uint64_t count, uint64_t bytes)
{
	assert_int_equal(leaks->shared_count, count);
	assert_int_equal(leaks->shared_bytes, bytes);
}

/*
 * All that is drawn is leaked, except for the letters in kept. A leak root is expected as
 * "b3:bcdf": its lowest member is b, it has three, and owns b, c, d and f. "*:ac": a and c are
 * shared.
 */
static void assert_leaks(const char *text, const char *kept, const char *expected)
{
	_cleanup_(world_deinit) struct world world;
	_cleanup_(leaks_destroy) struct leaks *leaks = NULL;
	uint64_t shared = 0, shared_bytes = 0;
	size_t roots = 0;

	world_draw(&world, text);
	for (; *kept; kept++)
		bitmap_clear(&world.members, drawn_id(*kept));
	assert_no_error(find(&world, &leaks));
	for (const char *at = expected; *at; at += *at == ' ') {
		const char *owned = strchr(at, ':') + 1;
		uint64_t count = 0, bytes = 0;

		for (; isalpha((unsigned char)owned[count]); count++)
			bytes += size_of(drawn_id(owned[count]));
		if (*at == '*')
			shared = count, shared_bytes = bytes;
		else
			assert_root(leaks, roots++, drawn_id(*at), (uint32_t)(at[1] - '0'), count,
				    bytes);
		at = owned + count;
	}
	assert_int_equal(leaks->count, roots);
	assert_shared(leaks, shared, shared_bytes);
	for (allocation_id id = 0; id < world.members.count; id++)
		if (!leak_root_find(leaks, id))
			roots++;
	assert_int_equal(roots, world.members.count);
}

TEST(root_owns_what_hangs_on_it)
{
	assert_leaks("b>ac c>d", "", "b1:abcd");
}

TEST(what_refers_to_nothing_is_a_root_of_its_own)
{
	assert_leaks("a b c", "", "a1:a b1:b c1:c");
}

TEST(ring_is_one_root)
{
	assert_leaks("b>d>c>b d>e>a", "", "b3:abcde");
}

TEST(rings_with_common_members_are_one_ring)
{
	assert_leaks("a>b>c>a b>d>e>b e>f>g>f", "", "a5:abcdefg");
}

TEST(ring_that_another_refers_to_is_no_root)
{
	assert_leaks("a>b>a c d>e>bd", "", "c1:c d2:abde");
}

TEST(what_several_roots_reach_is_counted_once)
{
	assert_leaks("ab>c>d b>e", "", "a1:a b1:be *:cd");
}

TEST(two_ways_from_the_same_root_share_nothing)
{
	assert_leaks("a>bcb bc>d", "", "a1:abcd");
}

TEST(only_the_leaked_part_counts)
{
	assert_leaks("a>b>cd d>a", "ac", "b1:bd");
}

TEST(nothing_leaked_has_no_root)
{
	_cleanup_(world_deinit) struct world world;
	_cleanup_(leaks_destroy) struct leaks *leaks = NULL;

	world_make(&world, 100, NULL, NULL, 0);
	bitmap_minus(&world.members, &world.members);
	assert_no_error(find(&world, &leaks));
	assert_int_equal(leaks->count, 0);
	assert_null(leak_root_find(leaks, 0));
	assert_shared(leaks, 0, 0);
}

/* The only root of what those edges make of count allocations. */
static void assert_only_root(size_t count, const struct edge *edges, size_t edge_count,
			     allocation_id id, uint32_t members)
{
	_cleanup_(world_deinit) struct world world;
	_cleanup_(leaks_destroy) struct leaks *leaks = NULL;

	world_make(&world, count, NULL, edges, edge_count);
	assert_no_error(find(&world, &leaks));
	assert_int_equal(leaks->count, 1);
	assert_root(leaks, 0, id, members, count, bytes_of(0, count - 1));
}

TEST(chain_of_any_length_has_one_root)
{
	enum { LENGTH = 1000000 };
	_cleanup_(free) struct edge *edges = calloc(LENGTH, sizeof(*edges));

	/* From the highest to the lowest, and then in a ring. */
	assert_non_null(edges);
	for (uint32_t i = 0; i < LENGTH; i++)
		edges[i] = (struct edge){ i, i > 0 ? i - 1 : LENGTH - 1 };
	assert_only_root(LENGTH, edges + 1, LENGTH - 1, LENGTH - 1, 1);
	assert_only_root(LENGTH, edges, LENGTH, 0, LENGTH);
}

TEST(interrupt_ends_the_search)
{
	_cleanup_(world_deinit) struct world world;
	struct leaks *leaks;

	world_make(&world, 10, NULL, NULL, 0);
	world.progress.interrupted = true;
	assert_error(find(&world, &leaks), ERROR_INTERRUPTED, "interrupted");
}

static void interrupt_at_second_step(struct progress *progress)
{
	unsigned int *steps = progress->show_data;

	if (++*steps == 2)
		atomic_store(&progress->interrupted, true);
}

/* The search's open vertices take memory: most for a chain, at its end. */
TEST(interrupt_ends_the_search_within_a_chain)
{
	enum { LENGTH = 1 << 20 };
	_cleanup_(free) struct edge *edges = calloc(LENGTH, sizeof(*edges));
	_cleanup_(world_deinit) struct world world;
	unsigned int steps = 0;
	struct leaks *leaks;

	assert_non_null(edges);
	for (uint32_t i = 0; i < LENGTH - 1; i++)
		edges[i] = (struct edge){ i, i + 1 };
	world_make(&world, LENGTH, NULL, edges, LENGTH - 1);
	world.progress.show = interrupt_at_second_step;
	world.progress.show_data = &steps;
	assert_error(find(&world, &leaks), ERROR_INTERRUPTED, "interrupted");
	assert_int_equal(steps, 2);
	assert_in_range(world.account.peak - world.account.used, 0, (size_t)LENGTH * 20);
}

/* The model: who reaches whom, as a matrix. */
enum { FEW = 40 };

static bool reaches[FEW][FEW];
/* Returns how many edges there are; sparse graphs have many components. */
static size_t make_edges(struct edge *edges, const bool *leaked)
{
	uint64_t density = 20 + random_below(60);
	size_t count = 0;

	memset(reaches, 0, sizeof(reaches));
	for (uint32_t from = 0; from < FEW; from++) {
		reaches[from][from] = leaked[from];
		for (uint32_t to = 0; to < FEW; to++) {
			if (from == to || random_below(density) > 0)
				continue;
			edges[count++] = (struct edge){ from, to };
			reaches[from][to] |= leaked[from] && leaked[to];
		}
	}
	for (int middle = 0; middle < FEW; middle++)
		for (int from = 0; from < FEW; from++)
			for (int to = 0; to < FEW; to++)
				if (reaches[from][middle] && reaches[middle][to])
					reaches[from][to] = true;
	return count;
}

/* True if id is the lowest member of a component without referrers outside. */
static bool is_root(allocation_id id, uint32_t *ret_members)
{
	*ret_members = 0;
	for (uint32_t other = 0; other < FEW; other++) {
		if (!reaches[other][id])
			continue;
		if (!reaches[id][other] || other < id)
			return false;
		++*ret_members;
	}
	return *ret_members > 0;
}

static void assert_as_in_model(const struct leaks *leaks)
{
	uint64_t owned[FEW] = { 0 }, bytes[FEW] = { 0 }, shared = 0, shared_bytes = 0;
	size_t roots = 0;
	uint32_t members;

	for (uint32_t id = 0; id < FEW; id++) {
		uint32_t owners = 0, owner = 0;

		for (uint32_t other = 0; other < FEW; other++) {
			if (!reaches[other][id] || !is_root(other, &members))
				continue;
			owners++;
			owner = other;
		}
		if (owners == 1) {
			owned[owner]++;
			bytes[owner] += size_of(id);
		} else if (owners > 1) {
			shared++;
			shared_bytes += size_of(id);
		}
	}
	for (uint32_t id = 0; id < FEW; id++)
		if (is_root(id, &members))
			assert_root(leaks, roots++, id, members, owned[id], bytes[id]);
		else
			assert_null(leak_root_find(leaks, id));
	assert_int_equal(leaks->count, roots);
	assert_shared(leaks, shared, shared_bytes);
}

TEST(roots_agree_with_who_reaches_whom)
{
	for (int i = 0; i < 500; i++) {
		struct edge edges[FEW * FEW];
		bool leaked[FEW];
		_cleanup_(world_deinit) struct world world;
		_cleanup_(leaks_destroy) struct leaks *leaks = NULL;

		for (int id = 0; id < FEW; id++)
			leaked[id] = random_below(10) > 0;
		world_make(&world, FEW, NULL, edges, make_edges(edges, leaked));
		for (size_t id = 0; id < FEW; id++)
			if (!leaked[id])
				bitmap_clear(&world.members, id);
		assert_no_error(find(&world, &leaks));
		assert_as_in_model(leaks);
	}
}
