/*
 * SARIF 2.1.0, for code scanning: a rule and a result for each kind of leak.
 *
 * A leak is known by its fingerprint, in all runs and on all machines, so that is the rule's id.
 * What is in the baseline is "unchanged", what it has but no leak matches is "absent". Of other
 * commands than `gate` there is nothing to tell here.
 */

#include "analyzer/report/json.h"
#include "analyzer/report/kept_row.h"

#include <inttypes.h>

struct sarif_state {
	struct writer rules, results;
	struct kept_row row;
	size_t leaks; /* rules, and results before those that are absent */
};

static struct error *sarif_open(struct report *report)
{
	struct sarif_state *state = calloc(1, sizeof(*state));
	struct error *error;

	if (!state)
		return &error_no_memory;
	error = writer_init(&state->rules, NULL);
	if (!error)
		error = writer_init(&state->results, NULL);
	if (error) {
		free(state->rules.buffer);
		free(state);
		return error;
	}
	report->state = state;
	return NULL;
}

static void put(struct writer *writer, const char *text)
{
	writer_bytes(writer, text, strlen(text));
}

/* Of an entry of the baseline. */
static void write_absent(struct writer *writer, struct kept_row *row)
{
	_cleanup_(free) char *text = NULL;

	if (asprintf(&text,
		     "The leak of %s, %" PRIu64
		     " of which the baseline accepts, is not there any more.",
		     kept_row_text(row, "kind"), kept_row_number(row, "roots")) < 0)
		text = NULL;
	row->failed |= !text;
	json_text(writer, text ? text : "");
}

/* What a leak of that kind is, in a sentence. */
static void write_message(struct writer *writer, struct kept_row *row)
{
	_cleanup_(free) char *text = NULL;

	if (asprintf(&text,
		     "%s leak, %" PRIu64 " x %s: %" PRIu64 " allocations of %" PRIu64
		     " bytes are lost in all; the first is at 0x%" PRIx64 ".",
		     strcmp(kept_row_text(row, "verdict"), "likely") == 0 ? "Likely" : "Certain",
		     kept_row_number(row, "roots"), kept_row_text(row, "kind"),
		     kept_row_number(row, "allocations"), kept_row_number(row, "bytes"),
		     kept_row_number(row, "address")) < 0)
		text = NULL;
	row->failed |= !text;
	json_text(writer, text ? text : "");
}

static void write_rule(struct sarif_state *state)
{
	struct kept_row *row = &state->row;
	struct writer *writer = &state->rules;
	_cleanup_(free) char *text = NULL;

	if (asprintf(&text, "Leak of %s of %" PRIu64 " bytes", kept_row_text(row, "kind"),
		     kept_row_number(row, "size")) < 0)
		text = NULL;
	row->failed |= !text;
	put(writer, state->leaks ? ",\n     {" : "\n     {");
	put(writer, "\"id\": ");
	json_text(writer, kept_row_text(row, "fingerprint"));
	put(writer, ", \"shortDescription\": {\"text\": ");
	json_text(writer, text ? text : "");
	put(writer, "}}");
}

/* A result's place: the class is what there is of it, and the dump. */
static void write_place(struct writer *writer, const char *kind,
			const struct report_subject *subject)
{
	put(writer, ", \"locations\": [{\"physicalLocation\": {\"artifactLocation\": {\"uri\": ");
	json_uri(writer, subject && subject->core ? subject->core : "core");
	put(writer, "}}, \"logicalLocations\": [{\"fullyQualifiedName\": ");
	json_text(writer, kind);
	put(writer, ", \"kind\": \"type\"}]}]");
}

static void write_result(struct sarif_state *state, const char *baseline,
			 const struct report_subject *subject)
{
	struct kept_row *row = &state->row;
	struct writer *writer = &state->results;
	const char *print = kept_row_text(row, "fingerprint");
	bool failed = strcmp(baseline, "new") == 0 || strcmp(baseline, "updated") == 0;
	bool suppressed = strcmp(kept_row_text(row, "state"), "suppressed") == 0;

	put(writer, writer->used ? ",\n    {" : "\n    {");
	put(writer, "\"ruleId\": ");
	json_text(writer, print);
	put(writer, failed && !suppressed ? ", \"level\": \"error\"" : ", \"level\": \"note\"");
	put(writer, ", \"message\": {\"text\": ");
	if (strcmp(baseline, "absent") == 0)
		write_absent(writer, row);
	else
		write_message(writer, row);
	put(writer, "}");
	write_place(writer, kept_row_text(row, "kind"), subject);
	put(writer, ", \"partialFingerprints\": {\"heapcoreLeak/v1\": ");
	json_text(writer, print);
	put(writer, "}, \"baselineState\": ");
	json_text(writer, baseline);
	if (suppressed)
		put(writer, ", \"suppressions\": [{\"kind\": \"external\"}]");
	put(writer, "}");
}

static const char *baseline_state(const struct kept_row *row)
{
	const char *state = kept_row_text(row, "state");

	return strcmp(state, "known") == 0  ? "unchanged"
	       : strcmp(state, "more") == 0 ? "updated"
					    : "new";
}

static void sarif_begin_table(struct report *report)
{
}

static void sarif_value(struct report *report, const struct value *value)
{
	struct sarif_state *state = report->state;

	kept_row_take(&state->row, report, value);
}

static void sarif_end_row(struct report *report)
{
	struct sarif_state *state = report->state;

	if (strcmp(report->table->name, "leak") == 0) {
		write_rule(state);
		write_result(state, baseline_state(&state->row), report->subject);
		state->leaks++;
	} else if (strcmp(report->table->name, "gone") == 0) {
		write_rule(state);
		write_result(state, "absent", report->subject);
		state->leaks++;
	}
	kept_row_clear(&state->row);
}

static void sarif_end_table(struct report *report)
{
	struct sarif_state *state = report->state;

	kept_row_clear(&state->row);
}

/* Whether the gate could tell, and what kept it from that. */
static void write_invocation(struct writer *writer, const struct findings *findings)
{
	bool complete = !findings || !findings_incomplete(findings);

	put(writer, "   \"invocations\": [{\"executionSuccessful\": ");
	json_truth(writer, complete);
	put(writer, ", \"toolExecutionNotifications\": [");
	for (size_t i = 0; findings && i < findings->count; i++) {
		bool worse = findings->list[i].weight == FINDING_INCOMPLETE;

		put(writer, i ? ",\n    {" : "\n    {");
		put(writer, worse ? "\"level\": \"error\"" : "\"level\": \"note\"");
		put(writer, ", \"message\": {\"text\": ");
		json_text(writer, findings->list[i].message);
		put(writer, "}}");
	}
	put(writer, "]}]\n");
}

static void sarif_close(struct report *report)
{
	const struct report_subject *subject = report->subject;
	struct sarif_state *state = report->state;
	struct writer *rules = &state->rules, *results = &state->results;

	fputs("{\n"
	      " \"$schema\": \"https://json.schemastore.org/sarif-2.1.0.json\","
	      "\n \"version\": \"2.1.0\",\n \"runs\": [{\n"
	      "   \"tool\": {\"driver\": {\"name\": \"heapcore\", "
	      "\"rules\": [",
	      report->out);
	fwrite(rules->buffer, 1, rules->used, report->out);
	fputs("]}},\n   \"results\": [", report->out);
	put(results, "],\n");
	write_invocation(results, subject ? subject->findings : NULL);
	put(results, " }]\n}\n");
	fwrite(results->buffer, 1, results->used, report->out);
	if ((state->row.failed || rules->failed || results->failed) && !report->error)
		report->error = &error_no_memory;
	kept_row_clear(&state->row);
	writer_deinit(rules);
	writer_deinit(results);
	free(state);
}

const struct report_format report_format_sarif = {
	.name = "sarif",
	.summary = "SARIF 2.1.0, of 'gate'",
	.command = "gate",
	.open = sarif_open,
	.begin_table = sarif_begin_table,
	.value = sarif_value,
	.end_row = sarif_end_row,
	.end_table = sarif_end_table,
	.close = sarif_close,
};
