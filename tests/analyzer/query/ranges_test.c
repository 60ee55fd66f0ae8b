#include "analyzer/query/query.h"

#include "tests/analyzer/image/core_builder.h"

/* Memory with all rights there are, the second partly absent. */
static void build(struct core *core)
{
	core_init(core);
	core_add(core, 0x10000, PAGE, RIGHT_READ);
	core_add_part(core, 0x20000, 3 * PAGE, PAGE, RIGHTS_RW);
	core_add(core, 0x30000, 2 * PAGE, RIGHT_READ | RIGHT_EXECUTE);
	core_add_part(core, 0x40000, 5 * PAGE, 0, 0);
	core_add(core, 0x50000, PAGE, RIGHT_READ | RIGHT_WRITE | RIGHT_EXECUTE);
	core_write_file(core);
}

/* The one range of that set. */
static struct range only_range(struct analysis *analysis, const char *set)
{
	_cleanup_(set_query_deinit) struct set_query query = { 0 };
	_cleanup_(ranges_deinit) struct ranges ranges = { 0 };

	assert_no_error(query_take_word(&query, set));
	assert_no_error(query_check(&query));
	assert_no_error(query_collect(analysis, &query, &ranges));
	assert_int_equal(ranges.count, 1);
	return ranges_at(&ranges, 0);
}

static struct set_total total_of(struct analysis *analysis, const char *set)
{
	_cleanup_(set_query_deinit) struct set_query query = { 0 };
	_cleanup_(ranges_deinit) struct ranges ranges = { 0 };

	assert_no_error(query_take_word(&query, set));
	assert_no_error(query_check(&query));
	assert_no_error(query_collect(analysis, &query, &ranges));
	return ranges_total(&ranges);
}

TEST(memory_is_told_apart_by_its_rights)
{
	_cleanup_(core_deinit) struct core core;
	_cleanup_(analysis_destroy) struct analysis *analysis = NULL;
	struct progress progress = { 0 };
	struct range range;

	build(&core);
	assert_no_error(analysis_create(core.path, NULL, &progress, &analysis));
	range = only_range(analysis, "readonly");
	assert_int_equal(range.start, 0x10000);
	assert_int_equal(range.size, PAGE);
	range = only_range(analysis, "rxonly");
	assert_int_equal(range.start, 0x30000);
	assert_int_equal(range.size, 2 * PAGE);
	range = only_range(analysis, "inaccessible");
	assert_int_equal(range.start, 0x40000);
	assert_int_equal(range.size, 5 * PAGE);
	assert_int_equal(total_of(analysis, "writable").count, 2);
	assert_int_equal(total_of(analysis, "writable").bytes, 4 * PAGE);
	assert_int_equal(total_of(analysis, "maps").count, 5);
	assert_int_equal(total_of(analysis, "maps").bytes, 12 * PAGE);
}
