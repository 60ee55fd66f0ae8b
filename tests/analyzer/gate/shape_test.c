/*
 * The graph here is made up, and so is what the allocations are: this file answers what a shape
 * asks of the analysis.
 */
#include "analyzer/gate/label.h"
#include "analyzer/gate/shape.h"

#include "tests/analyzer/graph/made_graph.h"

#include <inttypes.h>
#include <stdio.h>

enum { MOST_NODES = 700, STRIDE = 4096 };

struct node {
	char class[16];
	uint64_t size;
	bool is_pattern;
};

static struct world {
	struct memory_account account;
	struct progress progress;
	struct node nodes[MOST_NODES];
	size_t node_count;
	struct graph graph;
	struct allocation_index *index;
	struct bitmap leaked;
	struct leaks *leaks;
	struct shape_context context;
	bool stale; /* references are to the inside of allocations */
} world;

/* All references are to starts, or none is. */
size_t starts_find(const struct analysis *analysis, allocation_id source,
		   allocation_id ret[static MOST_START_WORDS])
{
	struct edges edges = graph_outgoing(&world.graph, source);
	size_t count = world.stale ? 0 : edges.count;

	memcpy(ret, edges.targets, count * sizeof(*ret));
	return count;
}

const struct graph *analysis_graph(const struct analysis *analysis)
{
	return &world.graph;
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
		.text = *node->class == '?' ? UNRECOGNIZED : node->class,
		.is_pattern = node->is_pattern,
	};
}

/* Build world.nodes and world.graph, all of it leaked. */
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
	assert_no_error(leaks_create(&world.graph, world.index, NULL, &world.leaked, &world.account,
				     &world.progress, &world.leaks));
	assert_no_error(shape_context_init(&world.context, NULL, NULL, &world.leaked));
}

static void tear_down(void)
{
	shape_context_deinit(&world.context);
	leaks_destroy(world.leaks);
	bitmap_deinit(&world.leaked);
	allocation_index_destroy(world.index);
	graph_deinit(&world.graph);
	assert_int_equal(atomic_load(&world.account.used), 0);
}

/* A class and a size: "A24"; "?24" is not recognized, and "A24*" a pattern's. */
static void add(const char *text)
{
	struct node *node = &world.nodes[world.node_count++];
	char star = '\0';

	assert_in_range(sscanf(text, "%15[^0-9]%" SCNu64 "%c", node->class, &node->size, &star), 2,
			3);
	node->is_pattern = star == '*';
}

/* The shape of the only leak root. */
static struct shape shape_of_edges(const struct edge *edges, size_t edge_count)
{
	struct shape shape;

	graph_init(&world.graph, world.node_count, edges, edge_count, false);
	build();
	assert_int_equal(world.leaks->count, 1);
	shape_find(&world.context, &world.leaks->roots[0], &shape);
	tear_down();
	world = (struct world){ .node_count = 0 };
	return shape;
}

/* The shape of nodes such as "A24 ?40", with the references drawn among them. */
static struct shape shape_of(const char *nodes, const char *text)
{
	struct drawing drawing = draw(text);

	for (const char *node = nodes; node;
	     node = strchr(node, ' ') ? strchr(node, ' ') + 1 : NULL)
		add(node);
	return shape_of_edges(drawing.edges, drawing.edge_count);
}

static uint64_t print_of(const char *nodes, const char *text)
{
	return shape_of(nodes, text).fingerprint;
}

TEST(kind_and_size_of_the_root_make_the_fingerprint)
{
	assert_int_equal(print_of("A24", "a"), print_of("A24", "a"));
	assert_int_not_equal(print_of("A24", "a"), print_of("A40", "a"));
	assert_int_not_equal(print_of("A24", "a"), print_of("B24", "a"));
	assert_int_not_equal(print_of("A24", "a"), print_of("?24", "a"));
}

TEST(buffers_of_a_pattern_are_alike_at_any_size)
{
	assert_int_equal(print_of("LongString24*", "a"), print_of("LongString4000*", "a"));
	assert_int_not_equal(print_of("LongString24*", "a"), print_of("LongString24", "a"));
}

TEST(what_hangs_on_it_counts_by_kind_and_not_by_number)
{
	uint64_t one = print_of("A24 B40", "a>b"), turned = print_of("A24 C8 B40", "a>bc");

	assert_int_not_equal(print_of("A24", "a"), one);
	assert_int_equal(print_of("A24 B40 C8 B40", "a>bcd"), turned);
	assert_int_not_equal(one, turned);
	assert_int_not_equal(one, print_of("A24 B56", "a>b"));
}

TEST(a_buffer_of_unknown_contents_makes_no_difference)
{
	uint64_t large = print_of("A24 ?1000", "a>b");

	assert_int_equal(print_of("A24", "a"), large);
	assert_int_equal(print_of("A24 ?24", "a>b"), large);
}

TEST(stale_words_in_a_buffer_lead_nowhere)
{
	assert_int_equal(print_of("A24 ?1000 B24", "a>b>c"), print_of("A24 ?1000", "a>b"));
}

TEST(nor_do_they_on_a_ring)
{
	uint64_t cycle = print_of("A24 B24", "a>b>a");

	assert_int_equal(print_of("A24 B24 ?1000 C24", "a>bc b>a c>d"), cycle);
	assert_int_not_equal(print_of("A24 B24 ?1000 C24", "a>bc b>ad"), cycle);
}

TEST(a_root_leads_where_it_refers_to_a_start)
{
	uint64_t alone = print_of("?24", "a");

	assert_int_not_equal(print_of("?24 B24", "a>b"), alone);
	world.stale = true;
	assert_int_equal(print_of("?24 B24", "a>b"), alone);
}

/* Nodes that lead from one to the next, and the last to the first if it is a cycle. */
static struct shape row_shape(const char *const *nodes, size_t count, size_t first, bool is_cycle)
{
	struct edge edges[MOST_NODES];

	for (size_t i = 0; i < count; i++) {
		add(nodes[(first + i) % 3]);
		edges[i] = (struct edge){ (allocation_id)i, (allocation_id)((i + 1) % count) };
	}
	return shape_of_edges(edges, is_cycle ? count : count - 1);
}

TEST(a_list_is_the_same_however_long_it_is)
{
	static const char *const nodes[] = { "?40", "?40", "?40" };
	uint64_t print = row_shape(nodes, 1, 0, false).fingerprint;

	assert_int_equal(print, row_shape(nodes, 2, 0, false).fingerprint);
	assert_int_equal(print, row_shape(nodes, 3, 0, false).fingerprint);
	assert_int_equal(print, row_shape(nodes, MOST_NODES, 0, false).fingerprint);
}

static const char *const RING[] = { "A24", "B24", "C24" };

TEST(a_ring_is_the_same_wherever_it_begins)
{
	struct shape shape = row_shape(RING, 3, 0, true);
	struct shape turned = row_shape(RING, 3, 1, true);

	assert_int_equal(shape.fingerprint, turned.fingerprint);
	/* The name is that of the same class. */
	assert_int_equal(shape.name_giver, (turned.name_giver + 1) % 3);
	for (size_t i = 0; i < 3; i++)
		assert_true(shape.in_cycle[i]);
}

TEST(a_ring_is_the_same_however_large_it_is)
{
	uint64_t print = row_shape(RING, 3, 0, true).fingerprint;

	assert_int_equal(row_shape(RING, 300, 2, true).fingerprint, print);
	assert_int_equal(row_shape(RING, 699, 0, true).fingerprint, print);
}

TEST(a_ring_is_told_from_a_chain_and_from_what_it_holds)
{
	uint64_t cycle = print_of("A24 B24", "a>b>a");

	assert_int_not_equal(print_of("A24 B24", "a>b"), cycle);
	assert_int_not_equal(cycle, print_of("A24 B24 C24", "a>b>ac"));
}

TEST(a_class_gives_its_name_rather_than_what_is_not_known)
{
	assert_int_equal(shape_of("?400 A24", "a>b>a").name_giver, 1);
}
