/*
 * SARIF 2.1.0, for code scanning: a rule and a result for each kind of leak.
 *
 * A leak is known by its fingerprint, in all runs and on all machines, so that is the rule's id.
 * What is in the baseline is "unchanged", what it has but no leak matches is "absent". A limit of
 * other things than leaks that was exceeded is a result, too. Of other commands than `gate` and
 * `fleet gate` there is nothing to tell here.
 */

#include "analyzer/report/sentence.h"
#include "analyzer/report/values.h"

#include <inttypes.h>
#include <string.h>

struct sarif_state {
	struct writer rules, results;
	size_t errors;
	bool incomplete; /* the gate says so */
};

/* One result. */
struct result {
	const char *rule;    /* its id */
	const char *summary; /* of the rule */
	const char *message;
	const char *kind;     /* of the leak, or NULL */
	const char *core;     /* NULL: that of the report */
	const char *source;   /* "server.c:5", where it is to be mended; or "" or NULL */
	const char *baseline; /* its state */
	bool failed, suppressed, rule_is_known;
};

static void write_rule(struct writer *writer, const struct result *result)
{
	writer_text(writer, writer->used ? ",\n     {\"id\": " : "\n     {\"id\": ");
	json_text(writer, result->rule);
	writer_text(writer, ", \"shortDescription\": {\"text\": ");
	json_text(writer, result->summary);
	writer_text(writer, "}}");
}

/* The line of the source; false: none is known. */
static bool write_source(struct writer *writer, const char *source)
{
	uint64_t line;
	_cleanup_(free) char *file = source_file(source, &line);

	if (!file)
		return false;
	json_uri(writer, file);
	writer_text(writer, "}, \"region\": {\"startLine\": ");
	writer_decimal(writer, line);
	writer_text(writer, "}}");
	return true;
}

/* A result's place: where it was allocated, or the dump; and the class is what there is of it. */
static void write_place(struct writer *writer, const struct result *result,
			const struct report_subject *subject)
{
	const char *core = subject && subject->core ? subject->core : "core";

	writer_text(writer,
		    ", \"locations\": [{\"physicalLocation\": {\"artifactLocation\": {\"uri\": ");
	if (!write_source(writer, result->source)) {
		json_uri(writer, result->core ? result->core : core);
		writer_text(writer, "}}");
	}
	if (result->kind) {
		writer_text(writer, ", \"logicalLocations\": [{\"fullyQualifiedName\": ");
		json_text(writer, result->kind);
		writer_text(writer, ", \"kind\": \"type\"}]");
	}
	writer_text(writer, "}]");
}

static void write_result(struct report *report, const struct result *result)
{
	struct sarif_state *state = report->state;
	struct writer *writer = &state->results;

	if (!result->summary || !result->message) {
		report->error = &error_no_memory;
		return;
	}
	if (!result->rule_is_known)
		write_rule(&state->rules, result);
	state->errors += result->failed;
	writer_text(writer, writer->used ? ",\n    {\"ruleId\": " : "\n    {\"ruleId\": ");
	json_text(writer, result->rule);
	writer_text(writer, result->failed ? ", \"level\": \"error\"" : ", \"level\": \"note\"");
	writer_text(writer, ", \"message\": {\"text\": ");
	json_text(writer, result->message);
	writer_text(writer, "}");
	write_place(writer, result, report->subject);
	if (result->kind) {
		writer_text(writer, ", \"partialFingerprints\": {\"heapcoreLeak/v1\": ");
		json_text(writer, result->rule);
		writer_text(writer, "}");
	}
	writer_text(writer, ", \"baselineState\": ");
	json_text(writer, result->baseline);
	if (result->suppressed)
		writer_text(writer, ", \"suppressions\": [{\"kind\": \"external\"}]");
	writer_text(writer, "}");
}

/* The sentence of an entry of the baseline, or of a leak. */
static char *leak_message(const struct report *report, const struct value *values, bool absent)
{
	const char *verdict = report_text_of(report, values, "verdict");
	uint64_t roots = report_number_of(report, values, "roots");
	const char *by;

	if (absent)
		return format_text("The leak of %s, %" PRIu64 " accepted by the baseline, is gone.",
				   report_text_of(report, values, "kind"), roots);
	by = report_text_of(report, values, "calls");
	by = by && *by ? by : report_text_of(report, values, "allocated by");
	return format_text("%s leak, %" PRIu64 " x %s: %" PRIu64 " allocations of %" PRIu64
			   " bytes lost in total%s%s; the first is at 0x%" PRIx64 ".",
			   strcmp(verdict, "likely") == 0 ? "Likely" : "Certain", roots,
			   report_text_of(report, values, "label"),
			   report_number_of(report, values, "allocations"),
			   report_number_of(report, values, "bytes"),
			   by && *by ? ", allocated by " : "", by ? by : "",
			   report_number_of(report, values, "address"));
}

static void write_leak(struct report *report, const struct value *values)
{
	const char *state = report_text_of(report, values, "state");
	const char *kind = report_text_of(report, values, "kind");
	bool absent = strcmp(report->table->name, "gone") == 0;
	bool known = strcmp(state, "known") == 0, suppressed = strcmp(state, "suppressed") == 0;
	_cleanup_(free) char *message = leak_message(report, values, absent);
	_cleanup_(free) char *summary = format_text("Leak of %s of %" PRIu64 " bytes", kind,
						    report_number_of(report, values, "size"));
	const struct result result = {
		.rule = report_text_of(report, values, "fingerprint"),
		.summary = summary,
		.message = message,
		.kind = kind,
		.source = absent ? NULL : report_text_of(report, values, "source"),
		.baseline = absent			 ? "absent"
			    : known			 ? "unchanged"
			    : strcmp(state, "more") == 0 ? "updated"
							 : "new",
		.failed = !absent && !suppressed && !known,
		.suppressed = suppressed,
	};

	write_result(report, &result);
}

/* Write what grew in each iteration. */
static void write_growing(struct report *report, const struct value *values)
{
	const char *state = report_text_of(report, values, "state");
	const char *holder = report_text_of(report, values, "holder");
	const char *kind = report_text_of(report, values, "kind");
	bool known = strcmp(state, "known") == 0, suppressed = strcmp(state, "suppressed") == 0;
	_cleanup_(free) char *summary = format_text("Growth of %s in %s", kind, holder);
	_cleanup_(free) char *sentence = sentence_text(report->table, values);
	_cleanup_(free) char *message = sentence ? format_text("%s.", sentence) : NULL;
	const struct result result = {
		.rule = report_text_of(report, values, "fingerprint"),
		.summary = summary,
		.message = message,
		.kind = kind,
		.baseline = known			 ? "unchanged"
			    : strcmp(state, "more") == 0 ? "updated"
							 : "new",
		.failed = !suppressed && !known,
		.suppressed = suppressed,
	};

	write_result(report, &result);
}

static void write_known(struct report *report, const struct value *values)
{
	const char *cause = report_text_of(report, values, "cause");
	_cleanup_(free) char *summary =
		format_text("Known leaks of %s", report_text_of(report, values, "owner"));
	_cleanup_(free) char *message =
		format_text("%" PRIu64 " allocations of %" PRIu64 " bytes lost in total: %s.",
			    report_number_of(report, values, "count"),
			    report_number_of(report, values, "bytes"), cause);
	const struct result result = {
		.rule = cause,
		.summary = summary,
		.message = message,
		.baseline = "unchanged",
		.suppressed = true,
	};

	write_result(report, &result);
}

/* Write a leak found in several cores, by 'fleet gate'. */
static void write_fleet_leak(struct report *report, const struct value *values)
{
	const char *kind = report_text_of(report, values, "kind");
	_cleanup_(free) char *summary = format_text("Leak of %s", kind);
	_cleanup_(free) char *message =
		format_text("New leak of %s, first in build %s: %" PRIu64 " bytes in %" PRIu64
			    " cores on %" PRIu64 " hosts.",
			    kind, report_text_of(report, values, "build"),
			    report_number_of(report, values, "bytes"),
			    report_number_of(report, values, "cores"),
			    report_number_of(report, values, "hosts"));
	const struct result result = {
		.rule = report_text_of(report, values, "fingerprint"),
		.summary = summary,
		.message = message,
		.kind = kind,
		.core = report_text_of(report, values, "most in"),
		.baseline = "new",
		.failed = true,
	};

	write_result(report, &result);
}

static void write_leaky_core(struct report *report, const struct value *values)
{
	const char *core = report_text_of(report, values, "core");
	_cleanup_(free) char *message = format_text("%s leaked %" PRIu64 " bytes.", core,
						    report_number_of(report, values, "bytes"));
	const struct result result = {
		.rule = "max-leaked-bytes",
		.summary = "A core leaked more than is accepted",
		.message = message,
		.core = core,
		.baseline = "new",
		.failed = true,
		.rule_is_known = report->row > 0,
	};

	write_result(report, &result);
}

/* Leaks are results of their own. */
static void write_check(struct report *report, const struct value *values)
{
	static const char of_leaks[] = "--max-leaked";
	const char *rule = report_text_of(report, values, "rule");
	_cleanup_(free) char *message = format_text("%s: %" PRIu64 " %s, %" PRIu64 " allowed.",
						    rule, report_number_of(report, values, "value"),
						    report_text_of(report, values, "what"),
						    report_number_of(report, values, "limit"));
	struct sarif_state *state = report->state;
	const struct result result = {
		.rule = rule,
		.summary = "A limit of the gate",
		.message = message,
		.baseline = "new",
		.failed = true,
	};

	if (strcmp(report_text_of(report, values, "outcome"), "failed") == 0 &&
	    (state->errors == 0 || strncmp(rule, of_leaks, strlen(of_leaks)) != 0))
		write_result(report, &result);
}

static void write_outcome(struct report *report, const struct value *values)
{
	struct sarif_state *state = report->state;

	state->incomplete = strcmp(report_text_of(report, values, "outcome"), "incomplete") == 0;
}

static void sarif_row(struct report *report, const struct value *values)
{
	static const struct {
		const char *table;
		void (*write)(struct report *report, const struct value *values);
	} rows[] = {
		{ "leak", write_leak },
		{ "gone", write_leak },
		{ "known leak", write_known },
		{ "new leak", write_fleet_leak },
		{ "leaked too much", write_leaky_core },
		{ "growing", write_growing },
		{ "check", write_check },
		{ "gate", write_outcome },
	};

	for (size_t i = 0; i < COUNT_OF(rows); i++)
		if (strcmp(report->table->name, rows[i].table) == 0)
			rows[i].write(report, values);
}

/* Write whether the gate reached a verdict, and if not, why. */
static void write_invocation(struct writer *writer, const struct findings *findings,
			     bool incomplete)
{
	bool complete = !incomplete && (!findings || !findings_incomplete(findings));

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
	write_invocation(writer, subject ? subject->findings : NULL, state->incomplete);
	writer_text(writer, " }]\n}\n");
}

const struct report_format report_format_sarif = {
	.name = "sarif",
	.summary = "SARIF 2.1.0, for 'gate'",
	.command = "gate",
	.state_size = sizeof(struct sarif_state),
	.row = sarif_row,
	.close = sarif_close,
};
