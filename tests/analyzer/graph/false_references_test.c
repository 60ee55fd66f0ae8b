#include "analyzer/graph/false_references.h"

#include "tests/analyzer/world.h"

static const uint64_t CODE = 0x7f0000000000, STACK = 0x7ffc00000000, LENGTH = 0x2000,
		      RSP = STACK + 0x1000, RANDOM = STACK + LENGTH - 0x100,
		      GUARD = 0x123456789abcdef0, FRAMES = 0xfedcba9876543200;

static void populate(struct world *world)
{
	world_init(world);
	core_add(&world->core, CODE, LENGTH, RIGHT_READ | RIGHT_EXECUTE);
	world_add_stack(world, STACK, LENGTH, RSP);
	core_set(&world->core, RANDOM, FRAMES + 0x77);
	core_set(&world->core, RANDOM + 8, GUARD);
}

static struct false_references false_references_in(struct world *world)
{
	world_open(world);
	world_find_program(world);
	return false_references_of(world->program);
}

static uint64_t encode(uint64_t pointer)
{
	uint64_t word = pointer ^ GUARD;

	return word << 17 | word >> 47;
}

TEST(guards_and_the_random_bytes_are_false_references)
{
	_cleanup_(world_deinit) struct world world;
	struct false_references false_references;

	populate(&world);
	false_references = false_references_in(&world);
	assert_true(is_false_reference(&false_references, FRAMES, RSP));
	assert_false(is_false_reference(&false_references, FRAMES, CODE));
	assert_false(is_false_reference(&false_references, GUARD, RSP));
	assert_false(is_false_reference(&false_references, FRAMES + 0x77, RSP));
	for (uint64_t place = RANDOM - 7; place < RANDOM + 16; place++)
		assert_true(is_false_reference(&false_references, 1, place));
	assert_false(is_false_reference(&false_references, 1, RANDOM - 8));
	assert_false(is_false_reference(&false_references, 1, RANDOM + 16));
}

TEST(encoded_pointers_are_false_references_side_by_side)
{
	_cleanup_(world_deinit) struct world world;
	const uint64_t stack = encode(RSP), code = encode(CODE + 0x234),
		       above = encode(RSP + 0x100);
	struct false_references false_references;

	populate(&world);
	core_set(&world.core, RSP + 16, stack);
	core_set(&world.core, RSP + 24, code);
	core_set(&world.core, RSP + 48, code);
	core_set(&world.core, RSP + 64, stack);
	/* Not below it. */
	core_set(&world.core, RSP + 80, above);
	core_set(&world.core, RSP + 88, code);
	false_references = false_references_in(&world);
	assert_true(is_false_reference(&false_references, stack, RSP + 16));
	assert_true(is_false_reference(&false_references, code, RSP + 24));
	assert_false(is_false_reference(&false_references, code, RSP + 48));
	assert_false(is_false_reference(&false_references, stack, RSP + 64));
	assert_false(is_false_reference(&false_references, above, RSP + 80));
	assert_false(is_false_reference(&false_references, code, RSP + 88));
}

TEST(without_random_bytes_there_are_no_false_references)
{
	_cleanup_(world_deinit) struct world world;
	struct false_references false_references;

	world_init(&world);
	core_add(&world.core, CODE, LENGTH, RIGHTS_RW);
	false_references = false_references_in(&world);
	assert_false(is_false_reference(&false_references, 0, CODE));
}
