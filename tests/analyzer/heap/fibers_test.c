#include "analyzer/heap/fibers.h"

#include "tests/analyzer/image/core_builder.h"

/*
 * Objects of SIZE bytes in HEAP, fibers among them, whose stacks are of LENGTH
 * bytes from STACKS on. Where a fiber's next and previous one, its name and the
 * end of its stack are is for fibers.c to find.
 */
static const uint64_t HEAP = 0x7f0000000000, SIZE = 0xa0, OBJECTS = 16,
		      STACKS = 0x7f1000000000, LENGTH = 0x4000, CODE = 0x400000,
		      TYPE = 0x96;

enum { END = 11, NAME = 12, NEXT = 14, PREVIOUS = 15, SAVED = 8 };

struct world {
	struct core core;
	struct findings findings;
	struct memory_account account;
	struct block_sink *sink;
	struct image *image;
	struct program *program;
	struct allocation_index *index;
	struct fibers *fibers;
};

static uint64_t object(uint64_t number)
{
	return HEAP + SIZE * number;
}

static uint64_t stack(uint64_t number)
{
	return STACKS + LENGTH * number;
}

static void put(struct world *world, uint64_t number, unsigned int word,
		uint64_t value)
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

static void world_init(struct world *world)
{
	static const struct user_regs_struct registers = { .rsp = 0x1000 };
	struct core *core = &world->core;

	*world = (struct world){ 0 };
	core_init(core);
	core_add(core, HEAP, 0x1000, RIGHTS_RW);
	core_add(core, STACKS, LENGTH * OBJECTS, RIGHTS_RW);
	core_add(core, CODE, 0x1000, RIGHT_READ | RIGHT_EXECUTE);
	core_add_thread(core, 11, &registers);
	assert_no_error(block_sink_create(&world->account, &world->sink));
	assert_no_error(block_sink_region(world->sink, HEAP, HEAP + 0x1000, 0));
	for (uint64_t i = 0; i < OBJECTS; i++)
		assert_no_error(block_sink_add(
			world->sink,
			(struct block){ object(i), SIZE, BLOCK_USED,
					TRAIT_COLLECTABLE | TRAIT_MANAGED }));
}

static void world_deinit(struct world *world)
{
	if (world->fibers)
		fibers_destroy(world->fibers);
	if (world->index)
		allocation_index_destroy(world->index);
	if (world->program)
		program_destroy(world->program);
	if (world->image)
		image_close(world->image);
	block_sink_destroy(world->sink);
	findings_deinit(&world->findings);
	core_deinit(&world->core);
	assert_int_equal(world->account.used, 0);
}
DEFINE_DEINIT(world_deinit, struct world)

static size_t find(struct world *world)
{
	core_write_file(&world->core);
	assert_no_error(
		image_open(world->core.path, &world->findings, &world->image));
	assert_no_error(program_create(world->image, &world->findings,
				       &world->program));
	assert_no_error(allocation_index_create(world->sink, &world->index));
	assert_no_error(fibers_create(world->image, world->program,
				      world->index, &world->account,
				      &world->fibers));
	return fiber_count(world->fibers);
}

static void test_waiting_fibers_are_found_with_their_stacks(void **state)
{
	_cleanup_(world_deinit) struct world world;

	world_init(&world);
	add_fiber(&world, 3, 0x200);
	add_fiber(&world, 4, 0x400);
	add_fiber(&world, 9, 0x100);
	assert_int_equal(find(&world), 3);
	for (size_t i = 0; i < 3; i++) {
		static const uint64_t numbers[] = { 3, 4, 9 },
				      used[] = { 0x200, 0x400, 0x100 };
		const struct fiber *fiber = fiber_at(world.fibers, i);

		assert_int_equal(fiber->object, object(numbers[i]));
		assert_int_equal(fiber->start, stack(numbers[i]));
		assert_int_equal(fiber->end, stack(numbers[i]) + LENGTH);
		assert_int_equal(fiber->live, fiber->end - used[i]);
		assert_false(fiber->running);
	}
	assert_ptr_equal(fiber_find(world.fibers, stack(4) + 8),
			 fiber_at(world.fibers, 1));
	assert_null(fiber_find(world.fibers, stack(5)));
	assert_int_equal(fibers_type(world.fibers), TYPE);
}

static void test_fibers_that_have_ended_are_left_out(void **state)
{
	_cleanup_(world_deinit) struct world world;

	world_init(&world);
	for (uint64_t i = 0; i < 4; i++)
		add_fiber(&world, i, 0x200);
	link_fibers(&world, 0, 1);
	link_fibers(&world, 1, 3);
	assert_int_equal(find(&world), 3);
	for (size_t i = 0; i < 3; i++)
		assert_int_not_equal(fiber_at(world.fibers, i)->object,
				     object(2));
}

static void test_running_fiber_is_one_of_the_same_type(void **state)
{
	_cleanup_(world_deinit) struct world world;

	world_init(&world);
	add_fiber(&world, 0, 0x200);
	add_fiber(&world, 1, 0x200);
	put(&world, 1, 2, 0); /* not resumable: it runs */
	assert_int_equal(find(&world), 2);
	assert_false(fiber_at(world.fibers, 0)->running);
	assert_true(fiber_at(world.fibers, 1)->running);
	assert_int_equal(fiber_at(world.fibers, 1)->live, stack(1));
}

static void test_saved_registers_are_read(void **state)
{
	_cleanup_(world_deinit) struct world world;
	struct saved_registers saved;
	uint64_t top = stack(0) + LENGTH - 0x200;

	world_init(&world);
	add_fiber(&world, 0, 0x200);
	for (uint64_t i = 0; i < 6; i++)
		core_set(&world.core, top + 8 * i, 15 - i);
	assert_int_equal(find(&world), 1);
	assert_true(fiber_registers(world.image, fiber_at(world.fibers, 0),
				    &saved));
	assert_int_equal(saved.r15, 15);
	assert_int_equal(saved.r12, 12);
	assert_int_equal(saved.rbp, 11);
	assert_int_equal(saved.rbx, 10);
	assert_int_equal(saved.rip, CODE + 0x10);
	assert_int_equal(saved.rsp, top + 8 * SAVED);
}

static void test_objects_that_only_resemble_fibers_are_none(void **state)
{
	_cleanup_(world_deinit) struct world world;

	world_init(&world);
	add_fiber(&world, 0, 0x200);
	/* Where it would go on is no code. */
	core_set(&world.core, stack(0) + LENGTH - 0x200 + 7 * 8, stack(0));
	add_fiber(&world, 1, 0x200);
	put(&world, 1, 1, stack(1) + 2 * LENGTH); /* not on its stack */
	add_fiber(&world, 2, 0x200);
	put(&world, 2, END, 0);
	add_fiber(&world, 3, 0x200);
	put(&world, 3, 2, 7);
	assert_int_equal(find(&world), 0);
}

static void test_heaps_without_a_collector_have_no_fibers(void **state)
{
	_cleanup_(world_deinit) struct world world;

	world_init(&world);
	add_fiber(&world, 0, 0x200);
	block_sink_destroy(world.sink);
	assert_no_error(block_sink_create(&world.account, &world.sink));
	assert_no_error(block_sink_region(world.sink, HEAP, HEAP + SIZE, 0));
	assert_no_error(block_sink_add(
		world.sink, (struct block){ HEAP, SIZE, BLOCK_USED }));
	assert_int_equal(find(&world), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			test_waiting_fibers_are_found_with_their_stacks),
		cmocka_unit_test(test_fibers_that_have_ended_are_left_out),
		cmocka_unit_test(test_running_fiber_is_one_of_the_same_type),
		cmocka_unit_test(test_saved_registers_are_read),
		cmocka_unit_test(
			test_objects_that_only_resemble_fibers_are_none),
		cmocka_unit_test(test_heaps_without_a_collector_have_no_fibers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
