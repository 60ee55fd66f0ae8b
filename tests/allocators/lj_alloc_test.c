#include "analyzer/analysis/analysis.h"

#include "tests/allocators/glibc/process.h"

/*
 * A heap of LuaJIT: a segment with a chunk before the state, two behind it, of which one is free,
 * and the top; and a large block.
 *
 *	SEGMENT           SEGMENT + PAGE
 *	| chunk ...       | state | used | free | used | top      |
 */
static const uint64_t SEGMENT = 0x7f1000000000, SEGMENT_SIZE = 0x20000, DIRECT = 0x7f2000000000,
		      DIRECT_SIZE = 0x41000, LUAJIT = 0x400000;

enum { STATE_CHUNK = 880, SIZE = 64, PREVIOUS_USED = 1, USED = 2, BINS = 56, LINKS = 840 };

struct luajit {
	struct process process;
	uint64_t state, used, spare, last, top;
};

static uint64_t add_chunk(struct core *core, uint64_t *next, uint64_t size, uint64_t flags)
{
	uint64_t chunk = *next;

	core_set(core, chunk + 8, size | flags);
	*next += size;
	return chunk + 16;
}

static void luajit_init(struct luajit *luajit)
{
	struct core *core = &luajit->process.core;
	uint64_t next = SEGMENT, bin;

	process_init(&luajit->process, &GLIBC_2_36);
	core_add_module(core, LUAJIT, PAGE, "/usr/bin/luajit");
	core_add(core, SEGMENT, SEGMENT_SIZE, RIGHTS_RW);
	core_add(core, DIRECT, DIRECT_SIZE, RIGHTS_RW);
	add_chunk(core, &next, PAGE, PREVIOUS_USED | USED);
	luajit->state = add_chunk(core, &next, STATE_CHUNK, PREVIOUS_USED | USED);
	luajit->used = add_chunk(core, &next, SIZE, PREVIOUS_USED | USED);
	luajit->spare = add_chunk(core, &next, SIZE, PREVIOUS_USED);
	luajit->last = add_chunk(core, &next, SIZE, USED);
	luajit->top = next;
	add_chunk(core, &next, SEGMENT + SEGMENT_SIZE - 80 - next, PREVIOUS_USED);
	bin = luajit->state + BINS;
	core_set(core, bin + 16, bin);
	core_set(core, bin + 24, bin);
	core_set(core, luajit->state + 32, luajit->top);
	core_set(core, luajit->state + LINKS, SEGMENT);
	core_set(core, luajit->state + LINKS + 8, SEGMENT_SIZE);
	core_set(core, DIRECT, 1);
	core_set(core, DIRECT + 8, (DIRECT_SIZE - 32) | USED);
	core_set(core, DIRECT + DIRECT_SIZE - 32 + 8, 11);
	process_finish(&luajit->process);
}

static void luajit_deinit(struct luajit *luajit)
{
	process_deinit(&luajit->process);
}
DEFINE_DEINIT(luajit_deinit, struct luajit)

static enum block_state state_at(const struct luajit *luajit, uint64_t address)
{
	const struct allocation_index *index = analysis_index(luajit->process.analysis);
	allocation_id id = allocation_find(index, address);

	assert_int_not_equal(id, NO_ALLOCATION);
	assert_int_equal(allocation_start(index, id), address);
	return allocation_state(index, id);
}

TEST(chunks_of_segments_are_blocks)
{
	_cleanup_(luajit_deinit) struct luajit luajit;

	luajit_init(&luajit);
	process_open(&luajit.process, STAGE_HEAP);
	assert_int_equal(state_at(&luajit, SEGMENT + 16), BLOCK_USED);
	assert_int_equal(state_at(&luajit, luajit.used), BLOCK_USED);
	assert_int_equal(state_at(&luajit, luajit.spare), BLOCK_FREE);
	assert_int_equal(state_at(&luajit, luajit.last), BLOCK_USED);
	assert_int_equal(state_at(&luajit, luajit.top + 16), BLOCK_FREE);
}

TEST(a_large_block_is_a_mapping_for_itself)
{
	_cleanup_(luajit_deinit) struct luajit luajit;

	luajit_init(&luajit);
	process_open(&luajit.process, STAGE_HEAP);
	assert_int_equal(state_at(&luajit, DIRECT + 16), BLOCK_USED);
}

TEST(without_a_ring_there_is_no_state)
{
	_cleanup_(luajit_deinit) struct luajit luajit;

	luajit_init(&luajit);
	core_set(&luajit.process.core, luajit.state + BINS + 16, luajit.used);
	process_open(&luajit.process, STAGE_HEAP);
	assert_int_equal(allocation_find(analysis_index(luajit.process.analysis), luajit.used),
			 NO_ALLOCATION);
}

TEST(a_chunk_that_makes_no_sense_ends_its_segment)
{
	_cleanup_(luajit_deinit) struct luajit luajit;
	const struct findings *findings;

	luajit_init(&luajit);
	core_set(&luajit.process.core, luajit.last - 8, SEGMENT_SIZE | USED);
	process_open(&luajit.process, STAGE_HEAP);
	findings = analysis_findings(luajit.process.analysis);
	assert_finding(findings, FINDING_INCOMPLETE, "the chunk of LuaJIT's heap at");
	assert_int_equal(state_at(&luajit, luajit.used), BLOCK_USED);
}
