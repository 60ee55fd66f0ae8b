/*
 * Tables as the gate writes them, to be reported in a format for the gate.
 */
#pragma once

#include "tests/analyzer/report/reported.h"

static inline void report_leak(struct report *report, const char *state, const char *kind)
{
	static const struct table table = TABLE(
		"leak", NULL, { "fingerprint", VALUE_TEXT }, { "verdict", VALUE_TEXT },
		{ "state", VALUE_TEXT }, { "kind", VALUE_TEXT }, { "size", VALUE_BYTES },
		{ "roots", VALUE_COUNT }, { "allocations", VALUE_COUNT }, { "bytes", VALUE_BYTES },
		{ "address", VALUE_ADDRESS }, { "label", VALUE_TEXT });

	report_single(report, &table, "00000000000000ab", "certain", state, kind, 56, 2, 3, 168,
		      0x7f0010, kind);
}

static inline void report_gone(struct report *report)
{
	static const struct table table =
		TABLE("gone", NULL, { "fingerprint", VALUE_TEXT }, { "kind", VALUE_TEXT },
		      { "size", VALUE_BYTES }, { "roots", VALUE_COUNT });

	report_single(report, &table, "00000000000000cd", "app::Order", 40, 5);
}

static inline void report_check_of(struct report *report, const char *rule, const char *outcome)
{
	static const struct table table = TABLE(
		"check", NULL, { "rule", VALUE_TEXT }, { "what", VALUE_TEXT },
		{ "limit", VALUE_COUNT }, { "value", VALUE_COUNT }, { "outcome", VALUE_TEXT });

	report_single(report, &table, rule, "leaked allocations", 1, 3, outcome);
}

static inline void report_check(struct report *report, const char *outcome)
{
	report_check_of(report, "--max-leaked 1", outcome);
}

static inline void report_new_leak(struct report *report, const char *kind)
{
	static const struct table table =
		TABLE("new leak", NULL, { "fingerprint", VALUE_TEXT }, { "kind", VALUE_TEXT },
		      { "cores", VALUE_COUNT }, { "hosts", VALUE_COUNT }, { "bytes", VALUE_BYTES },
		      { "allocated by", VALUE_TEXT }, { "build", VALUE_TEXT },
		      { "most", VALUE_BYTES }, { "most in", VALUE_TEXT });

	report_single(report, &table, "00000000000000ef", kind, 3, 2, 168, ABSENT, "1.5", 56,
		      "web1/core 1");
}

static inline void report_leaked_too_much(struct report *report)
{
	static const struct table table =
		TABLE("leaked too much", NULL, { "core", VALUE_TEXT }, { "host", VALUE_TEXT },
		      { "build", VALUE_TEXT }, { "bytes", VALUE_BYTES });

	report_begin_table(report, &table);
	report_row(report, "web2/core", "web2", "1.5", 9000);
	report_row(report, "web3/core", "web3", "1.5", 8000);
	report_end_table(report);
}

static inline void report_outcome(struct report *report, const char *outcome)
{
	static const struct table table = TABLE("gate", NULL, { "outcome", VALUE_TEXT });

	report_single(report, &table, outcome);
}

/* Close the report and return its text so far; to be freed. */
static inline char *reported_end(struct reported *reported)
{
	assert_no_error(report_close(&reported->report));
	fclose(reported->file);
	return reported->text;
}

static inline void assert_has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("'%s' is not in\n%s", part, text);
}

static inline void assert_has_not(const char *text, const char *part)
{
	if (strstr(text, part))
		fail_msg("'%s' is in\n%s", part, text);
}
