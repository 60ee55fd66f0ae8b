#include "analyzer/classify/guile.h"

#include "analyzer/classify/lisp.h"

enum { WORD = 8, PAIR_SIZE = 16, HEADER_BITS = 48 };

/* By the tag alone. */
static enum guile_kind kind_told(uint64_t word)
{
	/* Complements of addresses, by which collectors hide them, do not. */
	if (word >> HEADER_BITS != 0 && (word & 0x7f) != 0x0d)
		return GUILE_NONE;
	if ((word & 1) == 0)
		return GUILE_PAIR;
	if ((word & 7) == 1)
		return GUILE_STRUCT;
	switch (word & 0x7f) {
	case 0x05:
		return GUILE_SYMBOL;
	case 0x07:
		return GUILE_VARIABLE;
	case 0x0d:
		return GUILE_VECTOR;
	case 0x15:
		return GUILE_STRING;
	case 0x1d:
		return GUILE_HASH_TABLE;
	case 0x27:
		return GUILE_TEXT;
	case 0x35:
		return GUILE_KEYWORD;
	case 0x45:
		return GUILE_PROCEDURE;
	case 0x4d:
		return GUILE_BYTEVECTOR;
	case 0x17:
		break;
	default:
		return GUILE_NONE;
	}
	switch (word & 0xffff) {
	case 0x117:
		return GUILE_BIGNUM;
	case 0x217:
		return GUILE_FLONUM;
	case 0x317:
		return GUILE_COMPLEX;
	case 0x417:
		return GUILE_FRACTION;
	default:
		return GUILE_NONE;
	}
}

static bool is_value(struct reader *reader, uint64_t word)
{
	if ((word & 3) == 2 || (word & 7) == 4)
		return true;
	return (word & 7) == 0 && lisp_is_address(reader, word);
}

/* Whether an object of that kind is at address. */
static bool leads_to(struct reader *reader, uint64_t address, enum guile_kind kind)
{
	uint64_t word;

	return lisp_is_address(reader, address) && reader_word(reader, address, &word) &&
	       kind_told(word) == kind;
}

/* A part of a text, or of what shares it with others. */
static bool is_string(struct reader *reader, const struct subject *subject)
{
	uint64_t text = lisp_word(subject, 1);

	return lisp_size_fits(range_size(subject->range), 4 * WORD) &&
	       (leads_to(reader, text, GUILE_TEXT) || leads_to(reader, text, GUILE_STRING));
}

/* One byte for a character, or four; and a 0 behind them. */
static bool is_text(const struct subject *subject)
{
	enum { WIDE = 0x400 };
	uint64_t length = lisp_word(subject, 1);
	uint64_t size = range_size(subject->range);
	uint64_t each = lisp_word(subject, 0) & WIDE ? 4 : 1;

	return length < size / each && lisp_size_fits(size, 2 * WORD + (length + 1) * each);
}

static bool is_bytevector(const struct subject *subject)
{
	uint64_t length = lisp_word(subject, 1);
	uint64_t size = range_size(subject->range);

	/* Its bytes follow, or are somewhere else. */
	if (lisp_word(subject, 2) == subject->range.start + 4 * WORD)
		return length < size && lisp_size_fits(size, 4 * WORD + length);
	return lisp_size_fits(size, 4 * WORD);
}

static bool is_bignum(const struct subject *subject)
{
	uint64_t sizes = lisp_word(subject, 1);
	uint64_t room = (uint32_t)sizes, size = range_size(subject->range);

	/* Its digits follow, and all that there is room for. */
	return lisp_word(subject, 2) == subject->range.start + 3 * WORD
		       ? room < size && lisp_size_fits(size, 3 * WORD + room * WORD)
		       : lisp_size_fits(size, 3 * WORD);
}

static bool is_struct(struct reader *reader, const struct subject *subject)
{
	return range_size(subject->range) >= 2 * WORD &&
	       leads_to(reader, lisp_word(subject, 0) & ~UINT64_C(7), GUILE_STRUCT);
}

static bool is_procedure(struct reader *reader, const struct subject *subject)
{
	uint64_t captured = lisp_word(subject, 0) >> 16;
	uint64_t size = range_size(subject->range);

	return captured < size && lisp_size_fits(size, (2 + captured) * WORD) &&
	       image_find(reader->image, lisp_word(subject, 1)) != NULL;
}

/* Cells and others with nothing but values in them. */
static bool are_values(struct reader *reader, const struct subject *subject, size_t first,
		       size_t end)
{
	if (!lisp_size_fits(range_size(subject->range), end * WORD))
		return false;
	for (size_t i = first; i < end; i++)
		if (!is_value(reader, lisp_word(subject, i)))
			return false;
	return true;
}

static bool is_vector(struct reader *reader, const struct subject *subject)
{
	uint64_t length = lisp_word(subject, 0) >> 8;
	uint64_t size = range_size(subject->range);

	return length < size / WORD && lisp_size_fits(size, (1 + length) * WORD) &&
	       (length == 0 || is_value(reader, lisp_word(subject, 1)));
}

/* The tag is right; is the rest of it? */
static bool agrees(struct reader *reader, const struct subject *subject, enum guile_kind kind)
{
	uint64_t size = range_size(subject->range);

	switch (kind) {
	case GUILE_PAIR:
		return size == PAIR_SIZE && are_values(reader, subject, 0, 2);
	case GUILE_STRUCT:
		return is_struct(reader, subject);
	case GUILE_SYMBOL:
		return lisp_size_fits(size, 4 * WORD) &&
		       leads_to(reader, lisp_word(subject, 1), GUILE_TEXT);
	case GUILE_VARIABLE:
		return size == PAIR_SIZE && are_values(reader, subject, 1, 2);
	case GUILE_VECTOR:
		return is_vector(reader, subject);
	case GUILE_STRING:
		return is_string(reader, subject);
	case GUILE_FLONUM:
		return lisp_size_fits(size, 2 * WORD);
	case GUILE_COMPLEX:
		return lisp_size_fits(size, 3 * WORD);
	case GUILE_FRACTION:
		return are_values(reader, subject, 1, 3);
	case GUILE_BIGNUM:
		return is_bignum(subject);
	case GUILE_HASH_TABLE:
		return lisp_size_fits(size, 4 * WORD) &&
		       leads_to(reader, lisp_word(subject, 1), GUILE_VECTOR);
	case GUILE_TEXT:
		return is_text(subject);
	case GUILE_KEYWORD:
		return size == PAIR_SIZE && leads_to(reader, lisp_word(subject, 1), GUILE_SYMBOL);
	case GUILE_PROCEDURE:
		return is_procedure(reader, subject);
	case GUILE_BYTEVECTOR:
		return is_bytevector(subject);
	case GUILE_NONE:
		break;
	}
	return false;
}

/* Of which kinds there are some without pointers. */
static bool may_be_plain(enum guile_kind kind)
{
	return kind == GUILE_FLONUM || kind == GUILE_COMPLEX || kind == GUILE_BIGNUM ||
	       kind == GUILE_TEXT || kind == GUILE_BYTEVECTOR;
}

void guile_claim(struct reader *reader, const struct subject *subject, enum guile_kind kind)
{
	if (kind_told(lisp_word(subject, 0)) == kind && lisp_is_object(reader, subject->id) &&
	    (may_be_plain(kind) || !lisp_is_plain(reader, subject->id)) &&
	    agrees(reader, subject, kind))
		reader_claim(reader, subject->id, 0);
}
