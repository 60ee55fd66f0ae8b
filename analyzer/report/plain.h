/*
 * What the formats for programs have in common: all they keep is a writer, and values are written
 * as they are, without separators between thousands.
 */
#ifndef ANALYZER_REPORT_PLAIN_H
#define ANALYZER_REPORT_PLAIN_H

#include "analyzer/report/report.h"
#include "analyzer/report/writer.h"

/* A format's open() and close(), whose state is a struct writer. */
struct error *plain_open(struct report *report);
void plain_close(struct report *report);

/* A format's end_table(). */
void plain_end_table(struct report *report);

/* Two hexadecimal digits a byte; in between, in words, how many are absent. */
void plain_contents(struct writer *writer, const struct memory_view *view);

/* Amounts are decimal, addresses hexadecimal with 0x; text is write_text's. */
void plain_value(struct writer *writer, enum value_kind kind, const struct value *value,
		 void (*write_text)(struct writer *writer, const char *text));

#endif
