/*
 * JUnit's XML, as build servers read it: one test suite, with a test case for each check of the
 * gate and for each kind of leak.
 *
 * A check that failed, a leak that is new or has grown, is a failure; that the dump could not be
 * analysed well enough to tell is an error of the suite. Of other commands than `gate` there is
 * nothing to tell here.
 */

#include "analyzer/report/kept_row.h"
#include "analyzer/report/writer.h"

#include <inttypes.h>
#include <time.h>

struct junit_state {
	struct writer cases; /* of which the suite is made in the end */
	struct kept_row row;
	size_t tests, failures, skipped;
};

static struct error *junit_open(struct report *report)
{
	struct junit_state *state = calloc(1, sizeof(*state));
	struct error *error;

	if (!state)
		return &error_no_memory;
	error = writer_init(&state->cases, NULL);
	if (error) {
		free(state);
		return error;
	}
	report->state = state;
	return NULL;
}

/* For an attribute or an element alike. */
static void write_text(struct writer *writer, const char *text)
{
	size_t size = strlen(text), length;
	char buffer[ESCAPED_SIZE];

	while (size) {
		size_t taken = escape_character(text, size, buffer, &length);
		const char *entity = buffer[0] == '&'	? "&amp;"
				     : buffer[0] == '<' ? "&lt;"
				     : buffer[0] == '>' ? "&gt;"
				     : buffer[0] == '"' ? "&quot;"
							: NULL;

		if (entity)
			writer_bytes(writer, entity, strlen(entity));
		else
			writer_bytes(writer, buffer, length);
		text += taken;
		size -= taken;
	}
}

static void put(struct writer *writer, const char *text)
{
	writer_bytes(writer, text, strlen(text));
}

static void write_attribute(struct writer *writer, const char *name, const char *text)
{
	writer_put(writer, ' ');
	put(writer, name);
	put(writer, "=\"");
	write_text(writer, text);
	writer_put(writer, '"');
}

static void begin_case(struct junit_state *state, const char *class_name, const char *name)
{
	put(&state->cases, "  <testcase");
	write_attribute(&state->cases, "classname", class_name);
	write_attribute(&state->cases, "name", name);
	put(&state->cases, " time=\"0\"");
	state->tests++;
}

static void pass_case(struct junit_state *state)
{
	put(&state->cases, "/>\n");
}

/* With an element "failure" or "error". */
static void fail_case(struct junit_state *state, const char *element, const char *type,
		      const char *text)
{
	struct writer *writer = &state->cases;

	put(writer, ">\n    <");
	put(writer, element);
	write_attribute(writer, "message", text);
	write_attribute(writer, "type", type);
	put(writer, "/>\n  </testcase>\n");
}

static void skip_case(struct junit_state *state, const char *text)
{
	struct writer *writer = &state->cases;

	put(writer, ">\n    <skipped>");
	write_text(writer, text);
	put(writer, "</skipped>\n  </testcase>\n");
	state->skipped++;
}

static void write_check(struct junit_state *state)
{
	const struct kept_row *row = &state->row;
	bool failed = strcmp(kept_row_text(row, "outcome"), "failed") == 0;
	char text[128];

	snprintf(text, sizeof(text), "%" PRIu64 " of at most %" PRIu64,
		 kept_row_number(row, "value"), kept_row_number(row, "limit"));
	begin_case(state, "heapcore.gate", kept_row_text(row, "rule"));
	if (failed)
		fail_case(state, "failure", "gate", text);
	else
		pass_case(state);
	state->failures += failed;
}

static void write_leak(struct junit_state *state)
{
	const struct kept_row *row = &state->row;
	const char *known = kept_row_text(row, "state");
	bool failed = strcmp(known, "new") == 0 || strcmp(known, "more") == 0;
	bool skipped = strcmp(known, "suppressed") == 0;
	const char *kind = kept_row_text(row, "kind");
	_cleanup_(free) char *name = NULL, *text = NULL;

	if (asprintf(&name, "%s %s", kept_row_text(row, "fingerprint"), kind) < 0)
		name = NULL;
	if (asprintf(&text,
		     "%s leak, %" PRIu64 " x %s: %" PRIu64 " allocations, %" PRIu64
		     " bytes, the first at 0x%" PRIx64,
		     kept_row_text(row, "verdict"), kept_row_number(row, "roots"), kind,
		     kept_row_number(row, "allocations"), kept_row_number(row, "bytes"),
		     kept_row_number(row, "address")) < 0)
		text = NULL;
	state->row.failed |= !name || !text;
	begin_case(state, "heapcore.leaks", name ? name : "");
	if (failed)
		fail_case(state, "failure", "leak", text ? text : "");
	else if (skipped)
		skip_case(state, text ? text : "");
	else
		pass_case(state);
	state->failures += failed;
}

static void junit_begin_table(struct report *report)
{
}

static void junit_value(struct report *report, const struct value *value)
{
	struct junit_state *state = report->state;

	kept_row_take(&state->row, report, value);
}

static void junit_end_row(struct report *report)
{
	struct junit_state *state = report->state;

	if (strcmp(report->table->name, "check") == 0)
		write_check(state);
	else if (strcmp(report->table->name, "leak") == 0)
		write_leak(state);
	kept_row_clear(&state->row);
}

static void junit_end_table(struct report *report)
{
	struct junit_state *state = report->state;

	kept_row_clear(&state->row);
}

/* What keeps the gate from telling. */
static void write_findings(struct writer *writer, const struct findings *findings)
{
	put(writer, "  <system-out/>\n  <system-err>");
	for (size_t i = 0; findings && i < findings->count; i++) {
		write_text(writer, findings->list[i].message);
		writer_put(writer, '\n');
	}
	put(writer, "</system-err>\n </testsuite>\n</testsuites>\n");
}

static void write_property(struct writer *writer, const char *name, const char *value)
{
	put(writer, "   <property");
	write_attribute(writer, "name", name);
	write_attribute(writer, "value", value ? value : "");
	put(writer, "/>\n");
}

static struct error *write_properties(const struct report_subject *subject, FILE *out)
{
	struct writer writer;
	struct error *error = writer_init(&writer, out);

	if (error)
		return error;
	put(&writer, "  <properties>\n");
	write_property(&writer, "core", subject ? subject->core : NULL);
	write_property(&writer, "command", subject ? subject->command : NULL);
	put(&writer, "  </properties>\n");
	writer_deinit(&writer);
	return NULL;
}

/*
 * The schemas that are in use differ in what they require: it is all there. The oldest does not
 * know that tests may be skipped, so skips are written only where there are any.
 */
static void write_suite(const struct junit_state *state, size_t errors, FILE *out)
{
	char timestamp[32] = "1970-01-01T00:00:00";
	time_t now = time(NULL);
	struct tm broken_down;

	if (gmtime_r(&now, &broken_down))
		strftime(timestamp, sizeof(timestamp), "%Y-%m-%dT%H:%M:%S", &broken_down);
	fprintf(out,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		"<testsuites>\n"
		" <testsuite id=\"0\" package=\"heapcore\" name=\"heapcore\" hostname=\"localhost\" timestamp=\"%s\" time=\"0\" tests=\"%zu\" failures=\"%zu\" errors=\"%zu\"",
		timestamp, state->tests, state->failures, errors);
	if (state->skipped)
		fprintf(out, " skipped=\"%zu\"", state->skipped);
	fputs(">\n", out);
}

static void junit_close(struct report *report)
{
	const struct report_subject *subject = report->subject;
	const struct findings *findings = subject ? subject->findings : NULL;
	struct junit_state *state = report->state;
	bool incomplete = findings && findings_incomplete(findings);

	if (incomplete) {
		begin_case(state, "heapcore.gate", "complete analysis");
		fail_case(state, "error", "incomplete",
			  "the dump could not be analysed well enough to tell");
	}
	write_findings(&state->cases, findings);
	write_suite(state, incomplete, report->out);
	if (!report->error)
		report->error = write_properties(subject, report->out);
	fwrite(state->cases.buffer, 1, state->cases.used, report->out);
	if ((state->row.failed || state->cases.failed) && !report->error)
		report->error = &error_no_memory;
	kept_row_clear(&state->row);
	writer_deinit(&state->cases);
	free(state);
}

const struct report_format report_format_junit = {
	.name = "junit",
	.summary = "JUnit's XML, of 'gate'",
	.command = "gate",
	.open = junit_open,
	.begin_table = junit_begin_table,
	.value = junit_value,
	.end_row = junit_end_row,
	.end_table = junit_end_table,
	.close = junit_close,
};
