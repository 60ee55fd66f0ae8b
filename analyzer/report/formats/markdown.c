/*
 * Markdown tables, for issues and comments on changes.
 *
 * Names from the dump stand in backquotes only where they would be taken for markup otherwise; a
 * bar would end the cell, so it is escaped.
 */

#include "analyzer/report/plain.h"

static bool stands_right(enum value_kind kind)
{
	return kind == VALUE_COUNT || kind == VALUE_BYTES || kind == VALUE_NUMBER ||
	       kind == VALUE_CHANGE || kind == VALUE_SECONDS || kind == VALUE_SHARE;
}

static void markdown_begin_table(struct report *report)
{
}

/* In front of the first row: a table without any says nothing. */
static void write_head(struct writer *writer, const struct table *table)
{
	for (size_t i = 0; i < table->column_count; i++) {
		writer_bytes(writer, "| ", 2);
		writer_escaped(writer, table->columns[i].name);
		writer_put(writer, ' ');
	}
	writer_bytes(writer, "|\n", 2);
	for (size_t i = 0; i < table->column_count; i++)
		writer_bytes(writer, stands_right(table->columns[i].kind) ? "|--:" : "|---", 4);
	writer_bytes(writer, "|\n", 2);
}

/* What Markdown or HTML would take for more than a character. */
static void write_text(struct writer *writer, const char *text)
{
	static const char markup[] = "|*_`<>[]&~#";
	size_t size = strlen(text), length;
	char buffer[ESCAPED_SIZE];

	while (size) {
		size_t taken = escape_character(text, size, buffer, &length);

		if (length == 1 && strchr(markup, buffer[0]))
			writer_put(writer, '\\');
		/* The backslash of an escape is one itself. */
		if (length > 1 && buffer[0] == '\\')
			writer_put(writer, '\\');
		writer_bytes(writer, buffer, length);
		text += taken;
		size -= taken;
	}
}

static void markdown_value(struct report *report, const struct value *value)
{
	enum value_kind kind = report->table->columns[report->column].kind;
	struct writer *writer = report->state;

	if (report->row == 0 && report->column == 0)
		write_head(writer, report->table);
	writer_bytes(writer, "| ", 2);
	if (!value->present) {
		/* An empty cell. */
	} else if (kind == VALUE_COUNT || kind == VALUE_BYTES) {
		writer_grouped(writer, value->number);
	} else {
		plain_value(writer, kind, value, write_text);
	}
	writer_put(writer, ' ');
}

static void markdown_end_row(struct report *report)
{
	writer_bytes(report->state, "|\n", 2);
}

/* An empty line ends a table. */
static void markdown_end_table(struct report *report)
{
	if (report->row > 0)
		writer_put(report->state, '\n');
	plain_end_table(report);
}

const struct report_format report_format_markdown = {
	.name = "markdown",
	.summary = "Markdown tables, for a comment on a change",
	.open = plain_open,
	.begin_table = markdown_begin_table,
	.value = markdown_value,
	.end_row = markdown_end_row,
	.end_table = markdown_end_table,
	.close = plain_close,
};
