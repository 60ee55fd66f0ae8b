#include "analyzer/classify/reference_judge.h"

#include "tests/analyzer/world.h"

/*
 * Large blocks; the first VECTORS of them are bodies of vectors in DATA, of which the second half
 * is spare room.
 */
static const uint64_t HEAP = 0x555500000000, STRIDE = 8192, SIZE = 8184, BLOCKS = 24, VECTORS = 9,
		      DATA = 0x7f0000000000, LIBRARY = 0x7f0000100000, LENGTH = 0x2000,
		      STACK = 0x7ffc00000000;

static uint64_t at(uint64_t block)
{
	return HEAP + STRIDE * block;
}

/* Each refers to one block soundly, to one by spare room, and to one by both.
 */
static void fill_vector(struct core *core, uint64_t vector)
{
	uint64_t header = DATA + 64 * vector, body = at(vector);

	core_set(core, header, body);
	core_set(core, header + 8, body + STRIDE / 2);
	core_set(core, header + 16, body + SIZE);
	core_set(core, body + 800, at(VECTORS + vector));
	core_set(core, body + 6400, at(VECTORS + vector + 1));
	core_set(core, body + 1600, at(VECTORS + vector + 2));
	core_set(core, body + 7200, at(VECTORS + vector + 2));
}

TEST(it_says_what_the_patterns_do)
{
	_cleanup_(world_deinit) struct world world;
	_cleanup_(taint_memory_destroy) struct taint_memory *memory = NULL;
	_cleanup_(patterns_destroy) struct patterns *patterns = NULL;
	size_t tainted = 0;

	world_init(&world);
	world_add_blocks(&world, BLOCKS, HEAP, STRIDE, SIZE);
	core_add(&world.core, DATA, LENGTH, RIGHTS_RW);
	world_add_stack(&world, STACK, LENGTH, STACK + 0x1000);
	world_add_elf(&world, LIBRARY, LENGTH);
	core_add_file(&world.core, LIBRARY, LIBRARY + LENGTH, 0, "/usr/lib/libstdc++.so.6");
	for (uint64_t vector = 0; vector < VECTORS; vector++)
		fill_vector(&world.core, vector);
	world_open(&world);
	world_find_program(&world);
	world_find_roots(&world);
	assert_no_error(patterns_create(
		&(struct scan_input){
			.image = world.image,
			.program = world.program,
			.index = world.index,
			.roots = world.roots,
			.account = &world.account,
			.progress = &world.progress,
		},
		&patterns));
	assert_no_error(patterns_find_owners(patterns));
	assert_no_error(taint_memory_create(patterns, &world.account, &memory));
	for (size_t chunk = 0; chunk < 1000; chunk++) {
		allocation_id source = (allocation_id)(chunk * 7 % VECTORS);
		allocation_id target = (allocation_id)(chunk * 5 % BLOCKS);
		const char *part = taint_memory_find(memory, source, target);

		assert_ptr_equal(part, patterns_find_taint(patterns, source, target));
		assert_int_equal(part != NULL, target == VECTORS + source + 1);
		tainted += part != NULL;
	}
	assert_int_not_equal(tainted, 0);
}
