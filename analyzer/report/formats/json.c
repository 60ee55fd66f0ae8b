/*
 * One JSON document for each command; docs/json.md describes it.
 *
 *	{
 *	 "heapcore": 1,
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
 * It is written row by row, however long it is.
 */

#include "analyzer/report/json.h"

/* Of the document: what is meant by its keys. */
enum { JSON_VERSION = 1 };

struct json_state {
	struct writer writer;
	size_t tables;
};

static struct error *json_open(struct report *report)
{
	struct json_state *state = calloc(1, sizeof(*state));
	struct error *error;

	if (!state)
		return &error_no_memory;
	error = writer_init(&state->writer, report->out);
	if (error) {
		free(state);
		return error;
	}
	report->state = state;
	return NULL;
}

static void write_member(struct writer *writer, const char *name, const char *text)
{
	writer_put(writer, ' ');
	json_key(writer, name);
	writer_put(writer, ' ');
	if (text)
		json_text(writer, text);
	else
		writer_bytes(writer, "null", 4);
	writer_bytes(writer, ",\n", 2);
}

/* In front of the first table, as the subject is not known any sooner. */
static void begin(struct report *report)
{
	const struct report_subject *subject = report->subject;
	struct json_state *state = report->state;
	struct writer *writer = &state->writer;

	writer_bytes(writer, "{\n ", 3);
	json_key(writer, "heapcore");
	writer_put(writer, ' ');
	writer_decimal(writer, JSON_VERSION);
	writer_bytes(writer, ",\n", 2);
	write_member(writer, "core", subject ? subject->core : NULL);
	write_member(writer, "command", subject ? subject->command : NULL);
	writer_put(writer, ' ');
	json_key(writer, "tables");
	writer_bytes(writer, " [", 2);
}

static void json_begin_table(struct report *report)
{
	struct json_state *state = report->state;
	struct writer *writer = &state->writer;

	if (state->tables++ == 0)
		begin(report);
	else
		writer_put(writer, ',');
	writer_bytes(writer, "\n  {", 4);
	json_key(writer, "name");
	writer_put(writer, ' ');
	json_text(writer, report->table->name);
	writer_bytes(writer, ", ", 2);
	json_key(writer, "rows");
	writer_bytes(writer, " [", 2);
}

static void json_row_value(struct report *report, const struct value *value)
{
	const struct column *column = &report->table->columns[report->column];
	struct json_state *state = report->state;
	struct writer *writer = &state->writer;

	if (report->column > 0)
		writer_put(writer, ',');
	else if (report->row > 0)
		writer_bytes(writer, ",\n   {", 6);
	else
		writer_bytes(writer, "\n   {", 5);
	json_key(writer, column->name);
	json_value(writer, column->kind, value);
}

static void json_end_row(struct report *report)
{
	struct json_state *state = report->state;

	writer_put(&state->writer, '}');
}

static void json_end_table(struct report *report)
{
	struct json_state *state = report->state;

	if (report->row > 0)
		writer_bytes(&state->writer, "\n  ", 3);
	writer_bytes(&state->writer, "]}", 2);
	writer_flush(&state->writer);
}

static void write_findings(struct writer *writer, const struct findings *findings)
{
	writer_put(writer, ' ');
	json_key(writer, "findings");
	writer_bytes(writer, " [", 2);
	for (size_t i = 0; findings && i < findings->count; i++) {
		writer_bytes(writer, i ? ",\n  {" : "\n  {", i ? 5 : 4);
		json_finding(writer, &findings->list[i]);
		writer_put(writer, '}');
	}
	if (findings && findings->count)
		writer_bytes(writer, "\n ", 2);
	writer_bytes(writer, "],\n ", 4);
	json_key(writer, "complete");
	writer_put(writer, ' ');
	json_truth(writer, !findings || !findings_incomplete(findings));
	writer_bytes(writer, "\n}\n", 3);
}

static void json_close(struct report *report)
{
	const struct report_subject *subject = report->subject;
	struct json_state *state = report->state;
	struct writer *writer = &state->writer;

	/* Some commands have nothing to report. */
	if (state->tables > 0) {
		writer_bytes(writer, "\n ],\n", 5);
		write_findings(writer, subject ? subject->findings : NULL);
	}
	writer_deinit(writer);
	free(state);
}

const struct report_format report_format_json = {
	.name = "json",
	.summary = "a JSON document for each command",
	.open = json_open,
	.begin_table = json_begin_table,
	.value = json_row_value,
	.end_row = json_end_row,
	.end_table = json_end_table,
	.close = json_close,
};
