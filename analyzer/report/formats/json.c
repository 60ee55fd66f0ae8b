/*
 * One JSON document for each command, which docs/json.md describes; and an object a line.
 *
 *	{
 *	 "heapcore": 2,
 *	 "core": "core.4711",
 *	 "command": "count used",
 *	 "tables": [
 *	  {"name": "total", "rows": [
 *	   {"what":"allocations","count":25,"bytes":1640}
 *	  ]}
 *	 ],
 *	 "findings": [],
 *	 "complete": true
 *	}
 *
 * It is written row by row, however long it is. As ndjson, each row is an object of its own, so
 *that ten million can be read one by one; findings are rows, too, in front of the end:
 *
 *	{"row":"allocation","address":"0x55d0c0ffee10","size":68,...}
 *	{"row":"end","complete":true}
 */

#include "analyzer/report/values.h"

/* Version of the document, which defines the meaning of its keys. */
#define JSON_VERSION "2"

static void write_member(struct writer *writer, const char *name, const char *text)
{
	writer_put(writer, ' ');
	json_key(writer, name);
	writer_put(writer, ' ');
	if (text)
		json_text(writer, text);
	else
		writer_text(writer, "null");
	writer_text(writer, ",\n");
}

/* In front of the first table, as the subject is not known any sooner. */
static void begin(struct report *report)
{
	const struct report_subject *subject = report->subject;
	struct writer *writer = &report->writer;

	writer_text(writer, "{\n \"heapcore\": " JSON_VERSION ",\n");
	write_member(writer, "core", subject ? subject->core : NULL);
	write_member(writer, "command", subject ? subject->command : NULL);
	writer_text(writer, " \"tables\": [");
}

/* {"address":"address","size":"bytes"} */
static void write_kinds(struct report *report)
{
	char name[COLUMN_NAME_SIZE];

	writer_text(&report->writer, ", \"kinds\": {");
	for (size_t i = 0; i < report_column_count(report); i++) {
		const struct column *column = report_column(report, i, name);

		if (column->reader == FOR_PEOPLE)
			continue;
		writer_text(&report->writer, i ? "," : "");
		json_key(&report->writer, name);
		json_text(&report->writer, value_kind_name(column->kind));
	}
	writer_put(&report->writer, '}');
}

static void json_begin_table(struct report *report)
{
	struct writer *writer = &report->writer;

	if (report->written)
		writer_put(writer, ',');
	else
		begin(report);
	writer_text(writer, "\n  {\"name\": ");
	json_text(writer, report->table->name);
	if (report->with_kinds)
		write_kinds(report);
	writer_text(writer, ", \"rows\": [");
}

/* The first column of a table is for all readers. */
static void write_column(struct report *report, size_t column, const struct value *values,
			 bool comma)
{
	char name[COLUMN_NAME_SIZE];
	const struct column *described = report_column(report, column, name);

	if (described->reader == FOR_PEOPLE)
		return;
	if (comma)
		writer_put(&report->writer, ',');
	json_key(&report->writer, name);
	json_value(&report->writer, described->kind, &values[column]);
}

static void json_row(struct report *report, const struct value *values)
{
	writer_text(&report->writer, report->row > 0 ? ",\n   {" : "\n   {");
	for (size_t i = 0; i < report_column_count(report); i++)
		write_column(report, i, values, i > 0);
	writer_put(&report->writer, '}');
}

static void json_end_table(struct report *report)
{
	writer_text(&report->writer, report->row > 0 ? "\n  ]}" : "]}");
}

static void json_close(struct report *report)
{
	const struct findings *findings = report->subject ? report->subject->findings : NULL;
	struct writer *writer = &report->writer;

	/* Some commands have nothing to report. */
	if (!report->written)
		return;
	writer_text(writer, "\n ],\n \"findings\": [");
	for (size_t i = 0; findings && i < findings->count; i++) {
		writer_text(writer, i ? ",\n  {" : "\n  {");
		json_finding(writer, &findings->list[i]);
		writer_put(writer, '}');
	}
	writer_text(writer,
		    findings && findings->count ? "\n ],\n \"complete\": " : "],\n \"complete\": ");
	writer_text(writer, json_truth(!findings || !findings_incomplete(findings)));
	writer_text(writer, "\n}\n");
}

const struct report_format report_format_json = {
	.name = "json",
	.summary = "a JSON document for each command",
	.begin_table = json_begin_table,
	.row = json_row,
	.end_table = json_end_table,
	.close = json_close,
};

static void ndjson_row(struct report *report, const struct value *values)
{
	writer_text(&report->writer, "{\"row\":");
	json_text(&report->writer, report->table->name);
	for (size_t i = 0; i < report_column_count(report); i++)
		write_column(report, i, values, true);
	writer_text(&report->writer, "}\n");
}

/* Write the tags of a line that is no row of a table. */
static void write_tags(struct report *report)
{
	for (size_t i = 0; report->tags && i < report->tags->count; i++) {
		json_key(&report->writer, report->tags->columns[i].name);
		json_value(&report->writer, report->tags->columns[i].kind,
			   &report->tags->values[i]);
		writer_put(&report->writer, ',');
	}
}

static void ndjson_close(struct report *report)
{
	const struct findings *findings = report->subject ? report->subject->findings : NULL;
	struct writer *writer = &report->writer;

	if (!report->written || !findings)
		return;
	for (size_t i = 0; i < findings->count; i++) {
		writer_text(writer, "{\"row\":\"finding\",");
		write_tags(report);
		json_finding(writer, &findings->list[i]);
		writer_text(writer, "}\n");
	}
	writer_text(writer, "{\"row\":\"end\",");
	write_tags(report);
	writer_text(writer, "\"complete\":");
	writer_text(writer, json_truth(!findings_incomplete(findings)));
	writer_text(writer, "}\n");
}

const struct report_format report_format_ndjson = {
	.name = "ndjson",
	.summary = "a JSON object a line, one for each row",
	.row = ndjson_row,
	.close = ndjson_close,
};
