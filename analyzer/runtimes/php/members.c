/*
 * Lists an object's members by name, an array's by key, and a reference's value: for views of one
 * value.
 */
#include "analyzer/runtimes/php/engine.h"
#include "analyzer/runtimes/php/frames.h"
#include "analyzer/runtimes/php/objects.h"

#include "analyzer/base/text.h"

#include <inttypes.h>

enum {
	WORD = 8,
	PARENT = 16,
	MOST_BASES = 64,
	MOST_NAME = PHP_MOST_KEY + 16,
	MOST_VALUE = 80,
};

struct lookup {
	struct view *view;
	uint64_t offset;
	struct php_member *found;
	bool is_found;
};

static bool find_member(void *data, const struct php_item *item)
{
	struct lookup *lookup = data;

	lookup->is_found = php_read_member(lookup->view, item, lookup->found) &&
			   !(lookup->found->flags & MEMBER_IS_STATIC) &&
			   lookup->found->offset == lookup->offset;
	return lookup->is_found;
}

/* A private member that a class does not know is one of a class that it is derived from. */
bool php_member_at(struct php *php, struct view *view, uint64_t class, uint64_t offset,
		   struct php_member *ret)
{
	struct lookup lookup = { view, offset, ret, false };

	for (int i = 0; i < MOST_BASES && class && !lookup.is_found; i++) {
		php_visit_items(php, view, class + CLASS_MEMBERS, find_member, &lookup);
		if (!view_word(view, class + PARENT, &class))
			break;
	}
	return lookup.is_found;
}

bool php_read_key(struct view *view, uint64_t key, char ret[static PHP_MOST_KEY])
{
	uint64_t length;

	return view_word(view, key + 2 * (uint64_t)WORD, &length) && length < PHP_MOST_KEY &&
	       php_read_text(view, key, ret, PHP_MOST_KEY) && strlen(ret) == length &&
	       text_run(ret, length) == length;
}

struct visit {
	struct php *php;
	struct view view;
	bool with_content, is_over, is_array;
	bool (*visit)(void *data, const struct runtime_member *member);
	void *data;
	struct error *error;
};

/* Unset members have no value. True: the visit is over. */
static bool tell(struct visit *visit, uint64_t place, const char *name)
{
	struct runtime_member member = { .place = place, .name = name };
	char text[MOST_VALUE];
	struct php_value value;

	if (!php_read_value(visit->php, &visit->view, place, &value) || value.type == 0)
		return false;
	if ((value.type >= TYPE_STRING && value.type <= TYPE_REFERENCE) ||
	    value.type >= PHP_POINTER)
		member.address = value.word;
	member.class_name = php_tell_value(visit->php, &visit->view, &value, text, sizeof(text));
	member.value = text[0] ? text : NULL;
	if (!member.class_name)
		visit->error = &error_no_memory;
	visit->is_over = visit->error || !visit->visit(visit->data, &member);
	return visit->is_over;
}

static bool tell_item(void *data, const struct php_item *item)
{
	struct visit *visit = data;
	char key[PHP_MOST_KEY], name[MOST_NAME];
	uint8_t type;

	/* A table that an object was asked for has what its class declares, too. */
	if (!visit->is_array && view_read(&visit->view, item->place + WORD, &type, 1) &&
	    type == visit->php->engine.layout->indirect)
		return false;
	if (!visit->with_content || (item->key && !php_read_key(&visit->view, item->key, key)))
		snprintf(name, sizeof(name), "[...]");
	else if (!item->key)
		snprintf(name, sizeof(name), "[%" PRId64 "]", (int64_t)item->number);
	else
		snprintf(name, sizeof(name), visit->is_array ? "['%s']" : "%s", key);
	return tell(visit, item->place, name);
}

static void tell_object(struct visit *visit, uint64_t address, uint64_t end)
{
	struct php_object object;
	uint32_t count = php_count_members(&visit->view, address, end, &object);
	struct php_member member;
	char name[MOST_NAME];

	for (uint32_t i = 0; i < count && !visit->is_over; i++) {
		uint64_t offset = PHP_OBJECT_HEAD + (uint64_t)PHP_VALUE * i;

		if (!php_member_at(visit->php, &visit->view, object.class_entry, offset, &member))
			snprintf(member.name, sizeof(member.name), "{#%" PRIu32 "}", i);
		snprintf(name, sizeof(name), "%s", member.name);
		tell(visit, address + offset, name);
	}
	if (!visit->is_over)
		php_visit_items(visit->php, &visit->view, object.table, tell_item, visit);
}

struct error *php_visit_members(struct object_space *space, allocation_id id, bool with_content,
				bool (*each)(void *data, const struct runtime_member *member),
				void *data)
{
	struct php *php = (struct php *)space;
	const struct allocation_index *index = php->space.index;
	uint32_t class = php_class_at(php, id);
	struct visit visit = { .php = php,
			       .view = { php->space.image },
			       .with_content = with_content,
			       .visit = each,
			       .data = data };
	uint64_t start = allocation_start(index, id);

	if (!class || !php->engine.layout)
		return NULL;
	php->space.steps.left = php->space.image->size;
	visit.is_array = class == PHP_ARRAY;
	if (class == PHP_ARRAY)
		php_visit_items(php, &visit.view, start, tell_item, &visit);
	else if (class == PHP_REFERENCE)
		tell(&visit, start + WORD, NULL);
	else if (class >= PHP_KINDS)
		tell_object(&visit, start + php_offset_of(php, class),
			    start + allocation_size(index, id));
	return visit.error;
}
