#include "tests/analyzer/drawn_process.h"

/* A request's pool of two blocks, a and b, and c, which was too large for them; d is none of it. */
enum { BLOCK = 0x1000, HEADER = 0x50, REQUEST = 0x50545448 };

static void add_pool(struct drawn *drawn)
{
	struct core *core = &drawn->process.core;
	uint64_t first = drawn->at[0], second = drawn->at[1], large = first + HEADER + 0x100;
	const uint64_t header[] = {
		first + HEADER + 0x200, first + BLOCK, second, 0, BLOCK - HEADER, second, 0, large,
	};
	const uint64_t next[] = { second + 0x100, second + BLOCK };

	for (size_t i = 0; i < COUNT_OF(header); i++)
		core_set(core, first + 8 * i, header[i]);
	for (size_t i = 0; i < COUNT_OF(next); i++)
		core_set(core, second + 8 * i, next[i]);
	core_set(core, first + HEADER, REQUEST);
	core_set(core, large + 8, drawn->at[2]);
}

static void drawn_pool(struct drawn *drawn)
{
	*drawn = (struct drawn){ .chunk = { BLOCK + 0x10, BLOCK + 0x10, 0x800 } };
	drawn_init(drawn, "root>ad bc");
	core_add_module(&drawn->process.core, 0x7d0000000000, PAGE, "/usr/sbin/nginx");
	add_pool(drawn);
}

TEST(blocks_of_a_pool_and_what_was_too_large_for_them_are_of_the_request)
{
	_cleanup_(drawn_deinit) struct drawn drawn;

	drawn_pool(&drawn);
	drawn_open(&drawn, STAGE_CLASSES);
	assert_string_equal(drawn_class(&drawn, 'a'), "nginx pools of requests");
	assert_string_equal(drawn_class(&drawn, 'b'), "nginx pools of requests");
	assert_string_equal(drawn_class(&drawn, 'c'), "nginx pools of requests");
	assert_string_equal(drawn_class(&drawn, 'd'), "none");
}

TEST(lists_that_return_to_themselves_end)
{
	_cleanup_(drawn_deinit) struct drawn drawn;
	uint64_t large;

	drawn_pool(&drawn);
	large = drawn.at[0] + HEADER + 0x100;
	core_set(&drawn.process.core, drawn.at[1] + 16, drawn.at[0]);
	core_set(&drawn.process.core, large, large);
	drawn_open(&drawn, STAGE_CLASSES);
	assert_string_equal(drawn_class(&drawn, 'b'), "nginx pools of requests");
	assert_string_equal(drawn_class(&drawn, 'd'), "none");
}

TEST(block_of_another_size_is_no_part_of_the_pool)
{
	_cleanup_(drawn_deinit) struct drawn drawn;

	drawn_pool(&drawn);
	core_set(&drawn.process.core, drawn.at[1] + 8, drawn.at[1] + BLOCK - 0x10);
	drawn_open(&drawn, STAGE_CLASSES);
	assert_string_equal(drawn_class(&drawn, 'a'), "nginx pools of requests");
	assert_string_equal(drawn_class(&drawn, 'b'), "none");
}
