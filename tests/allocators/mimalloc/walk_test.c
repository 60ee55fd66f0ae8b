/*
 * A process with mimalloc, made in memory: a segment with its slices, pages, and the heap of a
 * thread among the library's variables.
 */
#include "allocators/mimalloc/mimalloc.h"

#include "tests/allocators/process.h"

static const uint64_t HEAP = DATA + 0x1000, SEGMENT = 0x7e0000000000, SEGMENT_BYTES = 32 << 20,
		      SLICE = 64 << 10, PRESENT = 0x100000, COOKIE = 0xc00c1e,
		      THREAD = STACK + 0x40;
enum { SMALL = 1, LARGE = 3, CAPACITY = 100, BYTES = 48, OFFSET = 384 };

struct made {
	struct process process;
};

/* Set count words to 0. */
static void clear(struct core *core, uint64_t address, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++)
		core_set(core, address + 8 * i, 0);
}

static uint64_t slice_of(unsigned int number)
{
	return SEGMENT + 264 + 80 * (uint64_t)number;
}

static void set_page(struct made *made, unsigned int number, uint32_t slices, uint32_t bytes,
		     uint16_t capacity, uint32_t used)
{
	struct core *core = &made->process.core;
	uint64_t slice = slice_of(number);

	core_set(core, slice, slices);
	core_set(core, slice + 8, (uint64_t)capacity << 16 | (uint64_t)capacity << 32);
	core_set(core, slice + 24, used | (uint64_t)bytes << 32);
	core_set(core, slice + 48, bytes ? HEAP : 0);
}

static uint64_t page_start(unsigned int number)
{
	return SEGMENT + SLICE * number;
}

/* A block of the page of small ones. */
static uint64_t block_of(unsigned int number)
{
	return page_start(SMALL) + OFFSET + BYTES * (uint64_t)number;
}

static void made_init(struct made *made)
{
	struct core *core = &made->process.core;

	process_init(&made->process, "/lib/libmimalloc.so.2.0");
	core_add_part(core, SEGMENT, SEGMENT_BYTES, PRESENT, RIGHTS_RW);
	core_set(core, SEGMENT + 216, SEGMENT ^ COOKIE);
	core_set(core, slice_of(0), SMALL);
	set_page(made, SMALL, 2, BYTES, CAPACITY, CAPACITY - 3);
	set_page(made, LARGE, 4, 200000, 1, 1);
	set_page(made, LARGE + 4, 512 - LARGE - 4, 0, 0, 0);
	/* Two to allocate from, one freed lately, one by another thread. */
	core_set(core, slice_of(SMALL) + 16, block_of(5));
	core_set(core, block_of(5), block_of(2));
	core_set(core, slice_of(SMALL) + 32, block_of(7));
	core_set(core, slice_of(SMALL) + 40, block_of(9) | 2);
}

DEFINE_MADE_DEINIT

TEST(blocks_are_free_that_the_page_lists)
{
	MADE(made);

	process_open(&made.process);
	assert_block(&made.process, block_of(0), BYTES, BLOCK_USED);
	assert_block(&made.process, block_of(2), BYTES, BLOCK_FREE);
	assert_block(&made.process, block_of(5), BYTES, BLOCK_FREE);
	assert_block(&made.process, block_of(7), BYTES, BLOCK_FREE);
	assert_block(&made.process, block_of(9), BYTES, BLOCK_FREE);
	assert_block(&made.process, block_of(CAPACITY - 1), BYTES, BLOCK_USED);
	assert_block(&made.process, block_of(CAPACITY),
		     2 * SLICE - OFFSET - BYTES * (uint64_t)CAPACITY, BLOCK_FREE);
	assert_free_kind(&made.process, block_of(CAPACITY), "page rest");
	assert_block(&made.process, page_start(LARGE), 200000, BLOCK_USED);
	assert_free_kind(&made.process, block_of(5), "page list");
	assert_int_equal(count_incomplete(&made.process), 0);
}

TEST(free_slices_are_told)
{
	MADE(made);

	process_open(&made.process);
	assert_block(&made.process, page_start(LARGE + 4), SLICE * (512 - LARGE - 4), BLOCK_FREE);
	assert_free_kind(&made.process, page_start(LARGE + 4), "free slices");
	assert_told(&made.process, block_of(1) + 3,
		    "in the page at 0x7e0000010000 of blocks of 48 bytes");
	assert_told(&made.process, slice_of(SMALL) + 8,
		    "the metadata of the page at 0x7e0000010000");
	assert_told(&made.process, SEGMENT, "in the head of the segment at 0x7e0000000000");
}

TEST(what_others_freed_into_full_pages_is_free)
{
	MADE(made);
	struct core *core = &made.process.core;
	const struct user_regs_struct registers = { .rsp = STACK + 0x900, .fs_base = THREAD };

	core_add_thread(core, 12, &registers);
	core_set(core, HEAP + 2832, block_of(20));
	core_set(core, HEAP + 2840, THREAD);
	core_set(core, block_of(20), block_of(22));
	process_open(&made.process);
	assert_block(&made.process, block_of(20), BYTES, BLOCK_FREE);
	assert_block(&made.process, block_of(22), BYTES, BLOCK_FREE);
	assert_free_kind(&made.process, block_of(22), "delayed");
}

TEST(huge_allocation_has_a_segment_for_itself)
{
	MADE(made);
	struct core *core = &made.process.core;
	const uint64_t huge = SEGMENT + 2 * SEGMENT_BYTES, slices = 1024;

	core_add_part(core, huge, SLICE * slices, PRESENT, RIGHTS_RW);
	core_set(core, huge + 216, huge ^ COOKIE);
	core_set(core, huge + 264, 1);
	core_set(core, huge + 264 + 80, slices - 1);
	core_set(core, huge + 264 + 88, 1 << 16);
	core_set(core, huge + 264 + 104, 1 | UINT64_C(2147483648) << 32);
	process_open(&made.process);
	assert_block(&made.process, huge + SLICE, SLICE * (slices - 1), BLOCK_USED);
}

TEST(contradictions_are_said)
{
	MADE(made);

	/* One of four pages. */
	set_page(&made, LARGE + 4, 1, 65536, 1, 1);
	set_page(&made, LARGE + 5, 1, 65536, 1, 1);
	set_page(&made, LARGE + 6, 512 - LARGE - 6, 0, 0, 0);
	core_set(&made.process.core, block_of(5), block_of(2) + 8);
	process_open(&made.process);
	assert_block(&made.process, block_of(5), BYTES, BLOCK_FREE);
	assert_finding(
		analysis_findings(made.process.analysis), FINDING_INCOMPLETE,
		"mimalloc: free blocks whose link was overwritten after they were freed: 1, the first at 0x7e0000010270; what may follow in their lists counts as used");
}

/* Most of a small heap is one page. */
TEST(heap_of_one_page_is_read_up_to_a_wrong_link)
{
	MADE(made);

	set_page(&made, LARGE, 512 - LARGE, 0, 0, 0);
	core_set(&made.process.core, block_of(5), 0x5757575757575757);
	process_open(&made.process);
	assert_block(&made.process, block_of(5), BYTES, BLOCK_FREE);
	assert_block(&made.process, block_of(7), BYTES, BLOCK_FREE);
	assert_block(&made.process, block_of(9), BYTES, BLOCK_FREE);
	assert_block(&made.process, block_of(2), BYTES, BLOCK_USED);
	assert_finding(
		analysis_findings(made.process.analysis), FINDING_INCOMPLETE,
		"mimalloc: free blocks whose link was overwritten after they were freed: 1, the first at 0x7e0000010270;");
}

TEST(block_that_was_freed_twice_is_named)
{
	MADE(made);

	core_set(&made.process.core, block_of(7), block_of(7));
	process_open(&made.process);
	assert_finding(
		analysis_findings(made.process.analysis), FINDING_INCOMPLETE,
		"mimalloc: free blocks that were freed twice, as lists have them twice: 1, the first at 0x7e00000102d0;");
}

TEST(what_only_looks_like_a_segment_is_none)
{
	MADE(made);

	set_page(&made, SMALL, 2, BYTES, CAPACITY, 7);
	set_page(&made, LARGE, 4, 200000, 1, 0);
	process_open(&made.process);
	assert_int_equal(find_block(&made.process, block_of(0)), NO_ALLOCATION);
	assert_finding(
		analysis_findings(made.process.analysis), FINDING_INCOMPLETE,
		"mimalloc is loaded (/lib/libmimalloc.so.2.0), and its heap could not be read");
}

/* 2.1.7 in a secure build: one page, of which two blocks are free, and one has a check behind it.
 */
TEST(encoded_links_are_followed_and_ends_checked)
{
	const uint64_t keys[] = { 0x1234567890abcd03, 0xfedcba0987654321 }, bytes = 64,
		       page = SEGMENT + 264 + 112, start = SEGMENT + SLICE;
	MADE(made);
	struct core *core = &made.process.core;
	uint64_t canary = (start ^ keys[1]) << 3 | (start ^ keys[1]) >> 61;
	uint64_t link = (start + bytes) ^ keys[1], last = page ^ keys[1];

	canary += keys[0];
	clear(core, SEGMENT + 264, 10 * 8);
	core_set(core, SEGMENT + 264, 1);
	core_set(core, page, 510);
	core_set(core, page + 8, 4 << 16 | UINT64_C(4) << 32);
	core_set(core, page + 16, start + 2 * bytes);
	core_set(core, page + 32, 2);
	core_set(core, page + 40, bytes);
	core_set(core, page + 48, start);
	core_set(core, page + 56, keys[0]);
	core_set(core, page + 64, keys[1]);
	core_set(core, start + 2 * bytes, (link << 3 | link >> 61) + keys[0]);
	core_set(core, start + bytes, (last << 3 | last >> 61) + keys[0]);
	core_set(core, start + bytes - 8, (canary & UINT32_MAX) | UINT64_C(25) << 32);
	process_open(&made.process);
	assert_block(&made.process, start, bytes - 8 - 25, BLOCK_USED);
	assert_block(&made.process, start + bytes, bytes, BLOCK_FREE);
	assert_block(&made.process, start + 2 * bytes, bytes, BLOCK_FREE);
}

/* 3.4: an arena of 512 slices, of which one has its head and the third is a page. */
TEST(pages_are_found_by_the_map)
{
	const uint64_t map = 0x7d0000000000, leaf = map + (4 << 20), page = SEGMENT + 2 * SLICE,
		       start = page + 128, bytes = 80;
	MADE(made);
	struct core *core = &made.process.core;

	clear(core, SEGMENT, PRESENT / 8);
	core_add_part(core, map, 8 << 20, 8 << 20, RIGHTS_RW);
	core_set(core, DATA + 0x800, map);
	core_set(core, map + 8 * (SEGMENT >> 29), leaf);
	core_set(core, leaf + 8 * ((page >> 16) % 8192), page);
	core_set(core, SEGMENT + 40, 512);
	core_set(core, SEGMENT + 48, 1);
	core_set(core, page + 8, start + bytes);
	core_set(core, page + 16, 3 | 4 << 16 | UINT64_C(100) << 32);
	core_set(core, page + 40, bytes);
	core_set(core, page + 48, 16);
	core_set(core, page + 88, SEGMENT);
	core_set(core, page + 96, 2 | UINT64_C(1) << 32);
	process_open(&made.process);
	assert_block(&made.process, start, bytes, BLOCK_USED);
	assert_block(&made.process, start + bytes, bytes, BLOCK_FREE);
	assert_block(&made.process, start + 3 * bytes, bytes, BLOCK_USED);
	assert_free_kind(&made.process, start + 4 * bytes, "page rest");
	assert_block(&made.process, SEGMENT + SLICE, SLICE, BLOCK_FREE);
	assert_block(&made.process, SEGMENT + 3 * SLICE, 509 * SLICE, BLOCK_FREE);
	assert_free_kind(&made.process, SEGMENT + SLICE, "free slices");
	assert_told(&made.process, SEGMENT + 8, "in the head of the arena at 0x7e0000000000");
	assert_int_equal(count_incomplete(&made.process), 0);
}

/* How many looks at pages it takes to find no map, by all layouts. */
static uint64_t count_looks(const struct process *process)
{
	struct memory_account account = { 0 };
	struct mimalloc_heap heap = {
		.context = { .image = analysis_image(process->analysis),
			     .program = analysis_program(process->analysis),
			     .progress = (struct progress *)&process->progress },
	};
	uint64_t looks = 0;

	heap.maps.memory.account = &account;
	heap.pages.memory.account = &account;
	assert_no_error(mimalloc_find_maps(&heap));
	for (size_t i = 0; i < mimalloc_layout_count(); i++) {
		heap.layout = mimalloc_layout(i);
		if (heap.layout->form != FORM_MAP)
			continue;
		assert_no_error(mimalloc_find_map(&heap));
		assert_int_equal(heap.pages.count, 0);
		assert_true(heap.looks > 0);
		looks += heap.looks;
	}
	array_release(&heap.maps);
	array_release(&heap.pages);
	return looks;
}

/*
 * Variables that lead to memory full of addresses of pages, as another allocator's tables may be:
 * what each of them leads to is not read to its end, or the search takes minutes.
 */
TEST(words_that_lead_to_no_map_are_soon_given_up)
{
	const uint64_t table = 0x7d0000000000, size = 16 << 20;
	enum { VARIABLES = 1000, LAYOUTS = 6, LEAVES = 16, PAGES = 8 };
	MADE(made);
	struct core *core = &made.process.core;

	core_add(core, table, size, RIGHTS_RW);
	for (uint64_t at = 0; at < size; at += 8)
		core_set(core, table + at, table + at * PAGE % size);
	for (uint64_t i = 0; i < VARIABLES; i++)
		core_set(core, DATA + 0x10000 + 8 * i, table + i * PAGE);
	process_open(&made.process);
	assert_in_range(count_looks(&made.process), VARIABLES,
			(uint64_t)VARIABLES * LAYOUTS * LEAVES * PAGES);
}
