/*
 * Questions in SQL: `sql 'select ...'` answers one; `sql` alone makes each line one, up to `.quit`.
 */
#include "analyzer/sql/sql.h"
#include "analyzer/base/text.h"
#include "cli/command.h"

#include <string.h>

struct sql_arguments {
	char *text; /* the words with blanks between; owned */
};

static struct error *sql_parse(int key, const char *value, void *output)
{
	struct sql_arguments *arguments = output;
	char *text;

	if (key != 0)
		return NULL;
	text = arguments->text ? format_text("%s %s", arguments->text, value) : strdup(value);
	TRY_MEMORY(text);
	free(arguments->text);
	arguments->text = text;
	return NULL;
}

static void sql_release(void *output)
{
	struct sql_arguments *arguments = output;

	free(arguments->text);
}

/* The text behind word if the line begins with it, else NULL. */
static const char *behind(const char *text, const char *word)
{
	size_t length = strlen(word);

	if (strncmp(text, word, length) != 0 || (text[length] && text[length] != ' '))
		return NULL;
	text += length;
	return text + strspn(text, " ");
}

static void write_help(struct report *report)
{
	static const struct table table =
		TABLE("sql help", NULL, { "type", VALUE_TEXT }, { "to", VALUE_TEXT });

	report_begin_table(report, &table);
	report_row(report, "SELECT ...;", "ask a question, on one line or several; Ctrl-C ends it");
	report_row(report, ".tables", "list the tables and views");
	report_row(report, ".schema [TABLE]", "list the columns of a table, or of all");
	report_row(report, "text(ADDRESS)", "have the text that is there");
	report_row(report, "words(ADDRESS, N)", "have N words of memory, in hexadecimal");
	report_row(report, "name(ADDRESS)", "have the variable, or the place on a stack");
	report_row(report, "path(ADDRESS)", "have the shortest way from a root");
	report_row(report, "instance_of(id, class)",
		   "have 1 if the allocation is of the class, or of one derived from it");
	report_row(report, "visited()", "have the number of rows that tables looked at");
	report_row(report, ".quit", "go back to the other commands");
	report_end_table(report);
}

static struct error *sql_command_run(struct analysis *analysis, const void *input,
				     struct report *report)
{
	const struct sql_arguments *arguments = input;
	const char *text = arguments->text ? arguments->text : ".tables";
	const char *name = behind(text, ".schema");
	_cleanup_(free) char *table = name ? strndup(name, strcspn(name, " ;")) : NULL;
	struct sql *sql;

	if (name)
		return sql_schema(table && *table ? table : NULL, report);
	if (behind(text, ".tables")) {
		sql_tables(report);
		return NULL;
	}
	if (behind(text, ".help")) {
		write_help(report);
		return NULL;
	}
	if (*text == '.')
		return error_create(ERROR_USAGE,
				    "there are '.tables', '.schema [TABLE]', '.help' and '.quit'");
	TRY(sql_of(analysis, report->no_content, &sql));
	return sql_run(sql, text, report);
}

const struct command command_sql = {
	.name = "sql",
	.summary = "Answer a question in SQL",
	.words = "[QUERY]",
	.example = "sql SELECT kind, count(*), sum(size) FROM allocation GROUP BY kind\n"
		   "sql SELECT address, size FROM allocation WHERE kind = 'app::Session'; | head\n"
		   "sql .tables\n"
		   "sql .schema allocation\n"
		   "sql .help",
	.description =
		"Tables are of SQLite; docs/sql.md has examples. An allocation has an id, by which tables are joined. Addresses are integers, as 0x55d0c0ffee10, and shown in hexadecimal. text(ADDRESS), words(ADDRESS, N), name(ADDRESS) and path(ADDRESS) show what is there and what holds it. At the prompt, behind -c and in scripts, a statement needs no quotes around it and keeps its own: it reaches to the end of the line, or to a semicolon with '> FILE', '| COMMAND' or nothing behind it. Without a query, each line is one up to '.quit'; a query ends with a semicolon. The tables are read-only.",
	.word = WORD_NONE,
	.parse = sql_parse,
	.release = sql_release,
	.arguments_size = sizeof(struct sql_arguments),
	.needs = STAGE_IMAGE,
	.run = sql_command_run,
};
