/*
 * A process with musl's older malloc, made in memory: libc with its bins, and pieces of a heap.
 */
#include "tests/allocators/process.h"

static const uint64_t MASK = DATA + 0x40, HEAP = 0x7d0000000000, HEAP_SIZE = 0x20000,
		      PIECE = HEAP + 16, USED = 1;

struct made {
	struct process process;
	uint64_t end; /* the last chunk of the piece */
};

static void made_init(struct made *made)
{
	process_init(&made->process, "/lib/ld-musl-x86_64.so.1");
	core_add(&made->process.core, HEAP, HEAP_SIZE, RIGHTS_RW);
	core_set(&made->process.core, PIECE, USED);
	core_set(&made->process.core, PIECE + 8, USED);
	made->end = PIECE;
}

DEFINE_MADE_DEINIT

/* Append a chunk to the piece; returns its block. size has its bit. */
static uint64_t add_chunk(struct made *made, uint64_t size)
{
	struct core *core = &made->process.core;
	uint64_t chunk = made->end;

	core_set(core, chunk + 8, size);
	made->end += size & ~USED;
	core_set(core, made->end, size);
	core_set(core, made->end + 8, USED);
	return chunk + 16;
}

/* Have the free chunk of the block in a bin alone. */
static void add_to_bin(struct made *made, uint64_t block, unsigned int bin)
{
	struct core *core = &made->process.core;
	uint64_t links = MASK + 16 + 24 * (uint64_t)bin;

	core_set(core, MASK, UINT64_C(1) << bin);
	core_set(core, links, block - 16);
	core_set(core, links + 8, block - 16);
	core_set(core, block, links - 16);
	core_set(core, block + 8, links - 16);
}

/* Blocks of 16 and 48 bytes, and a free one of 80 between them. */
static uint64_t add_some(struct made *made)
{
	uint64_t block = add_chunk(made, 32 | USED);

	add_to_bin(made, add_chunk(made, 96), 2);
	add_chunk(made, 64 | USED);
	return block;
}

TEST(blocks_are_chunks_less_their_headers)
{
	MADE(made);
	uint64_t block = add_some(&made);

	process_open(&made.process);
	assert_block(&made.process, block, 16, BLOCK_USED);
	assert_block(&made.process, block + 32, 80, BLOCK_FREE);
	assert_block(&made.process, block + 128, 48, BLOCK_USED);
	assert_free_kind(&made.process, block + 32, "bin");
	assert_told(&made.process, block + 32, "a chunk of bin 2");
	assert_told(&made.process, MASK, "the mask of bins with free chunks");
	assert_told(&made.process, MASK + 8 + 24 * 2, "in bin 2 of free chunks");
	assert_int_equal(count_incomplete(&made.process), 0);
}

TEST(pieces_begin_anywhere_in_data_of_libraries)
{
	MADE(made);
	struct core *core = &made.process.core;
	uint64_t donated = DATA + 0x3010;

	add_some(&made);
	core_set(core, donated, USED);
	core_set(core, donated + 8, 64 | USED);
	core_set(core, donated + 64, 64 | USED);
	core_set(core, donated + 72, USED);
	process_open(&made.process);
	assert_block(&made.process, donated + 16, 48, BLOCK_USED);
	assert_int_equal(count_incomplete(&made.process), 0);
}

TEST(mapped_chunk_begins_on_a_page)
{
	MADE(made);
	struct core *core = &made.process.core;
	uint64_t mapping = HEAP + 0x8000;

	add_some(&made);
	core_set(core, mapping + 16, 16);
	core_set(core, mapping + 24, 0x3000 - 16);
	process_open(&made.process);
	assert_block(&made.process, mapping + 32, 0x3000 - 32, BLOCK_USED);
}

TEST(aligned_chunk_counts_instead_of_the_one_around)
{
	MADE(made);
	struct core *core = &made.process.core;
	uint64_t mapping = HEAP + 0x8000, aligned = mapping + 0x1000 - 16;

	add_some(&made);
	core_set(core, mapping + 16, 16);
	core_set(core, mapping + 24, 0x5000 - 16);
	core_set(core, aligned, 0x1000 - 16);
	core_set(core, aligned + 8, 0x3000 - (0x1000 - 16));
	process_open(&made.process);
	assert_block(&made.process, aligned + 16, 0x2000, BLOCK_USED);
	assert_int_equal(find_block(&made.process, mapping + 32), NO_ALLOCATION);
}

/* Six chunks, of which the second one's neighbour is damaged by the caller. */
static uint64_t add_many(struct made *made)
{
	uint64_t block = add_some(made);

	for (int i = 0; i < 5; i++)
		add_chunk(made, 64 | USED);
	return block;
}

TEST(overflow_costs_only_what_it_changed)
{
	MADE(made);
	uint64_t block = add_many(&made), broken = block + 128 + 64;

	core_set(&made.process.core, broken - 16, 0x4141414141414141);
	core_set(&made.process.core, broken - 8, 0x4141414141414141);
	process_open(&made.process);
	assert_block(&made.process, block + 128, 48, BLOCK_USED);
	assert_block(&made.process, broken, 48, BLOCK_USED);
	assert_block(&made.process, broken + 64, 48, BLOCK_USED);
	assert_finding(
		analysis_findings(made.process.analysis), FINDING_INCOMPLETE,
		"oldmalloc: chunks whose size the next chunk contradicts: 2, the first at 0x7d0000000090, with 0x41 in its header and 0x4141414141414141 in the next one; what has no size is not counted");
}

TEST(what_lost_its_size_is_skipped)
{
	MADE(made);
	uint64_t block = add_many(&made), broken = block + 128;

	core_set(&made.process.core, broken - 8, 0x4141414141414141);
	core_set(&made.process.core, broken - 16 + 64, 0x4242424242424242);
	process_open(&made.process);
	assert_block(&made.process, block, 16, BLOCK_USED);
	assert_int_equal(find_block(&made.process, broken), NO_ALLOCATION);
	assert_block(&made.process, broken + 64, 48, BLOCK_USED);
	assert_int_equal(count_incomplete(&made.process), 1);
}

TEST(free_chunk_that_its_bin_does_not_have_is_said)
{
	MADE(made);
	uint64_t block;

	add_some(&made);
	block = add_chunk(&made, 64);
	process_open(&made.process);
	assert_block(&made.process, block, 48, BLOCK_FREE);
	assert_finding(
		analysis_findings(made.process.analysis), FINDING_INCOMPLETE,
		"oldmalloc: free chunks to which the list of their bin does not lead: 1, the first at 0x7d00000000d0; they count as free");
}

TEST(links_of_the_list_are_no_references)
{
	MADE(made);
	uint64_t block = add_some(&made), words[4] = { 0 }, member = block + 128 + 16;
	const struct allocation_index *index;

	process_open(&made.process);
	index = analysis_index(made.process.analysis);
	words[0] = words[1] = member;
	assert_int_equal(allocation_stale_links(index, block, words), 3);
	words[1] = MASK;
	assert_int_equal(allocation_stale_links(index, block, words), 3);
	words[1] = block;
	assert_int_equal(allocation_stale_links(index, block, words), 0);
}

TEST(list_of_the_program_is_kept)
{
	MADE(made);
	struct core *core = &made.process.core;
	uint64_t block = add_some(&made), words[4] = { 0 }, member = block + 128 + 16;

	core_set(core, member, block);
	core_set(core, member + 8, block);
	process_open(&made.process);
	words[0] = words[1] = member;
	assert_int_equal(
		allocation_stale_links(analysis_index(made.process.analysis), block, words), 0);
}
