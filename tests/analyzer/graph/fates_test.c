#include "analyzer/graph/fates.h"

#include "tests/analyzer/image/core_builder.h"

#include <dlfcn.h>
#include <errno.h>

/* How many arrays are mapped before one fails; negative: all are. */
static long countdown = -1;

/* What analyzer/base/memory.c maps comes through here. */
void *mmap(void *address, size_t size, int rights, int flags, int fd,
	   off_t offset)
{
	static __typeof__(&mmap) next;

	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "mmap");
	if (countdown >= 0 && countdown-- == 0) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	return next(address, size, rights, flags, fd, offset);
}

/* A heap of blocks of SIZE bytes each, one every STRIDE bytes. */
static const uint64_t HEAP = 0x100000, STRIDE = 64, SIZE = 56;

/* What allocates blocks: malloc(), and a collector in its ways. */
enum {
	MALLOC = 0,
	COLLECTED = TRAIT_COLLECTABLE | TRAIT_MANAGED,
	POINTERLESS = COLLECTED | TRAIT_POINTERLESS,
	UNCOLLECTED = TRAIT_MANAGED,
};

struct world {
	struct core core;
	struct findings findings;
	struct memory_account account;
	struct progress progress;
	struct block_sink *sink;
	struct image *image;
	struct allocation_index *index;
	struct graph *graph;
	struct bitmap anchored;
	struct fates fates;
	allocation_id count;
};

static uint64_t at(allocation_id id)
{
	return HEAP + STRIDE * id;
}

static void world_init(struct world *world)
{
	enum { MOST_BLOCKS = 100 };

	*world = (struct world){ .count = 0 };
	core_init(&world->core);
	core_add(&world->core, HEAP, STRIDE * MOST_BLOCKS, RIGHTS_RW);
	assert_no_error(block_sink_create(&world->account, &world->sink));
	assert_no_error(block_sink_region(world->sink, HEAP,
					  HEAP + STRIDE * MOST_BLOCKS, 0));
}

static void world_deinit(struct world *world)
{
	fates_deinit(&world->fates);
	bitmap_deinit(&world->anchored);
	if (world->graph)
		graph_destroy(world->graph);
	if (world->index)
		allocation_index_destroy(world->index);
	if (world->image)
		image_close(world->image);
	block_sink_destroy(world->sink);
	findings_deinit(&world->findings);
	core_deinit(&world->core);
	assert_int_equal(world->account.used, 0);
}
DEFINE_DEINIT(world_deinit, struct world)

/* A block that refers to no other yet. */
static allocation_id add(struct world *world, unsigned int traits)
{
	struct block block = { .start = at(world->count),
			       .size = SIZE,
			       .state = BLOCK_USED,
			       .traits = traits };

	assert_no_error(block_sink_add(world->sink, block));
	return world->count++;
}

/* The word of that number in one block is the address of another. */
static void refer(struct world *world, allocation_id from, size_t word,
		  allocation_id to)
{
	core_set(&world->core, at(from) + 8 * word, at(to));
}

/* Only that block, and what it leads to, is anchored; NO_ALLOCATION: none. */
static void judge(struct world *world, allocation_id anchor)
{
	_cleanup_(bitmap_deinit) struct bitmap from = { 0 };

	core_write_file(&world->core);
	assert_no_error(
		image_open(world->core.path, &world->findings, &world->image));
	assert_no_error(allocation_index_create(world->sink, &world->index));
	assert_no_error(graph_create(world->image, world->index,
				     &world->account, &world->progress,
				     &world->graph));
	assert_no_error(bitmap_init(&from, world->count, &world->account));
	assert_no_error(
		bitmap_init(&world->anchored, world->count, &world->account));
	if (anchor != NO_ALLOCATION)
		bitmap_set(&from, anchor);
	assert_no_error(graph_mark(world->graph, &from, &world->anchored,
				   &world->account, &world->progress));
	assert_no_error(fates_init(&world->fates, world->graph, world->index,
				   &world->anchored, &world->account,
				   &world->progress));
}

/* 'a' anchored, 'g' garbage, 'h' held, 'l' leaked. */
static char fate(const struct world *world, allocation_id id)
{
	const struct fates *fates = &world->fates;
	char letter = 0;

	if (bitmap_get(&world->anchored, id))
		letter = 'a';
	if (bitmap_get(&fates->leaked, id)) {
		assert_int_equal(letter, 0);
		letter = 'l';
	}
	if (fates->garbage.words && bitmap_get(&fates->garbage, id)) {
		assert_int_equal(letter, 0);
		letter = 'g';
	}
	if (fates->held.words && bitmap_get(&fates->held, id)) {
		assert_int_equal(letter, 0);
		letter = 'h';
	}
	return letter;
}

/* The fates of the blocks, in order of address. */
static void assert_fates(const struct world *world, const char *expected)
{
	char found[100] = "";

	assert_int_equal(strlen(expected), world->count);
	for (allocation_id id = 0; id < world->count; id++)
		found[id] = fate(world, id);
	assert_string_equal(found, expected);
}

static void test_without_a_collector_all_that_is_lost_is_leaked(void **state)
{
	_cleanup_(world_deinit) struct world world;

	world_init(&world);
	for (int i = 0; i < 4; i++)
		add(&world, MALLOC);
	refer(&world, 0, 0, 1);
	refer(&world, 2, 0, 3);
	judge(&world, 0);
	assert_fates(&world, "aall");
	assert_null(world.fates.garbage.words);
	assert_null(world.fates.held.words);
}

static void test_lost_objects_of_a_collector_are_garbage(void **state)
{
	_cleanup_(world_deinit) struct world world;

	world_init(&world);
	add(&world, COLLECTED);
	add(&world, COLLECTED);
	add(&world, COLLECTED);
	add(&world, POINTERLESS);
	refer(&world, 0, 0, 1);
	refer(&world, 2, 0, 3);
	/* What looks like a reference is none. */
	refer(&world, 3, 0, 0);
	judge(&world, 0);
	assert_fates(&world, "aagg");
}

static void test_what_garbage_alone_leads_to_is_held_by_it(void **state)
{
	_cleanup_(world_deinit) struct world world;

	world_init(&world);
	add(&world, COLLECTED);
	add(&world, MALLOC);
	add(&world, MALLOC);
	add(&world, MALLOC);
	add(&world, UNCOLLECTED);
	refer(&world, 0, 0, 1);
	refer(&world, 1, 0, 2);
	refer(&world, 2, 0, 4);
	judge(&world, NO_ALLOCATION);
	assert_fates(&world, "ghhlh");
}

/* A finalizer of the garbage may free it. */
static void test_what_leaked_and_garbage_lead_to_is_held(void **state)
{
	_cleanup_(world_deinit) struct world world;

	world_init(&world);
	add(&world, COLLECTED);
	add(&world, MALLOC);
	add(&world, MALLOC);
	refer(&world, 0, 0, 2);
	refer(&world, 1, 0, 2);
	judge(&world, NO_ALLOCATION);
	assert_fates(&world, "glh");
}

/* The collector does not look into malloc's blocks. */
static void test_leaked_block_keeps_no_object_from_being_garbage(void **state)
{
	_cleanup_(world_deinit) struct world world;

	world_init(&world);
	add(&world, MALLOC);
	add(&world, COLLECTED);
	add(&world, MALLOC);
	refer(&world, 0, 0, 1);
	refer(&world, 1, 0, 2);
	judge(&world, NO_ALLOCATION);
	assert_fates(&world, "lgh");
}

static void test_leaked_object_leaks_what_it_keeps(void **state)
{
	_cleanup_(world_deinit) struct world world;

	world_init(&world);
	add(&world, UNCOLLECTED);
	add(&world, COLLECTED);
	add(&world, POINTERLESS);
	add(&world, MALLOC);
	add(&world, COLLECTED);
	refer(&world, 0, 0, 1);
	refer(&world, 1, 0, 2);
	refer(&world, 1, 1, 3);
	/* Over malloc's block the collector does not get there. */
	refer(&world, 3, 0, 4);
	judge(&world, NO_ALLOCATION);
	assert_fates(&world, "llllg");
}

/* The object at 1 is kept, but by one that garbage leads to. */
static void test_what_a_held_object_keeps_is_held(void **state)
{
	_cleanup_(world_deinit) struct world world;

	world_init(&world);
	add(&world, UNCOLLECTED);
	add(&world, COLLECTED);
	add(&world, COLLECTED);
	refer(&world, 0, 0, 1);
	refer(&world, 2, 0, 0);
	judge(&world, NO_ALLOCATION);
	assert_fates(&world, "hhg");
}

static void test_ring_over_both_heaps_is_garbage_and_held(void **state)
{
	_cleanup_(world_deinit) struct world world;

	world_init(&world);
	add(&world, COLLECTED);
	add(&world, MALLOC);
	add(&world, MALLOC);
	add(&world, MALLOC);
	refer(&world, 0, 0, 1);
	refer(&world, 1, 0, 0);
	refer(&world, 2, 0, 3);
	refer(&world, 3, 0, 2);
	judge(&world, NO_ALLOCATION);
	assert_fates(&world, "ghll");
}

static void test_what_live_objects_lead_to_is_anchored(void **state)
{
	_cleanup_(world_deinit) struct world world;

	world_init(&world);
	add(&world, COLLECTED);
	add(&world, MALLOC);
	add(&world, COLLECTED);
	add(&world, COLLECTED);
	refer(&world, 0, 0, 1);
	refer(&world, 1, 0, 2);
	/* Garbage that refers to what is in use changes nothing. */
	refer(&world, 3, 0, 1);
	judge(&world, 0);
	assert_fates(&world, "aaag");
}

/* Nothing is left behind, and the next attempt is right. */
static void test_lack_of_memory_at_any_time_is_told(void **state)
{
	_cleanup_(world_deinit) struct world world;
	long mappings = 0;

	world_init(&world);
	add(&world, UNCOLLECTED);
	add(&world, COLLECTED);
	add(&world, COLLECTED);
	add(&world, MALLOC);
	refer(&world, 0, 0, 1);
	refer(&world, 2, 0, 3);
	judge(&world, NO_ALLOCATION);
	assert_fates(&world, "llgh");
	for (bool failed = true; failed; mappings++) {
		size_t used = world.account.used;
		struct fates fates = { 0 };
		struct error *error;

		countdown = mappings;
		error = fates_init(&fates, world.graph, world.index,
				   &world.anchored, &world.account,
				   &world.progress);
		countdown = -1;
		failed = error != NULL;
		if (failed)
			assert_int_equal(error_code(error), ERROR_NO_MEMORY);
		error_destroy(error);
		fates_deinit(&fates);
		assert_int_equal(world.account.used, used);
	}
	assert_true(mappings > 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			test_without_a_collector_all_that_is_lost_is_leaked),
		cmocka_unit_test(test_lost_objects_of_a_collector_are_garbage),
		cmocka_unit_test(
			test_what_garbage_alone_leads_to_is_held_by_it),
		cmocka_unit_test(test_what_leaked_and_garbage_lead_to_is_held),
		cmocka_unit_test(
			test_leaked_block_keeps_no_object_from_being_garbage),
		cmocka_unit_test(test_leaked_object_leaks_what_it_keeps),
		cmocka_unit_test(test_what_a_held_object_keeps_is_held),
		cmocka_unit_test(test_ring_over_both_heaps_is_garbage_and_held),
		cmocka_unit_test(test_what_live_objects_lead_to_is_anchored),
		cmocka_unit_test(test_lack_of_memory_at_any_time_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
