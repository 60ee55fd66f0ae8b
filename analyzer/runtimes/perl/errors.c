/*
 * The error of the last eval, $@: a text, or an object that die() was called with. It is empty once
 * another eval succeeds.
 */
#include "analyzer/runtimes/perl/links.h"

#include <string.h>

struct search {
	struct perl *perl;
	struct view view;
	uint64_t value;
};

static bool keep_scalar(void *data, const struct object_link *link)
{
	struct search *search = data;

	if (link->name[0] != 'S')
		return false;
	search->value = link->target;
	return true;
}

static bool keep_error(void *data, const struct object_link *link)
{
	struct search *search = data;
	char key[PERL_MOST_NAME];

	if (!perl_read_key(&search->view, link->which, key, sizeof(key)) || strcmp(key, "@") != 0)
		return false;
	perl_visit_slots(search->perl, &search->view, link->target, keep_scalar, search);
	return true;
}

/* Search the package main for the variable. */
static void find_error(struct search *search)
{
	struct perl *perl = search->perl;
	uint32_t stash = address_map_find(&perl->space.classes.places, KIND_STASH);
	struct view heads = { perl->space.image };

	for (size_t i = 0; i < perl->parts.count && !search->value; i++) {
		uint64_t address = allocation_start(perl->space.index, (allocation_id)i);
		char package[PERL_MOST_NAME];
		struct perl_head head;

		if (object_classes_get(&perl->space.classes, (allocation_id)i) == stash + 1 &&
		    perl_read_head(&heads, address, &head) &&
		    perl_read_package(perl, &heads, address, package, sizeof(package)) &&
		    strcmp(package, "main") == 0)
			perl_visit_entries(perl, &heads, &head, keep_error, search);
	}
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
	struct search search = { perl, { space->image }, 0 };
	struct perl_head head, object;
	enum class_name_kind kind;

	if (thread != 0 || perl->interpreters.count != 1)
		return NULL;
	find_error(&search);
	if (!search.value || !perl_read_head(&search.view, search.value, &head))
		return NULL;
	if ((head.flags & PERL_ROK) && perl_read_head(&search.view, head.value, &object) &&
	    (object.flags & PERL_BLESSED)) {
		allocation_id id = perl_find_head(perl, head.value);

		ret->state = "the last eval failed with";
		ret->class_name = object_class_name(space, object_class_of(space, id), &kind);
		TRY_MEMORY(ret->class_name);
	} else if (!(head.flags & PERL_ROK) && (head.flags & PERL_POK) &&
		   perl_type(&head) >= PERL_PV && perl_type(&head) <= PERL_PVLV) {
		read_message(&search.view, &head, ret);
		ret->state = ret->message[0] ? "the last eval failed" : NULL;
	}
	return NULL;
}
