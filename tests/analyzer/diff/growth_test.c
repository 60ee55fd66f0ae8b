#include "analyzer/diff/growth.h"

#include "analyzer/base/text.h"
#include "tests/assertions.h"

enum { CORES = 4 };

struct pairs {
	struct memory_account account;
	struct group_table table;
	struct growths growths;
};

static void begin(struct pairs *pairs)
{
	*pairs = (struct pairs){ 0 };
	group_table_init(&pairs->table, &pairs->account);
}

/* So many allocations of 10 bytes in each core. */
static void add(struct pairs *pairs, const char *holder, const char *kind,
		const uint64_t counts[static CORES])
{
	_cleanup_(free) char *text = format_text("%s%c%s", holder, HELD_BETWEEN, kind);
	const struct census_name name = { .text = text };
	uint32_t number;

	for (size_t i = 0; i < CORES; i++)
		assert_no_error(group_table_add(&pairs->table, &name, i,
						(struct set_total){ counts[i], counts[i] * 10 },
						&number));
}

#define ADD(pairs, holder, kind, ...) \
	add(pairs, holder, kind, (const uint64_t[CORES]){ __VA_ARGS__ })

static void find(struct pairs *pairs, size_t expected)
{
	group_table_sort(&pairs->table, CORES);
	assert_no_error(growths_find(&pairs->table, CORES, &pairs->growths));
	assert_int_equal(pairs->growths.count, expected);
}

static void end(struct pairs *pairs)
{
	growths_deinit(&pairs->growths);
	group_table_deinit(&pairs->table);
	assert_int_equal(pairs->account.used, 0);
}

static void assert_growth(const struct pairs *pairs, size_t number, const char *holder,
			  const char *kind, uint64_t count)
{
	const struct growth *growth = pairs->growths.items + number;

	assert_string_equal(growth->holder, holder);
	assert_string_equal(growth->kind, kind);
	assert_int_equal(growth->count, count);
}

TEST(pair_that_grows_at_each_step_is_found)
{
	struct pairs pairs;

	begin(&pairs);
	ADD(&pairs, "registry", "struct job", 1, 2, 4, 5);
	ADD(&pairs, "pending", "struct buffer", 50, 120, 3, 80);
	ADD(&pairs, "table", "struct row", 10, 10, 10, 10);
	find(&pairs, 1);
	assert_growth(&pairs, 0, "registry", "struct job", 4);
	assert_int_equal(pairs.growths.items[0].least, 1);
	assert_int_equal(pairs.growths.items[0].bytes, 40);
	end(&pairs);
}

TEST(cache_that_fills_and_stops_does_not_grow)
{
	struct pairs pairs;

	begin(&pairs);
	ADD(&pairs, "cache", "struct entry", 1, 2, 3, 3);
	ADD(&pairs, "late", "struct line", 7, 7, 8, 9);
	find(&pairs, 0);
	end(&pairs);
}

TEST(what_grew_most_is_first)
{
	struct pairs pairs;

	begin(&pairs);
	ADD(&pairs, "a", "little", 1, 2, 3, 4);
	ADD(&pairs, "b", "much", 0, 100, 200, 300);
	find(&pairs, 2);
	assert_growth(&pairs, 0, "b", "much", 300);
	assert_growth(&pairs, 1, "a", "little", 3);
	end(&pairs);
}

TEST(block_that_only_changes_its_kind_is_no_growth_of_its_holder)
{
	struct pairs pairs;

	begin(&pairs);
	ADD(&pairs, "table", "unrecognized", 9, 8, 7, 6);
	ADD(&pairs, "table", "struct row", 0, 1, 2, 3);
	ADD(&pairs, "rest", "struct row", 9, 7, 4, 2);
	find(&pairs, 0);
	end(&pairs);
}

TEST(holder_of_changing_kinds_grows)
{
	struct pairs pairs;

	begin(&pairs);
	ADD(&pairs, "notes", "text of 10", 1, 1, 3, 3);
	ADD(&pairs, "notes", "text of 20", 1, 2, 2, 3);
	find(&pairs, 1);
	assert_growth(&pairs, 0, "notes", "", 4);
	end(&pairs);
}

TEST(kind_with_changing_holders_grows)
{
	struct pairs pairs;

	begin(&pairs);
	ADD(&pairs, "one", "struct job", 1, 3, 2, 2);
	ADD(&pairs, "other", "struct job", 1, 1, 3, 5);
	find(&pairs, 1);
	assert_growth(&pairs, 0, "", "struct job", 5);
	end(&pairs);
}

TEST(what_moves_onto_stacks_is_no_growth)
{
	struct pairs pairs;

	begin(&pairs);
	ADD(&pairs, "a stack", "struct job", 1, 2, 3, 4);
	ADD(&pairs, "queue", "struct job", 9, 8, 7, 6);
	find(&pairs, 0);
	end(&pairs);
}

TEST(garbage_that_waits_for_its_collector_is_no_growth)
{
	struct pairs pairs;

	begin(&pairs);
	ADD(&pairs, "unreachable: garbage", "list", 1, 2, 3, 4);
	ADD(&pairs, "names", "list", 5, 5, 5, 5);
	find(&pairs, 0);
	end(&pairs);
}

TEST(leaks_grow_if_there_are_more_of_the_kind)
{
	struct pairs pairs;

	begin(&pairs);
	ADD(&pairs, "unreachable", "struct conn", 1, 2, 3, 4);
	ADD(&pairs, "pool", "struct conn", 5, 9, 1, 7);
	ADD(&pairs, "unreachable", "struct page", 1, 2, 3, 4);
	ADD(&pairs, "pool", "struct page", 9, 8, 7, 6);
	find(&pairs, 1);
	assert_growth(&pairs, 0, "unreachable", "struct conn", 3);
	end(&pairs);
}

TEST(what_hangs_on_what_grows_is_added_to_it)
{
	struct pairs pairs;

	begin(&pairs);
	ADD(&pairs, "registry", "Session", 1, 2, 3, 4);
	ADD(&pairs, "Session", "Profile", 1, 2, 3, 4);
	ADD(&pairs, "Profile", "Name", 2, 4, 6, 8);
	find(&pairs, 1);
	assert_growth(&pairs, 0, "registry", "Session", 3);
	assert_int_equal(pairs.growths.items[0].bytes, 30 + 30 + 60);
	assert_true(pairs.growths.items[0].has_more);
	end(&pairs);
}

TEST(kinds_that_hold_each_other_are_both_told)
{
	struct pairs pairs;

	begin(&pairs);
	ADD(&pairs, "A", "B", 1, 2, 3, 4);
	ADD(&pairs, "B", "A", 1, 2, 3, 5);
	find(&pairs, 2);
	end(&pairs);
}

TEST(what_was_bounded_before_is_no_growth)
{
	struct pairs pairs;

	begin(&pairs);
	ADD(&pairs, "", "integer", 9, 8, 7, 6);
	ADD(&pairs, "shared by several holders", "integer", 1, 2, 3, 4);
	ADD(&pairs, "", "type name", 1, 2, 3, 4);
	find(&pairs, 0);
	end(&pairs);
}
