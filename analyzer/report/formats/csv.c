/*
 * Comma-separated values as RFC 4180 has them, for spreadsheets and scripts.
 *
 * Each table begins with a record of the names of its columns, the first being "row". A record of a
 * row begins with the name of what it is, so that the tables of one command can be told apart.
 * Addresses are hexadecimal with 0x, all else is decimal; what is absent is empty. Control
 * characters in the dump's text are escaped here as well, so that no record ends within a value.
 * Text that a spreadsheet would take for a formula has a ' in front.
 */

#include "analyzer/report/plain.h"

static void end_record(struct writer *writer)
{
	writer_bytes(writer, "\r\n", 2);
}

/* The dump's text shall not be run by who opens a report. */
static bool looks_like_formula(const char *text)
{
	return *text && strchr("=+-@", *text);
}

static void write_text(struct writer *writer, const char *text)
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
		writer_bytes(writer, buffer, length);
		text += taken;
		size -= taken;
	}
	if (quoted)
		writer_put(writer, '"');
}

static void csv_begin_table(struct report *report)
{
	struct writer *writer = report->state;

	writer_bytes(writer, "row", 3);
	for (size_t i = 0; i < report->table->column_count; i++) {
		writer_put(writer, ',');
		write_text(writer, report->table->columns[i].name);
	}
	end_record(writer);
}

static void csv_value(struct report *report, const struct value *value)
{
	const struct column *column = &report->table->columns[report->column];
	struct writer *writer = report->state;

	if (report->column == 0)
		write_text(writer, report->table->name);
	writer_put(writer, ',');
	if (value->present)
		plain_value(writer, column->kind, value, write_text);
}

static void csv_end_row(struct report *report)
{
	end_record(report->state);
}

const struct report_format report_format_csv = {
	.name = "csv",
	.summary = "comma-separated values, one table after another",
	.open = plain_open,
	.begin_table = csv_begin_table,
	.value = csv_value,
	.end_row = csv_end_row,
	.end_table = plain_end_table,
	.close = plain_close,
};
