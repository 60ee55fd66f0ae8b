/* Reads values of Ruby whole: numbers, texts, symbols, and how many items there are. */
#include "analyzer/runtimes/object_values.h"
#include "analyzer/runtimes/ruby/links.h"
#include "analyzer/runtimes/ruby/values.h"

#include <stdlib.h>

enum {
	FLOAT_BITS = 3,
	FLOAT = 2,
	CONTENTS = 16,
	FALSE_VALUE = 0,
	TRUE_VALUE = 0x14,
	UNDEFINED = 0x24,
	OLD_UNDEFINED = 0x34,
};

/* A number, nil, true or false. */
static void read_at_once(const struct ruby *ruby, struct view *view, uint64_t value,
			 struct object_value *ret)
{
	if (value & 1) {
		object_value_set_integer(ret, (int64_t)value >> 1);
	} else if (ruby_tell_value(ruby, view, value, ret->text, sizeof(ret->text))) {
		if ((value & FLOAT_BITS) == FLOAT)
			object_value_set_real(ret, strtod(ret->text, NULL));
		else if (value == TRUE_VALUE || value == FALSE_VALUE)
			ret->kind = OBJECT_IS_TEXT;
	}
}

static void read_object(const struct ruby *ruby, struct view *view, uint64_t value,
			struct object_value *ret)
{
	uint64_t flags = ruby_slot_flags(&ruby->slots, view, value), text, length;
	allocation_id id = allocation_find(ruby->space.index, value);
	double number;

	switch (flags % RUBY_TYPES) {
	case RUBY_STRING:
		if (ruby_find_text(&ruby->slots, view, value, &text, &length))
			object_value_read_text(ret, view, text, length);
		break;
	case RUBY_FLOAT:
		if (view_read(view, value + CONTENTS, &number, sizeof(number)))
			object_value_set_real(ret, number);
		break;
	case RUBY_ARRAY:
		if (ruby_read_array(&ruby->slots, view, value, &text, &length))
			object_value_set_length(ret, length);
		break;
	case RUBY_HASH:
		object_value_set_length(
			ret, ruby_hash_size(view, value, allocation_size(ruby->space.index, id)));
		break;
	default:
		break;
	}
}

bool ruby_read_value(struct object_space *space, struct view *view, const struct object_link *link,
		     struct object_value *ret)
{
	struct ruby *ruby = (struct ruby *)space;
	uint64_t value = link->target;
	allocation_id id = value % sizeof(value) ? NO_ALLOCATION : object_find(space, value);
	char name[RUBY_MOST_NAME + 1];

	if (value == UNDEFINED || value == OLD_UNDEFINED)
		return false;
	ret->class_name = ruby_value_class(ruby, view, value);
	if (ruby_read_symbol(&ruby->symbols, view, value, name)) {
		snprintf(ret->text, sizeof(ret->text), "%s", name);
		ret->kind = OBJECT_IS_TEXT;
		return true;
	}
	if (id != NO_ALLOCATION)
		read_object(ruby, view, value, ret);
	else
		read_at_once(ruby, view, value, ret);
	return id != NO_ALLOCATION || strcmp(ret->class_name, "no object") != 0;
}
