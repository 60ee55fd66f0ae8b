#include "tests/allocators/pymalloc/interpreter.h"

/*
 * An interpreter with three types in its data, `type`, `object` and Session, the latter collected,
 * and objects of Session in a pool, behind the collector's links.
 */
static const uint64_t TYPE = DATA + 0x1000, OBJECT = DATA + 0x1400, SESSION = DATA + 0x1800,
		      NAMES = DATA + 0x2000;

enum {
	NAME = 24,
	SIZE = 32,
	FLAGS = 168,
	BASE = 256,
	READY = 1 << 12,
	COLLECTED = 1 << 14,
	LINKS = 16,
	SIZE_CLASS = 2, /* of blocks of 48 bytes */
	BLOCK = 48,
	BLOCKS = 4,
};

static void add_type(struct interpreter *interpreter, uint64_t address, uint64_t base,
		     uint64_t size, uint64_t flags, const char *name)
{
	struct core *core = &interpreter->core;
	uint64_t text = NAMES + (address - DATA) / 16;

	core_set(core, address, 1);
	core_set(core, address + 8, TYPE);
	core_set(core, address + NAME, text);
	core_set(core, address + SIZE, size);
	core_set(core, address + FLAGS, flags | READY);
	core_set(core, address + BASE, base);
	memcpy(core_at(core, text, strlen(name) + 1), name, strlen(name) + 1);
}

/* Returns the first block; the collector's links go from each to the next. */
static uint64_t add_objects(struct interpreter *interpreter)
{
	uint64_t first = interpreter_add_pool(interpreter, SIZE_CLASS, BLOCKS) + POOL_HEADER;

	for (uint64_t i = 0; i < BLOCKS; i++) {
		core_set(&interpreter->core, first + i * BLOCK, first + (i + 1) % BLOCKS * BLOCK);
		core_set(&interpreter->core, first + i * BLOCK + LINKS, 7);
		core_set(&interpreter->core, first + i * BLOCK + LINKS + 8, SESSION);
	}
	return first;
}

static void add_types(struct interpreter *interpreter)
{
	add_type(interpreter, TYPE, OBJECT, 0x400, UINT64_C(1) << 31 | COLLECTED, "type");
	add_type(interpreter, OBJECT, 0, 16, 0, "object");
	add_type(interpreter, SESSION, OBJECT, 32, COLLECTED, "app.Session");
}

#define START(interpreter)                                                                        \
	_cleanup_(interpreter_deinit) struct interpreter interpreter;                             \
	interpreter_init(&interpreter, &pymalloc_geometries[0], "/usr/lib/libpython3.11.so.1.0"); \
	add_types(&interpreter)

static const char *class_at(struct interpreter *interpreter, uint64_t address)
{
	struct analysis *analysis = interpreter->analysis;
	uint64_t signature =
		analysis_signature(analysis, allocation_find(analysis_index(analysis), address));

	return signature ? classes_name(analysis_classes(analysis), signature) : NULL;
}

static void open_objects(struct interpreter *interpreter)
{
	interpreter_open(interpreter);
	assert_no_error(analysis_need(interpreter->analysis, STAGE_OWNERS));
	assert_no_error(analysis_need(interpreter->analysis, STAGE_CLASSES));
}

TEST(objects_have_the_names_of_their_types)
{
	START(interpreter);
	uint64_t first = add_objects(&interpreter);

	/* Without references, it is on a list of free objects of its type. */
	core_set(&interpreter.core, first + BLOCK + LINKS, 0);
	open_objects(&interpreter);
	assert_string_equal(class_at(&interpreter, first), "app.Session");
	assert_null(class_at(&interpreter, first + BLOCK));
	assert_string_equal(class_at(&interpreter, first + 2 * BLOCK), "app.Session");
}

TEST(text_with_a_stale_type_behind_it_is_no_object)
{
	START(interpreter);
	uint64_t first = add_objects(&interpreter);

	/* A former object: the text ends before its count, and before its type. */
	memcpy(core_at(&interpreter.core, first + BLOCK, 18), "The mother class.", 18);
	open_objects(&interpreter);
	assert_string_equal(class_at(&interpreter, first), "app.Session");
	assert_null(class_at(&interpreter, first + BLOCK));
}

/* Up to 3.7, what the collector knows has two more words before its count. */
TEST(links_of_older_versions_hold_nothing)
{
	enum { OLD = 64 };
	START(interpreter);
	uint64_t first = interpreter_add_pool(&interpreter, OLD / 16 - 1, BLOCKS) + POOL_HEADER;
	const struct allocation_index *index;

	for (uint64_t i = 0; i < BLOCKS; i++) {
		uint64_t at = first + i * OLD;

		core_set(&interpreter.core, at, first + (i + 1) % BLOCKS * OLD);
		core_set(&interpreter.core, at + 8, first + (i + BLOCKS - 1) % BLOCKS * OLD);
		core_set(&interpreter.core, at + 16, -UINT64_C(3));
		core_set(&interpreter.core, at + 32, 1);
		core_set(&interpreter.core, at + 40, SESSION);
	}
	core_set(&interpreter.core, DATA + 0x3000, first + 32);
	core_set(&interpreter.core, DATA + 0x3008, first + OLD);
	open_objects(&interpreter);
	index = analysis_index(interpreter.analysis);
	assert_string_equal(class_at(&interpreter, first + OLD), "app.Session");
	for (uint64_t i = 0; i < BLOCKS; i++)
		assert_int_equal(bitmap_get(analysis_anchored(interpreter.analysis),
					    allocation_find(index, first + i * OLD)),
				 i == 0);
}

/* Up to 3.9, code keeps the frame of its last call; 3.7 does not write its links. */
TEST(frame_that_was_never_watched_holds_nothing_once_it_is_dead)
{
	enum { OLD = 64, DEAD = 1 };
	START(interpreter);
	uint64_t first = interpreter_add_pool(&interpreter, OLD / 16 - 1, BLOCKS) + POOL_HEADER;
	const struct allocation_index *index;

	for (uint64_t i = 0; i < BLOCKS; i++) {
		uint64_t at = first + i * OLD;

		core_set(&interpreter.core, at, i == DEAD ? NAMES : 0);
		core_set(&interpreter.core, at + 8, i == DEAD ? NAMES : 0);
		core_set(&interpreter.core, at + 16, -UINT64_C(4));
		core_set(&interpreter.core, at + 32, i != DEAD);
		core_set(&interpreter.core, at + 40, SESSION);
		core_set(&interpreter.core, at + 48, i < 2 ? at + OLD + 32 : 0);
	}
	core_set(&interpreter.core, DATA + 0x3000, first + 32);
	open_objects(&interpreter);
	index = analysis_index(interpreter.analysis);
	for (uint64_t i = 0; i < BLOCKS; i++)
		assert_int_equal(bitmap_get(analysis_anchored(interpreter.analysis),
					    allocation_find(index, first + i * OLD)),
				 i <= DEAD);
}

static bool is_anchored(struct interpreter *interpreter, uint64_t address)
{
	struct analysis *analysis = interpreter->analysis;

	return bitmap_get(analysis_anchored(analysis),
			  allocation_find(analysis_index(analysis), address));
}

TEST(set_that_outgrew_its_small_table_holds_what_is_in_its_large_one)
{
	enum { SET_SIZE = 200, SET_BLOCK = 224, TABLE_BLOCK = 128, ENTRIES = 40, SMALL = 64 };
	static const uint64_t SET = DATA + 0x1c00;
	START(interpreter);
	struct core *core = &interpreter.core;
	uint64_t first = add_objects(&interpreter);
	uint64_t block = interpreter_add_pool(&interpreter, SET_BLOCK / 16 - 1, 1) + POOL_HEADER;
	uint64_t table = interpreter_add_pool(&interpreter, TABLE_BLOCK / 16 - 1, 1) + POOL_HEADER;
	uint64_t set = block + LINKS;

	add_type(&interpreter, SET, OBJECT, SET_SIZE, COLLECTED, "set");
	core_set(core, set, 1);
	core_set(core, set + 8, SET);
	core_set(core, set + ENTRIES, table);
	/* Each is a key and its hash. */
	core_set(core, set + SMALL, first + LINKS);
	core_set(core, set + SMALL + 8, first + BLOCK + LINKS);
	core_set(core, table, first + 2 * BLOCK + LINKS);
	core_set(core, table + 8, first + 3 * BLOCK + LINKS);
	core_set(core, DATA + 0x3000, set);
	open_objects(&interpreter);
	assert_true(is_anchored(&interpreter, table));
	for (uint64_t i = 0; i < BLOCKS; i++)
		assert_int_equal(is_anchored(&interpreter, first + i * BLOCK), i == 2);
}

TEST(text_in_the_data_of_the_interpreter_refers_to_nothing)
{
	enum { ITEM = 40, BYTES_SIZE = 33, BYTES_FLAG = 1 << 27, LENGTH = 16, TEXT = 32 };
	static const uint64_t BYTES = DATA + 0x1c00, OBJECT_OF_DATA = DATA + 0x3000;
	START(interpreter);
	struct core *core = &interpreter.core;
	uint64_t first = add_objects(&interpreter);
	uint64_t bytes = interpreter_add_pool(&interpreter, SIZE_CLASS, 1) + POOL_HEADER;

	add_type(&interpreter, BYTES, OBJECT, BYTES_SIZE, BYTES_FLAG, "bytes");
	core_set(core, BYTES + ITEM, 1);
	core_set(core, bytes, 1);
	core_set(core, bytes + 8, BYTES);
	core_set(core, OBJECT_OF_DATA, 1);
	core_set(core, OBJECT_OF_DATA + 8, BYTES);
	core_set(core, OBJECT_OF_DATA + LENGTH, 8);
	core_set(core, OBJECT_OF_DATA + TEXT, first + LINKS);
	core_set(core, OBJECT_OF_DATA + TEXT + 2 * 8, first + BLOCK + LINKS); /* behind it */
	open_objects(&interpreter);
	assert_false(is_anchored(&interpreter, first));
	assert_true(is_anchored(&interpreter, first + BLOCK));
}

TEST(objects_are_as_large_as_their_type_says)
{
	START(interpreter);
	uint64_t first = add_objects(&interpreter);

	core_set(&interpreter.core, SESSION + SIZE, BLOCK - LINKS + 1);
	open_objects(&interpreter);
	assert_null(class_at(&interpreter, first));
}

TEST(how_an_object_is_kept_is_told)
{
	START(interpreter);
	uint64_t first = add_objects(&interpreter);
	const struct runtimes *runtimes;
	const struct allocation_index *index;
	char text[64];

	core_set(&interpreter.core, first + BLOCK + LINKS, UINT32_MAX);
	open_objects(&interpreter);
	runtimes = analysis_runtimes(interpreter.analysis);
	index = analysis_index(interpreter.analysis);
	assert_true(runtimes_tell(runtimes, allocation_find(index, first), text, sizeof(text)));
	assert_string_equal(text, "kept by a count of 7 references");
	assert_true(
		runtimes_tell(runtimes, allocation_find(index, first + BLOCK), text, sizeof(text)));
	assert_string_equal(text, "immortal");
}

TEST(types_without_end_or_sense_are_none)
{
	static const struct {
		uint64_t place, value;
	} damages[] = {
		{ SESSION + FLAGS, COLLECTED }, { SESSION + SIZE, UINT64_MAX },
		{ SESSION + SIZE, 0 },		{ SESSION + 8, OBJECT },
		{ SESSION + 8, SESSION },	{ TYPE + 8, OBJECT },
		{ TYPE + BASE, TYPE },		{ OBJECT + BASE, OBJECT },
	};

	for (size_t i = 0; i < sizeof(damages) / sizeof(*damages); i++) {
		START(interpreter);
		uint64_t first = add_objects(&interpreter);

		core_set(&interpreter.core, SESSION + BASE, SESSION);
		core_set(&interpreter.core, damages[i].place, damages[i].value);
		open_objects(&interpreter);
		assert_null(class_at(&interpreter, first));
	}
}

TEST(type_without_a_name_is_called_by_its_address)
{
	START(interpreter);
	uint64_t first = add_objects(&interpreter);
	char name[32];

	core_set(&interpreter.core, SESSION + NAME, 16);
	open_objects(&interpreter);
	snprintf(name, sizeof(name), "type@%#llx", (unsigned long long)SESSION);
	assert_string_equal(class_at(&interpreter, first), name);
}
