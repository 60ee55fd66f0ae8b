#include "analyzer/runtimes/runtime.h"

#include "tests/analyzer/world.h"

extern const struct runtime runtime_postgresql;

/*
 * TopMemoryContext has two children: a set with a block besides, and a hash table's with a ring of
 * one block. All are as since version 13.
 */
static const uint64_t MODULE = 0x7f0000000000, DATA = MODULE + PAGE, NAMES = DATA + 0x100,
		      HEAP = 0x555500000000;

enum {
	BLOCK = 0x200,
	BLOCKS = 6,
	PARENT = 24,
	CHILD = 32,
	NEXT = 48,
	NAME = 56,
	IDENTIFIER = 64,
	OWN = 80,
	RING = OWN + 24,
};

enum { TOP, SET, SET_BLOCK, TABLE, TABLE_BLOCK, OTHER };

static uint64_t block_at(unsigned int number)
{
	return HEAP + number * BLOCK;
}

static void set(struct world *world, unsigned int number, uint64_t offset, uint64_t word)
{
	core_set(&world->core, block_at(number) + offset, word);
}

/* The address of the text. */
static uint64_t add_text(struct world *world, unsigned int number, const char *text)
{
	uint64_t address = NAMES + number * 32;

	memcpy(core_at(&world->core, address, strlen(text) + 1), text, strlen(text) + 1);
	return address;
}

static void add_contexts(struct world *world)
{
	core_add_module(&world->core, MODULE, PAGE, "/usr/lib/postgresql/15/bin/postgres");
	core_set(&world->core, DATA + 0x10, block_at(TOP));
	world_add_heap(world, HEAP, PAGE);
	for (unsigned int i = 0; i < BLOCKS; i++)
		world_add_block(world, (struct block){ block_at(i), BLOCK, BLOCK_USED });
	set(world, TOP, NAME, add_text(world, 0, "TopMemoryContext"));
	set(world, TOP, CHILD, block_at(SET));
	set(world, SET, PARENT, block_at(TOP));
	set(world, SET, NEXT, block_at(TABLE));
	set(world, SET, NAME, add_text(world, 1, "plans"));
	set(world, SET, OWN, block_at(SET_BLOCK));
	set(world, SET_BLOCK, 0, block_at(SET));
	set(world, SET_BLOCK, 16, block_at(SET) + 0x100); /* behind the context */
	set(world, SET, 0x100, block_at(SET));
	set(world, TABLE, PARENT, block_at(TOP));
	set(world, TABLE, NAME, add_text(world, 2, "dynahash"));
	set(world, TABLE, IDENTIFIER, add_text(world, 3, "locks"));
	set(world, TABLE, RING, block_at(TABLE_BLOCK));
	set(world, TABLE, RING + 8, block_at(TABLE_BLOCK));
	set(world, TABLE_BLOCK, 0, block_at(TABLE) + RING);
	set(world, TABLE_BLOCK, 8, block_at(TABLE) + RING);
}

static struct object_space *open_space(struct world *world)
{
	struct object_space *space = calloc(1, runtime_postgresql.space_size);
	bool is_there = false;

	world_open(world);
	world_find_program(world);
	space->context = (struct runtime_context){ world->image, world->program, world->index,
						   &world->account, NULL };
	assert_no_error(runtime_postgresql.open(space, &is_there));
	assert_true(is_there);
	assert_no_error(runtime_postgresql.find_objects(space, NULL));
	return space;
}

static void close_space(struct object_space *space)
{
	runtime_postgresql.release(space);
	object_classes_release(&space->classes);
	free(space);
}

static const char *name_of(struct object_space *space, unsigned int number)
{
	enum class_name_kind kind;
	uint64_t class = object_class_of(space, number);

	return class ? object_class_name(space, class, &kind) : "none";
}

TEST(blocks_are_of_the_contexts_that_have_them)
{
	_cleanup_(world_deinit) struct world world;
	struct object_space *space;

	world_init(&world);
	add_contexts(&world);
	space = open_space(&world);
	assert_string_equal(name_of(space, TOP), "memory context TopMemoryContext");
	assert_string_equal(name_of(space, SET), "memory context plans");
	assert_string_equal(name_of(space, SET_BLOCK), "memory context plans");
	assert_string_equal(name_of(space, TABLE), "memory context locks");
	assert_string_equal(name_of(space, TABLE_BLOCK), "memory context locks");
	assert_string_equal(name_of(space, OTHER), "none");
	assert_int_equal(space->classes.list.count, 3);
	close_space(space);
}

TEST(lists_that_return_to_themselves_end)
{
	_cleanup_(world_deinit) struct world world;
	struct object_space *space;

	world_init(&world);
	add_contexts(&world);
	set(&world, TABLE, NEXT, block_at(SET));
	set(&world, TABLE, CHILD, block_at(TABLE));
	set(&world, SET_BLOCK, 16, block_at(SET_BLOCK));
	set(&world, TABLE_BLOCK, 8, block_at(TABLE_BLOCK));
	space = open_space(&world);
	assert_string_equal(name_of(space, TABLE_BLOCK), "memory context locks");
	assert_string_equal(name_of(space, OTHER), "none");
	close_space(space);
}
