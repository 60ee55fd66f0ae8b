/*
 * Comma-separated values as RFC 4180 has them, for spreadsheets and scripts; values between tabs,
 * for cut, awk and sort.
 *
 * Each table begins with a record of the names of its columns, the first being "row". A record of a
 * row begins with the name of what it is, so that the tables of one command can be told apart.
 * Addresses are hexadecimal with 0x, all else is decimal; what is absent is empty. Control
 * characters in the dump's text are escaped here as well, so that no record ends within a value.
 * In csv, text that a spreadsheet would take for a formula has a ' in front. In tsv, nothing is
 * quoted: tabs and ends of lines within text are written as \t and \n.
 */

#include "analyzer/report/values.h"

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
		writer_bytes(writer, buffer, length);
		text += taken;
		size -= taken;
	}
	if (quoted)
		writer_put(writer, '"');
}

/* How the two differ. */
struct separated {
	void (*write_text)(struct writer *writer, const char *text);
	char separator;
	const char *end;
};

static const struct separated commas = { write_quoted, ',', "\r\n" };
static const struct separated tabs = { writer_escaped, '\t', "\n" };

static void write_head(struct report *report, const struct separated *form)
{
	struct writer *writer = &report->writer;

	writer_text(writer, "row");
	for (size_t i = 0; i < report->table->column_count; i++) {
		writer_put(writer, form->separator);
		form->write_text(writer, report->table->columns[i].name);
	}
	writer_text(writer, form->end);
}

static void write_row(struct report *report, const struct value *values,
		      const struct separated *form)
{
	struct writer *writer = &report->writer;

	form->write_text(writer, report->table->name);
	for (size_t i = 0; i < report->table->column_count; i++) {
		writer_put(writer, form->separator);
		if (values[i].present)
			plain_value(writer, report->table->columns[i].kind, &values[i],
				    form->write_text);
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
	.summary = "comma-separated values, one table after another",
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
	.summary = "values between tabs, one table after another",
	.begin_table = tsv_begin_table,
	.row = tsv_row,
};
