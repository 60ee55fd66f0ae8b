/*
 * Tables as the gate writes them, to be reported in a format for the gate.
 */
#ifndef TESTS_ANALYZER_REPORT_FORMATS_GATE_TABLES_H
#define TESTS_ANALYZER_REPORT_FORMATS_GATE_TABLES_H

#include "tests/analyzer/report/reported.h"

static inline void report_leak(struct report *report, const char *state, const char *kind)
{
	static const struct column columns[] = {
		{ "fingerprint", VALUE_TEXT },	{ "verdict", VALUE_TEXT },
		{ "state", VALUE_TEXT },	{ "kind", VALUE_TEXT },
		{ "size", VALUE_BYTES },	{ "roots", VALUE_COUNT },
		{ "allocations", VALUE_COUNT }, { "bytes", VALUE_BYTES },
		{ "address", VALUE_ADDRESS },
	};
	static const struct table table = { "leak", columns, 9, NULL };

	report_begin_table(report, &table);
	report_text(report, "00000000000000ab");
	report_text(report, "certain");
	report_text(report, state);
	report_text(report, kind);
	report_number(report, 56);
	report_number(report, 2);
	report_number(report, 3);
	report_number(report, 168);
	report_number(report, 0x7f0010);
	report_end_row(report);
	report_end_table(report);
}

static inline void report_gone(struct report *report)
{
	static const struct column columns[] = {
		{ "fingerprint", VALUE_TEXT },
		{ "kind", VALUE_TEXT },
		{ "size", VALUE_BYTES },
		{ "roots", VALUE_COUNT },
	};
	static const struct table table = { "gone", columns, 4, NULL };

	report_begin_table(report, &table);
	report_text(report, "00000000000000cd");
	report_text(report, "app::Order");
	report_number(report, 40);
	report_number(report, 5);
	report_end_row(report);
	report_end_table(report);
}

static inline void report_check(struct report *report, const char *outcome)
{
	static const struct column columns[] = {
		{ "rule", VALUE_TEXT },	  { "what", VALUE_TEXT },    { "limit", VALUE_COUNT },
		{ "value", VALUE_COUNT }, { "outcome", VALUE_TEXT },
	};
	static const struct table table = { "check", columns, 5, NULL };

	report_begin_table(report, &table);
	report_text(report, "--max-leaked 1");
	report_text(report, "leaked allocations");
	report_number(report, 1);
	report_number(report, 3);
	report_text(report, outcome);
	report_end_row(report);
	report_end_table(report);
}

/* What the report is by now, closed; to be freed. */
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

#endif
