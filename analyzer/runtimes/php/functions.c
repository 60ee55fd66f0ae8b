/*
 * Compiled functions: what has operations in a block for themselves. Those that opcache shares have
 * none.
 */
#include "analyzer/runtimes/php/engine.h"
#include "analyzer/runtimes/php/objects.h"

enum { LINE = 24, MOST_TEXT = 512, CLASS_NAME = 8 };

/* The text of the string at address; NULL in *ret if it has none. */
static struct error *keep_text(struct php *php, struct view *view, uint64_t address,
			       const char **ret)
{
	char text[MOST_TEXT];

	*ret = NULL;
	if (!address || !php_read_text(view, address, text, sizeof(text)))
		return NULL;
	*ret = name_pool_print(&php->space.texts, "%s", text);
	return *ret ? NULL : &error_no_memory;
}

static struct error *describe(struct php *php, struct view *view, const struct php_owned *part,
			      const struct php_function *function, struct object_code *ret)
{
	uint64_t class = 0;
	uint32_t line = 0;

	*ret = (struct object_code){ .id = part->id };
	if (function->scope)
		view_word(view, function->scope + CLASS_NAME, &class);
	TRY(keep_text(php, view, class, &ret->owner));
	TRY(keep_text(php, view, function->file, &ret->path));
	TRY(keep_text(php, view, function->name, &ret->label));
	if (!ret->label)
		ret->label = "{main}";
	if (view_read(view, function->operations + LINE, &line, sizeof(line)))
		ret->line = line;
	return NULL;
}

struct measuring {
	struct address_map numbers; /* of functions */
	ARRAY(uint64_t) bytes;
};

static void measuring_deinit(struct measuring *measuring)
{
	table_release(&measuring->numbers);
	array_release(&measuring->bytes);
}
DEFINE_DEINIT(measuring_deinit, struct measuring)

/* Add up the parts of each function. */
static struct error *measure(const struct php *php, struct measuring *measuring)
{
	array_for_each(part, &php->owned) {
		uint32_t number = address_map_find(&measuring->numbers, part->owner);

		if (number == NOT_IN_MAP) {
			number = (uint32_t)measuring->bytes.count;
			TRY(address_map_add(&measuring->numbers, part->owner, number));
			TRY(array_append(&measuring->bytes, 0));
		}
		measuring->bytes.items[number] += allocation_size(php->space.index, part->id);
	}
	return NULL;
}

struct error *php_visit_code(struct object_space *space, object_code_visitor *visit, void *data)
{
	struct php *php = (struct php *)space;
	struct view view = { php->space.image };
	_cleanup_(measuring_deinit) struct measuring measuring = { 0 };

	arrays_use(php->space.account, &measuring.numbers, &measuring.bytes);
	TRY(measure(php, &measuring));
	array_for_each(part, &php->owned) {
		struct php_function function;
		struct object_code code;

		if (php->parts.items[part->id] != PHP_PART_CODE ||
		    !php_read_function(php, &view, part->owner, &function))
			continue;
		TRY(describe(php, &view, part, &function, &code));
		code.bytes =
			measuring.bytes.items[address_map_find(&measuring.numbers, part->owner)];
		TRY(visit(data, &code));
	}
	return NULL;
}
