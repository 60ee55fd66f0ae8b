/*
 * A process with PHP's heap, made in memory: a main chunk with the heap, runs, a large block and
 * free pages; a second chunk, one that is kept for later, and a huge block.
 */
#include "allocators/zend/zend.h"
#include "analyzer/heap/allocator.h"
#include "analyzer/heap/sink.h"

#include "tests/allocators/process.h"

extern const struct allocator allocator_zend;

static const uint64_t CHUNK = 0x7e0000000000, BYTES = ZEND_CHUNK, SECOND = CHUNK + 2 * BYTES,
		      CACHED = CHUNK + 4 * BYTES, HUGE = CHUNK + 6 * BYTES, HUGE_BYTES = 0x301000,
		      HEAP = CHUNK + ZEND_HEAP;
/* The bin of blocks of 48 bytes, and that of 320, in runs of five pages. */
enum { SMALL = 5, MIDDLE = 16, NODES = 2, RUN = 1, MIDDLE_RUN = 2, LARGE = 7, NODE_RUN = 9 };

/* Offsets of a heap's words: in 7.4, and in 8.4. */
struct shape {
	uint64_t lists, main, map;
};
static const struct shape old = { 32, 312, 0x200 }, recent = { 40, 336, 0x270 };

struct made {
	struct process process;
	const struct shape *shape;
};

static uint64_t page_of(uint64_t chunk, unsigned int number)
{
	return chunk + (uint64_t)number * ZEND_PAGE;
}

static uint64_t block_of(unsigned int number)
{
	return page_of(CHUNK, RUN) + 48 * (uint64_t)number;
}

static uint64_t middle_of(unsigned int number)
{
	return page_of(CHUNK, MIDDLE_RUN) + 320 * (uint64_t)number;
}

static void set_half(struct core *core, uint64_t address, uint32_t value)
{
	memcpy(core_at(core, address, sizeof(value)), &value, sizeof(value));
}

static uint64_t list_of(const struct made *made, unsigned int bin)
{
	return HEAP + made->shape->lists + 8 * (uint64_t)bin;
}

static uint64_t map_of(const struct made *made, uint64_t chunk, unsigned int page)
{
	return chunk + made->shape->map + 4 * (uint64_t)page;
}

/* Take pages of a chunk, of which the first has that word in the map. */
static void take_pages(struct made *made, uint64_t chunk, unsigned int page, unsigned int count,
		       uint32_t word)
{
	struct core *core = &made->process.core;
	uint64_t bits = chunk + made->shape->map - 64;
	uint32_t left;

	set_half(core, map_of(made, chunk, page), word);
	for (unsigned int i = page; i < page + count; i++) {
		core_set(core, bits, core_get(core, bits) | UINT64_C(1) << i);
		if (i > page && word >> 31)
			set_half(core, map_of(made, chunk, i), word | 1U << 30 | (i - page) << 16);
	}
	memcpy(&left, core_at(core, chunk + 24, sizeof(left)), sizeof(left));
	set_half(core, chunk + 24, left - count);
}

static void add_chunk(struct made *made, uint64_t chunk, uint64_t next)
{
	struct core *core = &made->process.core;

	core_add(core, chunk, BYTES, RIGHTS_RW);
	core_set(core, chunk, HEAP);
	core_set(core, chunk + 8, next);
	set_half(core, chunk + 24, ZEND_PAGES);
	take_pages(made, chunk, 0, 1, 0x40000001);
}

static void made_init(struct made *made, const struct shape *shape)
{
	struct core *core = &made->process.core;

	*made = (struct made){ .shape = shape };
	process_init(&made->process, "/usr/bin/php8.4");
	add_chunk(made, CHUNK, SECOND);
	add_chunk(made, SECOND, CHUNK);
	add_chunk(made, CACHED, 0);
	core_add(core, HUGE, HUGE_BYTES, RIGHTS_RW);
	take_pages(made, CHUNK, RUN, 1, 0x80000000 | SMALL);
	take_pages(made, CHUNK, MIDDLE_RUN, 5, 0x80000000 | MIDDLE);
	take_pages(made, CHUNK, LARGE, 2, 0x40000002);
	take_pages(made, CHUNK, NODE_RUN, 1, 0x80000000 | NODES);
	if (shape->lists > 32)
		core_set(core, HEAP + 32, 0xa464d32d81528a01);
	core_set(core, list_of(made, ZEND_BINS), 3 * BYTES + HUGE_BYTES);
	core_set(core, list_of(made, ZEND_BINS + 1), 3 * BYTES + HUGE_BYTES);
	core_set(core, HEAP + shape->main - 8, page_of(CHUNK, NODE_RUN));
	core_set(core, HEAP + shape->main, CHUNK);
	core_set(core, HEAP + shape->main + 8, CACHED);
	core_set(core, page_of(CHUNK, NODE_RUN), HUGE);
	core_set(core, page_of(CHUNK, NODE_RUN) + 8, HUGE_BYTES);
	/* Free: two of the small blocks, one of the others. */
	core_set(core, list_of(made, SMALL), block_of(4));
	core_set(core, block_of(4), block_of(2));
	core_set(core, list_of(made, MIDDLE), middle_of(63));
	core_set(core, HEAP + 16, 83 * 48 + 63 * 320 + 2 * ZEND_PAGE + 170 * 24 + HUGE_BYTES);
}

DEFINE_MADE_DEINIT

TEST(blocks_are_free_that_lists_have)
{
	const struct shape *const shapes[] = { &old, &recent };

	for (size_t i = 0; i < 2; i++) {
		MADE(made, shapes[i]);

		process_open(&made.process);
		assert_block(&made.process, block_of(0), 48, BLOCK_USED);
		assert_block(&made.process, block_of(2), 48, BLOCK_FREE);
		assert_block(&made.process, block_of(4), 48, BLOCK_FREE);
		assert_block(&made.process, block_of(84), 48, BLOCK_USED);
		assert_block(&made.process, middle_of(62), 320, BLOCK_USED);
		assert_block(&made.process, middle_of(63), 320, BLOCK_FREE);
		assert_free_kind(&made.process, block_of(2), "free list");
		assert_int_equal(count_incomplete(&made.process), 0);
	}
}

TEST(cached_chunks_are_found_whose_head_was_cleared)
{
	MADE(made, &recent);

	core_set(&made.process.core, CACHED, 0);
	core_set(&made.process.core, CACHED + 24, 0);
	process_open(&made.process);
	assert_block(&made.process, CACHED, BYTES, BLOCK_FREE);
	assert_free_kind(&made.process, CACHED, "cached chunks");
	assert_int_equal(count_incomplete(&made.process), 0);
}

TEST(cleared_chunks_in_a_ring_are_damage)
{
	MADE(made, &recent);

	core_set(&made.process.core, CACHED, 0);
	core_set(&made.process.core, CACHED + 24, 0);
	core_set(&made.process.core, CACHED + 8, CACHED);
	process_open(&made.process);
	assert_block(&made.process, CACHED, BYTES, BLOCK_FREE);
	assert_true(count_incomplete(&made.process) > 0);
}

TEST(huge_blocks_are_found_at_addresses_of_aarch64)
{
	static const uint64_t high = 0xfffff0000000;
	MADE(made, &recent);
	struct core *core = &made.process.core;

	core->header.e_machine = EM_AARCH64;
	core_add(core, high, HUGE_BYTES, RIGHTS_RW);
	core_set(core, page_of(CHUNK, NODE_RUN), high);
	process_open(&made.process);
	assert_block(&made.process, high, HUGE_BYTES, BLOCK_USED);
}

TEST(pages_chunks_and_huge_blocks_are_found)
{
	MADE(made, &recent);

	process_open(&made.process);
	assert_block(&made.process, page_of(CHUNK, LARGE), 2 * ZEND_PAGE, BLOCK_USED);
	assert_block(&made.process, page_of(CHUNK, 10), BYTES - 10 * ZEND_PAGE, BLOCK_FREE);
	assert_block(&made.process, page_of(SECOND, 1), BYTES - ZEND_PAGE, BLOCK_FREE);
	assert_block(&made.process, CACHED, BYTES, BLOCK_FREE);
	assert_block(&made.process, HUGE, HUGE_BYTES, BLOCK_USED);
	assert_free_kind(&made.process, page_of(SECOND, 1), "free pages");
	assert_free_kind(&made.process, CACHED, "cached chunks");
	assert_int_equal(find_block(&made.process, CHUNK), NO_ALLOCATION);
	assert_told(&made.process, HEAP, "the head of a chunk of PHP");
	assert_told(&made.process, block_of(2), "in a run of PHP, of blocks of 48 bytes");
}

TEST(chunk_that_the_ring_lost_is_found_by_its_head)
{
	MADE(made, &recent);

	core_set(&made.process.core, CHUNK + 8, STACK);
	process_open(&made.process);
	assert_block(&made.process, page_of(SECOND, 1), BYTES - ZEND_PAGE, BLOCK_FREE);
	assert_int_equal(count_incomplete(&made.process), 1);
}

/* Damage that leads into the midst of a block, out of the heap, and round in a circle. */
TEST(list_that_leads_elsewhere_is_said_and_its_rest_not_leaked)
{
	const uint64_t ends[] = { block_of(2) + 8, STACK, block_of(4), page_of(CHUNK, LARGE) };

	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
		MADE(made, &recent);
		const struct bitmap *leaked;

		core_set(&made.process.core, block_of(4), ends[i]);
		core_set(&made.process.core, block_of(2), block_of(9));
		process_open(&made.process);
		assert_block(&made.process, block_of(4), 48, BLOCK_FREE);
		assert_block(&made.process, block_of(2), 48, BLOCK_USED);
		assert_int_equal(count_incomplete(&made.process), 1);
		assert_no_error(analysis_need(made.process.analysis, STAGE_REACHABILITY));
		leaked = analysis_leaked(made.process.analysis);
		assert_false(bitmap_get(leaked, find_block(&made.process, block_of(2))));
		assert_true(bitmap_get(leaked, find_block(&made.process, middle_of(1))));
	}
}

TEST(pages_that_make_no_sense_cost_only_themselves)
{
	static const uint32_t words[] = { 0,	      0x800000ff, 0x8000001e, 0x40000000,
					  0x400003ff, 0xc0030010, UINT32_MAX };

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		MADE(made, &recent);

		set_half(&made.process.core, map_of(&made, CHUNK, LARGE), words[i]);
		process_open(&made.process);
		assert_int_equal(find_block(&made.process, page_of(CHUNK, LARGE)), NO_ALLOCATION);
		assert_block(&made.process, middle_of(0), 320, BLOCK_USED);
		assert_block(&made.process, page_of(CHUNK, 10), BYTES - 10 * ZEND_PAGE, BLOCK_FREE);
		assert_true(count_incomplete(&made.process) > 0);
	}
}

TEST(huge_blocks_that_make_no_sense_are_none)
{
	const uint64_t damages[][2] = {
		{ 0, HUGE + 8 },
		{ 0, SECOND },
		{ 8, 0 },
		{ 8, UINT64_MAX },
		{ 8, 100 },
		{ 16, STACK },
		{ 16, page_of(CHUNK, NODE_RUN) },
	};

	for (size_t i = 0; i < sizeof(damages) / sizeof(*damages); i++) {
		MADE(made, &recent);

		core_set(&made.process.core, page_of(CHUNK, NODE_RUN) + damages[i][0],
			 damages[i][1]);
		process_open(&made.process);
		assert_block(&made.process, block_of(0), 48, BLOCK_USED);
		assert_true(count_incomplete(&made.process) > 0);
	}
}

TEST(heap_that_makes_no_sense_is_said)
{
	const uint64_t places[] = { HEAP + 336, CHUNK + 24, HEAP + 40 + 240 };

	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		MADE(made, &recent);

		core_set(&made.process.core, places[i], 1);
		process_open(&made.process);
		assert_int_equal(find_block(&made.process, block_of(0)), NO_ALLOCATION);
		assert_true(count_incomplete(&made.process) > 0);
	}
}

/* A chunk in memory of other heaps is left out; the rest is found. */
TEST(chunk_that_another_heap_has_is_left_out)
{
	for (int overlaps = 0; overlaps <= 1; overlaps++) {
		MADE(made, &recent);
		_cleanup_(block_sink_destroy) struct block_sink *sink = NULL;
		_cleanup_(findings_deinit) struct findings findings = { 0 };
		struct memory_account account = { 0 };
		struct heap_context context = { .findings = &findings, .account = &account };
		_cleanup_(free) struct heap *heap = calloc(1, allocator_zend.heap_size);
		bool found = false;

		process_open(&made.process);
		context.image = analysis_image(made.process.analysis);
		context.program = analysis_program(made.process.analysis);
		assert_non_null(heap);
		arrays_use(&account, &heap->owned, &heap->arenas);
		assert_no_error(allocator_zend.open(heap, &context, &found));
		assert_true(found);
		assert_no_error(block_sink_create(&account, &sink));
		assert_no_error(block_sink_region(sink, SECOND + (overlaps ? 0 : BYTES),
						  SECOND + 2 * BYTES, 0));
		assert_no_error(allocator_zend.walk(heap, sink));
		assert_int_equal(findings.count, overlaps);
		if (overlaps)
			assert_finding(
				&findings, FINDING_INCOMPLETE,
				"zend: the chunk at 0x7e0000400000 overlaps the heap of another allocator");
		allocator_zend.close(heap);
		arrays_release(&heap->owned, &heap->arenas);
	}
}
