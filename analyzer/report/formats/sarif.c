/*
 * SARIF 2.1.0, for code scanning: a rule and a result for each kind of leak.
 *
 * A leak is known by its fingerprint, in all runs and on all machines, so that is the rule's id.
 * What is in the baseline is "unchanged", what it has but no leak matches is "absent". Of other
 * commands than `gate` there is nothing to tell here.
 */

#include "analyzer/report/values.h"

#include <inttypes.h>

struct sarif_state {
	struct writer rules, results;
};

/* The sentence of an entry of the baseline, or of a leak. */
static void write_message(struct writer *writer, const struct report *report,
			  const struct value *values, bool absent)
{
	const char *kind = report_text_of(report, values, "kind");
	const char *verdict = report_text_of(report, values, "verdict");
	uint64_t roots = report_number_of(report, values, "roots");

	if (absent)
		writer_format(writer, json_text,
			      "The leak of %s, %" PRIu64 " accepted by the baseline, is gone.",
			      kind, roots);
	else
		writer_format(writer, json_text,
			      "%s leak, %" PRIu64 " x %s: %" PRIu64 " allocations of %" PRIu64
			      " bytes lost in total; the first is at 0x%" PRIx64 ".",
			      strcmp(verdict, "likely") == 0 ? "Likely" : "Certain", roots,
			      report_text_of(report, values, "label"),
			      report_number_of(report, values, "allocations"),
			      report_number_of(report, values, "bytes"),
			      report_number_of(report, values, "address"));
}

static void write_rule(struct writer *writer, const struct report *report,
		       const struct value *values)
{
	writer_text(writer, writer->used ? ",\n     {\"id\": " : "\n     {\"id\": ");
	json_text(writer, report_text_of(report, values, "fingerprint"));
	writer_text(writer, ", \"shortDescription\": {\"text\": ");
	writer_format(writer, json_text, "Leak of %s of %" PRIu64 " bytes",
		      report_text_of(report, values, "kind"),
		      report_number_of(report, values, "size"));
	writer_text(writer, "}}");
}

/* A result's place: the class is what there is of it, and the dump. */
static void write_place(struct writer *writer, const char *kind,
			const struct report_subject *subject)
{
	writer_text(writer,
		    ", \"locations\": [{\"physicalLocation\": {\"artifactLocation\": {\"uri\": ");
	json_uri(writer, subject && subject->core ? subject->core : "core");
	writer_text(writer, "}}, \"logicalLocations\": [{\"fullyQualifiedName\": ");
	json_text(writer, kind);
	writer_text(writer, ", \"kind\": \"type\"}]}]");
}

static void write_result(struct writer *writer, const struct report *report,
			 const struct value *values, const char *baseline)
{
	const char *print = report_text_of(report, values, "fingerprint");
	bool absent = strcmp(baseline, "absent") == 0;
	bool suppressed = strcmp(report_text_of(report, values, "state"), "suppressed") == 0;
	bool failed = !absent && !suppressed && strcmp(baseline, "unchanged") != 0;

	writer_text(writer, writer->used ? ",\n    {\"ruleId\": " : "\n    {\"ruleId\": ");
	json_text(writer, print);
	writer_text(writer, failed ? ", \"level\": \"error\"" : ", \"level\": \"note\"");
	writer_text(writer, ", \"message\": {\"text\": ");
	write_message(writer, report, values, absent);
	writer_text(writer, "}");
	write_place(writer, report_text_of(report, values, "kind"), report->subject);
	writer_text(writer, ", \"partialFingerprints\": {\"heapcoreLeak/v1\": ");
	json_text(writer, print);
	writer_text(writer, "}, \"baselineState\": ");
	json_text(writer, baseline);
	if (suppressed)
		writer_text(writer, ", \"suppressions\": [{\"kind\": \"external\"}]");
	writer_text(writer, "}");
}

static void sarif_row(struct report *report, const struct value *values)
{
	const char *state = report_text_of(report, values, "state");
	struct sarif_state *sarif = report->state;
	const char *baseline = "new";

	if (strcmp(report->table->name, "gone") == 0)
		baseline = "absent";
	else if (strcmp(report->table->name, "leak") != 0)
		return;
	else if (strcmp(state, "known") == 0)
		baseline = "unchanged";
	else if (strcmp(state, "more") == 0)
		baseline = "updated";
	write_rule(&sarif->rules, report, values);
	write_result(&sarif->results, report, values, baseline);
}

/* Whether the gate could tell, and what kept it from that. */
static void write_invocation(struct writer *writer, const struct findings *findings)
{
	bool complete = !findings || !findings_incomplete(findings);

	writer_text(writer, "   \"invocations\": [{\"executionSuccessful\": ");
	writer_text(writer, json_truth(complete));
	writer_text(writer, ", \"toolExecutionNotifications\": [");
	for (size_t i = 0; findings && i < findings->count; i++) {
		bool worse = findings->list[i].weight == FINDING_INCOMPLETE;

		writer_text(writer, i ? ",\n    {" : "\n    {");
		writer_text(writer, worse ? "\"level\": \"error\"" : "\"level\": \"note\"");
		writer_text(writer, ", \"message\": {\"text\": ");
		json_text(writer, findings->list[i].message);
		writer_text(writer, "}}");
	}
	writer_text(writer, "]}]\n");
}

static void sarif_close(struct report *report)
{
	const struct report_subject *subject = report->subject;
	struct sarif_state *state = report->state;
	struct writer *writer = &report->writer;

	writer_text(writer, "{\n"
			    " \"$schema\": \"https://json.schemastore.org/sarif-2.1.0.json\",\n"
			    " \"version\": \"2.1.0\",\n"
			    " \"runs\": [{\n"
			    "   \"tool\": {\"driver\": {\"name\": \"heapcore\", \"rules\": [");
	writer_move(writer, &state->rules);
	writer_text(writer, "]}},\n   \"results\": [");
	writer_move(writer, &state->results);
	writer_text(writer, "],\n");
	write_invocation(writer, subject ? subject->findings : NULL);
	writer_text(writer, " }]\n}\n");
}

const struct report_format report_format_sarif = {
	.name = "sarif",
	.summary = "SARIF 2.1.0, of 'gate'",
	.command = "gate",
	.state_size = sizeof(struct sarif_state),
	.row = sarif_row,
	.close = sarif_close,
};
