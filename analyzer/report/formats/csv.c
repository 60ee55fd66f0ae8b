/*
 * Comma-separated values as RFC 4180 has them, for spreadsheets and scripts; values between tabs,
 * for cut, awk and sort.
 *
 * A file is one table: that which is wanted, or else the main one of the command. It begins with a
 * record of the names of its columns, with _ for blanks, the first being "row", the table's name.
 * Addresses are hexadecimal with 0x, all else is decimal; what is absent is empty. Control
 * characters in the dump's text are escaped here as well, so that no record ends within a value.
 * Text that a spreadsheet would take for a formula has a ' in front. In csv, a backslash means
 * nothing, and stands as it is. In tsv, nothing is quoted: tabs and ends of lines within text are
 * written as \t and \n.
 */

#include "analyzer/report/values.h"

#include <string.h>

/* The dump's text shall not be run by who opens a report. */
static bool looks_like_formula(const char *text)
{
	return *text && strchr("=+-@", *text);
}

static void write_quoted(struct writer *writer, const char *text)
{
	bool quoted = text[strcspn(text, ",\"")] != '\0';
	size_t size = strlen(text), length;
	char buffer[ESCAPED_SIZE];

	if (quoted)
		writer_put(writer, '"');
	if (looks_like_formula(text))
		writer_put(writer, '\'');
	while (size) {
		size_t taken = escape_character(text, size, buffer, &length);

		if (buffer[0] == '"')
			writer_put(writer, '"');
		writer_bytes(writer, buffer, *text == '\\' ? 1 : length);
		text += taken;
		size -= taken;
	}
	if (quoted)
		writer_put(writer, '"');
}

static void write_unquoted(struct writer *writer, const char *text)
{
	if (looks_like_formula(text))
		writer_put(writer, '\'');
	writer_escaped(writer, text);
}

/* The differences between the two formats. */
struct separated {
	void (*write_text)(struct writer *writer, const char *text);
	char separator;
	const char *end;
};

static const struct separated commas = { write_quoted, ',', "\r\n" };
static const struct separated tabs = { write_unquoted, '\t', "\n" };

/* The heads of the table before and of this one. */
struct heads {
	struct writer last, next;
};

static void write_name(struct writer *writer, const struct separated *form, const char *name)
{
	char plain[COLUMN_NAME_SIZE];
	size_t i;

	for (i = 0; name[i] && i < sizeof(plain) - 1; i++)
		plain[i] = (char)(name[i] == ' ' ? '_' : name[i]);
	plain[i] = '\0';
	form->write_text(writer, plain);
}

/* A table that goes on, as one that a command begins for each thread, has its head already. */
static void write_head(struct report *report, const struct separated *form)
{
	struct heads *heads = report->state;
	struct writer *writer = &heads->next;
	char name[COLUMN_NAME_SIZE];

	writer->used = 0;
	writer_text(writer, "row");
	for (size_t i = 0; i < report_column_count(report); i++) {
		if (report_column(report, i, name)->reader == FOR_PEOPLE)
			continue;
		writer_put(writer, form->separator);
		write_name(writer, form, name);
	}
	writer_text(writer, form->end);
	report->writer.failed |= writer->failed;
	if (writer->used == heads->last.used &&
	    memcmp(writer->buffer, heads->last.buffer, writer->used) == 0)
		return;
	/* One with other columns does not fit the file. */
	if (heads->last.used && report->choice && report->choice->wanted) {
		report->skipping = report->choice->differs = true;
		return;
	}
	writer_bytes(&report->writer, writer->buffer, writer->used);
	*heads = (struct heads){ .last = heads->next, .next = heads->last };
}

static void close_heads(struct report *report)
{
	struct heads *heads = report->state;

	writer_deinit(&heads->last);
	writer_deinit(&heads->next);
}

static bool is_for_people(const struct report *report, size_t column)
{
	return column < report->table->column_count &&
	       report->table->columns[column].reader == FOR_PEOPLE;
}

static void write_row(struct report *report, const struct value *values,
		      const struct separated *form)
{
	struct writer *writer = &report->writer;

	form->write_text(writer, report->table->name);
	for (size_t i = 0; i < report_column_count(report); i++) {
		if (is_for_people(report, i))
			continue;
		writer_put(writer, form->separator);
		if (values[i].present)
			plain_value(writer, report_kind(report, i), &values[i], form->write_text);
	}
	writer_text(writer, form->end);
}

static void csv_begin_table(struct report *report)
{
	write_head(report, &commas);
}

static void csv_row(struct report *report, const struct value *values)
{
	write_row(report, values, &commas);
}

const struct report_format report_format_csv = {
	.name = "csv",
	.summary = "comma-separated values: the main table, or that of --table",
	.one_table = true,
	.state_size = sizeof(struct heads),
	.close = close_heads,
	.begin_table = csv_begin_table,
	.row = csv_row,
};

static void tsv_begin_table(struct report *report)
{
	write_head(report, &tabs);
}

static void tsv_row(struct report *report, const struct value *values)
{
	write_row(report, values, &tabs);
}

const struct report_format report_format_tsv = {
	.name = "tsv",
	.summary = "values between tabs: the main table, or that of --table",
	.one_table = true,
	.state_size = sizeof(struct heads),
	.close = close_heads,
	.begin_table = tsv_begin_table,
	.row = tsv_row,
};
