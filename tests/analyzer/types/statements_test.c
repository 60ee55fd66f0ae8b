/*
 * A process that has this test program mapped, whose debug information so describes what is in its
 * heap; no variable leads there.
 */
#include "analyzer/types/typing.h"

#include "tests/analyzer/types/own_program.h"

struct parcel {
	struct parcel *next;
	char *label;
	long weight, count, price;
};

/* Debug information has the types of variables. */
struct parcel parcel_of_the_test = { .count = 1 };

static const uint64_t HEAP = 0x10000000, STACK = 0x7ffc00000000;
enum { PARCELS = 4, STRIDE = 0x40 };

struct stated {
	struct world world;
	struct debug *debug;
	struct type_table *types;
	struct typing *typing;
	type_number parcel;
};

/* Each parcel but the last two refers to the next one. */
static void stated_init(struct stated *stated)
{
	static const struct debug_options options = { .debug_directory = NULL };
	struct world *world = &stated->world;

	*stated = (struct stated){ .debug = NULL };
	world_init(world);
	own_program_map(&world->core);
	world_add_blocks(world, PARCELS, HEAP, STRIDE, sizeof(struct parcel));
	for (uint64_t i = 0; i < PARCELS - 2; i++)
		core_set(&world->core, HEAP + i * STRIDE, HEAP + (i + 1) * STRIDE);
	world_add_stack(world, STACK, 0x4000, STACK + 0x1000);
	world_open(world);
	world_find_program(world);
	assert_no_error(debug_create(world->image, world->program, &options, &world->findings,
				     &stated->debug));
	assert_no_error(type_table_create(stated->debug, &world->account, &world->progress,
					  &stated->types));

	const struct typing_input input = {
		.image = world->image,
		.index = world->index,
		.debug = stated->debug,
		.types = stated->types,
		.account = &world->account,
		.progress = &world->progress,
	};

	assert_no_error(typing_create(&input, &stated->typing));
	stated->parcel = type_find(typing_types(stated->typing), "parcel");
	assert_int_not_equal(stated->parcel, NO_TYPE);
}

static void stated_deinit(struct stated *stated)
{
	if (stated->typing)
		typing_destroy(stated->typing);
	if (stated->types)
		type_table_destroy(stated->types);
	if (stated->debug)
		debug_destroy(stated->debug);
	world_deinit(&stated->world);
}
DEFINE_DEINIT(stated_deinit, struct stated)

/* A letter for each parcel: has it the type (t), by the user (s), or none (-)? */
static void assert_types(const struct stated *stated, const char *expected)
{
	char letters[PARCELS + 1] = "";

	for (allocation_id id = 0; id < PARCELS; id++) {
		struct typed typed;
		bool is_typed = typing_of(stated->typing, id, &typed);

		assert_true(!is_typed || typed.type == stated->parcel);
		letters[id] = !is_typed ? '-' : typed.is_stated ? 's' : 't';
	}
	assert_string_equal(letters, expected);
}

static void state(struct stated *stated, allocation_id id, bool is_denied, uint64_t typed,
		  uint64_t untyped)
{
	const struct type_statement statement = { id, stated->parcel, is_denied };
	struct type_changes changes;

	assert_no_error(typing_state(stated->typing, &statement, &changes));
	assert_int_equal(changes.typed, typed);
	assert_int_equal(changes.untyped, untyped);
}

TEST(types_follow_from_what_is_stated)
{
	_cleanup_(stated_deinit) struct stated stated;
	struct type_step step;

	stated_init(&stated);
	assert_types(&stated, "----");
	state(&stated, 0, false, 2, 0);
	assert_types(&stated, "stt-");
	assert_true(typing_step_to(stated.typing, 1, &step));
	assert_int_equal(step.from, 0);
	assert_true(typing_step_to(stated.typing, 0, &step));
	assert_int_equal(step.from, NO_ALLOCATION);
	assert_int_equal(step.address, HEAP);
	assert_false(step.is_in_register);
	state(&stated, 3, false, 0, 0);
	assert_types(&stated, "stts");
	/* An allocation stated on its own no longer follows from another. */
	state(&stated, 1, false, 0, 0);
	state(&stated, 0, true, 0, 0);
	assert_types(&stated, "-sts");
}

TEST(what_is_denied_leads_to_nothing)
{
	_cleanup_(stated_deinit) struct stated stated;

	stated_init(&stated);
	state(&stated, 0, false, 2, 0);
	state(&stated, 1, true, 0, 1);
	assert_types(&stated, "s---");
	/* The last statement counts. */
	state(&stated, 1, false, 1, 0);
	assert_types(&stated, "sst-");
	state(&stated, 1, true, 0, 0);
	assert_types(&stated, "stt-");
	state(&stated, 0, true, 0, 2);
	assert_types(&stated, "----");
	assert_false(typing_is_stated(stated.typing, 0));
}

TEST(without_memory_all_is_as_before)
{
	_cleanup_(stated_deinit) struct stated stated;
	struct memory_account *account = &stated.world.account;
	struct type_statement statement = { .id = 0 };
	struct type_changes changes;
	struct error *error;

	stated_init(&stated);
	state(&stated, 0, false, 2, 0);
	statement.type = stated.parcel;
	statement.is_denied = true;
	account->limit = 1;
	error = typing_state(stated.typing, &statement, &changes);
	assert_non_null(error);
	error_destroy(error);
	account->limit = 0;
	assert_types(&stated, "stt-");
	state(&stated, 0, true, 0, 2);
}
