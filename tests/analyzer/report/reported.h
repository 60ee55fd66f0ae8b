/*
 * Reports whose output is compared with what it must be.
 */
#pragma once

#include "analyzer/report/report.h"
#include "tests/assertions.h"

#include <string.h>

/* A report into memory. It must stay where it is. */
struct reported {
	struct report report;
	char *text;
	size_t size;
	FILE *file;
};

static inline const struct report_format *format_of(const char *name)
{
	size_t i = 0;

	while (report_formats[i] && strcmp(report_formats[i]->name, name) != 0)
		i++;
	assert_non_null(report_formats[i]);
	return report_formats[i];
}

static inline void reported_open(struct reported *reported, const char *format, bool colour)
{
	reported->file = open_memstream(&reported->text, &reported->size);
	assert_non_null(reported->file);
	assert_no_error(report_open(format_of(format), reported->file, colour, &reported->report));
}

static inline void reported_close(struct reported *reported, const char *expected)
{
	assert_no_error(report_close(&reported->report));
	fclose(reported->file);
	assert_string_equal(reported->text, expected);
	free(reported->text);
}

/* A row with a value of each kind, the text hostile, the count absent. */
static inline void report_sample(struct report *report)
{
	static const struct table table =
		TABLE("allocation", "Only text has sentences.", { "address", VALUE_ADDRESS },
		      { "size", VALUE_BYTES }, { "the count", VALUE_COUNT },
		      { "seconds", VALUE_SECONDS }, { "name", VALUE_TEXT });

	report_single(report, &table, 0x7f0010, 1640, ABSENT, 0.25,
		      "map<\"a|b\">\t\n\x1b\xff \xc3\xa4");
}

/* Rows with a share of a whole each: half, a little, next to nothing, none. */
static inline void report_shares(struct report *report)
{
	static const double shares[] = { 0.5, 0.025, 0.001, 0 };
	static const struct table table =
		TABLE("part", NULL, { "share", VALUE_SHARE }, { "count", VALUE_COUNT });

	report_begin_table(report, &table);
	for (size_t i = 0; i < sizeof(shares) / sizeof(shares[0]); i++)
		report_row(report, shares[i], i);
	report_end_table(report);
}
