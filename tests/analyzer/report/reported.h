/*
 * Reports whose output is compared with what it must be.
 */
#ifndef TESTS_ANALYZER_REPORT_REPORTED_H
#define TESTS_ANALYZER_REPORT_REPORTED_H

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

static inline void reported_open(struct reported *reported, const char *format,
				 bool colour)
{
	reported->file = open_memstream(&reported->text, &reported->size);
	assert_non_null(reported->file);
	assert_no_error(report_open(format_of(format), reported->file, colour,
				    &reported->report));
}

static inline void reported_close(struct reported *reported,
				  const char *expected)
{
	assert_no_error(report_close(&reported->report));
	fclose(reported->file);
	assert_string_equal(reported->text, expected);
	free(reported->text);
}

#endif
