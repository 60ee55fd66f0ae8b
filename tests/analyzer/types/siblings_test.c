/*
 * A process that has this test program mapped, whose debug information so describes what is in its
 * heap: a list of parcels, crates that hang on the last of these, and what leaked.
 */
#include "analyzer/types/siblings.h"

#include "tests/analyzer/types/own_program.h"

struct crate {
	long number;
	struct crate *other;
	long sizes[3];
};

struct parcel {
	struct parcel *next;
	char *label;
	struct crate *crate;
	long weight, count;
};

/* Debug information has the types of variables; a page has nothing else. */
struct parcel *volatile parcels[512] __attribute__((aligned(4096)));

static const uint64_t HEAP = 0x10000000, STACK = 0x7ffc00000000;
enum { PARCELS = 10000, CRATES = 4, LEAKED = 3, ALL = PARCELS + CRATES + LEAKED, STRIDE = 0x40 };
enum { FIRST_CRATE = PARCELS, FIRST_LEAKED = PARCELS + CRATES };

struct lost {
	struct world world;
	struct debug *debug;
	struct type_table *types;
	struct bitmap leaked;
	struct typing *typing;
	struct siblings *siblings;
};

static uint64_t start_of(size_t number)
{
	return HEAP + number * STRIDE;
}

/* With crates, the last parcel holds the first of them. The words are those of what leaked. */
static void lost_init(struct lost *lost, bool with_crates, uint64_t first, uint64_t second)
{
	static const struct debug_options options = { .debug_directory = NULL };
	struct world *world = &lost->world;
	struct core *core = &world->core;

	*lost = (struct lost){ .debug = NULL };
	world_init(world);
	own_program_map(core);
	parcels[0] = (struct parcel *)(uintptr_t)start_of(0);
	own_program_add(core, (const void *)parcels, sizeof(parcels));
	world_add_blocks(world, ALL, HEAP, STRIDE, sizeof(struct parcel));
	for (size_t i = 0; i + 1 < PARCELS; i++)
		core_set(core, start_of(i), start_of(i + 1));
	for (size_t i = FIRST_CRATE; i < FIRST_LEAKED; i++) {
		core_set(core, start_of(i), with_crates ? 7 : start_of(0));
		if (with_crates && i + 1 < FIRST_LEAKED)
			core_set(core, start_of(i) + 8, start_of(i + 1));
	}
	core_set(core, start_of(PARCELS - 1) + (with_crates ? 16 : 0), start_of(FIRST_CRATE));
	for (size_t i = FIRST_LEAKED; i < ALL; i++) {
		core_set(core, start_of(i), first);
		core_set(core, start_of(i) + 8, second);
		core_set(core, start_of(i) + 24, 5);
	}
	world_add_stack(world, STACK, 0x4000, STACK + 0x1000);
	world_open(world);
	world_find_program(world);
	assert_no_error(debug_create(world->image, world->program, &options, &world->findings,
				     &lost->debug));
	assert_no_error(
		type_table_create(lost->debug, &world->account, &world->progress, &lost->types));
	assert_no_error(bitmap_init(&lost->leaked, ALL, &world->account));
	for (size_t i = FIRST_LEAKED; i < ALL; i++)
		bitmap_set(&lost->leaked, i);
}

static void lost_deinit(struct lost *lost)
{
	if (lost->siblings)
		siblings_destroy(lost->siblings);
	if (lost->typing)
		typing_destroy(lost->typing);
	bitmap_deinit(&lost->leaked);
	type_table_destroy(lost->types);
	debug_destroy(lost->debug);
	world_deinit(&lost->world);
}
DEFINE_DEINIT(lost_deinit, struct lost)

/* Find types, of all or of what names the leaks, and what these look like. */
static void find(struct lost *lost, bool in_part)
{
	const struct typing_input input = {
		.image = lost->world.image,
		.index = lost->world.index,
		.debug = lost->debug,
		.types = lost->types,
		.leaked = in_part ? &lost->leaked : NULL,
		.account = &lost->world.account,
		.progress = &lost->world.progress,
	};

	if (lost->siblings)
		siblings_destroy(take(lost->siblings));
	if (lost->typing)
		typing_destroy(take(lost->typing));
	assert_no_error(typing_create(&input, &lost->typing));
	assert_no_error(siblings_create(lost->typing, &lost->leaked, &lost->world.account,
					&lost->siblings));
}

/* All that leaked has the type of that name; NULL: none has one. */
static void assert_leaked(const struct lost *lost, const char *name)
{
	for (allocation_id id = FIRST_LEAKED; id < ALL; id++) {
		struct typed typed;
		bool is_typed = siblings_typed(lost->siblings, id, &typed);

		assert_int_equal(is_typed, name != NULL);
		if (name)
			assert_int_equal(typed.type, type_find(lost->types, name));
	}
}

TEST(some_of_a_type_name_what_leaked)
{
	_cleanup_(lost_deinit) struct lost lost;

	lost_init(&lost, false, start_of(1), 0);
	find(&lost, true);
	assert_true(typing_is_partial(lost.typing));
	assert_true(typing_count(lost.typing) < PARCELS / 2);
	assert_true(siblings_suffice(lost.siblings));
	assert_leaked(&lost, "parcel");
	find(&lost, false);
	assert_false(typing_is_partial(lost.typing));
	assert_true(typing_count(lost.typing) >= PARCELS);
	assert_leaked(&lost, "parcel");
}

TEST(what_only_the_last_of_many_leads_to_asks_for_all_types)
{
	_cleanup_(lost_deinit) struct lost lost;

	lost_init(&lost, true, 7, start_of(FIRST_CRATE));
	find(&lost, true);
	assert_leaked(&lost, NULL);
	assert_false(siblings_suffice(lost.siblings));
	find(&lost, false);
	assert_leaked(&lost, "crate");
}

TEST(null_pointers_say_enough_where_all_of_the_size_are_of_one_type)
{
	_cleanup_(lost_deinit) struct lost lost;

	lost_init(&lost, false, 0, 0);
	find(&lost, true);
	assert_leaked(&lost, "parcel");
	find(&lost, false);
	assert_leaked(&lost, "parcel");
}

TEST(null_pointers_say_nothing_beside_another_type_of_the_size)
{
	_cleanup_(lost_deinit) struct lost lost;

	lost_init(&lost, true, 0, 0);
	find(&lost, false);
	assert_leaked(&lost, NULL);
	find(&lost, true);
	assert_leaked(&lost, NULL);
}
