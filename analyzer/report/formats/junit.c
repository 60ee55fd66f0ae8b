/*
 * JUnit's XML, as build servers read it: one test suite, with a test case for each check of the
 * gate and for each kind of leak.
 *
 * A check that failed, a leak that is new or has grown, is a failure; that the dump could not be
 * analysed well enough to tell is an error of the suite. Of other commands than `gate` and
 * `fleet gate` there is nothing to tell here.
 */

#include "analyzer/report/sentence.h"
#include "analyzer/report/values.h"

#include <inttypes.h>
#include <time.h>

struct junit_state {
	struct writer cases; /* of which the suite is made in the end */
	size_t tests, failures, skipped;
	bool incomplete; /* the gate says so */
};

static void write_attribute(struct writer *writer, const char *name, const char *text)
{
	writer_put(writer, ' ');
	writer_text(writer, name);
	writer_text(writer, "=\"");
	xml_text(writer, text);
	writer_put(writer, '"');
}

/* The result of a test case: text explains the element "failure", "error" or "skipped". */
struct outcome {
	const char *element; /* NULL: it passed */
	const char *type;
	const char *text;
};

static void write_case(struct junit_state *state, const char *class_name, const char *name,
		       struct outcome outcome)
{
	struct writer *writer = &state->cases;

	writer_text(writer, "  <testcase");
	write_attribute(writer, "classname", class_name);
	write_attribute(writer, "name", name);
	writer_text(writer, " time=\"0\"");
	state->tests++;
	if (!outcome.element) {
		writer_text(writer, "/>\n");
		return;
	}
	writer_text(writer, ">\n    <");
	writer_text(writer, outcome.element);
	if (outcome.type) {
		write_attribute(writer, "message", outcome.text);
		write_attribute(writer, "type", outcome.type);
		writer_text(writer, "/>\n");
		state->failures += strcmp(outcome.element, "failure") == 0;
	} else {
		writer_text(writer, ">");
		xml_text(writer, outcome.text);
		writer_text(writer, "</skipped>\n");
		state->skipped++;
	}
	writer_text(writer, "  </testcase>\n");
}

static void write_check(struct report *report, const struct value *values)
{
	bool failed = strcmp(report_text_of(report, values, "outcome"), "failed") == 0;
	char text[128];

	snprintf(text, sizeof(text), "%" PRIu64 " of at most %" PRIu64,
		 report_number_of(report, values, "value"),
		 report_number_of(report, values, "limit"));
	write_case(report->state, "heapcore.gate", report_text_of(report, values, "rule"),
		   failed ? (struct outcome){ "failure", "gate", text } : (struct outcome){ 0 });
}

static void write_leak(struct report *report, const struct value *values)
{
	const char *state = report_text_of(report, values, "state");
	const char *kind = report_text_of(report, values, "kind");
	const char *by = report_text_of(report, values, "calls");
	_cleanup_(free) char *name = NULL, *text = NULL;
	struct outcome outcome = { 0 };

	by = by && *by ? by : report_text_of(report, values, "allocated by");
	name = format_text("%s %s", report_text_of(report, values, "fingerprint"), kind);
	text = format_text("%s leak, %" PRIu64 " x %s: %" PRIu64 " allocations, %" PRIu64
			   " bytes, the first at 0x%" PRIx64 "%s%s",
			   report_text_of(report, values, "verdict"),
			   report_number_of(report, values, "roots"),
			   report_text_of(report, values, "label"),
			   report_number_of(report, values, "allocations"),
			   report_number_of(report, values, "bytes"),
			   report_number_of(report, values, "address"),
			   by && *by ? ", allocated by " : "", by ? by : "");
	if (!name || !text) {
		report->error = &error_no_memory;
		return;
	}
	if (strcmp(state, "new") == 0 || strcmp(state, "more") == 0)
		outcome = (struct outcome){ "failure", "leak", text };
	else if (strcmp(state, "suppressed") == 0)
		outcome = (struct outcome){ "skipped", NULL, text };
	write_case(report->state, "heapcore.leaks", name, outcome);
}

static void write_known(struct report *report, const struct value *values)
{
	_cleanup_(free) char *name =
		format_text("known leaks of %s", report_text_of(report, values, "owner"));
	_cleanup_(free) char *text = format_text("%" PRIu64 " allocations, %" PRIu64 " bytes: %s",
						 report_number_of(report, values, "count"),
						 report_number_of(report, values, "bytes"),
						 report_text_of(report, values, "cause"));

	if (name && text)
		write_case(report->state, "heapcore.leaks", name,
			   (struct outcome){ "skipped", NULL, text });
	else
		report->error = &error_no_memory;
}

/* Write what grew in each iteration. */
static void write_growing(struct report *report, const struct value *values)
{
	const char *state = report_text_of(report, values, "state");
	const char *holder = report_text_of(report, values, "holder");
	const char *kind = report_text_of(report, values, "kind");
	_cleanup_(free) char *name = format_text(
		"%s %s: %s", report_text_of(report, values, "fingerprint"), holder, kind);
	_cleanup_(free) char *text = sentence_text(report->table, values);
	struct outcome outcome = { 0 };

	if (!name || !text) {
		report->error = &error_no_memory;
		return;
	}
	if (strcmp(state, "suppressed") == 0)
		outcome = (struct outcome){ "skipped", NULL, text };
	else if (strcmp(state, "known") != 0)
		outcome = (struct outcome){ "failure", "growth", text };
	write_case(report->state, "heapcore.growth", name, outcome);
}

/* Write a leak found in several cores, by 'fleet gate'. */
static void write_fleet_leak(struct report *report, const struct value *values)
{
	const char *kind = report_text_of(report, values, "kind");
	_cleanup_(free) char *name =
		format_text("%s %s", report_text_of(report, values, "fingerprint"), kind);
	_cleanup_(free) char *text =
		format_text("new leak of %s, first in build %s: %" PRIu64 " bytes in %" PRIu64
			    " cores on %" PRIu64 " hosts, most in %s",
			    kind, report_text_of(report, values, "build"),
			    report_number_of(report, values, "bytes"),
			    report_number_of(report, values, "cores"),
			    report_number_of(report, values, "hosts"),
			    report_text_of(report, values, "most in"));

	if (name && text)
		write_case(report->state, "heapcore.leaks", name,
			   (struct outcome){ "failure", "leak", text });
	else
		report->error = &error_no_memory;
}

static void write_leaky_core(struct report *report, const struct value *values)
{
	char text[64];

	snprintf(text, sizeof(text), "it leaked %" PRIu64 " bytes",
		 report_number_of(report, values, "bytes"));
	write_case(report->state, "heapcore.gate", report_text_of(report, values, "core"),
		   (struct outcome){ "failure", "gate", text });
}

/* Whatever made the gate fail, one test at least has failed then. */
static void write_outcome(struct report *report, const struct value *values)
{
	struct junit_state *state = report->state;
	const char *outcome = report_text_of(report, values, "outcome");

	state->incomplete = strcmp(outcome, "incomplete") == 0;
	if (strcmp(outcome, "failed") == 0 && state->failures == 0)
		write_case(state, "heapcore.gate", "gate",
			   (struct outcome){ "failure", "gate", "the gate failed" });
	else if (state->tests == 0 && !state->incomplete)
		write_case(state, "heapcore.gate", "gate", (struct outcome){ 0 });
}

static void junit_row(struct report *report, const struct value *values)
{
	static const struct {
		const char *table;
		void (*write)(struct report *report, const struct value *values);
	} rows[] = {
		{ "check", write_check },	  { "leak", write_leak },
		{ "growing", write_growing },	  { "known leak", write_known },
		{ "new leak", write_fleet_leak }, { "leaked too much", write_leaky_core },
		{ "gate", write_outcome },
	};

	for (size_t i = 0; i < COUNT_OF(rows); i++)
		if (strcmp(report->table->name, rows[i].table) == 0)
			rows[i].write(report, values);
}

static void write_property(struct writer *writer, const char *name, const char *value)
{
	writer_text(writer, "   <property");
	write_attribute(writer, "name", name);
	write_attribute(writer, "value", value ? value : "");
	writer_text(writer, "/>\n");
}

/*
 * The schemas that are in use differ in what they require: it is all there. The oldest does not
 * know that tests may be skipped, so skips are written only where there are any.
 */
static void write_suite(struct writer *writer, const struct junit_state *state, size_t errors)
{
	char timestamp[32] = "1970-01-01T00:00:00", skipped[48] = "";
	time_t now = time(NULL);
	struct tm broken_down;

	if (gmtime_r(&now, &broken_down))
		strftime(timestamp, sizeof(timestamp), "%Y-%m-%dT%H:%M:%S", &broken_down);
	if (state->skipped)
		snprintf(skipped, sizeof(skipped), " skipped=\"%zu\"", state->skipped);
	writer_format(
		writer, writer_text,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		"<testsuites>\n"
		" <testsuite id=\"0\" package=\"heapcore\" name=\"heapcore\" hostname=\"localhost\" timestamp=\"%s\" time=\"0\" tests=\"%zu\" failures=\"%zu\" errors=\"%zu\"%s>\n",
		timestamp, state->tests, state->failures, errors, skipped);
}

static void junit_close(struct report *report)
{
	const struct report_subject *subject = report->subject;
	const struct findings *findings = subject ? subject->findings : NULL;
	struct junit_state *state = report->state;
	struct writer *writer = &report->writer;
	bool incomplete = state->incomplete || (findings && findings_incomplete(findings));

	if (incomplete)
		write_case(
			state, "heapcore.gate", "complete analysis",
			(struct outcome){ "error", "incomplete",
					  "the dump could not be analysed well enough to tell" });
	write_suite(writer, state, incomplete);
	writer_text(writer, "  <properties>\n");
	write_property(writer, "core", subject ? subject->core : NULL);
	write_property(writer, "command", subject ? subject->command : NULL);
	writer_text(writer, "  </properties>\n");
	writer_move(writer, &state->cases);
	/* Write the findings that keep the gate from a verdict. */
	writer_text(writer, "  <system-out/>\n  <system-err>");
	for (size_t i = 0; findings && i < findings->count; i++) {
		xml_text(writer, findings->list[i].message);
		writer_put(writer, '\n');
	}
	writer_text(writer, "</system-err>\n </testsuite>\n</testsuites>\n");
}

const struct report_format report_format_junit = {
	.name = "junit",
	.summary = "JUnit XML, for 'gate'",
	.command = "gate",
	.state_size = sizeof(struct junit_state),
	.row = junit_row,
	.close = junit_close,
};
