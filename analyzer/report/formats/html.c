/*
 * One self-contained page: the rows of all tables as data, and the style and script that show them
 * (analyzer/report/page). Nothing is fetched when it is opened.
 *
 *	{"core": ..., "tables": [
 *	  {"name": "set", "columns": [["set", "text"], ["bytes", "bytes"]], "rows": [["used",
 *72]]}], "findings": [[true, "the stack of thread ..."]]}
 *
 * The data stand in a script element, which "</script" or "<!--" would end: so a text has \u003c
 * for each <. The script puts texts into the page as text, never as markup.
 */
#include "analyzer/report/page/page.h"
#include "analyzer/report/values.h"

struct html_state {
	struct writer text; /* of a value, before it is safe */
};

/* Write the text that is kept in the state. */
static void write_safe(struct report *report)
{
	struct html_state *state = report->state;

	for (size_t i = 0; i < state->text.used; i++)
		if (state->text.buffer[i] == '<')
			writer_text(&report->writer, "\\u003c");
		else
			writer_put(&report->writer, state->text.buffer[i]);
	state->text.used = 0;
}

static void write_text(struct report *report, const char *text)
{
	struct html_state *state = report->state;

	if (text)
		json_text(&state->text, text);
	else
		writer_text(&state->text, "null");
	write_safe(report);
}

static void begin(struct report *report)
{
	struct writer *writer = &report->writer;

	writer_text(writer, page_license);
	writer_text(writer, page_head);
	writer_text(writer, "<style>\n");
	writer_text(writer, page_style);
	writer_text(writer, "</style>\n");
	writer_text(writer, page_body);
	writer_text(writer, "<script type=\"application/json\" id=\"data\">\n{\"core\": ");
	write_text(report, report->subject ? report->subject->core : NULL);
	writer_text(writer, ",\n\"tables\": [");
}

/* Write what stands between columns. False: this one is not for people. */
static bool begin_column(struct report *report, size_t number, bool *is_first)
{
	if (report->table->columns[number].reader == FOR_PROGRAMS)
		return false;
	if (!*is_first)
		writer_put(&report->writer, ',');
	*is_first = false;
	return true;
}

static void html_begin_table(struct report *report)
{
	const struct table *table = report->table;
	struct writer *writer = &report->writer;
	bool is_first = true;

	if (report->written)
		writer_put(writer, ',');
	else
		begin(report);
	writer_text(writer, "\n{\"name\": ");
	write_text(report, table->name);
	writer_text(writer, ", \"columns\": [");
	for (size_t i = 0; i < table->column_count; i++) {
		if (!begin_column(report, i, &is_first))
			continue;
		writer_put(writer, '[');
		write_text(report, table->columns[i].name);
		writer_put(writer, ',');
		write_text(report, value_kind_name(table->columns[i].kind));
		writer_put(writer, ']');
	}
	writer_text(writer, "], \"rows\": [");
}

/* Text that is longer than the report has room for is cut between characters. */
static void write_value(struct report *report, enum value_kind kind, const struct value *value)
{
	struct html_state *state = report->state;
	uint64_t most = report->most_text;
	size_t size = most && kind == VALUE_TEXT && value->present ? strlen(value->text) : 0;

	if (size <= most) {
		json_value(&state->text, kind, value);
		return;
	}
	while (most > 0 && (value->text[most] & 0xc0) == 0x80)
		most--;
	json_bytes(&state->text, value->text, most);
	state->text.used--; /* the quote */
	writer_text(&state->text, " ...\"");
}

static void html_row(struct report *report, const struct value *values)
{
	bool is_first = true;

	writer_text(&report->writer, report->row ? ",\n[" : "\n[");
	for (size_t i = 0; i < report->table->column_count; i++) {
		if (!begin_column(report, i, &is_first))
			continue;
		write_value(report, report->table->columns[i].kind, &values[i]);
		write_safe(report);
	}
	writer_put(&report->writer, ']');
}

static void html_end_table(struct report *report)
{
	writer_text(&report->writer, "]}");
}

static void write_findings(struct report *report)
{
	const struct findings *findings = report->subject ? report->subject->findings : NULL;

	for (size_t i = 0; findings && i < findings->count; i++) {
		writer_text(&report->writer, i ? ",\n[" : "\n[");
		writer_text(&report->writer,
			    json_truth(findings->list[i].weight == FINDING_INCOMPLETE));
		writer_put(&report->writer, ',');
		write_text(report, findings->list[i].message);
		writer_put(&report->writer, ']');
	}
}

static void html_close(struct report *report)
{
	struct html_state *state = report->state;
	struct writer *writer = &report->writer;

	if (report->written) {
		writer_text(writer, "],\n\"findings\": [");
		write_findings(report);
		writer_text(writer, "]}\n</script>\n<script>\n");
		writer_text(writer, page_layout);
		writer_text(writer, "</script>\n<script>\n");
		writer_text(writer, page_parts);
		writer_text(writer, page_script);
		writer_text(writer, "</script>\n</body>\n</html>\n");
		writer_flush(writer);
	}
	writer->failed |= state->text.failed;
	writer_deinit(&state->text);
}

const struct report_format report_format_html = {
	.name = "html",
	.summary = "one HTML page, for 'report' only",
	.command = "report",
	.state_size = sizeof(struct html_state),
	.begin_table = html_begin_table,
	.row = html_row,
	.end_table = html_end_table,
	.close = html_close,
};
