#include "analyzer/heap/work_chunks.h"

#include "tests/analyzer/world.h"

static const uint64_t HEAP = 0x100000, MB = 1 << 20;

/* All that is in the chunk; checks that it is in order and not too much. */
static uint64_t chunk_bytes(const struct world *world, const struct work_chunk *chunk)
{
	uint64_t bytes = chunk->part.end - chunk->part.start;

	assert_true(chunk->first < chunk->end);
	if (bytes == 0)
		for (allocation_id id = chunk->first; id < chunk->end; id++)
			if (bitmap_get(allocation_used(world->index), id))
				bytes += allocation_size(world->index, id);
	assert_true(bytes <= (chunk->number == NOT_CUT ? MOST_SHARE_BYTES : MOST_CHUNK_BYTES));
	return bytes;
}

/* The bytes in all chunks, which must follow each other. */
static uint64_t check_chunks(const struct world *world, const struct work_chunks *chunks)
{
	uint64_t total = 0, cut = 0, last_end = 0;
	size_t number = 0;

	for (size_t i = 0; i < chunks->count; i++) {
		const struct work_chunk *chunk = &chunks->items[i];
		uint64_t bytes = chunk_bytes(world, chunk);

		assert_true(i == 0 || chunk[-1].end <= chunk->first ||
			    chunk->part.start >= last_end);
		assert_int_equal((chunk->end - 1) >> SHARE_BITS, work_chunk_share(chunk));
		if (chunk->number != NOT_CUT) {
			assert_int_equal(chunk->number, number++);
			cut += bytes;
		}
		last_end = chunk->part.end;
		total += bytes;
	}
	assert_int_equal(chunks->cut_bytes, cut);
	return total;
}

static void cut(struct world *world, struct work_chunks *ret)
{
	world_open(world);
	assert_no_error(work_chunks_init(ret, world->image, world->index,
					 allocation_used(world->index), NULL, &world->account));
}

TEST(small_allocations_make_a_chunk_for_each_share)
{
	_cleanup_(world_deinit) struct world world;
	_cleanup_(array_release) struct work_chunks chunks;

	world_init(&world);
	world_add_blocks(&world, 3 * SHARE + 1, HEAP, 64, 56);
	cut(&world, &chunks);
	assert_int_equal(chunks.count, 4);
	assert_int_equal(check_chunks(&world, &chunks), (3 * SHARE + 1) * 56);
	assert_int_equal(chunks.cut_bytes, 0);
	assert_true(work_chunk_begins(&chunks, 1));
	assert_true(work_chunk_ends(&chunks, 3));
}

/* Blocks of many sizes: none of it is left out, none there twice. */
TEST(large_allocations_are_cut_and_small_ones_gathered)
{
	static const uint64_t SIZES[] = { 16,	   100000, 3 * MB, 64,	    9000000,
					  1 << 20, 48,	   700000, MB + 16, 400000 };
	enum { SIZE_COUNT = sizeof(SIZES) / sizeof(*SIZES) };
	_cleanup_(world_deinit) struct world world;
	_cleanup_(array_release) struct work_chunks chunks;
	uint64_t start = HEAP, total = 0;

	world_init(&world);
	world_add_heap(&world, HEAP, 32 * MB);
	for (size_t i = 0; i < SIZE_COUNT; i++) {
		bool is_used = i != 4;

		world_add_block(&world, (struct block){ start, SIZES[i],
							is_used ? BLOCK_USED : BLOCK_FREE });
		total += is_used ? SIZES[i] : 0;
		start += SIZES[i];
	}
	cut(&world, &chunks);
	assert_int_equal(check_chunks(&world, &chunks), total);
	assert_int_equal(chunks.cut_bytes, total);
	assert_true(work_chunk_begins(&chunks, 0));
	assert_false(work_chunk_begins(&chunks, 1));
	assert_true(work_chunk_ends(&chunks, chunks.count - 1));
}

/* A dump may claim any size: what it does not have makes no chunks. */
TEST(absent_memory_makes_no_chunks)
{
	const uint64_t size = UINT64_C(1) << 34;
	_cleanup_(world_deinit) struct world world;
	_cleanup_(array_release) struct work_chunks chunks;

	world_init(&world);
	core_add_part(&world.core, HEAP, size, 5 * MB, RIGHTS_RW);
	core_add(&world.core, HEAP + size, 2 * MB, RIGHTS_RW);
	assert_no_error(block_sink_region(world.sink, HEAP, HEAP + size + 2 * MB, 0));
	world_add_block(&world, (struct block){ HEAP + MB, size, BLOCK_USED });
	cut(&world, &chunks);
	assert_int_equal(check_chunks(&world, &chunks), 5 * MB);
	assert_int_equal(chunks.count, 5);
}
