#include "analyzer/graph/collector.h"

#include "tests/analyzer/image/core_builder.h"

#include <elf.h>

/*
 * The blocks are of malloc() in the lower half of the heap, and collectable
 * objects in the upper. A module's data, a mapping of the program's own, a
 * stack that it made and the main stack refer to them.
 */
static const uint64_t PAGE = 4096, HEAP = 0x555500000000, SIZE = 32,
		      LIBRARY = 0x7f0000000000, DATA = LIBRARY + PAGE,
		      CONSTANTS = DATA + PAGE, OWN = 0x7e0000000000,
		      MADE = 0x7d0000000000, STACK = 0x7ffc00000000,
		      RSP = STACK + 0x1000, LENGTH = 0x2000;

enum { BLOCKS = 16, OBJECT = BLOCKS / 2, UNCOLLECTABLE = BLOCKS - 1 };

struct world {
	struct core core;
	struct user_regs_struct registers;
	struct findings findings;
	struct memory_account account;
	struct progress progress;
	struct block_sink *sink;
	struct image *image;
	struct program *program;
	struct allocation_index *index;
	struct roots *roots;
	struct graph *graph;
	struct bitmap kept;
};

static uint64_t at(allocation_id id)
{
	return HEAP + SIZE * id;
}

static void add_library(struct core *core)
{
	const Elf64_Ehdr header = { .e_ident = ELFMAG,
				    .e_phoff = sizeof(header),
				    .e_phentsize = sizeof(Elf64_Phdr),
				    .e_phnum = 1 };
	const Elf64_Phdr segment = { .p_type = PT_LOAD };
	uint8_t *bytes = core_add(core, LIBRARY, PAGE, RIGHT_READ);

	memcpy(bytes, &header, sizeof(header));
	memcpy(bytes + sizeof(header), &segment, sizeof(segment));
	core_add(core, DATA, PAGE, RIGHTS_RW);
	core_add(core, CONSTANTS, PAGE, RIGHT_READ);
	core_add_file(core, LIBRARY, DATA, 0, "/lib/libuser.so");
	core_add_file(core, DATA, CONSTANTS, PAGE, "/lib/libuser.so");
	core_add_file(core, CONSTANTS, CONSTANTS + PAGE, 2 * PAGE,
		      "/lib/libuser.so");
}

static void world_init(struct world *world)
{
	struct core *core = &world->core;

	*world = (struct world){ .registers = { .rsp = RSP } };
	core_init(core);
	core_add(core, HEAP, SIZE * BLOCKS, RIGHTS_RW);
	core_add(core, MADE, LENGTH, RIGHTS_RW);
	core_add(core, OWN, LENGTH, RIGHTS_RW);
	add_library(core);
	core_add(core, STACK, LENGTH, RIGHTS_RW);
	core_add_auxiliary(core, AT_RANDOM, STACK + LENGTH - 0x100);
	assert_no_error(block_sink_create(&world->account, &world->sink));
	assert_no_error(
		block_sink_region(world->sink, HEAP, HEAP + SIZE * BLOCKS, 0));
	for (allocation_id id = 0; id < BLOCKS; id++) {
		struct block block = { at(id), SIZE, BLOCK_USED };

		if (id >= OBJECT)
			block.traits = TRAIT_MANAGED;
		if (id >= OBJECT && id != UNCOLLECTABLE)
			block.traits |= TRAIT_COLLECTABLE;
		assert_no_error(block_sink_add(world->sink, block));
	}
}

static void world_deinit(struct world *world)
{
	bitmap_deinit(&world->kept);
	if (world->graph)
		graph_destroy(world->graph);
	if (world->roots)
		roots_destroy(world->roots);
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

static void collect(struct world *world)
{
	struct collector_input input;

	core_add_thread(&world->core, 11, &world->registers);
	core_write_file(&world->core);
	assert_no_error(
		image_open(world->core.path, &world->findings, &world->image));
	assert_no_error(program_create(world->image, &world->findings,
				       &world->program));
	assert_no_error(allocation_index_create(world->sink, &world->index));
	assert_no_error(roots_create(world->image, world->program, world->index,
				     NULL, &world->account, &world->progress,
				     &world->roots));
	assert_no_error(graph_create(world->image, world->index,
				     &world->account, &world->progress,
				     &world->graph));
	input = (struct collector_input){
		.program = world->program,
		.index = world->index,
		.roots = world->roots,
		.graph = world->graph,
		.account = &world->account,
		.progress = &world->progress,
	};
	assert_no_error(collector_mark(&input, &world->kept));
}

/* Those objects, as bits from OBJECT on, and the uncollectable one are kept. */
static void assert_kept(const struct world *world, uint64_t objects)
{
	assert_int_equal(world->kept.words[0],
			 objects << OBJECT | UINT64_C(1) << UNCOLLECTABLE);
}

static void test_data_of_modules_stacks_and_registers_are_looked_at(
	void **state)
{
	_cleanup_(world_deinit) struct world world;

	world_init(&world);
	core_set(&world.core, DATA + PAGE - 8, at(OBJECT));
	core_set(&world.core, RSP + 8, at(OBJECT + 1) + 5);
	world.registers.rbx = at(OBJECT + 2);
	collect(&world);
	assert_kept(&world, 1 << 0 | 1 << 1 | 1 << 2);
}

static void test_memory_of_the_programs_own_is_not_looked_at(void **state)
{
	_cleanup_(world_deinit) struct world world;

	world_init(&world);
	core_set(&world.core, OWN, at(OBJECT));
	/* What the loader protected is known to be constant. */
	core_set(&world.core, CONSTANTS, at(OBJECT + 1));
	core_set(&world.core, STACK, at(OBJECT + 2));
	collect(&world);
	assert_true(bitmap_get(root_targets(world.roots, ROOT_STATIC), OBJECT));
	assert_kept(&world, 0);
}

static void test_objects_lead_on_and_blocks_of_malloc_do_not(void **state)
{
	_cleanup_(world_deinit) struct world world;

	world_init(&world);
	core_set(&world.core, DATA, at(0));
	core_set(&world.core, DATA + 8, at(OBJECT));
	core_set(&world.core, at(0), at(OBJECT + 1));
	core_set(&world.core, at(OBJECT), at(OBJECT + 2));
	core_set(&world.core, at(OBJECT + 2), at(1));
	core_set(&world.core, at(1), at(OBJECT + 3));
	collect(&world);
	assert_kept(&world, 1 << 0 | 1 << 2);
}

static void test_uncollectable_object_leads_on_though_it_is_lost(void **state)
{
	_cleanup_(world_deinit) struct world world;

	world_init(&world);
	core_set(&world.core, at(UNCOLLECTABLE), at(OBJECT + 4));
	core_set(&world.core, at(OBJECT + 4) + 8, at(OBJECT + 5) + SIZE - 1);
	collect(&world);
	assert_kept(&world, 1 << 4 | 1 << 5);
}

static void test_stack_that_a_thread_runs_on_is_looked_at(void **state)
{
	_cleanup_(world_deinit) struct world world;

	world_init(&world);
	world.registers.rsp = MADE + 0x1000;
	core_set(&world.core, MADE + 0x800, at(OBJECT));
	core_set(&world.core, MADE + 0x1000 - RED_ZONE, at(OBJECT + 1));
	core_set(&world.core, MADE + LENGTH - 8, at(OBJECT + 2));
	collect(&world);
	assert_kept(&world, 1 << 1 | 1 << 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			test_data_of_modules_stacks_and_registers_are_looked_at),
		cmocka_unit_test(
			test_memory_of_the_programs_own_is_not_looked_at),
		cmocka_unit_test(
			test_objects_lead_on_and_blocks_of_malloc_do_not),
		cmocka_unit_test(
			test_uncollectable_object_leads_on_though_it_is_lost),
		cmocka_unit_test(test_stack_that_a_thread_runs_on_is_looked_at),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
