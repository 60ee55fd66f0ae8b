/*
 * The error of the last eval, $@: a text, or an object that die() was called with. It is empty once
 * another eval succeeds.
 */
#include "analyzer/runtimes/perl/links.h"

#include <string.h>

/* The variable, in the package main; 0: it was not found. */
static uint64_t find_error(struct perl *perl, struct view *view)
{
	uint32_t stash = address_map_find(&perl->space.classes.places, KIND_STASH);
	uint64_t value = 0;

	for (size_t i = 0; i < perl->parts.count && !value; i++) {
		uint64_t address = allocation_start(perl->space.index, (allocation_id)i);
		char package[PERL_MOST_NAME];
		struct perl_head head;

		if (object_classes_get(&perl->space.classes, (allocation_id)i) == stash + 1 &&
		    perl_read_head(view, address, &head) &&
		    perl_read_package(perl, view, address, package, sizeof(package)) &&
		    strcmp(package, "main") == 0)
			value = perl_find_variable(perl, &head, "@", 'S');
	}
	return value;
}

static void read_message(struct view *view, const struct perl_head *head,
			 struct runtime_exception *ret)
{
	enum { LENGTH = 16 };
	uint64_t length;

	if (!view_word(view, head->body + LENGTH, &length))
		return;
	length = MIN(length, sizeof(ret->message) - 1);
	if (!view_read(view, head->value, ret->message, length))
		length = 0;
	while (length > 0 && ret->message[length - 1] == '\n')
		length--;
	ret->message[length] = '\0';
}

struct error *perl_find_exception(struct object_space *space, uint32_t thread,
				  const struct frame_visitor *visitor,
				  struct runtime_exception *ret)
{
	struct perl *perl = (struct perl *)space;
	struct view view = { space->image };
	uint64_t value;
	struct perl_head head, object;

	if (thread != 0 || perl->interpreters.count != 1)
		return NULL;
	value = find_error(perl, &view);
	if (!value || !perl_read_head(&view, value, &head))
		return NULL;
	if ((head.flags & PERL_ROK) && perl_read_head(&view, head.value, &object) &&
	    (object.flags & PERL_BLESSED)) {
		allocation_id id = perl_find_head(perl, head.value);

		ret->state = "the last eval failed with";
		ret->class_name = object_class_name_at(space, id);
		TRY_MEMORY(ret->class_name);
	} else if (!(head.flags & PERL_ROK) && (head.flags & PERL_POK) &&
		   perl_type(&head) >= PERL_PV && perl_type(&head) <= PERL_PVLV) {
		read_message(&view, &head, ret);
		ret->state = ret->message[0] ? "the last eval failed" : NULL;
	}
	return NULL;
}
