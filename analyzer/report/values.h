/*
 * One value as text: for people, for programs, and in JSON.
 *
 * For people, numbers have separators where asked for. For programs, amounts are plain decimals,
 * addresses hexadecimal with 0x, contents of memory two hexadecimal digits a byte. In JSON, a key
 * is the name of a column, with _ for blanks; addresses and contents are text, and what is absent
 * is null. Text keeps what the dump has, with JSON's escapes; a byte that is no UTF-8 becomes \xNN.
 */
#pragma once

#include "analyzer/report/report.h"

void value_write(struct writer *writer, enum value_kind kind, bool grouped,
		 const struct value *value);

/*
 * The escape sequence in front of a value that has a colour: "passed", "failed", and text of a
 * column that names what an allocation is, such as "kind" or "type". Else NULL. COLOUR_END ends it.
 */
const char *value_colour(const struct column *column, const struct value *value);
#define COLOUR_END "\033[0m"

/* For programs; text is written by write_text. */
void plain_value(struct writer *writer, enum value_kind kind, const struct value *value,
		 void (*write_text)(struct writer *writer, const char *text));

/* In quotes; a path as a relative or file URI. */
void json_text(struct writer *writer, const char *text);
void json_bytes(struct writer *writer, const char *bytes, size_t size);
void json_uri(struct writer *writer, const char *path);

/* "name": */
void json_key(struct writer *writer, const char *name);
/* The kind's name for pages in HTML. */
const char *value_kind_name(enum value_kind kind);
void json_value(struct writer *writer, enum value_kind kind, const struct value *value);

/* The members of a finding's object. */
void json_finding(struct writer *writer, const struct finding *finding);

/* For an attribute or an element alike. */
void xml_text(struct writer *writer, const char *text);

static inline const char *json_truth(bool truth)
{
	return truth ? "true" : "false";
}
