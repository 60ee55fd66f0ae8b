/*
 * Objects of Guile, which are known by their first word: its lowest bits are a tag that no other
 * word begins with which may stand first in a pair. The layouts are those of Guile 2.2 and 3.0,
 * libguile/scm.h and the headers of the types.
 *
 *	pair      | value | value |
 *	struct    | its vtable + 1 | fields ...
 *	symbol    | 05 | text | hash | properties |
 *	variable  | 07 | value |
 *	vector    | 0d, length << 8 | values ...
 *	string    | 15 | text | start | length |
 *	number    | 0217 | a real |
 *	          | 0117 | large integer ...
 *	          | 0317 | real | imaginary |
 *	          | 0417 | numerator | denominator |
 *	hash      | 1d | vector | ...
 *	text      | 27 | length | characters ... 0 |
 *	keyword   | 35 | symbol |
 *	procedure | 45, captured << 16 | code | captured ...
 *	bytes     | 4d | length | first byte | owner | bytes ...
 *
 * A value is an object's address, which ends in 000, a small number in 10, or a constant in 100.
 */
#ifndef ANALYZER_CLASSIFY_GUILE_H
#define ANALYZER_CLASSIFY_GUILE_H

#include "analyzer/classify/classifier.h"

enum guile_kind {
	GUILE_NONE,
	GUILE_PAIR,
	GUILE_STRUCT,
	GUILE_SYMBOL,
	GUILE_VARIABLE,
	GUILE_VECTOR,
	GUILE_STRING,
	GUILE_FLONUM,
	GUILE_BIGNUM,
	GUILE_COMPLEX,
	GUILE_FRACTION,
	GUILE_HASH_TABLE,
	GUILE_TEXT,
	GUILE_KEYWORD,
	GUILE_PROCEDURE,
	GUILE_BYTEVECTOR,
};

/* Claim the allocation if it is of that kind. */
void guile_claim(struct reader *reader, const struct subject *subject, enum guile_kind kind);

#endif
