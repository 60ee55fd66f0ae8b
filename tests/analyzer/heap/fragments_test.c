#include "analyzer/heap/fragments.h"

#include "tests/assertions.h"

enum { MOST_PAGES = 8, MOST_IDS = 8 };

/* The pages visited. */
struct visits {
	struct heap_page pages[MOST_PAGES];
	allocation_id pinners[MOST_PAGES][MOST_IDS];
	size_t count;
};

static struct error *keep(void *data, const struct heap_page *page)
{
	struct visits *visits = data;

	assert_true(visits->count < MOST_PAGES);
	assert_true(page->pinner_count <= MOST_IDS);
	visits->pages[visits->count] = *page;
	for (size_t i = 0; i < page->pinner_count; i++)
		visits->pinners[visits->count][i] = page->pinners[i];
	visits->count++;
	return NULL;
}

/* Visit the pages of a region with those blocks. */
static struct visits visit(uint64_t start, uint64_t end, const struct block *blocks, size_t count)
{
	_cleanup_(block_sink_destroy) struct block_sink *sink = NULL;
	_cleanup_(allocation_index_destroy) struct allocation_index *index = NULL;
	struct memory_account account = { 0 };
	struct progress progress = { 0 };
	struct visits visits = { .count = 0 };

	assert_no_error(block_sink_create(&account, &sink));
	assert_no_error(block_sink_region(sink, start, end, 7));
	for (size_t i = 0; i < count; i++)
		assert_no_error(block_sink_add(sink, blocks[i]));
	assert_no_error(allocation_index_create(sink, &index));
	assert_no_error(heap_pages_visit(index, &progress, keep, &visits));
	return visits;
}

TEST(what_is_used_on_a_page_pins_its_free_memory)
{
	const struct block blocks[] = {
		{ 0x10010, 0x800, BLOCK_USED },
		{ 0x10820, 0x400, BLOCK_FREE },
		{ 0x10c30, 0x800, BLOCK_USED }, /* into the next page */
		{ 0x11440, 0xbc0, BLOCK_CACHED },
	};
	struct visits visits = visit(0x10000, 0x12000, blocks, 4);

	assert_int_equal(visits.count, 2);
	assert_int_equal(visits.pages[0].start, 0x10000);
	assert_int_equal(visits.pages[0].end, 0x11000);
	assert_int_equal(visits.pages[0].arena, 7);
	assert_int_equal(visits.pages[0].free, 0x400);
	assert_int_equal(visits.pages[0].cached, 0);
	assert_false(visits.pages[0].whole);
	assert_false(visits.pages[0].foreign);
	assert_int_equal(visits.pages[0].pinner_count, 2);
	assert_int_equal(visits.pinners[0][0], 0);
	assert_int_equal(visits.pinners[0][1], 2);
	assert_int_equal(visits.pages[1].free, 0xbc0);
	assert_int_equal(visits.pages[1].cached, 0xbc0);
	assert_int_equal(visits.pages[1].pinner_count, 1);
	assert_int_equal(visits.pinners[1][0], 2);
}

TEST(pages_within_a_free_block_come_together)
{
	const struct block blocks[] = {
		{ 0x10010, 0x10, BLOCK_USED },
		{ 0x10030, 0x3800, BLOCK_FREE },
		{ 0x13840, 0x10, BLOCK_USED },
	};
	struct visits visits = visit(0x10000, 0x14000, blocks, 3);

	assert_int_equal(visits.count, 3);
	assert_int_equal(visits.pages[0].free, 0xfd0);
	assert_int_equal(visits.pages[1].start, 0x11000);
	assert_int_equal(visits.pages[1].end, 0x13000);
	assert_int_equal(visits.pages[1].free, 0x2000);
	assert_true(visits.pages[1].whole);
	assert_int_equal(visits.pages[1].pinner_count, 0);
	assert_int_equal(visits.pages[2].free, 0x830);
	assert_int_equal(visits.pages[2].pinner_count, 1);
	assert_int_equal(visits.pinners[2][0], 2);
}

TEST(a_page_of_free_blocks_is_free)
{
	const struct block blocks[] = {
		{ 0x10010, 0x7f0, BLOCK_FREE },
		{ 0x10810, 0x7f0, BLOCK_CACHED },
	};
	struct visits visits = visit(0x10000, 0x11000, blocks, 2);

	assert_int_equal(visits.count, 1);
	assert_int_equal(visits.pages[0].free, 0xfe0);
	assert_true(visits.pages[0].whole);
}

TEST(what_is_outside_of_a_region_holds_its_page)
{
	const struct block blocks[] = { { 0x10410, 0xbf0, BLOCK_FREE } };
	struct visits visits = visit(0x10400, 0x11000, blocks, 1);

	assert_int_equal(visits.count, 1);
	assert_int_equal(visits.pages[0].pinner_count, 0);
	assert_false(visits.pages[0].whole);
	assert_true(visits.pages[0].foreign);
}

TEST(pages_that_are_all_used_are_not_visited)
{
	const struct block blocks[] = {
		{ 0x10010, 0x2000, BLOCK_USED },
		{ 0x12020, 0xfe0, BLOCK_USED },
	};

	assert_int_equal(visit(0x10000, 0x13000, blocks, 2).count, 0);
}
