#include "analyzer/runtimes/python/values.h"

#include <inttypes.h>

enum {
	WORD = 8,
	TYPE = 8,	  /* offsets in objects: */
	LENGTH = 16,	  /* of what has items; the signed number of digits of an int */
	STATE = 32,	  /* of a string: kind and flags */
	BYTES = 32,	  /* of bytes */
	DIGITS = 24,	  /* of an int */
	TYPE_FLAGS = 168, /* in a type */
	DIGIT_BITS = 30,
	ELLIPSIS_SIZE = 4,  /* with its end */
	MOST_CHARACTER = 4, /* bytes of UTF-8 */
	MOST_TOLD = 128,
	MOST_NAME = 32, /* of a type of numpy's elements */
};

static const uint64_t INT = 1 << 24, LIST = 1 << 25, TUPLE = 1 << 26, BYTES_FLAG = 1 << 27,
		      DICT = 1 << 29;

bool python_has_flag(struct view *view, uint64_t object, uint64_t flag)
{
	uint64_t type, flags;

	return object != 0 && object % WORD == 0 && view_word(view, object + TYPE, &type) &&
	       type % WORD == 0 && view_word(view, type + TYPE_FLAGS, &flags) && (flags & flag) &&
	       (flags & TYPE_READY);
}

static size_t encode(uint32_t character, char *ret)
{
	if (character < 0x80) {
		ret[0] = (char)character;
		return 1;
	}
	if (character < 0x800) {
		ret[0] = (char)(0xc0 | character >> 6);
		ret[1] = (char)(0x80 | (character & 0x3f));
		return 2;
	}
	if (character < 0x10000) {
		ret[0] = (char)(0xe0 | character >> 12);
		ret[1] = (char)(0x80 | (character >> 6 & 0x3f));
		ret[2] = (char)(0x80 | (character & 0x3f));
		return 3;
	}
	ret[0] = (char)(0xf0 | (character >> 18 & 7));
	ret[1] = (char)(0x80 | (character >> 12 & 0x3f));
	ret[2] = (char)(0x80 | (character >> 6 & 0x3f));
	ret[3] = (char)(0x80 | (character & 0x3f));
	return MOST_CHARACTER;
}

/* Copy length characters of width bytes each. */
static bool copy_text(struct view *view, uint64_t start, uint64_t length, unsigned int width,
		      char *ret, size_t size)
{
	size_t used = 0;

	for (uint64_t i = 0; i < length; i++) {
		uint32_t character = 0;

		if (used + MOST_CHARACTER + ELLIPSIS_SIZE > size) {
			snprintf(ret + used, size - used, "...");
			return true;
		}
		if (!view_read(view, start + i * width, &character, width))
			return false;
		used += encode(character, ret + used);
	}
	ret[used] = '\0';
	return true;
}

/* Include/cpython/unicodeobject.h: what is not of ASCII alone has more before its characters. */
bool python_find_text(struct view *view, unsigned int head, uint64_t object,
		      struct python_text *ret)
{
	enum { INTERNED = 3, KIND_SHIFT = 2, KIND = 7, COMPACT = 1 << 5, ASCII = 1 << 6 };
	uint32_t state;
	unsigned int more = head == STRING_HEAD ? 16 : 24;

	if (!python_has_flag(view, object, TYPE_STRING) ||
	    !view_word(view, object + LENGTH, &ret->length) ||
	    !view_read(view, object + STATE, &state, sizeof(state)))
		return false;
	ret->is_interned = (state & INTERNED) != 0;
	if (!(state & COMPACT)) /* 3.14 has 16 bits before the kind */
		state >>= 14;
	ret->width = state >> KIND_SHIFT & KIND;
	ret->start = object + head + (state & ASCII ? 0 : more);
	return (state & COMPACT) && (ret->width == 1 || ret->width == 2 || ret->width == 4);
}

bool python_read_text(struct view *view, unsigned int head, uint64_t object, char *ret, size_t size)
{
	struct python_text text;

	return python_find_text(view, head, object, &text) &&
	       copy_text(view, text.start, text.length, text.width, ret, size);
}

/* The number of digits is shifted from 3.12 on, beside a sign of 0, 1 for zero, or 2. */
static bool tell_int(struct view *view, unsigned int head, uint64_t object, bool is_bool, char *ret,
		     size_t size)
{
	uint64_t tag, count, value = 0;
	bool is_negative;

	if (!view_word(view, object + LENGTH, &tag))
		return false;
	is_negative = head == STRING_HEAD ? (tag & 3) == 2 : (int64_t)tag < 0;
	count = head == STRING_HEAD ? tag >> 3 : is_negative ? -tag : tag;
	if (head == STRING_HEAD && (tag & 3) == 1)
		count = 0;
	for (uint64_t i = 0; i < count && i < 3; i++) {
		uint32_t digit;

		if (!view_read(view, object + DIGITS + sizeof(digit) * i, &digit, sizeof(digit)))
			return false;
		if (i == 2 && digit >> (64 - 2 * DIGIT_BITS))
			count = 4;
		value |= (uint64_t)digit << DIGIT_BITS * i;
	}
	if (is_bool)
		snprintf(ret, size, "%s", value ? "True" : "False");
	else if (count > 3)
		snprintf(ret, size, "more than 64 bits");
	else
		snprintf(ret, size, "%s%" PRIu64, is_negative ? "-" : "", value);
	return true;
}

/* As repr() has it: what cannot be printed is escaped where the text is shown. */
static bool tell_text(struct view *view, unsigned int head, uint64_t object, char *ret, size_t size)
{
	enum { END = 3 }; /* the last character, perhaps escaped, and a quote */
	char text[MOST_TOLD], quote;
	size_t used = 0;

	if (!python_read_text(view, head, object, text, MIN(size, MOST_TOLD)))
		return false;
	quote = strchr(text, '\'') ? '"' : '\'';
	ret[used++] = quote;
	for (const char *at = text; *at && used + END < size; at++) {
		if (*at == '\\')
			ret[used++] = '\\';
		ret[used++] = *at;
	}
	ret[used++] = quote;
	ret[used] = '\0';
	return true;
}

static bool tell_bytes(struct view *view, uint64_t object, char *ret, size_t size)
{
	uint64_t length;

	if (!view_word(view, object + LENGTH, &length) ||
	    !copy_text(view, object + BYTES, length, 1, ret + 2, size - 3))
		return false;
	ret[0] = 'b';
	ret[1] = '\'';
	length = strlen(ret);
	snprintf(ret + length, size - (size_t)length, "'");
	return true;
}

static bool tell_length(struct view *view, uint64_t place, const char *what, char *ret, size_t size)
{
	uint64_t length;

	if (!view_word(view, place, &length))
		return false;
	snprintf(ret, size, "%" PRIu64 " %s%s", length, what, length == 1 ? "" : "s");
	return true;
}

static bool tell_float(struct view *view, uint64_t object, char *ret, size_t size)
{
	double value;

	if (!view_read(view, object + LENGTH, &value, sizeof(value)))
		return false;
	snprintf(ret, size, "%.17g", value);
	return true;
}

/* The name of the type of an element alone, "numpy.float64": that of the array's dtype. */
static bool read_element_name(struct view *view, uint64_t dtype, char ret[static MOST_NAME])
{
	enum { SCALAR = 16, NAME = 24 };
	static const char prefix[] = "numpy.";
	uint64_t type, name;
	char text[MOST_NAME] = "";

	if (!view_word(view, dtype + SCALAR, &type) || !view_word(view, type + NAME, &name) ||
	    !view_read(view, name, text, sizeof(text) - 1) ||
	    strncmp(text, prefix, strlen(prefix)) != 0)
		return false;
	snprintf(ret, MOST_NAME, "%s", text + strlen(prefix));
	return ret[strspn(ret, "abcdefghijklmnopqrstuvwxyz_0123456789")] == '\0';
}

/* numpy/ndarraytypes.h: "float64 (1000, 1000)", the name of its dtype and its shape. */
static bool tell_array(struct view *view, uint64_t array, char *ret, size_t size)
{
	enum { DIMENSIONS = 1, SHAPE, DTYPE = 5, WORDS };
	uint64_t words[WORDS], length;
	char name[MOST_NAME];
	uint32_t dimensions;
	size_t used;

	if (!view_read(view, array + 2 * WORD, words, sizeof(words)) ||
	    !read_element_name(view, words[DTYPE], name))
		return false;
	dimensions = (uint32_t)words[DIMENSIONS];
	used = (size_t)snprintf(ret, size, "%s (", name);
	for (uint32_t i = 0; i < dimensions && used < size; i++) {
		if (!view_word(view, words[SHAPE] + WORD * i, &length))
			return false;
		used += (size_t)snprintf(ret + used, size - used, "%s%" PRIu64, i ? ", " : "",
					 length);
	}
	if (used < size)
		snprintf(ret + used, size - used, dimensions == 1 ? ",)" : ")");
	return true;
}

bool python_tell_value(struct view *view, unsigned int head, uint64_t object,
		       const char *class_name, char *ret, size_t size)
{
	if (python_has_flag(view, object, TYPE_STRING))
		return tell_text(view, head, object, ret, size);
	if (python_has_flag(view, object, INT))
		return tell_int(view, head, object, strcmp(class_name, "bool") == 0, ret, size);
	if (python_has_flag(view, object, BYTES_FLAG))
		return tell_bytes(view, object, ret, size);
	if (python_has_flag(view, object, LIST | TUPLE))
		return tell_length(view, object + LENGTH, "item", ret, size);
	if (python_has_flag(view, object, DICT))
		return tell_length(view, object + LENGTH, "item", ret, size);
	if (strcmp(class_name, "float") == 0)
		return tell_float(view, object, ret, size);
	if (strcmp(class_name, "numpy.ndarray") == 0)
		return tell_array(view, object, ret, size);
	if (strcmp(class_name, "NoneType") == 0)
		return snprintf(ret, size, "None") > 0;
	return false;
}
