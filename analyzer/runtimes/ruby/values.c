#include "analyzer/runtimes/ruby/values.h"

#include "analyzer/base/text.h"
#include "analyzer/runtimes/ruby/links.h"
#include "analyzer/runtimes/ruby/objects.h"

#include <inttypes.h>

/* include/ruby/internal/special_consts.h; nil is 8 up to 3.1. */
enum {
	FALSE_VALUE = 0,
	NIL = 4,
	OLD_NIL = 8,
	TRUE_VALUE = 0x14,
	SYMBOL_BITS = 0xff,
	SYMBOL = 0xc,
	FLOAT_BITS = 3,
	FLOAT = 2,
	CONTENTS = 16,
};

static bool is_nil(uint64_t value)
{
	return value == NIL || value == OLD_NIL;
}

/* The class of values that are no address; NULL: it may be one. */
static const char *class_at_once(uint64_t value)
{
	return value & 1			 ? "Integer"
	       : (value & FLOAT_BITS) == FLOAT	 ? "Float"
	       : (value & SYMBOL_BITS) == SYMBOL ? "Symbol"
	       : is_nil(value)			 ? "NilClass"
	       : value == TRUE_VALUE		 ? "TrueClass"
	       : value == FALSE_VALUE		 ? "FalseClass"
						 : NULL;
}

const char *ruby_value_class(struct ruby *ruby, struct view *view, uint64_t value)
{
	const char *at_once = class_at_once(value);
	allocation_id id = at_once ? NO_ALLOCATION : object_find(&ruby->space, value);

	if (at_once)
		return at_once;
	return id == NO_ALLOCATION ? "no object" : object_class_name_at(&ruby->space, id);
}

/* rb_float_flonum_value(), numeric.h: three bits of the exponent are left out. */
static double read_float(uint64_t value)
{
	enum { ZERO_BITS = 2, SHIFT = 3 };
	uint64_t bits = (2 - (value >> 63)) | (value & ~(uint64_t)FLOAT_BITS);
	double ret;

	if (value == (UINT64_C(1) << 63 | ZERO_BITS))
		return 0;
	bits = bits >> SHIFT | bits << (64 - SHIFT);
	memcpy(&ret, &bits, sizeof(ret));
	return ret;
}

/* A text that can be printed as it is. */
static bool tell_string(const struct ruby *ruby, struct view *view, uint64_t value, char *ret,
			size_t size)
{
	char text[RUBY_MOST_NAME + 1];
	uint64_t length = ruby_text_length(&ruby->slots, view, value);

	if (length > size - sizeof("\"\"") ||
	    (length > 0 && !ruby_read_text(&ruby->slots, view, value, text, sizeof(text)))) {
		snprintf(ret, size, "%" PRIu64 " bytes", length);
		return true;
	}
	text[length < sizeof(text) ? length : 0] = '\0';
	if (strlen(text) != length || text_run(text, length) != length)
		snprintf(ret, size, "%" PRIu64 " bytes", length);
	else
		snprintf(ret, size, "\"%s\"", text);
	return true;
}

static bool tell_object(const struct ruby *ruby, struct view *view, uint64_t value, char *ret,
			size_t size)
{
	uint64_t flags = ruby_slot_flags(&ruby->slots, view, value), elements, count;
	allocation_id id = allocation_find(ruby->space.index, value);
	double number;

	switch (flags % RUBY_TYPES) {
	case RUBY_STRING:
		return tell_string(ruby, view, value, ret, size);
	case RUBY_FLOAT:
		return view_read(view, value + CONTENTS, &number, sizeof(number)) &&
		       snprintf(ret, size, "%.17g", number) > 0;
	case RUBY_ARRAY:
		if (!ruby_read_array(&ruby->slots, view, value, &elements, &count))
			return false;
		break;
	case RUBY_HASH:
		count = ruby_hash_size(view, value, allocation_size(ruby->space.index, id));
		break;
	default:
		return false;
	}
	snprintf(ret, size, "%" PRIu64 " item%s", count, count == 1 ? "" : "s");
	return true;
}

bool ruby_tell_value(const struct ruby *ruby, struct view *view, uint64_t value, char *ret,
		     size_t size)
{
	char text[RUBY_MOST_NAME + 1];

	if (value & 1)
		snprintf(ret, size, "%" PRId64, (int64_t)value >> 1);
	else if ((value & FLOAT_BITS) == FLOAT)
		snprintf(ret, size, "%.17g", read_float(value));
	else if (is_nil(value) || value == TRUE_VALUE || value == FALSE_VALUE)
		snprintf(ret, size, "%s",
			 is_nil(value)	       ? "nil"
			 : value == TRUE_VALUE ? "true"
					       : "false");
	else if (ruby_read_symbol(&ruby->symbols, view, value, text))
		snprintf(ret, size, ":%s", text);
	else
		return tell_object(ruby, view, value, ret, size);
	return true;
}

/*
 * Read what gc.c leaves in a slot of type T_MOVED: in 2.7, the new address follows the flags; from
 * 3.0 on, a word that is no address of an object is in between.
 */
bool ruby_liveness(const struct object_space *space, allocation_id id, struct object_liveness *ret)
{
	enum { FLAGS, PLACES, WORDS = 3 };
	const struct ruby *ruby = (const struct ruby *)space;
	struct view view = { ruby->space.image };
	uint64_t words[WORDS];

	if (!view_read(&view, allocation_start(ruby->space.index, id), words, sizeof(words)) ||
	    words[FLAGS] % RUBY_TYPES != RUBY_MOVED)
		return false;
	for (size_t i = PLACES; i < WORDS; i++) {
		allocation_id now = object_find(&ruby->space, words[i]);

		if (now == NO_ALLOCATION)
			continue;
		ret->moved_to = words[i];
		ret->moved_class = object_class_of(space, now);
		return true;
	}
	return false;
}
