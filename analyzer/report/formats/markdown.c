/*
 * Markdown tables, for issues and comments on changes.
 *
 * Names from the dump stand in backquotes only where they would be taken for markup otherwise; a
 * bar would end the cell, so it is escaped.
 */

#include "analyzer/report/values.h"

static bool stands_right(enum value_kind kind)
{
	return kind == VALUE_COUNT || kind == VALUE_BYTES || kind == VALUE_NUMBER ||
	       kind == VALUE_CHANGE || kind == VALUE_SECONDS || kind == VALUE_SHARE;
}

/* In front of the first row: a table without any says nothing. */
static void write_head(struct writer *writer, const struct table *table)
{
	for (size_t i = 0; i < table->column_count; i++) {
		if (table->columns[i].reader == FOR_PROGRAMS)
			continue;
		writer_text(writer, "| ");
		writer_escaped(writer, column_heading(&table->columns[i]));
		writer_put(writer, ' ');
	}
	writer_text(writer, "|\n");
	for (size_t i = 0; i < table->column_count; i++)
		if (table->columns[i].reader != FOR_PROGRAMS)
			writer_text(writer, stands_right(table->columns[i].kind) ? "|--:" : "|---");
	writer_text(writer, "|\n");
}

/* Escape characters that Markdown or HTML would interpret. */
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

static void markdown_row(struct report *report, const struct value *values)
{
	struct writer *writer = &report->writer;

	if (report->row == 0)
		write_head(writer, report->table);
	for (size_t i = 0; i < report->table->column_count; i++) {
		enum value_kind kind = report->table->columns[i].kind;

		if (report->table->columns[i].reader == FOR_PROGRAMS)
			continue;
		writer_text(writer, "| ");
		if (values[i].present && (kind == VALUE_COUNT || kind == VALUE_BYTES))
			writer_grouped(writer, values[i].number);
		else if (values[i].present)
			plain_value(writer, kind, &values[i], write_text);
		writer_put(writer, ' ');
	}
	writer_text(writer, "|\n");
}

/* An empty line ends a table. */
static void markdown_end_table(struct report *report)
{
	if (report->row > 0)
		writer_put(&report->writer, '\n');
}

const struct report_format report_format_markdown = {
	.name = "markdown",
	.summary = "Markdown tables, for a comment on a change",
	.row = markdown_row,
	.end_table = markdown_end_table,
};
