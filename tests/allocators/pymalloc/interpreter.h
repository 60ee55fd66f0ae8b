/*
 * A process with a Python interpreter, made in memory: its library with the variable that leads to
 * the records of arenas, the records, and one arena.
 */
#pragma once

#include "allocators/pymalloc/pymalloc.h"

#include "analyzer/analysis/analysis.h"
#include "tests/analyzer/image/core_builder.h"

static const uint64_t MODULE = 0x7f0000000000, DATA = MODULE + PAGE, DATA_SIZE = 0x4000,
		      RECORDS = 0x7e0000000010, ARENA = 0x7d0000000000, STACK = 0x7ffc00000000;

enum { RECORD_COUNT = 16, NUMBER = 3, POOLS = 64 };

struct interpreter {
	const struct pymalloc_geometry *geometry;
	struct core core;
	uint64_t next_pool;
	struct progress progress;
	struct debug_options options; /* its memory is that of the machine */
	struct analysis *analysis;
};

static inline void set_half(struct core *core, uint64_t address, uint32_t value)
{
	memcpy(core_at(core, address, sizeof(value)), &value, sizeof(value));
}

static inline uint64_t record_of(uint64_t number)
{
	return RECORDS + RECORD * number;
}

/* Set the record of an arena that has all its pools yet. */
static inline void interpreter_add_arena(struct interpreter *interpreter, uint64_t number,
					 uint64_t address)
{
	struct core *core = &interpreter->core;

	core_set(core, record_of(number), address);
	core_set(core, record_of(number) + 8, address);
	set_half(core, record_of(number) + 16, POOLS);
	set_half(core, record_of(number) + 20, POOLS);
	core_set(core, record_of(number) + 32, 0);
}

static inline void interpreter_init(struct interpreter *interpreter,
				    const struct pymalloc_geometry *geometry, const char *path)
{
	struct core *core = &interpreter->core;

	*interpreter = (struct interpreter){ .geometry = geometry, .next_pool = ARENA };
	core_init(core);
	core_add_module(core, MODULE, DATA_SIZE, path);
	core_add(core, RECORDS & ~UINT64_C(0xfff), PAGE, RIGHTS_RW);
	core_add(core, ARENA, geometry->arena, RIGHTS_RW);
	memset(core_add(core, STACK, PAGE, RIGHTS_RW), 0x11, PAGE);
	core_add_auxiliary(core, AT_RANDOM, STACK + PAGE - 0x100);
	core_set(core, DATA + 0x100, RECORDS);
	for (uint64_t i = 0; i + 1 < RECORD_COUNT; i++)
		core_set(core, record_of(i) + 32, record_of(i + 1));
	/* The word behind the records is no record. */
	core_set(core, record_of(RECORD_COUNT), 1);
	interpreter_add_arena(interpreter, NUMBER, ARENA);
}

static inline void interpreter_deinit(struct interpreter *interpreter)
{
	if (interpreter->analysis)
		analysis_destroy(interpreter->analysis);
	core_deinit(&interpreter->core);
}
DEFINE_DEINIT(interpreter_deinit, struct interpreter)

/* Cut a pool off the arena: of blocks of that class, the first carved are in use. */
static inline uint64_t interpreter_add_pool(struct interpreter *interpreter, uint32_t size_class,
					    uint32_t carved)
{
	const struct pymalloc_geometry *geometry = interpreter->geometry;
	uint32_t block = (size_class + 1) * geometry->alignment;
	struct core *core = &interpreter->core;
	uint64_t pool = interpreter->next_pool;
	uint32_t left;

	set_half(core, pool, carved);
	core_set(core, pool + 16, pool);
	core_set(core, pool + 24, pool);
	set_half(core, pool + 32, NUMBER);
	set_half(core, pool + 36, size_class);
	set_half(core, pool + 40, POOL_HEADER + carved * block);
	set_half(core, pool + 44, geometry->pool - block);
	interpreter->next_pool += geometry->pool;
	core_set(core, record_of(NUMBER) + 8, interpreter->next_pool);
	memcpy(&left, core_at(core, record_of(NUMBER) + 16, sizeof(left)), sizeof(left));
	set_half(core, record_of(NUMBER) + 16, left - 1);
	return pool;
}

/* Put the block on the list of its pool. */
static inline void interpreter_free(struct interpreter *interpreter, uint64_t block)
{
	struct core *core = &interpreter->core;
	uint64_t pool = block / interpreter->geometry->pool * interpreter->geometry->pool;
	uint32_t used;

	memcpy(&used, core_at(core, pool, sizeof(used)), sizeof(used));
	set_half(core, pool, used - 1);
	core_set(core, block, core_get(core, pool + 8));
	core_set(core, pool + 8, block);
}

/* Give a pool, of which no block is in use, back to the arena. */
static inline void interpreter_free_pool(struct interpreter *interpreter, uint64_t pool)
{
	struct core *core = &interpreter->core;
	uint32_t left;

	set_half(core, pool, 0);
	core_set(core, pool + 16, core_get(core, record_of(NUMBER) + 24));
	core_set(core, record_of(NUMBER) + 24, pool);
	memcpy(&left, core_at(core, record_of(NUMBER) + 16, sizeof(left)), sizeof(left));
	set_half(core, record_of(NUMBER) + 16, left + 1);
}

static inline void interpreter_open(struct interpreter *interpreter)
{
	const struct user_regs_struct registers = { .rsp = STACK + 0x800 };

	core_add_thread(&interpreter->core, 11, &registers);
	core_write_file(&interpreter->core);
	assert_no_error(analysis_create(interpreter->core.path, &interpreter->options,
					&interpreter->progress, &interpreter->analysis));
	assert_no_error(analysis_need(interpreter->analysis, STAGE_REACHABILITY));
}
