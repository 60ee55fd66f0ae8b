#include "analyzer/sql/sql.h"

#include "tests/analyzer/drawn_process.h"
#include "tests/analyzer/report/reported.h"

/* The rows of an answer, as CSV without its first column. */
static void assert_rows(struct analysis *analysis, const char *question, const char *rows)
{
	struct reported reported;
	struct sql *sql;

	assert_no_error(sql_of(analysis, false, &sql));
	reported_open(&reported, "csv", false);
	assert_no_error(sql_run_as(sql, question, "r", &reported.report));
	reported_close(&reported, rows);
}

static void assert_wrong(struct analysis *analysis, const char *question, const char *message)
{
	struct report report = { 0 };
	struct error *error;
	struct sql *sql;

	assert_no_error(sql_of(analysis, false, &sql));
	error = sql_run(sql, question, &report);
	assert_non_null(error);
	assert_int_equal(error_code(error), ERROR_USAGE);
	assert_string_equal(error_message(error), message);
	error_destroy(error);
}

#define DRAWN(drawn, analysis, text)                        \
	_cleanup_(drawn_deinit) struct drawn drawn = { 0 }; \
	struct analysis *analysis;                          \
	drawn_init(&(drawn), text);                         \
	(analysis) = drawn_open(&(drawn), STAGE_HEAP)

TEST(allocations_have_states_sizes_and_what_they_retain)
{
	DRAWN(drawn, analysis, "root>a a>bc c>d e>f G");

	assert_rows(analysis,
		    "SELECT id, size, state, retained, is_leak_root FROM allocation WHERE id > 0",
		    "row,id,size,state,retained,is_leak_root\r\n"
		    "r,1,104,anchored,416,0\r\n"
		    "r,2,104,anchored,104,0\r\n"
		    "r,3,104,anchored,208,0\r\n"
		    "r,4,104,anchored,104,0\r\n"
		    "r,5,104,leaked,208,1\r\n"
		    "r,6,104,leaked,104,0\r\n");
	assert_rows(analysis, "SELECT id, size, state FROM free LIMIT 1",
		    "row,id,size,state\r\nr,7,104,thread cached\r\n");
}

TEST(conditions_narrow_what_is_visited)
{
	DRAWN(drawn, analysis, "root>abc");
	const char *none = "row,count(*)\r\nr,0\r\n";

	assert_rows(analysis, "SELECT id FROM allocation WHERE address = 0x5555000002a0 + 0x70",
		    "row,id\r\nr,2\r\n");
	assert_rows(analysis, "SELECT id FROM allocation WHERE id BETWEEN 2 AND 3",
		    "row,id\r\nr,2\r\nr,3\r\n");
	assert_rows(analysis, "SELECT count(*) FROM allocation WHERE id < 0", none);
	assert_rows(analysis, "SELECT count(*) FROM allocation WHERE size > 104 AND size < 600",
		    none);
	assert_rows(analysis, "SELECT count(*) FROM allocation WHERE kind = 'no such kind'", none);
	assert_rows(analysis, "SELECT count(*) FROM allocation WHERE address = 'abc'", none);
}

TEST(references_are_those_drawn)
{
	DRAWN(drawn, analysis, "root>a a>b-c b>c");

	assert_rows(analysis,
		    "SELECT source, offset, target FROM reference WHERE source > 0 ORDER BY 1, 2",
		    "row,source,offset,target\r\n"
		    "r,1,0,2\r\nr,1,16,3\r\nr,2,0,3\r\n");
	assert_rows(analysis, "SELECT source FROM reference WHERE target = 3 ORDER BY 1",
		    "row,source\r\nr,1\r\nr,2\r\n");
	assert_rows(analysis, "SELECT id, parent, retained_count FROM dominator WHERE id > 0",
		    "row,id,parent,retained_count\r\n"
		    "r,1,,3\r\nr,2,1,1\r\nr,3,1,1\r\n");
}

TEST(leak_roots_own_what_they_alone_lost)
{
	DRAWN(drawn, analysis, "a>b>c d>e>d");

	assert_rows(analysis, "SELECT id, members, allocations, bytes FROM leak_root ORDER BY id",
		    "row,id,members,allocations,bytes\r\n"
		    "r,1,1,3,312\r\nr,4,2,2,208\r\n");
}

TEST(nothing_is_written_and_no_file_is_opened)
{
	DRAWN(drawn, analysis, "root>a");

	assert_wrong(analysis, "SELECT * FROM nowhere", "no such table: nowhere");
	assert_wrong(analysis, "SELECT colour FROM allocation", "no such column: colour");
	assert_wrong(analysis, "ATTACH '/tmp/heapcore-sql-test' AS x", "not authorized");
	assert_wrong(analysis, "DELETE FROM allocation", "table allocation may not be modified");
	assert_wrong(analysis, "CREATE TABLE mine(x)", "not authorized");
}
