#include "analyzer/image/image.h"

#include "tests/analyzer/image/core_builder.h"

#include <stdlib.h>
#include <sys/stat.h>

TEST(word_is_where_the_process_had_it)
{
	_cleanup_(findings_deinit) struct findings findings = { 0 };
	_cleanup_(core_deinit) struct core core;
	_cleanup_(image_close) struct image *image = NULL;
	uint64_t word;

	core_init(&core);
	core_add(&core, 0x10000, PAGE, RIGHTS_RW);
	core_set(&core, 0x10008, 42);
	core_write_file(&core);
	assert_no_error(image_open(core.path, &findings, &image));
	assert_true(image_read_u64(image, 0x10008, &word));
	assert_int_equal(word, 42);
	assert_false(image_read_u64(image, 0xfff8, &word));
	assert_false(image_read_u64(image, 0x11000, &word));
	assert_false(image_read_u64(image, 0, &word));
	assert_false(image_read_u64(image, UINT64_MAX, &word));
	assert_int_equal(image->missing, 0);
	assert_no_finding(&findings);
}

TEST(rest_of_a_segment_partly_in_the_core_is_absent)
{
	_cleanup_(findings_deinit) struct findings findings = { 0 };
	_cleanup_(core_deinit) struct core core;
	_cleanup_(image_close) struct image *image = NULL;
	const struct region *held, *rest;

	core_init(&core);
	core_add_part(&core, 0x10000, 4 * PAGE, PAGE, RIGHTS_RW);
	core_write_file(&core);
	assert_no_error(image_open(core.path, &findings, &image));
	assert_int_equal(image->region_count, 2);
	held = image_find(image, 0x10fff);
	rest = image_find(image, 0x11000);
	assert_int_equal(held->origin, REGION_CORE);
	assert_int_equal(held->end, 0x11000);
	assert_int_equal(rest->origin, REGION_ABSENT);
	assert_int_equal(rest->start, 0x11000);
	assert_int_equal(rest->end, 0x14000);
	assert_int_equal(rest->segment, held->segment);
	assert_finding(&findings, FINDING_NOTE,
		       "12,288 bytes of writable memory, first at 0x11000");
}

TEST(absent_is_not_zero)
{
	_cleanup_(findings_deinit) struct findings findings = { 0 };
	_cleanup_(core_deinit) struct core core;
	_cleanup_(image_close) struct image *image = NULL;
	uint64_t word = 42, size;
	char bytes[16];

	core_init(&core);
	core_add_part(&core, 0x10000, 2 * PAGE, PAGE, RIGHTS_RW);
	core_write_file(&core);
	assert_no_error(image_open(core.path, &findings, &image));
	assert_false(image_read_u64(image, 0x11000, &word));
	assert_int_equal(word, 42);
	/* Nor is what is only partly there. */
	assert_false(image_read(image, 0x10ff8, bytes, sizeof(bytes)));
	assert_null(image_bytes(image, 0x11000, &size));
	assert_non_null(image_bytes(image, 0x10ff0, &size));
	assert_int_equal(size, 16);
}

TEST(read_goes_on_in_the_next_region)
{
	_cleanup_(findings_deinit) struct findings findings = { 0 };
	_cleanup_(core_deinit) struct core core;
	_cleanup_(image_close) struct image *image = NULL;
	uint64_t word;
	uint8_t *low, *high;

	core_init(&core);
	/* Not in order of address. */
	high = core_add(&core, 0x11000, PAGE, RIGHT_READ);
	low = core_add(&core, 0x10000, PAGE, RIGHTS_RW);
	memset(low + PAGE - 4, 0x11, 4);
	memset(high, 0x22, 4);
	core_write_file(&core);
	assert_no_error(image_open(core.path, &findings, &image));
	assert_true(image_read_u64(image, 0x10ffc, &word));
	assert_int_equal(word, 0x2222222211111111);
	assert_int_equal(image->regions[0].start, 0x10000);
	assert_int_equal(image->regions[1].rights, RIGHT_READ);
}

/* A page shared with other memory remains after a release. */
TEST(what_was_let_go_of_can_be_read_again)
{
	_cleanup_(findings_deinit) struct findings findings = { 0 };
	_cleanup_(core_deinit) struct core core;
	_cleanup_(image_close) struct image *image = NULL;
	const struct image_options options = { .memory = PAGE };

	core_init(&core);
	core_add(&core, 0x10000, 3 * PAGE, RIGHTS_RW);
	core_add(&core, 0x20000, PAGE, RIGHTS_RW);
	for (uint64_t i = 0; i < 3; i++)
		core_set(&core, 0x10008 + i * PAGE, i + 1);
	core_set(&core, 0x20008, 4);
	core_write_file(&core);
	assert_no_error(image_open_with(core.path, &options, &findings, &image));
	for (int scattered = 0; scattered < 2; scattered++) {
		_cleanup_(image_advice_end) struct image_advice advice =
			scattered ? image_advise_random(image) : image_advise_in_order(image);

		image_release(image, 0x10010, 0x20010);
		image_release(image, 0, UINT64_MAX);
		image_release(image, 0x30000, 0x20000);
		image_fetch(image, 0x10010, 0x20010);
		image_fetch(image, 0, UINT64_MAX);
		image_advance(image, 0x10000, 0x11000);
		image_advance(image, 0x10000, UINT64_MAX);
		for (uint64_t i = 0; i < 4; i++) {
			uint64_t word = 0;

			image_read_u64(image, i < 3 ? 0x10008 + i * PAGE : 0x20008, &word);
			assert_int_equal(word, i + 1);
		}
	}
}

TEST(of_overlapping_segments_the_first_counts)
{
	_cleanup_(findings_deinit) struct findings findings = { 0 };
	_cleanup_(core_deinit) struct core core;
	_cleanup_(image_close) struct image *image = NULL;
	uint8_t byte;

	core_init(&core);
	memset(core_add(&core, 0x11000, 2 * PAGE, RIGHTS_RW), 2, 2 * PAGE);
	memset(core_add(&core, 0x10000, 2 * PAGE, RIGHTS_RW), 1, 2 * PAGE);
	memset(core_add(&core, 0x10800, 16, RIGHTS_RW), 3, 16);
	core_write_file(&core);
	assert_no_error(image_open(core.path, &findings, &image));
	assert_true(image_read(image, 0x10800, &byte, 1));
	assert_int_equal(byte, 1);
	assert_true(image_read(image, 0x11fff, &byte, 1));
	assert_int_equal(byte, 1);
	assert_true(image_read(image, 0x12000, &byte, 1));
	assert_int_equal(byte, 2);
	assert_int_equal(image->region_count, 2);
	assert_finding(&findings, FINDING_INCOMPLETE, "two segments overlap at 0x11000");
	assert_finding(&findings, FINDING_INCOMPLETE, "two segments overlap at 0x10800");
}

TEST(memory_may_reach_up_to_the_last_page)
{
	const uint64_t last = -(uint64_t)2 * PAGE;
	_cleanup_(findings_deinit) struct findings findings = { 0 };
	_cleanup_(core_deinit) struct core core;
	_cleanup_(image_close) struct image *image = NULL;
	uint64_t word;

	core_init(&core);
	core_add(&core, last, PAGE, RIGHTS_RW);
	core_set(&core, last + PAGE - 8, 7);
	core_write_file(&core);
	assert_no_error(image_open(core.path, &findings, &image));
	assert_true(image_read_u64(image, last + PAGE - 8, &word));
	assert_int_equal(word, 7);
	assert_false(image_read_u64(image, last + PAGE - 4, &word));
	assert_null(image_find(image, UINT64_MAX));
}

TEST(segment_past_the_address_space_is_left_out)
{
	_cleanup_(findings_deinit) struct findings findings = { 0 };
	_cleanup_(core_deinit) struct core core;
	_cleanup_(image_close) struct image *image = NULL;

	core_init(&core);
	core_add(&core, 0x10000, PAGE, RIGHTS_RW);
	core_add(&core, -(uint64_t)PAGE, 2 * PAGE, RIGHTS_RW);
	core_write_file(&core);
	assert_no_error(image_open(core.path, &findings, &image));
	assert_int_equal(image->region_count, 1);
	assert_null(image_find(image, -(uint64_t)PAGE));
	assert_null(image_find(image, 0));
	assert_finding(&findings, FINDING_INCOMPLETE,
		       "segment 2 at 0xfffffffffffff000 reaches past the end of the address space");
}

/* Memory that a core lacks is worth a different word for each reason. */
TEST(core_without_any_private_memory_is_incomplete)
{
	_cleanup_(findings_deinit) struct findings findings = { 0 };
	_cleanup_(core_deinit) struct core core;
	_cleanup_(image_close) struct image *image = NULL;

	core_init(&core);
	core_add(&core, 0x10000, PAGE, RIGHT_READ);
	core_add_part(&core, 0x20000, PAGE, 0, RIGHTS_RW);
	core_write_file(&core);
	assert_no_error(image_open(core.path, &findings, &image));
	assert_finding(
		&findings, FINDING_INCOMPLETE,
		"4,096 bytes of writable memory, first at 0x20000, are not in the core (see coredump_filter in core(5))");
}

TEST(file_that_is_not_there_is_named)
{
	struct findings findings = { 0 };
	struct image *image;

	assert_error(image_open("/nonexistent/core", &findings, &image), ERROR_SYSTEM,
		     "/nonexistent/core: No such file or directory");
}

TEST(directory_is_no_core)
{
	struct findings findings = { 0 };
	struct image *image;

	assert_error(image_open("/", &findings, &image), ERROR_NOT_SUPPORTED,
		     "/: is not a regular file");
}

/* To open it would wait for a writer. */
TEST(fifo_is_no_core)
{
	char directory[] = "/tmp/image_test.XXXXXX", path[64], message[128];
	struct findings findings = { 0 };
	struct image *image;

	assert_non_null(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/fifo", directory);
	snprintf(message, sizeof(message), "%s: is not a regular file", path);
	assert_int_equal(mkfifo(path, 0600), 0);
	alarm(60);
	assert_error(image_open(path, &findings, &image), ERROR_NOT_SUPPORTED, message);
	alarm(0);
	unlink(path);
	rmdir(directory);
}
