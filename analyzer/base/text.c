#include "analyzer/base/text.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

/*
 * The number that word begins with; *ret_end is word itself if there is none, or it does not fit.
 */
static uint64_t parse_digits(const char *word, unsigned int base, const char **ret_end)
{
	const char *position = word;
	uint64_t number = 0;

	for (; isxdigit((unsigned char)*position); position++) {
		unsigned char letter = (unsigned char)tolower(*position);
		unsigned int digit =
			isdigit(letter) ? letter - (unsigned)'0' : letter - (unsigned)'a' + 10;

		if (digit >= base)
			break;
		if (__builtin_mul_overflow(number, base, &number) ||
		    __builtin_add_overflow(number, digit, &number)) {
			*ret_end = word;
			return 0;
		}
	}
	*ret_end = position;
	return number;
}

static bool has_prefix(const char *word)
{
	return word[0] == '0' && tolower((unsigned char)word[1]) == 'x';
}

static bool parse_hexadecimal(const char *word, uint64_t *ret)
{
	const char *digits = word, *end;
	uint64_t number;

	if (has_prefix(word))
		digits += 2;
	number = parse_digits(digits, 16, &end);
	if (end == digits || *end)
		return false;
	*ret = number;
	return true;
}

/* A decimal number, perhaps followed by K, M or G. */
static bool parse_decimal(const char *word, uint64_t *ret)
{
	static const char units[] = "KMG";
	const char *end, *unit;
	uint64_t number = parse_digits(word, 10, &end);

	if (end == word || (*end && end[1]))
		return false;
	if (*end) {
		unit = strchr(units, toupper((unsigned char)*end));
		if (!unit || __builtin_mul_overflow(
				     number, UINT64_C(1) << (10 * (unit - units + 1)), &number))
			return false;
	}
	*ret = number;
	return true;
}

struct error *error_not(const char *word, const char *what)
{
	_cleanup_(free) char *escaped = escape_text(word);

	TRY_MEMORY(escaped);
	return error_create(ERROR_USAGE, "'%s' is not %s", escaped, what);
}

struct error *parse_address(const char *word, uint64_t *ret)
{
	if (!parse_hexadecimal(word, ret))
		return error_not(word, "an address");
	return NULL;
}

struct error *parse_size(const char *word, uint64_t *ret)
{
	if (has_prefix(word) ? parse_hexadecimal(word, ret) : parse_decimal(word, ret))
		return NULL;
	return error_not(word,
			 is_address(word) ? "a size: hexadecimal ones begin with 0x" : "a size");
}

const char *spell_hexadecimal(const char *word, char buffer[static NUMBER_SIZE])
{
	if (has_prefix(word) || !is_address(word) || strlen(word) > NUMBER_SIZE - 3)
		return word;
	snprintf(buffer, NUMBER_SIZE, "0x%s", word);
	return buffer;
}

const char *in_largest_unit(uint64_t bytes, char buffer[static NUMBER_SIZE])
{
	static const char units[] = "KMGTPE";
	const char *unit = units;
	double amount = (double)bytes / 1024;

	/* A number that rounds to 1024.0 becomes 1.0 of the next unit. */
	for (; amount >= 1023.95 && unit[1]; unit++)
		amount /= 1024;
	snprintf(buffer, NUMBER_SIZE, "%.1f %ciB", amount, *unit);
	return buffer;
}

const char *format_size(uint64_t size, char buffer[static SIZE_SIZE])
{
	char number[NUMBER_SIZE];

	snprintf(buffer, SIZE_SIZE, "%s (0x%" PRIx64 ")", grouped(size, number), size);
	return buffer;
}

struct error *parse_count(const char *word, uint64_t *ret)
{
	const char *end;
	uint64_t number = parse_digits(word, 10, &end);

	if (end == word || *end)
		return error_not(word, "a count");
	*ret = number;
	return NULL;
}

struct error *parse_time(const char *word, uint64_t *ret)
{
	static const char units[] = "smhd";
	static const uint64_t seconds[] = { 1, 60, 3600, 86400 };
	enum { SECOND = 1000000000, MOST_SECONDS = INT32_MAX };
	const char *end;
	uint64_t number = parse_digits(word, 10, &end);
	const char *unit = *end ? strchr(units, *end) : NULL;

	if (end == word || !unit || end[1])
		return error_not(word, "a time: a number and s, m, h or d, as 90s");
	if (number == 0 || number > MOST_SECONDS / seconds[unit - units])
		return error_not(word, "a time from 1 s to 68 years");
	*ret = number * seconds[unit - units] * SECOND;
	return NULL;
}

bool is_address(const char *word)
{
	uint64_t number;

	return parse_hexadecimal(word, &number);
}

/* Digits are made from the last to the first, at the end of a buffer. */
static size_t format_number(uint64_t number, unsigned int base, bool grouped,
			    char buffer[static NUMBER_SIZE])
{
	char reversed[NUMBER_SIZE];
	size_t length = 0, digits = 0;

	do {
		if (grouped && digits && digits % 3 == 0)
			reversed[length++] = ',';
		reversed[length++] = "0123456789abcdef"[number % base];
		number /= base;
		digits++;
	} while (number);
	for (size_t i = 0; i < length; i++)
		buffer[i] = reversed[length - 1 - i];
	buffer[length] = '\0';
	return length;
}

size_t format_grouped(uint64_t number, char buffer[static NUMBER_SIZE])
{
	return format_number(number, 10, true, buffer);
}

size_t format_decimal(uint64_t number, char buffer[static NUMBER_SIZE])
{
	return format_number(number, 10, false, buffer);
}

/* Apart from the others, as lists of millions of addresses go through it. */
size_t format_hexadecimal(uint64_t number, char buffer[static NUMBER_SIZE])
{
	size_t length = number ? (size_t)(67 - __builtin_clzll(number)) / 4 : 1;

	for (size_t i = length; i-- > 0; number >>= 4)
		buffer[i] = "0123456789abcdef"[number & 15];
	buffer[length] = '\0';
	return length;
}

/* Longer words than this are not meant to be any of ours. */
enum { LONGEST_WORD = 40 };

static size_t minimum(size_t a, size_t b)
{
	return a < b ? a : b;
}

/*
 * The edits that turn a into b: letters inserted, deleted, replaced or swapped with their neighbour
 * (Damerau-Levenshtein, each place edited once).
 */
static size_t edit_distance(const char *a, const char *b)
{
	size_t rows[3][LONGEST_WORD + 1]; /* the last three of the matrix */
	size_t a_length = strlen(a), b_length = strlen(b);

	for (size_t j = 0; j <= b_length; j++)
		rows[0][j] = j;
	for (size_t i = 1; i <= a_length; i++) {
		size_t *row = rows[i % 3];
		const size_t *above = rows[(i + 2) % 3];

		row[0] = i;
		for (size_t j = 1; j <= b_length; j++) {
			int letter = tolower((unsigned char)a[i - 1]);
			int other = tolower((unsigned char)b[j - 1]);

			row[j] = minimum(above[j], row[j - 1]) + 1;
			row[j] = minimum(row[j], above[j - 1] + (letter != other));
			if (i > 1 && j > 1 && letter == tolower((unsigned char)b[j - 2]) &&
			    other == tolower((unsigned char)a[i - 2]))
				row[j] = minimum(row[j], rows[(i + 1) % 3][j - 2] + 1);
		}
	}
	return rows[a_length % 3][b_length];
}

/* The first known word that goes on where the word ends, or NULL. */
static const char *longer_word(const char *word,
			       const char *(*known)(const void *data, size_t number),
			       const void *data)
{
	enum { LEAST_LETTERS = 4 };
	size_t length = strlen(word);
	const char *candidate;

	if (length < LEAST_LETTERS)
		return NULL;
	for (size_t i = 0; (candidate = known(data, i)) != NULL; i++)
		if (strncasecmp(word, candidate, length) == 0)
			return candidate;
	return NULL;
}

const char *nearest_word(const char *word, const char *(*known)(const void *data, size_t number),
			 const void *data)
{
	size_t length = strlen(word);
	/* A third of the letters may be wrong. */
	size_t best = (length + 2) / 3;
	const char *nearest = NULL, *candidate;

	if (length > LONGEST_WORD)
		return NULL;
	for (size_t i = 0; (candidate = known(data, i)) != NULL; i++) {
		size_t distance;

		if (strlen(candidate) > LONGEST_WORD)
			continue;
		distance = edit_distance(word, candidate);
		/* All letters wrong is no resemblance. */
		if (distance > best || distance >= strlen(candidate) ||
		    (nearest && distance == best))
			continue;
		best = distance;
		nearest = candidate;
	}
	return nearest ? nearest : longer_word(word, known, data);
}

struct error *error_unknown(const char *what, const char *word, const char *nearest)
{
	_cleanup_(free) char *escaped = escape_text(word);

	TRY_MEMORY(escaped);
	if (!nearest)
		return error_create(ERROR_USAGE, "unknown %s '%s'", what, escaped);
	return error_create(ERROR_USAGE, "unknown %s '%s'; did you mean '%s'?", what, escaped,
			    nearest);
}

/*
 * The length of the UTF-8 sequence that text begins with, and its character; 0 if it is none: cut
 * short, longer than needed, a surrogate, too large.
 */
static size_t decode_character(const unsigned char *text, size_t size, uint32_t *ret)
{
	static const uint32_t smallest[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t length = text[0] < 0x80		   ? 1
			: (text[0] & 0xe0) == 0xc0 ? 2
			: (text[0] & 0xf0) == 0xe0 ? 3
			: (text[0] & 0xf8) == 0xf0 ? 4
						   : 0;
	uint32_t character;

	if (length == 0 || length > size)
		return 0;
	character = length == 1 ? text[0] : text[0] & (0x7fu >> length);
	for (size_t i = 1; i < length; i++) {
		if ((text[i] & 0xc0) != 0x80)
			return 0;
		character = character << 6 | (text[i] & 0x3f);
	}
	if (character < smallest[length] || character > 0x10ffff ||
	    (character >= 0xd800 && character <= 0xdfff))
		return 0;
	*ret = character;
	return length;
}

/* True if a terminal would act on the character instead of showing it. */
static bool is_unsafe(uint32_t character)
{
	return character < 0x20 || (character >= 0x7f && character < 0xa0) ||
	       /* Marks, embeddings and isolates of writing direction. */
	       character == 0x61c || (character >= 0x200e && character <= 0x200f) ||
	       (character >= 0x2028 && character <= 0x202e) ||
	       (character >= 0x2066 && character <= 0x2069);
}

/* True if all eight bytes are letters, digits or marks of ASCII, or spaces. */
static bool are_plain(const unsigned char *bytes)
{
	const uint64_t ones = UINT64_C(0x0101010101010101), highest = ones << 7;
	uint64_t word;

	memcpy(&word, bytes, sizeof(word));
	/* A byte above '~', as the sum says, or below ' ', as the difference does. */
	return !((word | (word + ones) | (word - ones * ' ')) & highest);
}

size_t text_run(const char *text, size_t size)
{
	const unsigned char *bytes = (const unsigned char *)text;
	size_t length = 0, taken;
	uint32_t character;

	while (length < size) {
		if (size - length >= sizeof(uint64_t) && are_plain(bytes + length)) {
			length += sizeof(uint64_t);
			continue;
		}
		if ((bytes[length] >= ' ' && bytes[length] <= '~') || bytes[length] == '\t' ||
		    bytes[length] == '\n' || bytes[length] == '\r') {
			length++;
			continue;
		}
		taken = decode_character(bytes + length, size - length, &character);
		if (taken == 0 || is_unsafe(character))
			break;
		length += taken;
	}
	return length;
}

size_t escape_not_needed(const char *text)
{
	size_t length = 0;

	while (text[length] >= ' ' && text[length] <= '~' && text[length] != '\\')
		length++;
	return length;
}

size_t escape_character(const char *text, size_t size, char buffer[static ESCAPED_SIZE],
			size_t *ret_length)
{
	const unsigned char *bytes = (const unsigned char *)text;
	uint32_t character = 0;
	size_t taken, length = 0;

	if (size == 0) {
		*ret_length = 0;
		return 0;
	}
	taken = decode_character(bytes, size, &character);
	if (taken && !is_unsafe(character) && character != '\\') {
		memcpy(buffer, text, taken);
		*ret_length = taken;
		return taken;
	}
	if (taken == 0)
		taken = 1;
	if (character == '\\' || character == '\n' || character == '\t') {
		buffer[0] = '\\';
		buffer[1] = character == '\n' ? 'n' : character == '\t' ? 't' : '\\';
		*ret_length = 2;
		return taken;
	}
	for (size_t i = 0; i < taken; i++) {
		buffer[length++] = '\\';
		buffer[length++] = 'x';
		buffer[length++] = "0123456789abcdef"[bytes[i] >> 4];
		buffer[length++] = "0123456789abcdef"[bytes[i] & 15];
	}
	*ret_length = length;
	return taken;
}

char *escape_text(const char *text)
{
	size_t size = strlen(text), length = 0, piece;
	char *escaped;

	/* Each byte becomes four at most. */
	if (size > (SIZE_MAX - 1) / 4)
		return NULL;
	escaped = malloc(size * 4 + 1);
	if (!escaped)
		return NULL;
	while (size) {
		char buffer[ESCAPED_SIZE];
		size_t taken = escape_character(text, size, buffer, &piece);

		memcpy(escaped + length, buffer, piece);
		length += piece;
		text += taken;
		size -= taken;
	}
	escaped[length] = '\0';
	return escaped;
}

char *text_as_is(const char *text)
{
	size_t size = strlen(text);

	return text_run(text, size) == size ? strdup(text) : escape_text(text);
}

char *source_file(const char *source, uint64_t *ret_line)
{
	const char *colon = source ? strrchr(source, ':') : NULL;

	*ret_line = colon ? strtoul(colon + 1, NULL, 10) : 0;
	return *ret_line ? strndup(source, (size_t)(colon - source)) : NULL;
}

char *format_text(const char *format, ...)
{
	return FORMATTED(format);
}
