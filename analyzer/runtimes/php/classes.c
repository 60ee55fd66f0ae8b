/*
 * struct _zend_class_entry, Zend/zend.h, which begins alike from 7.3 to 8.4:
 *
 *	u8 1 or 2 | name | parent | u32 references, flags | u32 properties, static ones | ... |
 */
#include "analyzer/runtimes/php/objects.h"

#include "analyzer/runtimes/php/space.h"
#include "analyzer/runtimes/php/values.h"

#include <inttypes.h>

enum { INTERNAL = 1, USER = 2, LINKED = 1 << 3, MOST_NAME = 256, MOST_BASES = 64 };

struct entry {
	uint8_t kind, padding[7];
	uint64_t name, parent;
	uint32_t references, flags, properties, statics;
};

static bool read_entry(struct view *view, uint64_t address, struct entry *ret)
{
	return address && address % 8 == 0 && view_read(view, address, ret, sizeof(*ret)) &&
	       (ret->kind == INTERNAL || ret->kind == USER) && ret->name &&
	       ret->properties < 1 << 16;
}

struct error *php_class_know(struct php *php, struct view *view, uint64_t address, uint32_t *ret)
{
	struct object_classes *classes = &php->space.classes;
	uint32_t place = address_map_find(&classes->places, address);
	char name[MOST_NAME];
	struct entry entry;

	*ret = place == NOT_IN_MAP || address < PHP_KINDS ? 0 : place + 1;
	if (*ret || !read_entry(view, address, &entry) ||
	    !php_read_text(view, entry.name, name, sizeof(name)))
		return NULL;
	TRY(object_classes_know(classes, address, &place));
	*ret = place + 1;
	return NULL;
}

static const char *read_name(struct php *php, uint64_t address, bool *ret_named)
{
	struct view view = { php->space.image };
	char name[MOST_NAME];
	struct entry entry;

	*ret_named = read_entry(&view, address, &entry) &&
		     php_read_text(&view, entry.name, name, sizeof(name));
	return *ret_named ? name_pool_print(&php->space.texts, "%s", name)
			  : name_pool_print(&php->space.texts, "class@%#" PRIx64, address);
}

const char *php_class_name(struct object_space *space, uint64_t number,
			   enum class_name_kind *ret_kind)
{
	static const char *const kinds[PHP_KINDS] = {
		[PHP_STRING] = "string",
		[PHP_ARRAY] = "array",
		[PHP_REFERENCE] = "reference",
		[PHP_RESOURCE] = "resource",
		[PHP_STACK] = "(stack)",
		[PHP_FIBER_STACK] = "(stack of a Fiber)",
		[PHP_ARENA] = "(compiled code)",
		[PHP_OBJECTS] = "(table of objects)",
		[PHP_ROOTS] = "(roots of the collector)",
	};
	const char *name;
	bool is_named = true;

	name = number < PHP_KINDS ? kinds[number]
				  : read_name((struct php *)space, number, &is_named);
	*ret_kind = is_named ? CLASS_NAMED : CLASS_NUMBERED;
	return name;
}

bool php_visit_bases(struct object_space *space, uint64_t number,
		     bool (*visit)(void *data, const char *name), void *data)
{
	struct php *php = (struct php *)space;
	struct view view = { php->space.image };
	struct entry entry;

	for (int i = 0; i < MOST_BASES && number >= PHP_KINDS; i++, number = entry.parent) {
		const char *name;
		bool is_named;

		if (!read_entry(&view, number, &entry) ||
		    (entry.kind == USER && !(entry.flags & LINKED)) || !entry.parent)
			return false;
		name = read_name(php, entry.parent, &is_named);
		if (is_named && name && visit(data, name))
			return true;
	}
	return false;
}
