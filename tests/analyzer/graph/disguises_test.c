#include "analyzer/graph/disguises.h"

#include "tests/analyzer/world.h"

extern const struct runtime runtime_python, runtime_ruby;

/* A heap of blocks, and anonymous memory that holds addresses in disguise. */
static const uint64_t HEAP = 0x7e5500000000, SIZE = 0x100, BLOCKS = 8, DATA = 0x7f0000000000,
		      LENGTH = 0x20000, TYPE = DATA + 0x1000, TYPE_TYPE = DATA + 0x2000,
		      RUBY_PAGE = DATA + 0x10000, HEAP_PAGE = DATA + 0x3000, SLOT = RUBY_PAGE + 40,
		      INT_TYPE = 1 << 24;

static uint64_t at(allocation_id id)
{
	return HEAP + SIZE * id;
}

static void populate(struct world *world)
{
	world_init(world);
	world_add_blocks(world, BLOCKS, HEAP, SIZE, SIZE);
	core_add(&world->core, DATA, LENGTH, RIGHTS_RW);
	core_set(&world->core, TYPE + 8, TYPE_TYPE);
	core_set(&world->core, TYPE + 168, INT_TYPE);
	/* A page of Ruby's, of 64 KiB, with slots of 40 bytes. */
	core_set(&world->core, RUBY_PAGE, HEAP_PAGE);
	core_set(&world->core, HEAP_PAGE, 40 | 1637 << 16);
	core_set(&world->core, HEAP_PAGE + 32, SLOT);
}

/* An int of CPython at place, of so many digits. */
static void put_int(struct world *world, uint64_t place, uint64_t number, uint64_t size)
{
	struct core *core = &world->core;

	core_set(core, place, 1);
	core_set(core, place + 8, TYPE);
	core_set(core, place + 16, size);
	core_set(core, place + 24, (number & 0x3fffffff) | number >> 30 << 32);
}

/* Nothing that is found may be excluded by the search for it alone. */
static void assert_none_is_excluded(const struct disguises_input *input, uint64_t found)
{
	_cleanup_(bitmap_deinit) struct bitmap one = { 0 };
	struct disguises_input few = *input;
	bool is_excluded;

	assert_no_error(bitmap_init(&one, BLOCKS, input->account));
	few.in_use = allocation_used(input->index);
	few.wanted = &one;
	for (; found; found &= found - 1) {
		one.words[0] = found & -found;
		assert_no_error(disguises_exclude(&few, &is_excluded));
		assert_false(is_excluded);
	}
	one.words[0] = 0;
	assert_no_error(disguises_exclude(&few, &is_excluded));
	assert_true(is_excluded);
}

/*
 * Assert what is found from the anchored ones, both as bits by id; integer: NULL, or the value to
 * find.
 */
static void assert_found_as(struct world *world, unsigned int disguises,
			    const struct integer_encoding *integer, uint64_t anchored,
			    uint64_t found, uint64_t reached)
{
	const struct runtime runtime = { .name = "anywhere", .integer = integer };
	const struct runtime *const kinds[] = { &runtime, NULL };
	_cleanup_(runtimes_destroy) struct runtimes *runtimes = NULL;
	_cleanup_(disguises_deinit) struct disguises result = { 0 };
	_cleanup_(bitmap_deinit) struct bitmap in_use = { 0 }, wanted = { 0 };
	struct disguises_input input;
	uint64_t targets = 0;

	world_open(world);
	world_find_program(world);
	world_find_roots(world);
	world_find_graph(world);
	assert_no_error(bitmap_init(&in_use, BLOCKS, &world->account));
	assert_no_error(bitmap_init(&wanted, BLOCKS, &world->account));
	assert_no_error(runtimes_create(kinds,
					&(struct runtime_context){ world->image, world->program,
								   world->index, &world->account },
					&runtimes));
	in_use.words[0] = anchored;
	wanted.words[0] = allocation_used(world->index)->words[0] & ~anchored;
	input = (struct disguises_input){
		.image = world->image,
		.index = world->index,
		.roots = world->roots,
		.graph = world->graph,
		.in_use = &in_use,
		.wanted = &wanted,
		.disguises = disguises,
		.integers = integer ? runtimes : NULL,
		.account = &world->account,
		.progress = &world->progress,
	};
	assert_no_error(disguises_find(&input, &result));
	for (size_t i = 0; i < result.list.count; i++)
		targets |= UINT64_C(1) << disguised_at(&result, i)->target;
	assert_int_equal(targets, found);
	assert_int_equal(result.reached.words[0], reached);
	assert_none_is_excluded(&input, targets);
}

static void assert_found(struct world *world, unsigned int disguises, uint64_t anchored,
			 uint64_t found, uint64_t reached)
{
	assert_found_as(world, disguises, NULL, anchored, found, reached);
}

static void assert_integers(struct world *world, const struct runtime *runtime, uint64_t anchored,
			    uint64_t found, uint64_t reached)
{
	assert_found_as(world, 0, runtime->integer, anchored, found, reached);
}

/* As LuaJIT keeps a light userdata: a tag, a segment's number and the lower bits. */
static uint64_t boxed(uint64_t address)
{
	return UINT64_C(0x1fffc) << 47 | (address & ((UINT64_C(1) << 39) - 1));
}

/* Words are looked at 64 at once: the first and last of some, of roots and of what is in use. */
TEST(boxed_pointers_are_found_wherever_they_stand)
{
	_cleanup_(world_deinit) struct world world;

	populate(&world);
	core_set(&world.core, DATA, boxed(at(1)));
	core_set(&world.core, DATA + 8 * 63, boxed(at(2)));
	core_set(&world.core, DATA + 8 * 64, boxed(at(3)));
	core_set(&world.core, DATA + LENGTH - 8, boxed(at(4)));
	core_set(&world.core, at(0) + SIZE - 8, boxed(at(5)));
	core_set(&world.core, DATA + 8 * 65, boxed(at(6)) + (UINT64_C(1) << 47)); /* another tag */
	assert_found(&world, 1 << DISGUISE_BOXED, 1 << 0, 0x3e, 0x3e);
}

TEST(python_int_has_digits_of_thirty_bits)
{
	_cleanup_(world_deinit) struct world world;

	populate(&world);
	put_int(&world, DATA + 0x100, at(1), 2);
	put_int(&world, DATA + 0x200, at(2), 2 << 3); /* from 3.12 on */
	put_int(&world, DATA + 0x300, at(3) + 8, 2);  /* no start */
	put_int(&world, DATA + 0x400, at(4), 3);
	put_int(&world, DATA + 0x500, at(5), 2 << 3 | 2); /* negative */
	assert_integers(&world, &runtime_python, 0, 1 << 1 | 1 << 2, 1 << 1 | 1 << 2);
}

TEST(freed_python_int_holds_nothing)
{
	_cleanup_(world_deinit) struct world world;

	populate(&world);
	put_int(&world, DATA + 0x100, at(1), 2);
	core_set(&world.core, DATA + 0x100, DATA + 0x200); /* the next */
	put_int(&world, DATA + 0x200, at(2), 2);
	core_set(&world.core, DATA + 0x200, 0);
	assert_integers(&world, &runtime_python, 0, 0, 0);
}

TEST(what_looks_like_an_int_of_another_type_is_none)
{
	_cleanup_(world_deinit) struct world world;

	populate(&world);
	put_int(&world, DATA + 0x100, at(1), 2);
	core_set(&world.core, TYPE + 168, 1 << 25);
	assert_integers(&world, &runtime_python, 0, 0, 0);
}

TEST(ruby_integer_is_twice_the_number_and_one)
{
	_cleanup_(world_deinit) struct world world;

	populate(&world);
	core_set(&world.core, DATA + 0x100, 2 * at(1) + 1);
	core_set(&world.core, DATA + 0x108, 2 * at(2));
	core_set(&world.core, DATA + 0x110, 2 * (at(3) + 8) + 1);
	assert_integers(&world, &runtime_ruby, 0, 1 << 1, 1 << 1);
}

TEST(free_slot_or_string_of_ruby_holds_no_integer)
{
	_cleanup_(world_deinit) struct world world;

	populate(&world);
	core_set(&world.core, SLOT, 0);
	core_set(&world.core, SLOT + 16, 2 * at(1) + 1);
	core_set(&world.core, SLOT + 40, 0x1005); /* a String */
	core_set(&world.core, SLOT + 40 + 24, 2 * at(2) + 1);
	core_set(&world.core, SLOT + 80, 0x2007); /* an Array */
	core_set(&world.core, SLOT + 80 + 24, 2 * at(3) + 1);
	assert_integers(&world, &runtime_ruby, 0, 1 << 3, 1 << 3);
}

TEST(what_is_found_leads_on)
{
	_cleanup_(world_deinit) struct world world;

	populate(&world);
	core_set(&world.core, at(0) + 8, 2 * at(1) + 1);
	core_set(&world.core, at(1) + 8, at(2));
	core_set(&world.core, at(2) + 8, 2 * at(3) + 1);
	/* Nothing leads to that one, which does not count itself, then. */
	core_set(&world.core, at(4) + 8, 2 * at(5) + 1);
	assert_integers(&world, &runtime_ruby, 1 << 0, 1 << 1 | 1 << 3, 1 << 1 | 1 << 2 | 1 << 3);
}

TEST(pointers_are_found_above_and_below_tags)
{
	_cleanup_(world_deinit) struct world world;

	populate(&world);
	core_set(&world.core, DATA + 0x100, at(1) | UINT64_C(0x8001) << 48);
	core_set(&world.core, DATA + 0x108, at(2) << 16 | 7);
	core_set(&world.core, DATA + 0x110, 1);
	core_set(&world.core, DATA + 0x118, (at(3) + 16) | UINT64_C(0x8001) << 48);
	assert_found(&world, DISGUISED_POINTERS, 0, 1 << 1 | 1 << 2, 1 << 1 | 1 << 2);
}

TEST(pointer_is_found_at_any_byte)
{
	_cleanup_(world_deinit) struct world world;

	populate(&world);
	for (allocation_id id = 0; id < 7; id++) {
		uint64_t address = at(id);

		memcpy(core_at(&world.core, DATA + 0x100 + 17 * id + 1, 8), &address, 8);
	}
	assert_found(&world, DISGUISED_POINTERS, 0, 0x7f, 0x7f);
}

/* One that lies in what is in use is a reference to that. */
TEST(pointer_may_be_one_past_the_end_or_before_the_start)
{
	_cleanup_(world_deinit) struct world world;

	populate(&world);
	core_set(&world.core, DATA + 0x100, at(BLOCKS - 1) + SIZE);
	core_set(&world.core, DATA + 0x108, at(0) - 4);
	core_set(&world.core, DATA + 0x110, at(3));
	core_set(&world.core, DATA + 0x118, at(5) - 4);
	assert_found(&world, DISGUISED_POINTERS, 1 << 3 | 1 << 4, 1 << 0 | 1 << (BLOCKS - 1),
		     1 << 0 | 1 << (BLOCKS - 1));
}
