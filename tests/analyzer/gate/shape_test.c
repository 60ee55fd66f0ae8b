/*
 * The graph here is made up, and so is what the allocations are: this file answers what a shape
 * asks of the analysis.
 */
#include "analyzer/gate/label.h"
#include "analyzer/gate/shape.h"

#include "tests/assertions.h"

#include <string.h>

enum { MOST_NODES = 700, MOST_EDGES = 1400, STRIDE = 4096 };

struct node {
	const char *class; /* NULL: not recognized */
	uint64_t size;
	bool is_pattern;
};

struct edge {
	allocation_id from, to;
};

static struct world {
	struct memory_account account;
	struct progress progress;
	struct node nodes[MOST_NODES];
	struct edge edges[MOST_EDGES]; /* by source */
	size_t node_count, edge_count;
	allocation_id targets[MOST_EDGES];
	struct allocation_index *index;
	struct bitmap leaked;
	struct leaks *leaks;
	struct shape_context context;
	bool stale; /* references are to the inside of allocations */
} world;

struct edges graph_outgoing(const struct graph *graph, allocation_id id)
{
	size_t begin = 0, end;

	while (begin < world.edge_count && world.edges[begin].from < id)
		begin++;
	end = begin;
	for (; end < world.edge_count && world.edges[end].from == id; end++)
		world.targets[end] = world.edges[end].to;
	return (struct edges){ world.targets + begin, end - begin };
}

/* All references are to starts, or none is. */
size_t starts_find(const struct analysis *analysis, allocation_id source,
		   allocation_id ret[static MOST_START_WORDS])
{
	struct edges edges = graph_outgoing(NULL, source);
	size_t count = world.stale ? 0 : edges.count;

	memcpy(ret, edges.targets, count * sizeof(*ret));
	return count;
}

const struct graph *analysis_graph(const struct analysis *analysis)
{
	return NULL;
}

const struct allocation_index *analysis_index(const struct analysis *analysis)
{
	return world.index;
}

struct memory_account *analysis_account(struct analysis *analysis)
{
	return &world.account;
}

struct label label_of(const struct analysis *analysis, const struct patterns *patterns,
		      allocation_id id)
{
	const struct node *node = &world.nodes[id];

	return (struct label){
		.text = node->class ? node->class : UNRECOGNIZED,
		.is_pattern = node->is_pattern,
	};
}

/* What is in world.nodes and world.edges, all of it leaked. */
static void build(void)
{
	struct block_sink *sink;

	assert_no_error(block_sink_create(&world.account, &sink));
	assert_no_error(block_sink_region(sink, STRIDE, STRIDE + world.node_count * STRIDE, 0));
	assert_no_error(bitmap_init(&world.leaked, world.node_count, &world.account));
	bitmap_fill(&world.leaked);
	for (size_t i = 0; i < world.node_count; i++)
		assert_no_error(
			block_sink_add(sink, (struct block){ STRIDE + i * STRIDE,
							     world.nodes[i].size, BLOCK_USED }));
	assert_no_error(allocation_index_create(sink, &world.index));
	block_sink_destroy(sink);
	assert_no_error(leaks_create(NULL, world.index, &world.leaked, &world.account,
				     &world.progress, &world.leaks));
	assert_no_error(shape_context_init(&world.context, NULL, NULL, &world.leaked));
}

static void tear_down(void)
{
	shape_context_deinit(&world.context);
	leaks_destroy(world.leaks);
	bitmap_deinit(&world.leaked);
	allocation_index_destroy(world.index);
	assert_int_equal(atomic_load(&world.account.used), 0);
}

static allocation_id add(const char *class, uint64_t size)
{
	world.nodes[world.node_count] = (struct node){ class, size, false };
	return (allocation_id)world.node_count++;
}

static void join(allocation_id from, allocation_id to)
{
	world.edges[world.edge_count++] = (struct edge){ from, to };
}

/* The shape of the only leak root; begins a new world. */
static struct shape only_shape(void)
{
	struct shape shape;

	build();
	assert_int_equal(world.leaks->count, 1);
	shape_find(&world.context, &world.leaks->roots[0], &shape);
	tear_down();
	memset(&world, 0, sizeof(world));
	return shape;
}

static uint64_t print_of(const char *class, uint64_t size)
{
	add(class, size);
	return only_shape().fingerprint;
}

static void test_kind_and_size_of_the_root_make_the_fingerprint(void **state)
{
	assert_int_equal(print_of("A", 24), print_of("A", 24));
	assert_int_not_equal(print_of("A", 24), print_of("A", 40));
	assert_int_not_equal(print_of("A", 24), print_of("B", 24));
	assert_int_not_equal(print_of("A", 24), print_of(NULL, 24));
}

static uint64_t buffer_print(uint64_t size, bool is_pattern)
{
	add("LongString", size);
	world.nodes[0].is_pattern = is_pattern;
	return only_shape().fingerprint;
}

static void test_buffers_of_a_pattern_are_alike_at_any_size(void **state)
{
	assert_int_equal(buffer_print(24, true), buffer_print(4000, true));
	assert_int_not_equal(buffer_print(24, true), buffer_print(24, false));
}

/* A leads to the others. */
static uint64_t tree_print(size_t count, const struct node *nodes)
{
	add("A", 24);
	for (size_t i = 0; i < count; i++) {
		allocation_id id = add(nodes[i].class, nodes[i].size);

		world.nodes[id].is_pattern = nodes[i].is_pattern;
		join(0, id);
	}
	return only_shape().fingerprint;
}

static void test_what_hangs_on_it_counts_by_kind_and_not_by_number(void **state)
{
	struct node one[] = { { "B", 40, false } };
	struct node many[] = { { "B", 40, false }, { "C", 8, false }, { "B", 40, false } };
	struct node turned[] = { { "C", 8, false }, { "B", 40, false } };
	struct node grown[] = { { "B", 56, false } };

	assert_int_not_equal(tree_print(0, NULL), tree_print(1, one));
	assert_int_equal(tree_print(3, many), tree_print(2, turned));
	assert_int_not_equal(tree_print(1, one), tree_print(2, turned));
	assert_int_not_equal(tree_print(1, one), tree_print(1, grown));
}

static void test_a_buffer_of_unknown_contents_makes_no_difference(void **state)
{
	struct node same_size[] = { { NULL, 24, false } };
	struct node large[] = { { NULL, 1000, false } };

	assert_int_equal(tree_print(0, NULL), tree_print(1, large));
	assert_int_equal(tree_print(1, same_size), tree_print(1, large));
}

static void test_stale_words_in_a_buffer_lead_nowhere(void **state)
{
	struct node buffer[] = { { NULL, 1000, false } };
	uint64_t fingerprint;

	add("A", 24);
	add(NULL, 1000);
	add("B", 24);
	join(0, 1);
	join(1, 2);
	fingerprint = only_shape().fingerprint;
	assert_int_equal(fingerprint, tree_print(1, buffer));
}

static uint64_t ring_with_buffer(bool leads_on)
{
	add("A", 24);
	add("B", 24);
	add(NULL, 1000);
	add("C", 24);
	join(0, 1);
	join(0, 2);
	join(1, 0);
	join(leads_on ? 2 : 1, 3);
	return only_shape().fingerprint;
}

static void test_nor_do_they_on_a_ring(void **state)
{
	uint64_t ring;

	add("A", 24);
	add("B", 24);
	join(0, 1);
	join(1, 0);
	ring = only_shape().fingerprint;
	assert_int_equal(ring_with_buffer(true), ring);
	assert_int_not_equal(ring_with_buffer(false), ring);
}

/* A root of which nothing is known, and which leads to B. */
static uint64_t unknown_print(bool stale)
{
	add(NULL, 24);
	add("B", 24);
	join(0, 1);
	world.stale = stale;
	return only_shape().fingerprint;
}

static void test_a_root_leads_where_it_refers_to_a_start(void **state)
{
	assert_int_equal(unknown_print(true), print_of(NULL, 24));
	assert_int_not_equal(unknown_print(false), print_of(NULL, 24));
}

static uint64_t list_print(size_t count)
{
	for (size_t i = 0; i < count; i++)
		add(NULL, 40);
	for (size_t i = 1; i < count; i++)
		join((allocation_id)i - 1, (allocation_id)i);
	return only_shape().fingerprint;
}

static void test_a_list_is_the_same_however_long_it_is(void **state)
{
	assert_int_equal(list_print(1), list_print(2));
	assert_int_equal(list_print(1), list_print(3));
	assert_int_equal(list_print(1), list_print(MOST_NODES));
}

/* A ring that begins with that class at the lowest address. */
static struct shape ring_shape(const char *const *classes, size_t count, size_t first)
{
	for (size_t i = 0; i < count; i++)
		add(classes[(first + i) % 3], 24);
	for (size_t i = 0; i < count; i++)
		join((allocation_id)i, (allocation_id)((i + 1) % count));
	return only_shape();
}

static void test_a_ring_is_the_same_wherever_it_begins(void **state)
{
	static const char *const classes[] = { "A", "B", "C" };
	struct shape shape = ring_shape(classes, 3, 0);
	struct shape turned = ring_shape(classes, 3, 1);

	assert_int_equal(shape.fingerprint, turned.fingerprint);
	/* The name is that of the same class. */
	assert_int_equal(shape.name_giver, (turned.name_giver + 1) % 3);
	for (size_t i = 0; i < 3; i++)
		assert_true(shape.in_ring[i]);
}

static void test_a_ring_is_the_same_however_large_it_is(void **state)
{
	static const char *const classes[] = { "A", "B", "C" };
	uint64_t print = ring_shape(classes, 3, 0).fingerprint;

	assert_int_equal(ring_shape(classes, 300, 2).fingerprint, print);
	assert_int_equal(ring_shape(classes, 699, 0).fingerprint, print);
}

static void test_a_ring_is_told_from_a_chain_and_from_what_it_holds(void **state)
{
	uint64_t chain, ring, holding;

	add("A", 24);
	add("B", 24);
	join(0, 1);
	chain = only_shape().fingerprint;
	add("A", 24);
	add("B", 24);
	join(0, 1);
	join(1, 0);
	ring = only_shape().fingerprint;
	add("A", 24);
	add("B", 24);
	add("C", 24);
	join(0, 1);
	join(1, 0);
	join(1, 2);
	holding = only_shape().fingerprint;
	assert_int_not_equal(chain, ring);
	assert_int_not_equal(ring, holding);
}

static void test_a_class_gives_its_name_rather_than_what_is_not_known(void **state)
{
	struct shape shape;

	add(NULL, 400);
	add("A", 24);
	join(0, 1);
	join(1, 0);
	shape = only_shape();
	assert_int_equal(shape.name_giver, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kind_and_size_of_the_root_make_the_fingerprint),
		cmocka_unit_test(test_buffers_of_a_pattern_are_alike_at_any_size),
		cmocka_unit_test(test_what_hangs_on_it_counts_by_kind_and_not_by_number),
		cmocka_unit_test(test_a_buffer_of_unknown_contents_makes_no_difference),
		cmocka_unit_test(test_stale_words_in_a_buffer_lead_nowhere),
		cmocka_unit_test(test_nor_do_they_on_a_ring),
		cmocka_unit_test(test_a_root_leads_where_it_refers_to_a_start),
		cmocka_unit_test(test_a_list_is_the_same_however_long_it_is),
		cmocka_unit_test(test_a_ring_is_the_same_wherever_it_begins),
		cmocka_unit_test(test_a_ring_is_the_same_however_large_it_is),
		cmocka_unit_test(test_a_ring_is_told_from_a_chain_and_from_what_it_holds),
		cmocka_unit_test(test_a_class_gives_its_name_rather_than_what_is_not_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
