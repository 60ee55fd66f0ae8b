#include "allocators/glibc/rings.h"

#include "tests/analyzer/image/core_builder.h"

static const uint64_t START = 0x7f0000000000;
enum { PLACES = 3000, NEXT = 8, PLACE_SIZE = 16 };

static uint64_t place(size_t number)
{
	return START + PLACE_SIZE * number;
}

/* Each place leads to the number-th. */
static struct image *open_links(struct core *core, const size_t *next, struct findings *findings)
{
	struct image *image;

	core_init(core);
	core_add(core, START, (PLACES * PLACE_SIZE + 4095) & ~4095U, RIGHTS_RW);
	for (size_t i = 0; i < PLACES; i++)
		core_set(core, place(i) + NEXT, place(next[i]));
	core_add_thread(core, 1, &(struct user_regs_struct){ 0 });
	core_write_file(core);
	assert_no_error(image_open(core->path, findings, &image));
	return image;
}

/* As it is defined: so many steps lead back. */
static bool closes(const size_t *next, size_t number, size_t most)
{
	size_t at = number;

	for (size_t i = 0; i < most; i++) {
		at = next[at];
		if (at == number)
			return true;
	}
	return false;
}

static void assert_all(const size_t *next, size_t most)
{
	struct memory_account account = { 0 };
	struct core core;
	struct findings findings = { 0 };
	struct image *image = open_links(&core, next, &findings);
	struct arena_rings rings;

	arena_rings_init(&rings, image, most, &account);
	for (size_t i = 0; i < PLACES; i++) {
		size_t number = i * 7 % PLACES;
		bool found;

		assert_no_error(arena_rings_find(&rings, 0, NEXT, place(number), &found));
		assert_int_equal(found, closes(next, number, most));
	}
	arena_rings_deinit(&rings);
	image_close(image);
	findings_deinit(&findings);
	core_deinit(&core);
}

static void test_ways_end_or_come_round_or_back(void **state)
{
	static size_t next[PLACES];

	/* One ring of all. */
	for (size_t i = 0; i < PLACES; i++)
		next[i] = (i + 1) % PLACES;
	assert_all(next, PLACES);
	/* A way into a ring, and one that ends in itself. */
	next[PLACES - 1] = PLACES / 2;
	next[100] = 100;
	assert_all(next, PLACES);
	/* At random. */
	for (size_t i = 0; i < PLACES; i++)
		next[i] = (i * i * 31 + i / 3 + 5) % PLACES;
	assert_all(next, PLACES);
}

static void test_ring_of_too_many_is_none(void **state)
{
	static size_t next[PLACES];

	for (size_t i = 0; i < PLACES; i++)
		next[i] = i < 10 ? (i + 1) % 10 : i + 1 < PLACES ? i + 1 : 10;
	assert_all(next, 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ways_end_or_come_round_or_back),
		cmocka_unit_test(test_ring_of_too_many_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
