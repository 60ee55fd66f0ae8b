#include "analyzer/graph/collector.h"

#include "tests/analyzer/world.h"

/*
 * The blocks are of malloc() in the lower half of the heap, and collectable objects in the upper. A
 * module's data, a mapping of the program's own, a stack that it made and the main stack refer to
 * them.
 */
static const uint64_t HEAP = 0x555500000000, SIZE = 32, LIBRARY = 0x7f0000000000,
		      DATA = LIBRARY + PAGE, CONSTANTS = DATA + PAGE, OWN = 0x7e0000000000,
		      MADE = 0x7d0000000000, STACK = 0x7ffc00000000, RSP = STACK + 0x1000,
		      LENGTH = 0x2000;

enum { BLOCKS = 16, OBJECT = BLOCKS / 2, UNCOLLECTABLE = BLOCKS - 1 };

static uint64_t at(allocation_id id)
{
	return HEAP + SIZE * id;
}

static void add_library(struct world *world)
{
	static const char PATH[] = "/lib/libuser.so";
	struct core *core = &world->core;

	world_add_elf(world, LIBRARY, PAGE);
	core_add(core, DATA, PAGE, RIGHTS_RW);
	core_add(core, CONSTANTS, PAGE, RIGHT_READ);
	core_add_file(core, LIBRARY, DATA, 0, PATH);
	core_add_file(core, DATA, CONSTANTS, PAGE, PATH);
	core_add_file(core, CONSTANTS, CONSTANTS + PAGE, 2 * PAGE, PATH);
}

static void populate(struct world *world)
{
	world_init(world);
	world_add_heap(world, HEAP, SIZE * BLOCKS);
	for (allocation_id id = 0; id < BLOCKS; id++) {
		struct block block = { at(id), SIZE, BLOCK_USED };

		if (id >= OBJECT)
			block.traits = TRAIT_MANAGED;
		if (id >= OBJECT && id != UNCOLLECTABLE)
			block.traits |= TRAIT_COLLECTABLE;
		world_add_block(world, block);
	}
	core_add(&world->core, MADE, LENGTH, RIGHTS_RW);
	core_add(&world->core, OWN, LENGTH, RIGHTS_RW);
	add_library(world);
	world_add_stack(world, STACK, LENGTH, RSP);
}

/* The collector keeps those objects, as bits from OBJECT on, and the uncollectable one. */
static void assert_kept(struct world *world, uint64_t objects)
{
	_cleanup_(bitmap_deinit) struct bitmap kept = { 0 };
	struct collector_input input;

	world_open(world);
	world_find_program(world);
	world_find_roots(world);
	world_find_graph(world);
	input = (struct collector_input){
		.program = world->program,
		.index = world->index,
		.roots = world->roots,
		.graph = world->graph,
		.account = &world->account,
		.progress = &world->progress,
	};
	assert_no_error(collector_mark(&input, &kept));
	assert_int_equal(kept.words[0], objects << OBJECT | UINT64_C(1) << UNCOLLECTABLE);
}

TEST(data_of_modules_stacks_and_registers_are_looked_at)
{
	_cleanup_(world_deinit) struct world world;

	populate(&world);
	core_set(&world.core, DATA + PAGE - 8, at(OBJECT));
	core_set(&world.core, RSP + 8, at(OBJECT + 1) + 5);
	world.registers.rbx = at(OBJECT + 2);
	assert_kept(&world, 1 << 0 | 1 << 1 | 1 << 2);
}

TEST(memory_of_the_programs_own_is_not_looked_at)
{
	_cleanup_(world_deinit) struct world world;

	populate(&world);
	core_set(&world.core, OWN, at(OBJECT));
	/* Memory that the loader protected is known to be constant. */
	core_set(&world.core, CONSTANTS, at(OBJECT + 1));
	core_set(&world.core, STACK, at(OBJECT + 2));
	assert_kept(&world, 0);
	assert_true(bitmap_get(root_targets(world.roots, ROOT_STATIC), OBJECT));
}

TEST(objects_lead_on_and_blocks_of_malloc_do_not)
{
	_cleanup_(world_deinit) struct world world;

	populate(&world);
	core_set(&world.core, DATA, at(0));
	core_set(&world.core, DATA + 8, at(OBJECT));
	core_set(&world.core, at(0), at(OBJECT + 1));
	core_set(&world.core, at(OBJECT), at(OBJECT + 2));
	core_set(&world.core, at(OBJECT + 2), at(1));
	core_set(&world.core, at(1), at(OBJECT + 3));
	assert_kept(&world, 1 << 0 | 1 << 2);
}

TEST(uncollectable_object_leads_on_though_it_is_lost)
{
	_cleanup_(world_deinit) struct world world;

	populate(&world);
	core_set(&world.core, at(UNCOLLECTABLE), at(OBJECT + 4));
	core_set(&world.core, at(OBJECT + 4) + 8, at(OBJECT + 5) + SIZE - 1);
	assert_kept(&world, 1 << 4 | 1 << 5);
}

TEST(stack_that_a_thread_runs_on_is_looked_at)
{
	_cleanup_(world_deinit) struct world world;

	populate(&world);
	world.registers.rsp = MADE + 0x1000;
	core_set(&world.core, MADE + 0x800, at(OBJECT));
	core_set(&world.core, MADE + 0x1000 - RED_ZONE, at(OBJECT + 1));
	core_set(&world.core, MADE + LENGTH - 8, at(OBJECT + 2));
	assert_kept(&world, 1 << 1 | 1 << 2);
}
