/*
 * Chromium's PartitionAlloc, made in memory: a root in the program's data, a super page whose
 * metadata page is elsewhere or in it, and a cache of a thread.
 */
#include "tests/allocators/process.h"

static const uint64_t ROOT = DATA + 0x40, BUCKETS = ROOT + 0xc0, NEEDLES = DATA + 0x4000,
		      LIST = DATA + 0x4100, POOL = 0x11dc00000000, SUPER = POOL + 0x400000,
		      ELSEWHERE = 0x91667aad000, DIRECT = POOL + 0x800000,
		      DIRECT_ELSEWHERE = ELSEWHERE + 0x400000;

enum {
	SUPER_PAGE = 0x200000,
	SPAN_PAGE = 0x4000,
	BUCKET_BYTES = 56,
	BUCKET_SMALL = 0, /* slots of 64 bytes */
	BUCKET_CACHE,	  /* of 4096 bytes */
	SMALL = 64,
	SLOTS = SPAN_PAGE / SMALL,
	ALLOCATED = 6,
	UNPROVISIONED = SLOTS - 8,
};

struct made {
	struct process process;
	uint64_t metadata; /* pages */
	uint64_t slots, cache;
};

static void set_link(struct core *core, uint64_t slot, uint64_t link)
{
	core_set(core, slot, __builtin_bswap64(link));
	core_set(core, slot + 8, ~__builtin_bswap64(link));
}

static void set_bucket(struct core *core, uint64_t bucket, uint64_t slot_size, uint64_t pages)
{
	core_set(core, bucket + 24, slot_size);
	core_set(core, bucket + 32, pages);
}

static void set_span(struct core *core, uint64_t entry, uint64_t head, uint64_t bucket,
		     uint64_t counts)
{
	core_set(core, entry, head);
	core_set(core, entry + 16, bucket);
	core_set(core, entry + 24, counts | UINT64_C(0x40) << 48);
}

/* The program has 5 slots, a thread keeps one, one is in quarantine, and two are on the list. */
static void made_init(struct made *made, uint64_t metadata, unsigned int unprovisioned_shift,
		      unsigned int allocated_shift)
{
	struct core *core = &made->process.core;
	uint64_t bucket;

	process_init(&made->process, "/usr/lib/chromium/chromium");
	made->metadata = metadata;
	made->slots = SUPER + SPAN_PAGE;
	made->cache = SUPER + 2 * SPAN_PAGE;
	core_add(core, metadata, PAGE, RIGHTS_RW);
	core_add(core, made->slots, 2 * SPAN_PAGE, RIGHTS_RW);
	if (metadata != SUPER + PAGE) {
		core_set(core, ROOT + 0x88, 4);
		core_set(core, ROOT + 0x90, metadata - SUPER);
	}
	set_bucket(core, BUCKETS, SMALL, 4);
	bucket = BUCKETS + BUCKET_CACHE * BUCKET_BYTES;
	set_bucket(core, bucket, PAGE, 4);
	core_set(core, metadata, ROOT);
	set_span(core, metadata + 32, made->slots + 6 * SMALL, BUCKETS,
		 (uint64_t)ALLOCATED << allocated_shift | (uint64_t)UNPROVISIONED
								  << unprovisioned_shift);
	set_link(core, made->slots + 6 * SMALL, made->slots + 7 * SMALL - POOL);
	set_link(core, made->slots + 7 * SMALL, 0);
	set_span(core, metadata + 64, 0, bucket,
		 UINT64_C(1) << allocated_shift | UINT64_C(3) << unprovisioned_shift);
	/* The counts of pointers, of which that of slot 4 lacks the program's own. */
	for (size_t i = 0; i < ALLOCATED; i++)
		core_set(core, made->slots + i * SMALL + SMALL - 8,
			 UINT64_C(0x300000000) - (i == 4 ? UINT64_C(0x100000000) : 0));
	core_set(core, NEEDLES, 0x0e69e32f3ad9ea63);
	core_set(core, NEEDLES + 8, LIST);
	core_set(core, NEEDLES + 24, 0x9615ee1c5eb14caf);
	core_set(core, LIST + 8, made->cache);
	for (size_t i = 0; i < 8; i++)
		core_set(core, made->cache + 0x88 + 16 * i, (i + 1) << 20);
	core_set(core, made->cache + 0x80 + 16 * 3, made->slots + 5 * SMALL);
	core_set(core, made->cache + 0x88 + 16 * 3, UINT64_C(64) << 16 | 1);
	core_set(core, made->cache + 0x80 + 16 * 8, ROOT);
	core_set(core, made->cache + 0x88 + 16 * 8, 11);
	set_link(core, made->slots + 5 * SMALL, 0);
}

static void made_deinit(struct made *made)
{
	process_deinit(&made->process);
}
DEFINE_DEINIT(made_deinit, struct made)

static enum block_state state_at(const struct made *made, uint64_t number)
{
	allocation_id id = find_block(&made->process, made->slots + number * SMALL);

	assert_int_not_equal(id, NO_ALLOCATION);
	return allocation_state(analysis_index(made->process.analysis), id);
}

static void check_slots(const struct made *made, bool has_counts)
{
	const struct allocation_index *index = analysis_index(made->process.analysis);
	allocation_id rest = find_block(&made->process, made->slots + 8 * SMALL);

	for (uint64_t i = 0; i < 4; i++)
		assert_int_equal(state_at(made, i), BLOCK_USED);
	assert_int_equal(state_at(made, 4), has_counts ? BLOCK_FREE : BLOCK_USED);
	assert_int_equal(state_at(made, 5), BLOCK_CACHED);
	assert_int_equal(state_at(made, 6), BLOCK_FREE);
	assert_int_equal(state_at(made, 7), BLOCK_FREE);
	assert_int_equal(allocation_size(index, find_block(&made->process, made->slots)),
			 has_counts ? SMALL - 4 : SMALL);
	assert_int_not_equal(rest, NO_ALLOCATION);
	assert_int_equal(allocation_size(index, rest), SPAN_PAGE - 8 * SMALL);
	assert_int_equal(allocation_state(index, rest), BLOCK_FREE);
}

TEST(slots_are_used_cached_free_or_in_quarantine)
{
	_cleanup_(made_deinit) struct made made;

	made_init(&made, ELSEWHERE, 15, 0);
	process_open(&made.process);
	check_slots(&made, true);
}

TEST(metadata_may_be_in_the_super_page)
{
	_cleanup_(made_deinit) struct made made;

	made_init(&made, SUPER + PAGE, 15, 0);
	process_open(&made.process);
	check_slots(&made, false);
}

TEST(older_counts_have_13_bits)
{
	_cleanup_(made_deinit) struct made made;

	made_init(&made, SUPER + PAGE, 14, 1);
	process_open(&made.process);
	check_slots(&made, false);
}

TEST(a_large_allocation_has_a_super_page)
{
	_cleanup_(made_deinit) struct made made;
	struct core *core = &made.process.core;
	const struct allocation_index *index;
	allocation_id id;

	made_init(&made, ELSEWHERE, 15, 0);
	core_add(core, DIRECT_ELSEWHERE, PAGE, RIGHTS_RW);
	core_add(core, DIRECT + SPAN_PAGE, 0x300000, RIGHTS_RW);
	core_set(core, DIRECT_ELSEWHERE, ROOT);
	set_bucket(core, DIRECT_ELSEWHERE + 96, 0x300000, 0);
	set_span(core, DIRECT_ELSEWHERE + 32, 0, DIRECT_ELSEWHERE + 96, UINT64_C(0x80000001));
	core_set(core, DIRECT_ELSEWHERE + 64, 0x2f0004);
	process_open(&made.process);
	index = analysis_index(made.process.analysis);
	id = find_block(&made.process, DIRECT + SPAN_PAGE);
	assert_int_not_equal(id, NO_ALLOCATION);
	assert_int_equal(allocation_size(index, id), 0x2f0000);
	assert_int_equal(allocation_state(index, id), BLOCK_USED);
}

TEST(a_link_that_was_overwritten_is_reported)
{
	_cleanup_(made_deinit) struct made made;

	made_init(&made, ELSEWHERE, 15, 0);
	core_set(&made.process.core, made.slots + 6 * SMALL, 0x4141414141414141);
	process_open(&made.process);
	assert_finding(analysis_findings(made.process.analysis), FINDING_INCOMPLETE,
		       "PartitionAlloc: free slots whose link was overwritten");
	assert_int_equal(state_at(&made, 6), BLOCK_FREE);
	assert_int_equal(state_at(&made, 7), BLOCK_USED);
}

TEST(a_list_that_was_given_back_ends)
{
	_cleanup_(made_deinit) struct made made;

	made_init(&made, ELSEWHERE, 15, 0);
	core_set(&made.process.core, made.slots + 7 * SMALL + 8, 0);
	process_open(&made.process);
	assert_no_finding(analysis_findings(made.process.analysis));
	check_slots(&made, true);
}

TEST(counts_that_cannot_be_are_no_metadata)
{
	_cleanup_(made_deinit) struct made made;

	made_init(&made, ELSEWHERE, 15, 0);
	core_set(&made.process.core, ELSEWHERE + 32 + 24,
		 UINT64_C(0x40000000007fff) | 0x7fffULL << 15);
	process_open(&made.process);
	assert_int_equal(find_block(&made.process, made.slots), NO_ALLOCATION);
}

/* The list of caches is a ring, and each has as many slots as it can. */
TEST(a_ring_of_caches_ends)
{
	_cleanup_(made_deinit) struct made made;
	struct core *core;

	made_init(&made, ELSEWHERE, 15, 0);
	core = &made.process.core;
	for (uint64_t i = 3; i < 200; i++) {
		core_set(core, made.cache + 0x80 + 16 * i, made.slots + 5 * SMALL);
		core_set(core, made.cache + 0x88 + 16 * i, UINT64_C(64) << 16 | 255);
	}
	set_link(core, made.slots + 5 * SMALL, made.slots + 5 * SMALL - POOL);
	core_set(core, made.cache + 0x80 + 16 * 200, ROOT);
	core_set(core, made.cache + 0x80 + 16 * 201, made.cache);
	process_open(&made.process);
	assert_int_equal(state_at(&made, 5), BLOCK_CACHED);
}

/*
 * V8's pointer table has a slot's address below a tag. Without the first piece of the table, which
 * can only be read, it is a number.
 */
static bool is_held_by_tagged(bool has_first_piece)
{
	static const uint64_t TABLE = 0x7f4000000000, PIECE = 0x10000;
	_cleanup_(made_deinit) struct made made;
	struct core *core = &made.process.core;
	allocation_id id;

	made_init(&made, ELSEWHERE, 15, 0);
	core_add(core, TABLE, PIECE, has_first_piece ? RIGHT_READ : RIGHTS_RW);
	core_add(core, TABLE + PIECE, PIECE, RIGHTS_RW);
	core_set(core, TABLE + PIECE, UINT64_C(0x4) << 48 | (made.slots + 2 * SMALL + 40));
	process_open(&made.process);
	assert_no_error(analysis_need(made.process.analysis, STAGE_REACHABILITY));
	id = find_block(&made.process, made.slots + 2 * SMALL);
	assert_int_not_equal(id, NO_ALLOCATION);
	assert_true(bitmap_get(analysis_leaked(made.process.analysis),
			       find_block(&made.process, made.slots + 3 * SMALL)));
	return !bitmap_get(analysis_leaked(made.process.analysis), id);
}

TEST(tables_of_v8_refer_by_tagged_pointers)
{
	assert_true(is_held_by_tagged(true));
	assert_false(is_held_by_tagged(false));
}
