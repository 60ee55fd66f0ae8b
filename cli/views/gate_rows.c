#include "cli/views/gate_rows.h"

#include <inttypes.h>

enum { FINGERPRINT_SIZE = 17 };

/* Into a buffer that lives until the row ends. */
static void write_fingerprint(struct report *report, uint64_t fingerprint,
			      char buffer[static FINGERPRINT_SIZE])
{
	snprintf(buffer, FINGERPRINT_SIZE, "%016" PRIx64, fingerprint);
	report_text(report, buffer);
}

static void write_leak(struct report *report, const struct leak_kind *kind)
{
	char buffer[FINGERPRINT_SIZE];

	write_fingerprint(report, kind->fingerprint, buffer);
	report_text(report, kind->likely ? "likely" : "certain");
	report_text(report, leak_state_name(kind->state));
	report_text(report, kind->name);
	report_number(report, kind->size);
	report_number(report, kind->roots);
	report_number(report, kind->allocations);
	report_number(report, kind->bytes);
	report_number(report, kind->address);
	report_text(report, kind->held);
	if (kind->is_allowed)
		report_number(report, kind->allowed);
	else
		report_absent(report);
	report_text(report, kind->rule);
	if (kind->likely_roots > 0 && !kind->likely)
		report_number(report, kind->likely_roots);
	else
		report_absent(report);
	report_end_row(report);
}

void gate_write_leaks(struct report *report, const struct leak_kinds *kinds)
{
	static const struct column columns[] = {
		{ "fingerprint", VALUE_TEXT },	{ "verdict", VALUE_TEXT },
		{ "state", VALUE_TEXT },	{ "kind", VALUE_TEXT },
		{ "size", VALUE_BYTES },	{ "roots", VALUE_COUNT },
		{ "allocations", VALUE_COUNT }, { "bytes", VALUE_BYTES },
		{ "address", VALUE_ADDRESS },	{ "held", VALUE_TEXT },
		{ "allowed", VALUE_COUNT },	{ "rule", VALUE_TEXT },
		{ "likely", VALUE_COUNT },
	};
	static const struct table table = {
		"leak", columns, sizeof(columns) / sizeof(*columns),
		"Leak {fingerprint} ({verdict}, {state}): {roots,} x {kind} of {size,} bytes[, {likely,} of them only likely][, {allowed,} allowed by the baseline][, held by {held}][, suppressed by {rule}];\n"
		"    {allocations,} allocations of {bytes,} bytes are lost in all; for example see 0x{address}"
	};

	report_begin_table(report, &table);
	for (size_t i = 0; i < kinds->count; i++)
		write_leak(report, &kinds->list[i]);
	report_end_table(report);
}

void gate_write_shared(struct report *report, struct leak_total shared, struct leak_total counted)
{
	static const struct column columns[] = {
		{ "count", VALUE_COUNT },
		{ "bytes", VALUE_BYTES },
		{ "counted", VALUE_COUNT },
		{ "counted bytes", VALUE_BYTES },
	};
	static const struct table table = {
		"shared", columns, 4,
		"Several leaks lead to {count,} further allocations of {bytes,} bytes; {counted,} of them, of {counted bytes,} bytes, are reached by leaks that count, and count with them."
	};

	if (shared.count == 0)
		return;
	report_begin_table(report, &table);
	report_number(report, shared.count);
	report_number(report, shared.bytes);
	report_number(report, counted.count);
	report_number(report, counted.bytes);
	report_end_row(report);
	report_end_table(report);
}

void gate_write_gone(struct report *report, const struct baseline *baseline)
{
	static const struct column columns[] = {
		{ "fingerprint", VALUE_TEXT },
		{ "kind", VALUE_TEXT },
		{ "size", VALUE_BYTES },
		{ "roots", VALUE_COUNT },
	};
	static const struct table table = {
		"gone", columns, 4,
		"Gone: leak {fingerprint} of {kind}, {roots,} of which the baseline accepts, is not there any more."
	};

	report_begin_table(report, &table);
	for (size_t i = 0; i < baseline->count; i++) {
		const struct baseline_entry *entry = &baseline->list[i];
		char buffer[FINGERPRINT_SIZE];

		if (entry->matched)
			continue;
		write_fingerprint(report, entry->fingerprint, buffer);
		report_text(report, entry->kind);
		report_number(report, entry->size);
		report_number(report, entry->roots);
		report_end_row(report);
	}
	report_end_table(report);
}

void gate_write_unused(struct report *report, const struct suppressions *suppressions)
{
	static const struct column columns[] = {
		{ "rule", VALUE_TEXT },
		{ "file", VALUE_TEXT },
		{ "line", VALUE_NUMBER },
	};
	static const struct table table = {
		"unused rule", columns, 3,
		"Warning: the rule {rule} matches no leak ({file}:{line})."
	};

	report_begin_table(report, &table);
	for (size_t i = 0; i < suppressions->count; i++) {
		const struct suppression *rule = &suppressions->list[i];

		if (rule->matched)
			continue;
		report_text(report, rule->text);
		report_text(report, rule->path);
		report_number(report, rule->line);
		report_end_row(report);
	}
	report_end_table(report);
}

char *gate_check_rule(const struct gate_check *check)
{
	const struct gate_limit *limit = check->limit;
	char *text;

	if (asprintf(&text, "%s %s", gate_measure_switch(limit->measure), limit->typed) < 0)
		return NULL;
	return text;
}

char *gate_check_what(const struct gate_check *check)
{
	static const char *const nouns[] = {
		[MEASURE_LEAKED] = "leaked allocations",
		[MEASURE_LEAKED_BYTES] = "leaked bytes",
		[MEASURE_USED] = "bytes in use",
		[MEASURE_CLASS] = "allocations in use of ",
		[MEASURE_GROWTH] = "bytes more in use",
		[MEASURE_CLASS_GROWTH] = "allocations more in use of ",
	};
	const struct gate_limit *limit = check->limit;
	char *text;

	/* So that a mistyped name does not pass for a good one. */
	if (asprintf(&text, "%s%s%s", nouns[limit->measure], limit->name ? limit->name : "",
		     check->is_nothing ? " (nothing is of that name)" : "") < 0)
		return NULL;
	return text;
}

void gate_write_checks(struct report *report, const struct gate_check *checks, size_t count)
{
	static const struct column columns[] = {
		{ "rule", VALUE_TEXT },	  { "what", VALUE_TEXT },    { "limit", VALUE_COUNT },
		{ "value", VALUE_COUNT }, { "outcome", VALUE_TEXT },
	};
	static const struct table table = {
		"check", columns, 5, "Check {outcome} ({rule}): {value,} {what}, {limit,} allowed"
	};

	report_begin_table(report, &table);
	for (size_t i = 0; i < count; i++) {
		_cleanup_(free) char *rule = gate_check_rule(&checks[i]);
		_cleanup_(free) char *what = gate_check_what(&checks[i]);

		if (!rule || !what)
			report->error = &error_no_memory;
		report_text(report, rule ? rule : "");
		report_text(report, what ? what : "");
		report_number(report, checks[i].limit->limit);
		report_number(report, checks[i].value);
		report_text(report, gate_check_failed(&checks[i]) ? "failed" : "passed");
		report_end_row(report);
	}
	report_end_table(report);
}

void gate_write_outcome(struct report *report, const struct gate_outcome *outcome)
{
	static const struct column columns[] = {
		{ "outcome", VALUE_TEXT },     { "leaks", VALUE_COUNT }, { "bytes", VALUE_BYTES },
		{ "suppressed", VALUE_COUNT }, { "known", VALUE_COUNT },
	};
	static const struct table table = {
		"gate", columns, 5,
		"Gate {outcome}: {leaks,} leaked allocations of {bytes,} bytes count, {suppressed,} are suppressed, {known,} are known by the baseline."
	};

	report_begin_table(report, &table);
	report_text(report, outcome->name);
	report_number(report, outcome->leaked.count);
	report_number(report, outcome->leaked.bytes);
	report_number(report, outcome->suppressed);
	report_number(report, outcome->known);
	report_end_row(report);
	report_end_table(report);
}
