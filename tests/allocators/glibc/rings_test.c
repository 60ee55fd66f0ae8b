/*
 * Rings of free chunks: what each leads to, and that asking for many of them does not take many
 * times as long.
 */
#include "allocators/glibc/rings.h"

#include "tests/analyzer/image/core_builder.h"

enum {
	CHUNK = 0x20,
	COUNT = 20000,
	/*
	 * Three times around, and 64 or so for each but those asked before: a secret number
	 * decides, so here are some ten times as many. Without word it would take COUNT / 2 for
	 * each.
	 */
	MOST_LOOKS = 1000 * COUNT,
};

static const uint64_t HEAP = 0x100000, HEAD = 0x80000;

struct rings {
	struct core core;
	struct findings findings;
	struct progress progress;
	struct glibc_heap heap;
};

static uint64_t chunk_at(uint64_t number)
{
	return HEAP + CHUNK * number;
}

/* Each chunk leads to the next, and the last one to that address. */
static void rings_init(struct rings *rings, uint64_t last)
{
	struct image *image;

	*rings = (struct rings){ 0 };
	core_init(&rings->core);
	core_add(&rings->core, HEAP, CHUNK * COUNT, RIGHTS_RW);
	for (uint64_t i = 0; i < COUNT; i++)
		core_set(&rings->core, chunk_at(i) + glibc_header(8),
			 i + 1 < COUNT ? chunk_at(i + 1) : last);
	core_write_file(&rings->core);
	assert_no_error(image_open(rings->core.path, &rings->findings, &image));
	rings->heap.word = image_word_size(image);
	rings->heap.header = glibc_header(rings->heap.word);
	rings->heap.context.image = image;
	rings->heap.context.progress = &rings->progress;
	rings->heap.rings = glibc_ring_memo_create();
	assert_non_null(rings->heap.rings);
}

static void rings_deinit(struct rings *rings)
{
	glibc_ring_memo_free(rings->heap.rings);
	image_close((struct image *)rings->heap.context.image);
	findings_deinit(&rings->findings);
	core_deinit(&rings->core);
}
DEFINE_DEINIT(rings_deinit, struct rings)

/* Counts looks in what no ring needs. */
static bool is_head(const struct glibc_heap *heap, uint64_t address)
{
	((struct glibc_heap *)heap)->mapped_count++;
	return address == HEAD;
}

static void assert_all_lead_to(struct rings *rings, uint64_t head)
{
	for (uint64_t i = 0; i < COUNT; i++)
		assert_int_equal(glibc_ring_head(&rings->heap, chunk_at(i), is_head), head);
	assert_true(rings->heap.mapped_count < MOST_LOOKS);
}

TEST(ring_with_a_head_is_followed_once)
{
	_cleanup_(rings_deinit) struct rings rings;

	rings_init(&rings, HEAD);
	assert_all_lead_to(&rings, HEAD);
}

TEST(ring_without_a_head_is_followed_once)
{
	_cleanup_(rings_deinit) struct rings rings;

	rings_init(&rings, chunk_at(0));
	assert_all_lead_to(&rings, 0);
}

/* Most of the chunks are not on the ring that they lead into. */
TEST(way_into_a_ring_without_a_head_is_gone_once)
{
	_cleanup_(rings_deinit) struct rings rings;

	rings_init(&rings, chunk_at(COUNT - 10));
	assert_all_lead_to(&rings, 0);
}

TEST(links_that_end_lead_to_no_head)
{
	_cleanup_(rings_deinit) struct rings rings;

	rings_init(&rings, 0);
	assert_all_lead_to(&rings, 0);
}
