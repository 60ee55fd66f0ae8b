/*
 * JSON as heapcore writes it: the keys and values of rows.
 *
 * A key is the name of a column, with _ for blanks. Amounts are numbers. Addresses are text with
 * 0x, as commands take them; what is absent is null; contents are text, two hexadecimal digits a
 * byte, ?? for one that is absent. Text is what the dump has, with JSON's escapes; a byte of it
 * that is no UTF-8 becomes \xNN, in text.
 */
#ifndef ANALYZER_REPORT_JSON_H
#define ANALYZER_REPORT_JSON_H

#include "analyzer/report/report.h"
#include "analyzer/report/writer.h"

/* In quotes. */
void json_text(struct writer *writer, const char *text);

/* A path as a relative or file URI, in quotes. */
void json_uri(struct writer *writer, const char *path);

/* "name": */
void json_key(struct writer *writer, const char *name);

void json_truth(struct writer *writer, bool truth);

/* The members of a finding's object. */
void json_finding(struct writer *writer, const struct finding *finding);

void json_value(struct writer *writer, enum value_kind kind, const struct value *value);

#endif
