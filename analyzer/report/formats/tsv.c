/*
 * Values between tabs, for cut, awk and sort.
 *
 * As csv, but nothing is quoted: tabs and ends of lines within text are written as \t and \n, so
 * that each line is one row.
 */

#include "analyzer/report/plain.h"

static void tsv_begin_table(struct report *report)
{
	struct writer *writer = report->state;

	writer_bytes(writer, "row", 3);
	for (size_t i = 0; i < report->table->column_count; i++) {
		writer_put(writer, '\t');
		writer_escaped(writer, report->table->columns[i].name);
	}
	writer_put(writer, '\n');
}

static void tsv_value(struct report *report, const struct value *value)
{
	const struct column *column = &report->table->columns[report->column];
	struct writer *writer = report->state;

	if (report->column == 0)
		writer_escaped(writer, report->table->name);
	writer_put(writer, '\t');
	if (value->present)
		plain_value(writer, column->kind, value, writer_escaped);
}

static void tsv_end_row(struct report *report)
{
	writer_put(report->state, '\n');
}

const struct report_format report_format_tsv = {
	.name = "tsv",
	.summary = "values between tabs, one table after another",
	.open = plain_open,
	.begin_table = tsv_begin_table,
	.value = tsv_value,
	.end_row = tsv_end_row,
	.end_table = plain_end_table,
	.close = plain_close,
};
