#include "allocators/v8/v8.h"

#include "tests/analyzer/world.h"

static const uint64_t CHUNK = 0x555540000000, SIZE = V8_CHUNK_ALIGNMENT, APART = 0x555500000000,
		      HEAP = 0x555500000800, START = CHUNK + 0x100, END = CHUNK + SIZE;

/* Offsets of objects, one behind the other; maps come first. */
enum {
	META = 0x100,
	ARRAY_MAP = 0x200,
	FREE_MAP = 0x300,
	TEXT_MAP = 0x400,
	PAIR_MAP = 0x500,
	FEEDBACK_MAP = 0x600
};
enum {
	TYPE_OF_MAPS = 250,
	ARRAY_TYPE = 180,
	FREE_TYPE = 190,
	TEXT_TYPE = 8,
	PAIR_TYPE = 200,
	FEEDBACK_TYPE = 210
};

static void populate(struct world *world)
{
	world_init(world);
	core_add(&world->core, APART, PAGE, RIGHTS_RW);
	core_add(&world->core, CHUNK, SIZE, RIGHTS_RW);
}

static void set_words(struct world *world, uint64_t address, const uint64_t *words, size_t count)
{
	for (size_t i = 0; i < count; i++)
		core_set(&world->core, address + i * V8_WORD, words[i]);
}

static bool is_chunk(struct world *world, struct v8_chunk *ret)
{
	world_open(world);
	return v8_read_chunk(world->image, CHUNK, ret);
}

/* | size | flags | heap | start | end | allocated | */
static void set_early_head(struct world *world, size_t changed, uint64_t value)
{
	uint64_t words[] = { SIZE, 0, HEAP, START, END, SIZE / 2 };

	if (changed < COUNT_OF(words))
		words[changed] = value;
	set_words(world, CHUNK, words, COUNT_OF(words));
}

static void assert_chunk(const struct v8_chunk *chunk)
{
	assert_int_equal(chunk->size, SIZE);
	assert_int_equal(chunk->start, START);
	assert_int_equal(chunk->end, END);
	assert_int_equal(chunk->allocated, SIZE / 2);
	assert_int_equal(chunk->heap, HEAP);
	assert_int_equal(chunk->space, V8_OLD);
}

TEST(chunks_of_node_18_and_20_are_found)
{
	_cleanup_(world_deinit) struct world world;
	struct v8_chunk chunk;

	populate(&world);
	set_early_head(&world, SIZE_MAX, 0);
	assert_true(is_chunk(&world, &chunk));
	assert_chunk(&chunk);
}

TEST(chunks_of_node_22_are_found)
{
	const uint64_t words[] = { 0, CHUNK, SIZE, HEAP, START, END, SIZE / 2 };
	_cleanup_(world_deinit) struct world world;
	struct v8_chunk chunk;

	populate(&world);
	set_words(&world, CHUNK, words, COUNT_OF(words));
	assert_true(is_chunk(&world, &chunk));
	assert_chunk(&chunk);
}

TEST(chunks_of_node_24_are_found)
{
	const uint64_t words[] = { 0, APART },
		       apart[] = { 1, CHUNK, 0, SIZE / 2, 0, 0, SIZE, END, HEAP, START };
	_cleanup_(world_deinit) struct world world;
	struct v8_chunk chunk;

	populate(&world);
	set_words(&world, CHUNK, words, COUNT_OF(words));
	set_words(&world, APART, apart, COUNT_OF(apart));
	assert_true(is_chunk(&world, &chunk));
	assert_chunk(&chunk);
}

TEST(damaged_heads_are_no_chunks)
{
	static const struct {
		size_t word;
		uint64_t value;
	} damages[] = {
		{ 0, 0 },
		{ 0, 12 },
		{ 0, UINT64_MAX - PAGE + 1 }, /* size */
		{ 3, 0 },
		{ 3, UINT64_MAX },
		{ 3, 0x555540000104 },
		{ 3, 0x555540030000 }, /* start: in the head, outside, odd, far behind */
		{ 4, 0 },
		{ 4, UINT64_MAX - 7 },
		{ 4, 0x555540000100 }, /* end: before the start, outside, at it */
		{ 5, UINT64_MAX },     /* allocated */
	};

	for (size_t i = 0; i < COUNT_OF(damages); i++) {
		_cleanup_(world_deinit) struct world world;
		struct v8_chunk chunk;

		populate(&world);
		set_early_head(&world, damages[i].word, damages[i].value);
		assert_false(is_chunk(&world, &chunk));
	}
}

static void add_map(struct world *world, uint64_t place, uint64_t words, uint64_t type)
{
	core_set(&world->core, CHUNK + place, CHUNK + META + V8_STRONG);
	core_set(&world->core, CHUNK + place + 8, words | type << 32);
}

/* Read the object that begins with these two words, behind which another begins at next. */
static bool reads(uint64_t map, uint64_t second, uint64_t next, struct v8_object *ret)
{
	static const uint64_t OBJECT = CHUNK + 0x1000;
	static struct v8_layout layout = {
		.map_type = TYPE_OF_MAPS,
		.first_string_end = 128,
		.free_type = FREE_TYPE,
		.free_unit = 1,
		.representation = 7,
		.encoding = 8,
		.one_byte = 8,
		.text_length = 12,
		.text = 16,
		.first_context = UINT32_MAX,
		.feedback = 56,
	};
	_cleanup_(world_deinit) struct world world;
	struct v8_reader reader;

	layout.rules[ARRAY_TYPE] = V8_ARRAY;
	layout.rules[FREE_TYPE] = V8_FREE;
	layout.rules[FEEDBACK_TYPE] = V8_FEEDBACK;
	populate(&world);
	add_map(&world, META, 0, TYPE_OF_MAPS);
	add_map(&world, ARRAY_MAP, 0, ARRAY_TYPE);
	add_map(&world, FREE_MAP, 0, FREE_TYPE);
	add_map(&world, TEXT_MAP, 0, TEXT_TYPE);
	add_map(&world, PAIR_MAP, 4, PAIR_TYPE);
	add_map(&world, FEEDBACK_MAP, 0, FEEDBACK_TYPE);
	core_set(&world.core, OBJECT, CHUNK + map + V8_STRONG);
	core_set(&world.core, OBJECT + 8, second);
	if (next)
		core_set(&world.core, OBJECT + next, CHUNK + PAIR_MAP + V8_STRONG);
	world_open(&world);
	reader = (struct v8_reader){ { world.image }, &layout, 0, 0 };
	return v8_read_object(&reader, OBJECT, END, ret);
}

TEST(objects_are_as_large_as_maps_and_lengths_say)
{
	struct v8_object object;

	assert_true(reads(PAIR_MAP, 0, 0, &object));
	assert_int_equal(object.size, 32);
	assert_false(object.is_plain || object.is_free);
	assert_true(reads(ARRAY_MAP, (uint64_t)5 << 32, 0, &object));
	assert_int_equal(object.size, 16 + 5 * 8);
	assert_true(reads(TEXT_MAP, (uint64_t)11 << 32, 0, &object));
	assert_int_equal(object.size, 32);
	assert_true(object.is_plain);
	assert_true(reads(FREE_MAP, (uint64_t)4096 << 32, 0, &object));
	assert_int_equal(object.size, 4096);
	assert_true(object.is_free);
	/* Slots may refer to maps, and the upper half of the second word counts calls. */
	assert_true(reads(FEEDBACK_MAP, (uint64_t)7 << 32 | 3, 64, &object));
	assert_int_equal(object.size, 56 + 3 * 8);
	/* Without a rule, up to the next. */
	assert_true(reads(META, 0, 0x48, &object));
	assert_int_equal(object.size, 0x48);
}

TEST(damaged_objects_are_none)
{
	struct v8_object object;

	/* Larger than the chunk; of an odd size; with a map that is none; with one outside. */
	assert_false(reads(ARRAY_MAP, UINT64_MAX, 0, &object));
	assert_false(reads(FREE_MAP, UINT64_MAX, 0, &object));
	assert_false(reads(FREE_MAP, (uint64_t)4097 << 32, 0, &object));
	assert_false(reads(0x700, 0, 0, &object));
	assert_false(reads(PAIR_MAP + 4, 0, 0, &object));
	assert_false(reads(SIZE + 8, 0, 0, &object));
}
