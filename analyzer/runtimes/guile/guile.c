/*
 * Objects of Guile, recognised by their first word: its lowest bits are a tag that no value, which
 * may be the first word of a pair, has. The layouts are those of Guile 2.2 and 3.0, libguile/scm.h
 * and the headers of the types.
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
#include "analyzer/runtimes/lisp.h"

enum guile_kind {
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

enum { WORD = 8, PAIR_SIZE = 16, HEADER_BITS = 48 };

static bool has_tag(uint64_t word, enum guile_kind kind)
{
	static const struct {
		uint16_t mask, tag;
	} tags[] = {
		[GUILE_PAIR] = { 0x01, 0x00 },	      [GUILE_STRUCT] = { 0x07, 0x01 },
		[GUILE_SYMBOL] = { 0x7f, 0x05 },      [GUILE_VARIABLE] = { 0x7f, 0x07 },
		[GUILE_VECTOR] = { 0x7f, 0x0d },      [GUILE_STRING] = { 0x7f, 0x15 },
		[GUILE_HASH_TABLE] = { 0x7f, 0x1d },  [GUILE_TEXT] = { 0x7f, 0x27 },
		[GUILE_KEYWORD] = { 0x7f, 0x35 },     [GUILE_PROCEDURE] = { 0x7f, 0x45 },
		[GUILE_BYTEVECTOR] = { 0x7f, 0x4d },  [GUILE_BIGNUM] = { 0xffff, 0x117 },
		[GUILE_FLONUM] = { 0xffff, 0x217 },   [GUILE_COMPLEX] = { 0xffff, 0x317 },
		[GUILE_FRACTION] = { 0xffff, 0x417 },
	};

	/* Only lengths reach that far up; complements of addresses, which collectors hide, do. */
	if (word >> HEADER_BITS != 0 && kind != GUILE_VECTOR)
		return false;
	return (word & tags[kind].mask) == tags[kind].tag;
}

static bool is_value(struct reader *reader, uint64_t word)
{
	if ((word & 3) == 2 || (word & 7) == 4)
		return true;
	return (word & 7) == 0 && lisp_is_address(reader, word);
}

/* True if an object of that kind is at address. */
static bool leads_to(struct reader *reader, uint64_t address, enum guile_kind kind)
{
	uint64_t word;

	return lisp_is_address(reader, address) && reader_word(reader, address, &word) &&
	       has_tag(word, kind);
}

/* A part of a text, or of another string that shares it. */
static bool is_string(struct reader *reader, const struct subject *subject)
{
	uint64_t text = lisp_word(subject, 1);

	return lisp_fits(subject, 4 * WORD) &&
	       (leads_to(reader, text, GUILE_TEXT) || leads_to(reader, text, GUILE_STRING));
}

/* One byte for a character, or four; and a 0 behind them. */
static bool is_text(const struct subject *subject)
{
	enum { WIDE = 0x400 };
	uint64_t length = lisp_word(subject, 1);
	uint64_t each = lisp_word(subject, 0) & WIDE ? 4 : 1;

	return length < range_size(subject->range) / each &&
	       lisp_fits(subject, 2 * WORD + (length + 1) * each);
}

static bool is_bytevector(const struct subject *subject)
{
	uint64_t length = lisp_word(subject, 1);

	/* Its bytes follow, or are somewhere else. */
	if (lisp_word(subject, 2) != subject->range.start + 4 * WORD)
		length = 0;
	return length < range_size(subject->range) && lisp_fits(subject, 4 * WORD + length);
}

static bool is_bignum(const struct subject *subject)
{
	uint64_t sizes = lisp_word(subject, 1);
	uint64_t room = (uint32_t)sizes;

	/* Its digits follow, and all that there is room for, or are somewhere else. */
	if (lisp_word(subject, 2) != subject->range.start + 3 * WORD)
		room = 0;
	return lisp_fits(subject, (3 + room) * WORD);
}

static bool is_struct(struct reader *reader, const struct subject *subject)
{
	return range_size(subject->range) >= 2 * WORD &&
	       leads_to(reader, lisp_word(subject, 0) & ~UINT64_C(7), GUILE_STRUCT);
}

static bool is_procedure(struct reader *reader, const struct subject *subject)
{
	uint64_t captured = lisp_word(subject, 0) >> 16;

	return captured < range_size(subject->range) && lisp_fits(subject, (2 + captured) * WORD) &&
	       image_find(reader->image, lisp_word(subject, 1)) != NULL;
}

/* Cells and others that hold nothing but values. */
static bool are_values(struct reader *reader, const struct subject *subject, size_t first,
		       size_t end)
{
	if (!lisp_fits(subject, end * WORD))
		return false;
	for (size_t i = first; i < end; i++)
		if (!is_value(reader, lisp_word(subject, i)))
			return false;
	return true;
}

static bool is_vector(struct reader *reader, const struct subject *subject)
{
	uint64_t length = lisp_word(subject, 0) >> 8;

	return length < range_size(subject->range) / WORD &&
	       lisp_fits(subject, (1 + length) * WORD) &&
	       (length == 0 || is_value(reader, lisp_word(subject, 1)));
}

/* True if the rest of an object with that tag fits. */
static bool agrees(struct reader *reader, const struct subject *subject, enum guile_kind kind)
{
	uint64_t size = range_size(subject->range);

	switch (kind) {
	case GUILE_PAIR:
		return size == PAIR_SIZE && are_values(reader, subject, 0, 2);
	case GUILE_STRUCT:
		return is_struct(reader, subject);
	case GUILE_SYMBOL:
		return lisp_fits(subject, 4 * WORD) &&
		       leads_to(reader, lisp_word(subject, 1), GUILE_TEXT);
	case GUILE_VARIABLE:
		return size == PAIR_SIZE && are_values(reader, subject, 1, 2);
	case GUILE_VECTOR:
		return is_vector(reader, subject);
	case GUILE_STRING:
		return is_string(reader, subject);
	case GUILE_FLONUM:
		return lisp_fits(subject, 2 * WORD);
	case GUILE_COMPLEX:
		return lisp_fits(subject, 3 * WORD);
	case GUILE_FRACTION:
		return are_values(reader, subject, 1, 3);
	case GUILE_BIGNUM:
		return is_bignum(subject);
	case GUILE_HASH_TABLE:
		return lisp_fits(subject, 4 * WORD) &&
		       leads_to(reader, lisp_word(subject, 1), GUILE_VECTOR);
	case GUILE_TEXT:
		return is_text(subject);
	case GUILE_KEYWORD:
		return size == PAIR_SIZE && leads_to(reader, lisp_word(subject, 1), GUILE_SYMBOL);
	case GUILE_PROCEDURE:
		return is_procedure(reader, subject);
	case GUILE_BYTEVECTOR:
		return is_bytevector(subject);
	}
	return false;
}

/* Objects without pointers are shown only to classifiers of kinds that may have none. */
static void inspect(struct reader *reader, const struct subject *subject)
{
	enum guile_kind kind = (enum guile_kind)reader_kind(reader);

	if (has_tag(lisp_word(subject, 0), kind) && lisp_is_object(reader, subject->id) &&
	    agrees(reader, subject, kind))
		reader_claim(reader, subject->id, 0);
}

const struct runtime runtime_guile = {
	.name = "guile",
	.modules = "libguile-",
};

#define GUILE(...) .runtime = &runtime_guile, .inspect = inspect, __VA_ARGS__

CLASSIFIER(guile_bignum, "GuileBignum", "an integer of Guile that is too large for a word",
	   "a large integer of Guile",
	   GUILE(.kind = GUILE_BIGNUM, .strength = STRENGTH_MARKED, .pointerless = true));
CLASSIFIER(guile_bytevector, "GuileBytevector", "a bytevector or uniform vector of Guile",
	   "a bytevector of Guile",
	   GUILE(.kind = GUILE_BYTEVECTOR, .strength = STRENGTH_MARKED, .pointerless = true));
CLASSIFIER(guile_complex, "GuileComplex", "a complex number of Guile", "a complex number of Guile",
	   GUILE(.kind = GUILE_COMPLEX, .strength = STRENGTH_MARKED, .pointerless = true));
CLASSIFIER(guile_flonum, "GuileFlonum", "a real number of Guile", "a real number of Guile",
	   GUILE(.kind = GUILE_FLONUM, .strength = STRENGTH_MARKED, .pointerless = true));
CLASSIFIER(guile_fraction, "GuileFraction", "a fraction of Guile", "a fraction of Guile",
	   GUILE(.kind = GUILE_FRACTION, .strength = STRENGTH_MARKED));
CLASSIFIER(guile_hash_table, "GuileHashTable", "a hash table of Guile, without its vector",
	   "a hash table of Guile", GUILE(.kind = GUILE_HASH_TABLE, .strength = STRENGTH_MARKED));
CLASSIFIER(guile_keyword, "GuileKeyword", "a keyword of Guile", "a keyword of Guile",
	   GUILE(.kind = GUILE_KEYWORD, .strength = STRENGTH_MARKED));
CLASSIFIER(guile_pair, "GuilePair", "a pair of Guile, as lists are made of", "a pair of Guile",
	   GUILE(.kind = GUILE_PAIR, .strength = STRENGTH_CHAIN));
CLASSIFIER(guile_procedure, "GuileProcedure", "a procedure of Guile and what it captured",
	   "a procedure of Guile", GUILE(.kind = GUILE_PROCEDURE, .strength = STRENGTH_MARKED));
CLASSIFIER(guile_string, "GuileString", "a string of Guile, without its characters",
	   "a string of Guile", GUILE(.kind = GUILE_STRING, .strength = STRENGTH_MARKED));
CLASSIFIER(guile_struct, "GuileStruct", "a record or another structure of Guile",
	   "a structure of Guile", GUILE(.kind = GUILE_STRUCT, .strength = STRENGTH_MARKED));
CLASSIFIER(guile_symbol, "GuileSymbol", "a symbol of Guile", "a symbol of Guile",
	   GUILE(.kind = GUILE_SYMBOL, .strength = STRENGTH_MARKED));
CLASSIFIER(guile_text, "GuileText", "the characters of strings and symbols of Guile",
	   "the characters of strings or symbols of Guile",
	   GUILE(.kind = GUILE_TEXT, .strength = STRENGTH_MARKED, .pointerless = true));
CLASSIFIER(guile_variable, "GuileVariable",
	   "a variable of a module of Guile, or one that is shared by procedures",
	   "a variable of Guile", GUILE(.kind = GUILE_VARIABLE, .strength = STRENGTH_MARKED));
CLASSIFIER(guile_vector, "GuileVector", "a vector of Guile", "a vector of Guile",
	   GUILE(.kind = GUILE_VECTOR, .strength = STRENGTH_MARKED));
