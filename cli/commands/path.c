/*
 * The shortest way to an allocation, in a line: the same as path() in SQL.
 */
#include "analyzer/base/text.h"
#include "analyzer/query/set.h"
#include "analyzer/sql/sql.h"
#include "cli/command.h"

#include <inttypes.h>

struct path_arguments {
	uint64_t address;
};

static const int keep_words[] = { KEEP(ADDRESS, struct path_arguments, address), 0 };

static struct error *path_run(struct analysis *analysis, const void *input, struct report *report)
{
	const struct path_arguments *arguments = input;
	_cleanup_(sql_close) struct sql *sql = NULL;
	_cleanup_(free) char *text = NULL;
	allocation_id id;

	TRY(set_find_allocation(analysis, arguments->address, &id));
	text = format_text(
		"SELECT address, size, state, kind, path(address) AS path FROM allocation WHERE id = %" PRIu32,
		id);
	TRY_MEMORY(text);
	TRY(sql_open(analysis, report->no_content, &sql));
	return sql_run(sql, text, report);
}

const struct command command_path = {
	.name = "path",
	.summary = "Show the shortest path from a root to an allocation, in a line",
	.words = "ADDRESS",
	.example = "path 55d0c0ffee10",
	.description =
		"The path begins at a variable or a place on a stack and goes on by kinds; a list is one step: \"struct node.next (x7)\". To an object of Python, it is an expression: \"app.users['anna'].orders[3]\". A leaked allocation has none. 'explain' shows each reference with its address, and with '--all' the nearest root of each kind; path(ADDRESS) in 'sql' is the same for many.",
	.word = WORD_ADDRESS,
	.keep_words = keep_words,
	.arguments_size = sizeof(struct path_arguments),
	.needs = STAGE_HEAP,
	.run = path_run,
};
