#include "analyzer/runtimes/crystal/crystal.h"

#include "tests/analyzer/world.h"

/*
 * Objects of SIZE bytes in HEAP, fibers among them, whose stacks are of LENGTH bytes from STACKS
 * on. Where a fiber's next and previous one, its name and the end of its stack are is for fibers.c
 * to find.
 */
static const uint64_t HEAP = 0x7f0000000000, SIZE = 0xa0, OBJECTS = 16, STACKS = 0x7f1000000000,
		      LENGTH = 0x4000, CODE = 0x400000, TYPE = 0x96;

enum { END = 11, NAME = 12, NEXT = 14, PREVIOUS = 15, SAVED = 8 };

enum { COLLECTED = TRAIT_COLLECTABLE | TRAIT_MANAGED };

static uint64_t object(uint64_t number)
{
	return HEAP + SIZE * number;
}

static uint64_t stack(uint64_t number)
{
	return STACKS + LENGTH * number;
}

static void put(struct world *world, uint64_t number, unsigned int word, uint64_t value)
{
	core_set(&world->core, object(number) + 8 * word, value);
}

/* A fiber that waits, with used bytes of its stack in use. */
static void add_fiber(struct world *world, uint64_t number, uint64_t used)
{
	uint64_t top = stack(number) + LENGTH - used;

	put(world, number, 0, TYPE);
	put(world, number, 1, top);
	put(world, number, 2, 1);
	put(world, number, 3, stack(number));
	put(world, number, END, stack(number) + LENGTH);
	core_set(&world->core, top + 7 * 8, CODE + 0x10);
}

static void link_fibers(struct world *world, uint64_t first, uint64_t second)
{
	put(world, first, NEXT, object(second));
	put(world, second, PREVIOUS, object(first));
}

/* Its objects are all of the same traits. */
static void populate(struct world *world, unsigned int traits)
{
	struct core *core = &world->core;

	world_init(world);
	world_add_heap(world, HEAP, 0x1000);
	for (uint64_t i = 0; i < OBJECTS; i++)
		world_add_block(world, (struct block){ object(i), SIZE, BLOCK_USED, traits });
	core_add(core, STACKS, LENGTH * OBJECTS, RIGHTS_RW);
	core_add(core, CODE, 0x1000, RIGHT_READ | RIGHT_EXECUTE);
	world->registers.rsp = 0x1000;
}

static struct runtimes *find(struct world *world)
{
	static const struct runtime *const kinds[] = { &runtime_crystal, NULL };
	struct runtimes *runtimes;

	world_open(world);
	world_find_program(world);
	assert_no_error(runtimes_create(kinds,
					&(struct runtime_context){ world->image, world->program,
								   world->index, &world->account },
					&runtimes));
	return runtimes;
}

static uint32_t find_type(struct world *world)
{
	const struct runtime_context context = { world->image, world->program, world->index,
						 &world->account };
	_cleanup_(fibers_deinit) struct fibers fibers = { .memory.account = &world->account };
	uint32_t type;

	assert_no_error(crystal_find_fibers(&context, &fibers, &type));
	return type;
}

TEST(waiting_fibers_are_found_with_their_stacks)
{
	_cleanup_(world_deinit) struct world world;
	_cleanup_(runtimes_destroy) struct runtimes *runtimes = NULL;
	const struct fibers *fibers;

	populate(&world, COLLECTED);
	add_fiber(&world, 3, 0x200);
	add_fiber(&world, 4, 0x400);
	add_fiber(&world, 9, 0x100);
	runtimes = find(&world);
	fibers = runtimes_fibers(runtimes);
	assert_int_equal(fibers->count, 3);
	for (size_t i = 0; i < 3; i++) {
		static const uint64_t numbers[] = { 3, 4, 9 }, used[] = { 0x200, 0x400, 0x100 };
		const struct fiber *fiber = &fibers->items[i];

		assert_int_equal(fiber->object, object(numbers[i]));
		assert_int_equal(fiber->start, stack(numbers[i]));
		assert_int_equal(fiber->end, stack(numbers[i]) + LENGTH);
		assert_int_equal(fiber->live, fiber->end - used[i]);
		assert_false(fiber->running);
	}
	assert_ptr_equal(fiber_find(fibers, stack(4) + 8), &fibers->items[1]);
	assert_null(fiber_find(fibers, stack(5)));
	assert_int_equal(find_type(&world), TYPE);
}

TEST(fibers_that_have_ended_are_left_out)
{
	_cleanup_(world_deinit) struct world world;
	_cleanup_(runtimes_destroy) struct runtimes *runtimes = NULL;
	const struct fibers *fibers;

	populate(&world, COLLECTED);
	for (uint64_t i = 0; i < 4; i++)
		add_fiber(&world, i, 0x200);
	link_fibers(&world, 0, 1);
	link_fibers(&world, 1, 3);
	runtimes = find(&world);
	fibers = runtimes_fibers(runtimes);
	assert_int_equal(fibers->count, 3);
	for (size_t i = 0; i < 3; i++)
		assert_int_not_equal(fibers->items[i].object, object(2));
}

TEST(running_fiber_is_one_of_the_same_type)
{
	_cleanup_(world_deinit) struct world world;
	_cleanup_(runtimes_destroy) struct runtimes *runtimes = NULL;
	const struct fibers *fibers;

	populate(&world, COLLECTED);
	add_fiber(&world, 0, 0x200);
	add_fiber(&world, 1, 0x200);
	put(&world, 1, 2, 0); /* not resumable: it runs */
	runtimes = find(&world);
	fibers = runtimes_fibers(runtimes);
	assert_int_equal(fibers->count, 2);
	assert_false(fibers->items[0].running);
	assert_true(fibers->items[1].running);
	assert_int_equal(fibers->items[1].live, stack(1));
}

TEST(saved_registers_are_read)
{
	_cleanup_(world_deinit) struct world world;
	_cleanup_(runtimes_destroy) struct runtimes *runtimes = NULL;
	const struct fibers *fibers;
	struct frame_state saved;
	uint64_t top = stack(0) + LENGTH - 0x200;

	populate(&world, COLLECTED);
	add_fiber(&world, 0, 0x200);
	for (uint64_t i = 0; i < 6; i++)
		core_set(&world.core, top + 8 * i, 15 - i);
	runtimes = find(&world);
	fibers = runtimes_fibers(runtimes);
	assert_int_equal(fibers->count, 1);
	assert_true(fiber_registers(world.image, &fibers->items[0], &saved));
	assert_int_equal(saved.registers[15], 15);
	assert_int_equal(saved.registers[12], 12);
	assert_int_equal(saved.registers[6], 11); /* rbp */
	assert_int_equal(saved.registers[3], 10); /* rbx */
	assert_int_equal(saved.address, CODE + 0x10);
	assert_int_equal(saved.registers[7], top + 8 * SAVED); /* rsp */
}

TEST(objects_that_only_resemble_fibers_are_none)
{
	_cleanup_(world_deinit) struct world world;
	_cleanup_(runtimes_destroy) struct runtimes *runtimes = NULL;
	const struct fibers *fibers;

	populate(&world, COLLECTED);
	add_fiber(&world, 0, 0x200);
	/* Its return address is no code. */
	core_set(&world.core, stack(0) + LENGTH - 0x200 + 7 * 8, stack(0));
	add_fiber(&world, 1, 0x200);
	put(&world, 1, 1, stack(1) + 2 * LENGTH); /* not on its stack */
	add_fiber(&world, 2, 0x200);
	put(&world, 2, END, 0);
	add_fiber(&world, 3, 0x200);
	put(&world, 3, 2, 7);
	runtimes = find(&world);
	fibers = runtimes_fibers(runtimes);
	assert_int_equal(fibers->count, 0);
}

TEST(heaps_without_a_collector_have_no_fibers)
{
	_cleanup_(world_deinit) struct world world;
	_cleanup_(runtimes_destroy) struct runtimes *runtimes = NULL;
	const struct fibers *fibers;

	populate(&world, 0);
	add_fiber(&world, 0, 0x200);
	runtimes = find(&world);
	fibers = runtimes_fibers(runtimes);
	assert_int_equal(fibers->count, 0);
}
