#include "cli/views/gate_rows.h"

#include <inttypes.h>

enum { FINGERPRINT_SIZE = 17 };

/* Into a buffer that lives until the row ends. */
static void write_fingerprint(struct report *report, uint64_t fingerprint,
			      char buffer[static FINGERPRINT_SIZE])
{
	snprintf(buffer, FINGERPRINT_SIZE, "%016" PRIx64, fingerprint);
	report_add(report, buffer);
}

static void write_leak(struct report *report, const struct leak_kind *kind)
{
	char buffer[FINGERPRINT_SIZE];

	write_fingerprint(report, kind->fingerprint, buffer);
	report_row(report, kind->likely ? "likely" : "certain", leak_state_name(kind->state),
		   kind->name, kind->size, kind->roots, kind->allocations, kind->bytes,
		   kind->address, kind->held, VALUE_IF(kind->is_allowed, kind->allowed), kind->rule,
		   VALUE_IF(kind->likely_roots > 0 && !kind->likely, kind->likely_roots));
}

void gate_write_leaks(struct report *report, const struct leak_kinds *kinds)
{
	static const struct table table = TABLE(
		"leak",
		"Leak {fingerprint} ({verdict}, {state}): {roots,} x {kind} of {size,} bytes[, {likely,} of them only likely][, {allowed,} allowed by the baseline][, held by {held}][, suppressed by {rule}];\n"
		"    {allocations,} allocations of {bytes,} bytes are lost in all; for example see 0x{address}",
		{ "fingerprint", VALUE_TEXT }, { "verdict", VALUE_TEXT }, { "state", VALUE_TEXT },
		{ "kind", VALUE_TEXT }, { "size", VALUE_BYTES }, { "roots", VALUE_COUNT },
		{ "allocations", VALUE_COUNT }, { "bytes", VALUE_BYTES },
		{ "address", VALUE_ADDRESS }, { "held", VALUE_TEXT }, { "allowed", VALUE_COUNT },
		{ "rule", VALUE_TEXT }, { "likely", VALUE_COUNT });

	report_begin_table(report, &table);
	for (size_t i = 0; i < kinds->count; i++)
		write_leak(report, &kinds->list[i]);
	report_end_table(report);
}

void gate_write_shared(struct report *report, struct leak_total shared, struct leak_total counted)
{
	static const struct table table = TABLE(
		"shared",
		"Several leaks lead to {count,} further allocations of {bytes,} bytes; {counted,} of them, of {counted bytes,} bytes, are reached by leaks that count, and count with them.",
		{ "count", VALUE_COUNT }, { "bytes", VALUE_BYTES }, { "counted", VALUE_COUNT },
		{ "counted bytes", VALUE_BYTES });

	if (shared.count == 0)
		return;
	report_single(report, &table, shared.count, shared.bytes, counted.count, counted.bytes);
}

void gate_write_gone(struct report *report, const struct baseline *baseline)
{
	static const struct table table = TABLE(
		"gone",
		"Gone: leak {fingerprint} of {kind}, {roots,} of which the baseline accepts, is not there any more.",
		{ "fingerprint", VALUE_TEXT }, { "kind", VALUE_TEXT }, { "size", VALUE_BYTES },
		{ "roots", VALUE_COUNT });

	report_begin_table(report, &table);
	for (size_t i = 0; i < baseline->count; i++) {
		const struct baseline_entry *entry = &baseline->list[i];
		char buffer[FINGERPRINT_SIZE];

		if (entry->matched)
			continue;
		write_fingerprint(report, entry->fingerprint, buffer);
		report_row(report, entry->kind, entry->size, entry->roots);
	}
	report_end_table(report);
}

void gate_write_unused(struct report *report, const struct suppressions *suppressions)
{
	static const struct table table =
		TABLE("unused rule", "Warning: the rule {rule} matches no leak ({file}:{line}).",
		      { "rule", VALUE_TEXT }, { "file", VALUE_TEXT }, { "line", VALUE_NUMBER });

	report_begin_table(report, &table);
	for (size_t i = 0; i < suppressions->count; i++) {
		const struct suppression *rule = &suppressions->list[i];

		if (rule->matched)
			continue;
		report_row(report, rule->text, rule->path, rule->line);
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
	static const struct table table =
		TABLE("check", "Check {outcome} ({rule}): {value,} {what}, {limit,} allowed",
		      { "rule", VALUE_TEXT }, { "what", VALUE_TEXT }, { "limit", VALUE_COUNT },
		      { "value", VALUE_COUNT }, { "outcome", VALUE_TEXT });

	report_begin_table(report, &table);
	for (size_t i = 0; i < count; i++) {
		_cleanup_(free) char *rule = gate_check_rule(&checks[i]);
		_cleanup_(free) char *what = gate_check_what(&checks[i]);

		if (!rule || !what)
			report->error = &error_no_memory;
		report_row(report, rule ? rule : "", what ? what : "", checks[i].limit->limit,
			   checks[i].value, gate_check_failed(&checks[i]) ? "failed" : "passed");
	}
	report_end_table(report);
}

void gate_write_outcome(struct report *report, const struct gate_outcome *outcome)
{
	static const struct table table = TABLE(
		"gate",
		"Gate {outcome}: {leaks,} leaked allocations of {bytes,} bytes count, {suppressed,} are suppressed, {known,} are known by the baseline.",
		{ "outcome", VALUE_TEXT }, { "leaks", VALUE_COUNT }, { "bytes", VALUE_BYTES },
		{ "suppressed", VALUE_COUNT }, { "known", VALUE_COUNT });

	report_single(report, &table, outcome->name, outcome->leaked.count, outcome->leaked.bytes,
		      outcome->suppressed, outcome->known);
}
