/*
 * The values of a row, kept until its end and found by the names of columns.
 *
 * For formats that are about certain tables, as those of the gate: they make something of a whole
 * row, not of its values one by one.
 */
#ifndef ANALYZER_REPORT_KEPT_ROW_H
#define ANALYZER_REPORT_KEPT_ROW_H

#include "analyzer/report/report.h"

struct kept_row {
	const struct table *table;
	struct value values[MAXIMUM_COLUMNS];
	char *texts[MAXIMUM_COLUMNS]; /* copies; owned */
	bool failed;		      /* memory was short */
};

/* Take the report's next value. */
void kept_row_take(struct kept_row *row, const struct report *report, const struct value *value);

/* Forget all values. */
void kept_row_clear(struct kept_row *row);

/* "" if it is absent, or there is no such column. */
const char *kept_row_text(const struct kept_row *row, const char *column);

/* 0 if it is absent, or there is no such column. */
uint64_t kept_row_number(const struct kept_row *row, const char *column);

#endif
