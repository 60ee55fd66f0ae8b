#include "analyzer/account/contents.h"

#include "tests/analyzer/image/core_builder.h"

/*
 * Two mappings that touch, of which the second differs in its rights, and one that is absent behind
 * its first page.
 */
enum {
	FIRST = 0x100000,
	FIRST_SIZE = 0x10000,
	SECOND = FIRST + FIRST_SIZE,
	SECOND_SIZE = 0x10000,
	PARTLY = 0x200000,
};

struct place {
	struct core core;
	struct findings findings;
	struct image *image;
	struct view view, other;
};

static void place_open(struct place *place)
{
	core_write_file(&place->core);
	assert_no_error(image_open(place->core.path, &place->findings, &place->image));
	place->view.image = place->image;
	place->other.image = place->image;
}

static void place_init(struct place *place)
{
	*place = (struct place){ 0 };
	core_init(&place->core);
	core_add(&place->core, FIRST, FIRST_SIZE, RIGHTS_RW);
	core_add(&place->core, SECOND, SECOND_SIZE, RIGHT_READ);
	core_add_part(&place->core, PARTLY, 2 * PAGE, PAGE, RIGHTS_RW);
}

static void place_deinit(struct place *place)
{
	if (place->image)
		image_close(place->image);
	findings_deinit(&place->findings);
	core_deinit(&place->core);
}
DEFINE_DEINIT(place_deinit, struct place)

static void fill(struct place *place, uint64_t address, uint64_t size)
{
	for (uint64_t i = 0; i < size; i++)
		*core_at(&place->core, address + i, 1) = (uint8_t)(1 + i % 255);
}

static struct digest digest_of(struct place *place, uint64_t address, uint64_t size)
{
	struct digest digest;

	assert_true(contents_digest(&place->view, address, size, &digest));
	return digest;
}

TEST(equal_contents_are_so_wherever_they_are)
{
	_cleanup_(place_deinit) struct place place;
	uint64_t size = 2 * PAGE + 123, across = SECOND - PAGE - 5;

	place_init(&place);
	fill(&place, FIRST + 16, size);
	fill(&place, across, size);
	place_open(&place);
	assert_true(digest_of(&place, FIRST + 16, size).hash ==
		    digest_of(&place, across, size).hash);
	assert_true(contents_equal(&place.view, FIRST + 16, &place.other, across, size));
	assert_false(contents_equal(&place.view, FIRST + 16, &place.other, across + 1, size));
	assert_false(digest_of(&place, FIRST + 16, size).hash ==
		     digest_of(&place, FIRST + 16, size + 1).hash);
}

TEST(zeros_at_the_end_are_counted)
{
	_cleanup_(place_deinit) struct place place;

	place_init(&place);
	fill(&place, FIRST + 16, 5000);
	place_open(&place);
	assert_int_equal(digest_of(&place, FIRST + 16, 5000).zeros, 0);
	assert_int_equal(digest_of(&place, FIRST + 16, 5001).zeros, 1);
	assert_int_equal(digest_of(&place, FIRST + 16, 30000).zeros, 25000);
	assert_int_equal(digest_of(&place, FIRST + 16 + 5000, 7).zeros, 7);
	assert_int_equal(digest_of(&place, SECOND - 100, 9000).zeros, 9000);
}

TEST(what_the_core_lacks_has_no_contents)
{
	_cleanup_(place_deinit) struct place place;
	struct digest digest;

	place_init(&place);
	place_open(&place);
	assert_true(contents_digest(&place.view, PARTLY, PAGE, &digest));
	assert_false(contents_digest(&place.view, PARTLY, PAGE + 1, &digest));
	assert_false(
		contents_equal(&place.view, PARTLY + PAGE - 1, &place.other, PARTLY + PAGE - 1, 2));
}

static uint64_t text_length(const char *text, uint64_t size)
{
	return contents_text((const uint8_t *)text, size);
}

TEST(a_text_has_an_end_and_only_characters)
{
	assert_int_equal(text_length("abc\t\n\0def", 9), 5);
	assert_int_equal(text_length("abc", 3), 0);
	assert_int_equal(text_length("", 1), 0);
	assert_int_equal(text_length("ab\x1b", 4), 0);
	assert_int_equal(text_length("gr\xc3\xbc\xc3\x9f", 7), 6);
	assert_int_equal(text_length("gr\xc3", 4), 0);
	assert_int_equal(text_length("gr\xbc", 4), 0);
}
