#include "analyzer/query/search.h"

#include "tests/analyzer/image/core_builder.h"

#include <unistd.h>

enum { TURN = 4 << 20 /* as memory is cut */ };

/* A core, and what a search in it found. */
struct fixture {
	struct core core;
	struct findings findings;
	struct image *image;
	struct memory_account account;
	struct progress progress;
	struct hits hits;
};

static void fixture_deinit(struct fixture *fixture)
{
	hits_deinit(&fixture->hits);
	if (fixture->image)
		image_close(fixture->image);
	findings_deinit(&fixture->findings);
	core_deinit(&fixture->core);
	/* Nothing is left behind. */
	assert_int_equal(atomic_load(&fixture->account.used), 0);
}
DEFINE_DEINIT(fixture_deinit, struct fixture)

static void fixture_open(struct fixture *fixture)
{
	core_write_file(&fixture->core);
	assert_no_error(image_open(fixture->core.path, &fixture->findings, &fixture->image));
}

static void find(struct fixture *fixture, struct search search)
{
	hits_deinit(&fixture->hits);
	assert_no_error(search_memory(fixture->image, &search, &fixture->account,
				      &fixture->progress, &fixture->hits));
}

static void find_bytes(struct fixture *fixture, const char *bytes, size_t size)
{
	find(fixture, (struct search){ .kind = SEARCH_BYTES,
				       .bytes = (const uint8_t *)bytes,
				       .size = size });
}

static void assert_hits(const struct fixture *fixture, size_t count, const uint64_t *addresses)
{
	const struct hits *hits = &fixture->hits;

	assert_int_equal(hits->count, count);
	assert_int_equal(hits->addresses.count, count);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(hits_at(hits, i), addresses[i]);
}

#define ASSERT_HITS(fixture, ...)                                                    \
	assert_hits(fixture, sizeof((uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t), \
		    (uint64_t[]){ __VA_ARGS__ })

TEST(words_are_found_where_they_are_aligned)
{
	_cleanup_(fixture_deinit) struct fixture fixture = { 0 };
	const uint64_t word = 0x1122334455667788;

	core_init(&fixture.core);
	core_add(&fixture.core, 0x10000, PAGE, RIGHTS_RW);
	core_add(&fixture.core, 0x20000, PAGE, RIGHT_READ);
	core_set(&fixture.core, 0x10000, word);
	core_set(&fixture.core, 0x1010c, word); /* not aligned */
	core_set(&fixture.core, 0x10ff8, word);
	core_set(&fixture.core, 0x20010, word);
	core_set(&fixture.core, 0x20018, word + 1);
	fixture_open(&fixture);
	find(&fixture, (struct search){ .kind = SEARCH_WORDS, .first = word, .span = 1 });
	ASSERT_HITS(&fixture, 0x10000, 0x10ff8, 0x20010);
	assert_int_equal(fixture.hits.size, 8);
}

TEST(end_of_a_range_of_words_is_excluded)
{
	_cleanup_(fixture_deinit) struct fixture fixture = { 0 };

	core_init(&fixture.core);
	core_add(&fixture.core, 0x10000, PAGE, RIGHTS_RW);
	core_set(&fixture.core, 0x10008, 0x4fff);
	core_set(&fixture.core, 0x10010, 0x5000);
	core_set(&fixture.core, 0x10018, 0x5fff);
	core_set(&fixture.core, 0x10020, 0x6000);
	fixture_open(&fixture);
	find(&fixture, (struct search){ .kind = SEARCH_WORDS, .first = 0x5000, .span = 0x1000 });
	ASSERT_HITS(&fixture, 0x10010, 0x10018);
}

TEST(words_of_32_bits_stand_at_multiples_of_4)
{
	_cleanup_(fixture_deinit) struct fixture fixture = { 0 };

	core_init(&fixture.core);
	core_add(&fixture.core, 0x10000, PAGE, RIGHTS_RW);
	memcpy(core_at(&fixture.core, 0x10004, 4), "\xef\xbe\xad\xde", 4);
	memcpy(core_at(&fixture.core, 0x1000a, 4), "\xef\xbe\xad\xde", 4);
	memcpy(core_at(&fixture.core, 0x10ffc, 4), "\xef\xbe\xad\xde", 4);
	fixture_open(&fixture);
	find(&fixture, (struct search){ .kind = SEARCH_WORDS_32, .first = 0xdeadbeef, .span = 1 });
	ASSERT_HITS(&fixture, 0x10004, 0x10ffc);
}

TEST(hits_of_many_chunks_are_in_order)
{
	_cleanup_(fixture_deinit) struct fixture fixture = { 0 };
	const uint64_t start = 0x10000000;
	const uint64_t expected[] = {
		start + 8,
		start + TURN - 8,
		start + TURN,
		start + 2 * TURN,
		start + 3 * TURN - 8,
		start + 5 * TURN,
		start + 5 * TURN + PAGE - 8,
	};
	const size_t count = sizeof(expected) / sizeof(*expected);

	core_init(&fixture.core);
	core_add(&fixture.core, start, 5 * TURN + PAGE, RIGHTS_RW);
	for (size_t i = 0; i < count; i++)
		core_set(&fixture.core, expected[i], 0xabcdef);
	fixture_open(&fixture);
	find(&fixture, (struct search){ .kind = SEARCH_WORDS, .first = 0xabcdef, .span = 1 });
	assert_hits(&fixture, count, expected);
	assert_int_equal(fixture.progress.total, atomic_load(&fixture.progress.done));
}

TEST(bytes_are_found_anywhere)
{
	_cleanup_(fixture_deinit) struct fixture fixture = { 0 };
	const uint64_t start = 0x10000000;

	core_init(&fixture.core);
	core_add(&fixture.core, start, 2 * TURN, RIGHTS_RW);
	memcpy(core_at(&fixture.core, start + 3, 5), "ababa", 5);
	/* From one chunk into the next. */
	memcpy(core_at(&fixture.core, start + TURN - 1, 3), "aba", 3);
	memcpy(core_at(&fixture.core, start + 2 * TURN - 3, 3), "aba", 3);
	fixture_open(&fixture);
	find_bytes(&fixture, "aba", 3);
	ASSERT_HITS(&fixture, start + 3, start + 5, start + TURN - 1, start + 2 * TURN - 3);
	assert_int_equal(fixture.hits.size, 3);
}

TEST(bytes_may_begin_in_one_mapping_and_end_in_another)
{
	_cleanup_(fixture_deinit) struct fixture fixture = { 0 };

	core_init(&fixture.core);
	core_add(&fixture.core, 0x10000, PAGE, RIGHTS_RW);
	core_add(&fixture.core, 0x11000, PAGE, RIGHT_READ);
	core_add(&fixture.core, 0x13000, PAGE, RIGHT_READ);
	memcpy(core_at(&fixture.core, 0x10ffe, 2), "se", 2);
	memcpy(core_at(&fixture.core, 0x11000, 2), "am", 2);
	/* There is a gap between these. */
	memcpy(core_at(&fixture.core, 0x11ffe, 2), "se", 2);
	memcpy(core_at(&fixture.core, 0x13000, 2), "am", 2);
	fixture_open(&fixture);
	find_bytes(&fixture, "seam", 4);
	ASSERT_HITS(&fixture, 0x10ffe);
}

/* The bytes of a call, or of what refers to data, at that address. */
static void put_distance(struct fixture *fixture, uint64_t address, uint64_t target)
{
	int32_t distance = (int32_t)(target - (address + 4));

	memcpy(core_at(&fixture->core, address, 4), &distance, 4);
}

TEST(relative_references_are_distances_from_behind)
{
	_cleanup_(fixture_deinit) struct fixture fixture = { 0 };
	const uint64_t target = 0x7f0000001234, far = target - 0x7fffffff - 4;

	core_init(&fixture.core);
	core_add(&fixture.core, far & ~(PAGE - 1ull), 2 * PAGE, RIGHT_READ);
	core_add(&fixture.core, 0x7f0000001000, 2 * PAGE, RIGHT_READ);
	core_add(&fixture.core, 0x7f0080000000, 2 * PAGE, RIGHT_READ);
	/* Zeros right in front of it lead there, too. */
	memset(core_at(&fixture.core, target - 4, 4), 1, 4);
	put_distance(&fixture, far, target); /* just reaches */
	put_distance(&fixture, 0x7f0000001003, target);
	put_distance(&fixture, 0x7f0000002ff1, target);
	put_distance(&fixture, 0x7f0000002011, target + 1);
	put_distance(&fixture, 0x7f0080001230, target); /* just reaches */
	/* These are the same 32 bits, but too far away to refer to the target. */
	put_distance(&fixture, 0x7f0080001240, target);
	fixture_open(&fixture);
	find(&fixture, (struct search){ .kind = SEARCH_RELATIVE, .first = target });
	ASSERT_HITS(&fixture, far, 0x7f0000001003, 0x7f0000002ff1, 0x7f0080001230);
}

static bool skip_first_page(const void *data, uint64_t address)
{
	return address < *(const uint64_t *)data;
}

TEST(what_is_skipped_does_not_count)
{
	_cleanup_(fixture_deinit) struct fixture fixture = { 0 };
	const uint64_t limit = 0x10800;

	core_init(&fixture.core);
	core_add(&fixture.core, 0x10000, PAGE, RIGHTS_RW);
	core_set(&fixture.core, 0x10010, 7);
	core_set(&fixture.core, 0x10900, 7);
	fixture_open(&fixture);
	find(&fixture, (struct search){ .kind = SEARCH_WORDS,
					.first = 7,
					.span = 1,
					.skips = skip_first_page,
					.data = &limit });
	ASSERT_HITS(&fixture, 0x10900);
}

/* Make a hole of the last size bytes of the file, with one byte at offset. */
static void make_hole(const struct core *core, uint64_t size, uint64_t offset)
{
	uint8_t headers[4 * PAGE];
	size_t kept = core->size - size;

	assert_in_range(kept, 1, sizeof(headers));
	assert_int_equal(pread(core->fd, headers, kept, 0), kept);
	assert_int_equal(ftruncate(core->fd, 0), 0);
	assert_int_equal(ftruncate(core->fd, (off_t)core->size), 0);
	core_write_at(core, headers, kept, 0);
	core_write_at(core, "\xab", 1, offset);
}

TEST(holes_are_left_out_but_bytes_may_begin_in_them)
{
	/* The end of the first page of the file is not in the hole. */
	enum { SIZE = 3 * TURN };
	_cleanup_(fixture_deinit) struct fixture fixture = { 0 };
	const uint64_t start = 0x10000000;
	uint64_t file_start, offset;

	core_init(&fixture.core);
	core_add(&fixture.core, start, SIZE, RIGHTS_RW);
	fixture_open(&fixture);
	file_start = fixture.core.size - SIZE;
	offset = (file_start + 5 * TURN / 2) & ~(PAGE - 1ull);
	make_hole(&fixture.core, SIZE, offset);
	find(&fixture, (struct search){ .kind = SEARCH_WORDS, .span = 1 });
	assert_in_range(fixture.hits.count, 1, 7 * (TURN / 4) / 8);
	/* To read a hole of memfd_create() fills it. */
	make_hole(&fixture.core, SIZE, offset);
	find_bytes(&fixture, "\0\0\xab", 3);
	ASSERT_HITS(&fixture, start + (offset - file_start) - 2);
}

TEST(all_hits_count_though_not_all_are_kept)
{
	enum { ZEROS = MOST_HITS + TURN / 4 };
	_cleanup_(fixture_deinit) struct fixture fixture = { 0 };
	const uint64_t start = 0x10000000;

	core_init(&fixture.core);
	core_add(&fixture.core, start, 4ull * ZEROS, RIGHTS_RW);
	fixture_open(&fixture);
	find(&fixture, (struct search){ .kind = SEARCH_WORDS_32, .span = 1 });
	assert_int_equal(fixture.hits.count, ZEROS);
	assert_int_equal(fixture.hits.addresses.count, MOST_HITS);
	assert_int_equal(hits_at(&fixture.hits, MOST_HITS - 1), start + 4ull * (MOST_HITS - 1));
}

TEST(search_ends_when_interrupted)
{
	_cleanup_(fixture_deinit) struct fixture fixture = { 0 };
	const struct search search = { .kind = SEARCH_WORDS, .span = 1 };

	core_init(&fixture.core);
	core_add(&fixture.core, 0x10000, PAGE, RIGHTS_RW);
	fixture_open(&fixture);
	atomic_store(&fixture.progress.interrupted, true);
	assert_error(search_memory(fixture.image, &search, &fixture.account, &fixture.progress,
				   &fixture.hits),
		     ERROR_INTERRUPTED, "interrupted");
}
