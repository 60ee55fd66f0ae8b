#include "tests/analyzer/drawn_process.h"

/* A pool in the nodes a and b, one below it in c, and d, which is none. */
enum { CHUNK = 0x1010, NODE = 0x1000, WORD = 8, POOL = 5 * WORD, TAG = POOL + 10 * WORD };

static const uint64_t TAG_TEXT = DATA + 0x10;

static void add_node(struct drawn *drawn, char letter, char next)
{
	uint64_t node = drawn->at[drawn_id(letter)];

	core_set(&drawn->process.core, node, drawn->at[drawn_id(next)]);
	core_set(&drawn->process.core, node + 4 * WORD, node + NODE);
}

static void add_pool(struct drawn *drawn, char first, char current, uint64_t parent)
{
	struct core *core = &drawn->process.core;
	uint64_t pool = drawn->at[drawn_id(first)] + POOL;

	core_set(core, pool, parent);
	core_set(core, pool + 11 * WORD, drawn->at[drawn_id(current)]);
	core_set(core, pool + 12 * WORD, drawn->at[drawn_id(first)]);
}

static void drawn_pools(struct drawn *drawn)
{
	struct core *core = &drawn->process.core;

	*drawn = (struct drawn){ .chunk = { CHUNK, CHUNK, CHUNK, CHUNK } };
	drawn_init(drawn, "root>abcd");
	core_add_module(core, 0x7d0000000000, PAGE, "/usr/lib/libapr-1.so.0");
	memcpy(core_at(core, TAG_TEXT, 8), "request", 8);
	add_node(drawn, 'a', 'b');
	add_node(drawn, 'b', 'a');
	add_node(drawn, 'c', 'c');
	add_pool(drawn, 'a', 'b', 0);
	add_pool(drawn, 'c', 'c', drawn->at[0] + POOL);
	core_set(core, drawn->at[0] + TAG, TAG_TEXT);
}

TEST(nodes_are_of_pools_by_their_tags)
{
	_cleanup_(drawn_deinit) struct drawn drawn;

	drawn_pools(&drawn);
	drawn_open(&drawn, STAGE_CLASSES);
	assert_string_equal(drawn_class(&drawn, 'a'), "apr pool request");
	assert_string_equal(drawn_class(&drawn, 'b'), "apr pool request");
	assert_string_equal(drawn_class(&drawn, 'c'), "apr pools below request");
	assert_string_equal(drawn_class(&drawn, 'd'), "none");
}

TEST(pools_that_are_their_own_parents_have_no_tag)
{
	_cleanup_(drawn_deinit) struct drawn drawn;

	drawn_pools(&drawn);
	core_set(&drawn.process.core, drawn.at[2] + POOL, drawn.at[2] + POOL);
	drawn_open(&drawn, STAGE_CLASSES);
	assert_string_equal(drawn_class(&drawn, 'c'), "apr pools without tags");
	assert_string_equal(drawn_class(&drawn, 'a'), "apr pool request");
}

TEST(ring_of_nodes_that_does_not_return_to_its_pool_ends)
{
	_cleanup_(drawn_deinit) struct drawn drawn;

	drawn_pools(&drawn);
	core_set(&drawn.process.core, drawn.at[1], drawn.at[1]);
	drawn_open(&drawn, STAGE_CLASSES);
	assert_string_equal(drawn_class(&drawn, 'b'), "apr pool request");
	assert_string_equal(drawn_class(&drawn, 'c'), "apr pools below request");
}
