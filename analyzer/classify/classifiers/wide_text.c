/*
 * Text of wide characters, known by its contents alone: those of wchar_t, of four bytes, or of
 * UTF-16, as in a std::wstring, a std::u16string or what wcsdup() returns.
 *
 *	| a 0 0 0 | line: 6c 0 0 0 69 0 0 0 ... | 0 0 0 0 |	room, or what stood there before |
 *
 * Small numbers look much the same. So the first characters must be of Latin, nearly all of them
 * letters, digits and spaces of ASCII, and a zero must end them: other scripts are not recognised.
 */
#include "analyzer/base/bitmap.h"
#include "analyzer/classify/classifier.h"
#include "analyzer/classify/text_words.h"

#include <string.h>

enum {
	LEAST_LENGTH = 8,    /* characters */
	LEAST_DIFFERENT = 4, /* of them */
	MOST_INSPECTED = 4096,
	WIDE = 4,
	NARROW = 2,
};

static uint32_t unit_at(const uint8_t *bytes, size_t unit)
{
	uint32_t wide;
	uint16_t narrow;

	if (unit == WIDE) {
		memcpy(&wide, bytes, sizeof(wide));
		return wide;
	}
	memcpy(&narrow, bytes, sizeof(narrow));
	return narrow;
}

static bool is_plain(uint32_t character)
{
	return (character >= 'a' && character <= 'z') || (character >= 'A' && character <= 'Z') ||
	       (character >= '0' && character <= '9') || character == ' ';
}

/* Punctuation, ends of lines, and letters of Latin with an accent. */
static bool is_other(uint32_t character)
{
	enum { FIRST_LATIN = 0xa1, LAST_LATIN = 0x24f };

	return (character > ' ' && character < 0x7f) || character == '\n' || character == '\t' ||
	       character == '\r' || (character >= FIRST_LATIN && character <= LAST_LATIN);
}

/* How many characters stand there up to a zero; 0: no text. */
static uint64_t find_length(const uint8_t *bytes, uint64_t size, size_t unit)
{
	uint64_t length = 0, plain = 0, seen = 0;
	uint32_t character = 0;

	for (; (length + 1) * unit <= size; length++) {
		character = unit_at(bytes + length * unit, unit);
		if (!is_plain(character) && !is_other(character))
			break;
		plain += is_plain(character);
		seen |= UINT64_C(1) << character % 64;
	}
	/* The end of a long one is not looked at. */
	if ((length + 1) * unit <= size ? character != 0 : size < MOST_INSPECTED)
		return 0;
	return length >= LEAST_LENGTH && bits_count(seen) >= LEAST_DIFFERENT &&
			       plain >= length / 4 * 3
		       ? length
		       : 0;
}

/* The size of a character there, judged by the first eight bytes; 0: none is wide. */
static size_t find_unit(const uint8_t *bytes)
{
	uint64_t first;

	memcpy(&first, bytes, sizeof(first));
	if (first != 0 && !(first & UINT64_C(0xfffffc00fffffc00)))
		return WIDE;
	return first != 0 && !(first & UINT64_C(0xfc00fc00fc00fc00)) ? NARROW : 0;
}

static void inspect_wide(struct reader *reader, const struct subject *subject)
{
	uint64_t size = subject->size < MOST_INSPECTED ? subject->size : MOST_INSPECTED;
	size_t unit = find_unit(subject->bytes);
	uint64_t length = unit ? find_length(subject->bytes, size, unit) : 0;
	uint64_t end = (length + 1) * unit;

	/* The bytes that the allocator added by rounding may have stale words. */
	if (end < size && range_size(subject->range) - end < 2 * reader->word)
		size = end;
	if (length && !text_has_address(reader, subject, 0, size, text_find_stale(reader, subject)))
		reader_claim(reader, subject->id, 0);
}

static void tell_wide(struct reader *reader, struct memory_range range, struct pattern_facts *facts)
{
	uint8_t bytes[MOST_INSPECTED];
	uint64_t size = range_size(range) < sizeof(bytes) ? range_size(range) : sizeof(bytes);

	if (size < sizeof(uint64_t) || !image_read(reader->image, range.start, bytes, size))
		return;
	facts->unit = "characters";
	facts->length = find_length(bytes, size, find_unit(bytes));
}

CLASSIFIER(wide_text, "WideString", "text of wide characters, by its contents",
	   "text of wide characters", .strength = STRENGTH_TEXT, .pointerless = true,
	   .inspect = inspect_wide, .tell = tell_wide, .least_size = LEAST_LENGTH * NARROW);
