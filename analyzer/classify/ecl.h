/*
 * Objects of ECL (Embeddable Common Lisp), which but for conses begin with the number of their
 * type. That is one byte, and the numbers depend on how ECL was built: these are those of 20 to 24
 * with complex floats and Unicode, as it is by default. Of other builds, only numbers and conses
 * are known, as every object is checked for what it must refer to. The layouts are those of
 * ecl/object.h.
 *
 *	cons      | value | value |
 *	bignum    | 4 | room, length | digits |
 *	ratio     | 5 | denominator | numerator |
 *	floats    | 6, single |   | 7 | double |
 *	symbol    | 13 | value | function | properties | name | C name | package
 *	package   | 14 | name | nicknames ...
 *	hash      | 15 | entries | lock | test | hash | count | room ...
 *	array     | 16, elements' type | other | length | dimensions | elements
 *	vector    | 17, elements' type | other | room | length | elements
 *	string    | 18 |              the same
 *	base      | 19 |              the same
 *	functions | 25 to 29 | name or code ...
 *	instance  | 30 | length | class | entry | description | slots
 *
 * A value is an object's address, which ends in 00, that of a cons and 1, or a character or number,
 * which ends in 10 or 11. The empty list is 1.
 */
#ifndef ANALYZER_CLASSIFY_ECL_H
#define ANALYZER_CLASSIFY_ECL_H

#include "analyzer/classify/classifier.h"

enum ecl_kind {
	ECL_NONE,
	ECL_CONS,
	ECL_BIGNUM,
	ECL_RATIO,
	ECL_SINGLE_FLOAT,
	ECL_DOUBLE_FLOAT,
	ECL_SYMBOL,
	ECL_PACKAGE,
	ECL_HASH_TABLE,
	ECL_ARRAY,
	ECL_VECTOR,
	ECL_STRING,
	ECL_FUNCTION,
	ECL_INSTANCE,
};

/* Claim the allocation if it is of that kind. */
void ecl_claim(struct reader *reader, const struct subject *subject, enum ecl_kind kind);

/* Claim what an object of that kind keeps its contents in, if it is one. */
void ecl_claim_contents(struct reader *reader, const struct subject *subject, enum ecl_kind kind);

#endif
