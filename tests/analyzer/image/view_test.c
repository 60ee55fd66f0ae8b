#include "analyzer/image/view.h"

#include "tests/analyzer/image/core_builder.h"

/* Two mappings that touch, and one that is absent behind its first page. */
enum {
	FIRST = 0x100000,
	SECOND = FIRST + PAGE,
	PARTLY = 0x200000,
};

struct place {
	struct core core;
	struct findings findings;
	struct image *image;
	struct view view;
};

static void place_open(struct place *place)
{
	*place = (struct place){ 0 };
	core_init(&place->core);
	core_add(&place->core, FIRST, PAGE, RIGHTS_RW);
	core_add(&place->core, SECOND, PAGE, RIGHT_READ);
	core_add_part(&place->core, PARTLY, 2 * PAGE, PAGE, RIGHTS_RW);
	for (uint64_t i = 0; i < 2 * PAGE; i++)
		*core_at(&place->core, FIRST + i, 1) = (uint8_t)(i % 251);
	core_write_file(&place->core);
	assert_no_error(image_open(place->core.path, &place->findings, &place->image));
	place->view.image = place->image;
}

static void place_close(struct place *place)
{
	image_close(place->image);
	findings_deinit(&place->findings);
	core_deinit(&place->core);
}
DEFINE_DEINIT(place_close, struct place)

TEST(what_lies_across_two_regions_is_read)
{
	_cleanup_(place_close) struct place place;
	uint8_t bytes[32];

	place_open(&place);
	assert_true(view_read(&place.view, SECOND - 16, bytes, sizeof(bytes)));
	for (uint64_t i = 0; i < sizeof(bytes); i++)
		assert_int_equal(bytes[i], (PAGE - 16 + i) % 251);
}

TEST(bytes_in_a_row_end_with_their_region)
{
	_cleanup_(place_close) struct place place;
	uint64_t size;

	place_open(&place);
	assert_non_null(view_bytes(&place.view, FIRST + 16, &size));
	assert_int_equal(size, PAGE - 16);
	assert_int_equal(*view_bytes(&place.view, SECOND, &size), PAGE % 251);
	assert_int_equal(size, PAGE);
}

TEST(what_is_absent_is_not_read)
{
	_cleanup_(place_close) struct place place;
	uint64_t word = 1, size;

	place_open(&place);
	assert_true(view_word(&place.view, PARTLY + PAGE - 8, &word));
	assert_int_equal(word, 0);
	assert_false(view_word(&place.view, PARTLY + PAGE - 4, &word));
	assert_false(view_word(&place.view, PARTLY + PAGE, &word));
	assert_false(view_word(&place.view, FIRST - 8, &word));
	assert_null(view_bytes(&place.view, PARTLY + PAGE, &size));
	/* It is no reason to forget where it read last. */
	assert_true(view_word(&place.view, PARTLY, &word));
}
