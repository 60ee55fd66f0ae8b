/*
 * A JSON object a line: one for each row, as it comes, and one in the end.
 *
 *	{"row":"allocation","address":"0x55d0c0ffee10","size":68,...}
 *	{"row":"end","complete":true}
 *
 * So ten million rows can be read one by one. Findings are rows, too, in front of the end.
 */

#include "analyzer/report/json.h"
#include "analyzer/report/plain.h"

static void ndjson_begin_table(struct report *report)
{
}

static void ndjson_value(struct report *report, const struct value *value)
{
	const struct column *column = &report->table->columns[report->column];
	struct writer *writer = report->state;

	if (report->column == 0) {
		writer_bytes(writer, "{\"row\":", 7);
		json_text(writer, report->table->name);
	}
	writer_put(writer, ',');
	json_key(writer, column->name);
	json_value(writer, column->kind, value);
}

static void ndjson_end_row(struct report *report)
{
	writer_bytes(report->state, "}\n", 2);
}

static void write_findings(struct writer *writer, const struct findings *findings)
{
	for (size_t i = 0; i < findings->count; i++) {
		writer_bytes(writer, "{\"row\":\"finding\",", 17);
		json_finding(writer, &findings->list[i]);
		writer_bytes(writer, "}\n", 2);
	}
}

static void ndjson_close(struct report *report)
{
	const struct report_subject *subject = report->subject;
	struct writer *writer = report->state;

	if (report->written && subject && subject->findings) {
		bool complete = !findings_incomplete(subject->findings);

		write_findings(writer, subject->findings);
		writer_bytes(writer, "{\"row\":\"end\",", 13);
		json_key(writer, "complete");
		json_truth(writer, complete);
		writer_bytes(writer, "}\n", 2);
	}
	plain_close(report);
}

const struct report_format report_format_ndjson = {
	.name = "ndjson",
	.summary = "a JSON object a line, one for each row",
	.open = plain_open,
	.begin_table = ndjson_begin_table,
	.value = ndjson_value,
	.end_row = ndjson_end_row,
	.end_table = plain_end_table,
	.close = ndjson_close,
};
