#include "tests/allocators/pymalloc/interpreter.h"

#include "analyzer/heap/allocator.h"
#include "analyzer/heap/sink.h"

extern const struct allocator allocator_pymalloc;

static const char LIBRARY[] = "/usr/lib/libpython3.11.so.1.0";

#define START(interpreter, number)                                    \
	_cleanup_(interpreter_deinit) struct interpreter interpreter; \
	interpreter_init(&interpreter, &pymalloc_geometries[number], LIBRARY)

static allocation_id find(const struct interpreter *interpreter, uint64_t address)
{
	return allocation_find(analysis_index(interpreter->analysis), address);
}

/* An allocation of that size and state starts there. */
static void assert_block(const struct interpreter *interpreter, uint64_t address, uint64_t size,
			 enum block_state state)
{
	const struct allocation_index *index = analysis_index(interpreter->analysis);
	allocation_id id = allocation_find(index, address);

	assert_int_not_equal(id, NO_ALLOCATION);
	assert_true(allocation_start(index, id) == address);
	assert_true(allocation_size(index, id) == size);
	assert_int_equal(allocation_state(index, id), state);
}

static const char *free_kind(const struct interpreter *interpreter, uint64_t address)
{
	size_t hint = 0;

	return heaps_free_kind(analysis_heaps(interpreter->analysis), find(interpreter, address),
			       &hint)
		->name;
}

static size_t incomplete(const struct interpreter *interpreter)
{
	return analysis_findings(interpreter->analysis)->weighed[FINDING_INCOMPLETE];
}

TEST(blocks_are_used_or_free_in_each_geometry)
{
	for (size_t i = 0; i < GEOMETRIES; i++) {
		START(interpreter, i);
		uint64_t unit = pymalloc_geometries[i].alignment, size = 3 * unit;
		uint64_t pool = interpreter_add_pool(&interpreter, 2, 5);
		uint64_t first = pool + POOL_HEADER, tail = first + 5 * size;
		uint64_t room = (pymalloc_geometries[i].pool - POOL_HEADER) / size;

		interpreter_free(&interpreter, first + size);
		interpreter_free(&interpreter, first + 3 * size);
		interpreter_open(&interpreter);

		assert_block(&interpreter, first, size, BLOCK_USED);
		assert_block(&interpreter, first + size, size, BLOCK_FREE);
		assert_block(&interpreter, first + 2 * size, size, BLOCK_USED);
		assert_block(&interpreter, first + 3 * size, size, BLOCK_FREE);
		assert_block(&interpreter, tail, (room - 5) * size, BLOCK_FREE);
		assert_string_equal(free_kind(&interpreter, first + size), "free list");
		assert_string_equal(free_kind(&interpreter, tail), "pool end");
		assert_int_equal(find(&interpreter, pool), NO_ALLOCATION);
		assert_int_equal(incomplete(&interpreter), 0);
	}
}

TEST(pools_without_blocks_are_free)
{
	START(interpreter, 0);
	uint64_t size = pymalloc_geometries[0].pool;
	uint64_t freed = interpreter_add_pool(&interpreter, 3, 7), other;

	interpreter_add_pool(&interpreter, 0, 1);
	other = interpreter_add_pool(&interpreter, 3, 7);
	interpreter_free_pool(&interpreter, freed);
	interpreter_free_pool(&interpreter, other);
	interpreter_open(&interpreter);

	assert_block(&interpreter, freed, size, BLOCK_FREE);
	assert_block(&interpreter, other, size, BLOCK_FREE);
	assert_block(&interpreter, other + size, (POOLS - 3) * size, BLOCK_FREE);
	assert_string_equal(free_kind(&interpreter, freed), "free pools");
	assert_int_equal(incomplete(&interpreter), 0);
}

TEST(bookkeeping_and_free_blocks_hold_nothing)
{
	START(interpreter, 0);
	uint64_t pool = interpreter_add_pool(&interpreter, 3, 4), first = pool + POOL_HEADER;
	const struct bitmap *leaked;

	core_set(&interpreter.core, first + 8, first + 64);
	interpreter_free(&interpreter, first);
	core_set(&interpreter.core, DATA + 0x200, first + 128);
	core_set(&interpreter.core, first + 128 + 8, first + 192);
	interpreter_open(&interpreter);

	leaked = analysis_leaked(interpreter.analysis);
	assert_true(bitmap_get(leaked, find(&interpreter, first + 64)));
	assert_false(bitmap_get(leaked, find(&interpreter, first + 128)));
	assert_false(bitmap_get(leaked, find(&interpreter, first + 192)));
}

TEST(count_may_be_off_by_one_as_a_thread_takes_a_block)
{
	START(interpreter, 0);
	uint64_t pool = interpreter_add_pool(&interpreter, 3, 4);

	set_half(&interpreter.core, pool, 3);
	interpreter_open(&interpreter);
	assert_block(&interpreter, pool + POOL_HEADER, 64, BLOCK_USED);
	assert_int_equal(incomplete(&interpreter), 0);
}

/* Damage the pool at address. */
static void make_ring(struct core *core, uint64_t pool)
{
	core_set(core, pool + 8, pool + POOL_HEADER);
	core_set(core, pool + POOL_HEADER, pool + POOL_HEADER);
}

static void lead_outside(struct core *core, uint64_t pool)
{
	core_set(core, pool + 8, STACK);
}

static void lead_between(struct core *core, uint64_t pool)
{
	core_set(core, pool + 8, pool + POOL_HEADER + 16);
}

static void name_other_arena(struct core *core, uint64_t pool)
{
	set_half(core, pool + 32, NUMBER + 1);
}

static void set_large_class(struct core *core, uint64_t pool)
{
	set_half(core, pool + 36, UINT32_MAX);
}

static void carve_too_much(struct core *core, uint64_t pool)
{
	set_half(core, pool + 40, UINT32_MAX - 31);
}

static void miscount(struct core *core, uint64_t pool)
{
	set_half(core, pool, 2);
}

TEST(damaged_pool_costs_only_itself_and_is_a_root)
{
	static void (*const damages[])(struct core *, uint64_t) = {
		make_ring,	 lead_outside,	 lead_between, name_other_arena,
		set_large_class, carve_too_much, miscount,
	};

	for (size_t i = 0; i < sizeof(damages) / sizeof(*damages); i++) {
		START(interpreter, 0);
		uint64_t before = interpreter_add_pool(&interpreter, 3, 4);
		uint64_t pool = interpreter_add_pool(&interpreter, 3, 4);
		uint64_t behind = interpreter_add_pool(&interpreter, 3, 4);

		core_set(&interpreter.core, pool + 0x100, behind + POOL_HEADER);
		damages[i](&interpreter.core, pool);
		interpreter_open(&interpreter);
		assert_block(&interpreter, before + POOL_HEADER, 64, BLOCK_USED);
		assert_block(&interpreter, behind + POOL_HEADER, 64, BLOCK_USED);
		assert_int_equal(find(&interpreter, pool + POOL_HEADER), NO_ALLOCATION);
		assert_false(bitmap_get(analysis_leaked(interpreter.analysis),
					find(&interpreter, behind + POOL_HEADER)));
		assert_int_equal(incomplete(&interpreter), 1);
	}
}

TEST(arena_that_two_records_name_counts_once)
{
	START(interpreter, 0);
	uint64_t pool = interpreter_add_pool(&interpreter, 3, 4);

	interpreter_add_arena(&interpreter, NUMBER + 1, ARENA);
	interpreter_open(&interpreter);
	assert_block(&interpreter, pool + POOL_HEADER, 64, BLOCK_USED);
	assert_int_equal(heaps_arena_count(analysis_heaps(interpreter.analysis)), 1);
}

TEST(records_that_make_no_sense_are_no_arenas)
{
	static const struct {
		uint64_t offset, value;
	} damages[] = {
		{ 0, 3 },
		{ 0, UINT64_MAX - 15 },
		{ 8, ARENA + 8 },
		{ 8, ARENA + (2 << 20) },
		{ 16, UINT64_C(63) << 32 },
		{ 16, 65 },
	};

	for (size_t i = 0; i < sizeof(damages) / sizeof(*damages); i++) {
		START(interpreter, 0);

		interpreter_add_pool(&interpreter, 3, 4);
		core_set(&interpreter.core, record_of(NUMBER) + damages[i].offset,
			 damages[i].value);
		interpreter_open(&interpreter);
		assert_int_equal(heaps_arena_count(analysis_heaps(interpreter.analysis)), 0);
	}
}

TEST(program_without_python_is_not_searched)
{
	_cleanup_(interpreter_deinit) struct interpreter interpreter;

	interpreter_init(&interpreter, &pymalloc_geometries[0], "/usr/lib/libother.so");
	interpreter_add_pool(&interpreter, 3, 4);
	interpreter_open(&interpreter);
	assert_int_equal(heaps_arena_count(analysis_heaps(interpreter.analysis)), 0);
}

/* Assert that a free-threaded interpreter is reported once, and nothing else. */
static void assert_free_threaded(const struct interpreter *interpreter, bool expected)
{
	const struct findings *findings = analysis_findings(interpreter->analysis);
	size_t found = 0;

	for (size_t i = 0; i < findings->count; i++)
		found += strstr(findings->list[i].message,
				"is a free-threaded Python: its objects") != NULL;
	assert_int_equal(found, expected);
	assert_int_equal(incomplete(interpreter), expected);
}

TEST(free_threaded_interpreter_is_known_by_its_name)
{
	_cleanup_(interpreter_deinit) struct interpreter interpreter;

	interpreter_init(&interpreter, &pymalloc_geometries[0], "/usr/lib/libpython3.13t.so.1.0");
	interpreter_open(&interpreter);
	assert_free_threaded(&interpreter, true);
}

TEST(free_threaded_interpreter_is_known_by_its_table_of_offsets)
{
	for (uint64_t flag = 0; flag < 2; flag++) {
		START(interpreter, 0);

		interpreter_add_pool(&interpreter, 3, 4);
		core_set(&interpreter.core, DATA + 0x200, UINT64_C(0x7970677562656478));
		core_set(&interpreter.core, DATA + 0x210, flag);
		interpreter_open(&interpreter);
		assert_free_threaded(&interpreter, flag);
	}
}

/* Memory of other heaps has no arena. */
TEST(arena_that_another_heap_has_is_left_out)
{
	for (int overlaps = 0; overlaps <= 1; overlaps++) {
		START(interpreter, 0);
		_cleanup_(block_sink_destroy) struct block_sink *sink = NULL;
		_cleanup_(findings_deinit) struct findings findings = { 0 };
		struct memory_account account = { 0 };
		struct heap_context context = { .findings = &findings, .account = &account };
		_cleanup_(free) struct heap *heap = calloc(1, allocator_pymalloc.heap_size);
		bool found = false;

		interpreter_add_pool(&interpreter, 3, 4);
		interpreter_open(&interpreter);
		context.image = analysis_image(interpreter.analysis);
		context.program = analysis_program(interpreter.analysis);
		assert_non_null(heap);
		heap->arenas.memory.account = &account;
		assert_no_error(allocator_pymalloc.open(heap, &context, &found));
		assert_true(found);
		assert_no_error(block_sink_create(&account, &sink));
		assert_no_error(block_sink_region(sink, ARENA - (overlaps ? 0 : PAGE),
						  ARENA + (overlaps ? PAGE : 0), 0));
		assert_no_error(allocator_pymalloc.walk(heap, sink));
		assert_int_equal(findings.count, overlaps);
		if (overlaps)
			assert_finding(
				&findings, FINDING_INCOMPLETE,
				"the arena of Python at 0x7d0000000000 overlaps the heap of another allocator");
		allocator_pymalloc.close(heap);
		array_release(&heap->arenas);
	}
}

/* Words of a library that lead into long rows of what could be records, again and again. */
TEST(search_for_arenas_ends)
{
	static const uint64_t ROW = 0x7c0000000000;
	enum { ROW_SIZE = 48 * PAGE, ROW_COUNT = ROW_SIZE / RECORD };

	for (int many = 0; many <= 1; many++) {
		START(interpreter, 0);

		interpreter_add_pool(&interpreter, 3, 4);
		core_add(&interpreter.core, ROW, ROW_SIZE, RIGHTS_RW);
		for (uint64_t i = 0; i + 1 < ROW_COUNT; i++)
			core_set(&interpreter.core, ROW + RECORD * i + 32, ROW + RECORD * (i + 1));
		for (uint64_t i = 0x200; i < DATA_SIZE; i += 8)
			core_set(&interpreter.core, DATA + i,
				 many || i < 0x300 ? ROW + i / 8 % 2 * RECORD : 0);
		interpreter_open(&interpreter);
		assert_int_equal(find_finding(analysis_findings(interpreter.analysis),
					      "the search for Python's arenas stopped") != NULL,
				 many);
	}
}
