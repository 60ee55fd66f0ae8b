/*
 * A process made in memory, for an allocator: a library with variables, a thread, and what a test
 * adds before process_open().
 */
#pragma once

#include "analyzer/analysis/analysis.h"

#include "tests/analyzer/image/core_builder.h"

static const uint64_t MODULE = 0x7f0000000000, DATA = MODULE + PAGE, DATA_SIZE = 0x400000,
		      STACK = 0x7ffc00000000;

struct process {
	struct core core;
	struct progress progress;
	struct debug_options options; /* its memory is that of the machine */
	struct analysis *analysis;
	uint64_t thread_pointer; /* 0: the thread has none */
};

static inline void process_init(struct process *process, const char *library)
{
	struct core *core = &process->core;

	*process = (struct process){ 0 };
	core_init(core);
	core_add_module(core, MODULE, DATA_SIZE, library);
	memset(core_add(core, STACK, PAGE, RIGHTS_RW), 0x11, PAGE);
	core_add_auxiliary(core, AT_RANDOM, STACK + PAGE - 0x100);
}

static inline void process_deinit(struct process *process)
{
	if (process->analysis)
		analysis_destroy(process->analysis);
	core_deinit(&process->core);
}
DEFINE_DEINIT(process_deinit, struct process)

static inline void process_open(struct process *process)
{
	const struct user_regs_struct registers = { .rsp = STACK + 0x800,
						    .fs_base = process->thread_pointer };

	core_add_thread(&process->core, 11, &registers);
	core_write_file(&process->core);
	assert_no_error(analysis_create(process->core.path, &process->options, &process->progress,
					&process->analysis));
	assert_no_error(analysis_need(process->analysis, STAGE_HEAP));
}

/* The allocation that starts there, or NO_ALLOCATION. */
static inline allocation_id find_block(const struct process *process, uint64_t address)
{
	const struct allocation_index *index = analysis_index(process->analysis);
	allocation_id id = allocation_find(index, address);

	return id != NO_ALLOCATION && allocation_start(index, id) == address ? id : NO_ALLOCATION;
}

static inline void assert_block(const struct process *process, uint64_t address, uint64_t size,
				enum block_state state)
{
	const struct allocation_index *index = analysis_index(process->analysis);
	allocation_id id = find_block(process, address);

	assert_int_not_equal(id, NO_ALLOCATION);
	assert_int_equal(allocation_size(index, id), size);
	assert_int_equal(allocation_state(index, id), state);
}

static inline void assert_free_kind(const struct process *process, uint64_t address,
				    const char *expected)
{
	const struct heaps *heaps = analysis_heaps(process->analysis);
	size_t hint = 0;

	assert_string_equal(heaps_free_kind(heaps, find_block(process, address), &hint)->name,
			    expected);
}

static inline void assert_told(const struct process *process, uint64_t address,
			       const char *expected)
{
	char text[128];

	assert_true(heaps_tell(analysis_heaps(process->analysis), address, text, sizeof(text)));
	assert_string_equal(text, expected);
}

static inline size_t count_incomplete(const struct process *process)
{
	return analysis_findings(process->analysis)->weighed[FINDING_INCOMPLETE];
}

/* For a struct made, whose first member is such a process; the test defines made_init(). */
#define DEFINE_MADE_DEINIT                                \
	static inline void made_deinit(struct made *made) \
	{                                                 \
		process_deinit(&made->process);           \
	}                                                 \
	DEFINE_DEINIT(made_deinit, struct made)

#define MADE(made, ...)                          \
	_cleanup_(made_deinit) struct made made; \
	made_init(&made, ##__VA_ARGS__)
