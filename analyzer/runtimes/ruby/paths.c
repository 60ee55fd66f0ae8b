/*
 * How a program in Ruby reaches an object: "App::SESSIONS["anna"].@basket[3]".
 *
 * Paths begin at global variables and at Object, whose constants need no name before them. Each
 * step is a link, see links.h.
 */
#include "analyzer/base/text.h"
#include "analyzer/runtimes/path_text.h"
#include "analyzer/runtimes/ruby/links.h"

#include <inttypes.h>

enum {
	WORD = 8,
	MOST_TEXT = 128,
};

struct visiting {
	const struct ruby *ruby;
	struct view view;
	object_visitor *visit;
	void *data;
	struct error *error;
};

static bool visit_link(void *data, const struct ruby_link *link)
{
	struct visiting *visiting = data;
	bool is_constant = link->kind == LINK_CONSTANT || link->kind == LINK_PRIVATE;
	allocation_id id = ruby_find_object(visiting->ruby, link->target);

	if (id != NO_ALLOCATION &&
	    (is_constant || !ruby_is_constant_class(visiting->ruby, &visiting->view, link->target)))
		visiting->error = visiting->visit(visiting->data, id, 0);
	return visiting->error != NULL;
}

struct error *ruby_visit_references(struct object_space *space, allocation_id id,
				    object_visitor *visit, void *data)
{
	struct ruby *ruby = (struct ruby *)space;
	struct visiting visiting = { ruby, { ruby->space.image }, visit, data, NULL };
	struct ruby_walk walk = ruby_walk_begin(ruby, visit_link, &visiting);

	walk.steps = ruby->steps;
	ruby_walk_object(&walk, id);
	ruby->steps = walk.steps;
	return visiting.error;
}

/* Writes the steps of a path. */
struct telling {
	struct ruby *ruby;
	struct view view;
	bool with_content;
	bool is_at_start; /* all there is of the path is Object */
	uint64_t source, target;
	struct path_text path;
};

static const char *symbol_text(struct telling *telling, uint64_t serial,
			       char buffer[RUBY_MOST_NAME + 1])
{
	return ruby_symbol_text(&telling->ruby->symbols, &telling->view, serial, buffer) ? buffer
											 : "?";
}

/* True if a symbol of that text needs no quotes. */
static bool is_plain(const char *text)
{
	bool is_first = true;

	for (; *text; text++, is_first = false)
		if (!(*text == '_' || (*text >= 'a' && *text <= 'z') ||
		      (*text >= 'A' && *text <= 'Z') ||
		      (!is_first && *text >= '0' && *text <= '9')))
			return false;
	return !is_first;
}

/* A string of ASCII or UTF-8, as it is written in a program; what is longer or odd is not. */
static bool add_string(struct telling *telling, uint64_t key)
{
	enum { ENCODING_SHIFT = 22, ENCODINGS = 128, BINARY = 0, UTF_8 = 1, US_ASCII = 2 };
	uint64_t flags = ruby_slot_flags(&telling->ruby->slots, &telling->view, key);
	uint64_t encoding = (flags >> ENCODING_SHIFT) % ENCODINGS;
	char text[MOST_TEXT];
	size_t length;

	if (encoding > US_ASCII ||
	    !ruby_read_text(&telling->ruby->slots, &telling->view, key, text, sizeof(text)))
		return false;
	length = strlen(text);
	if (length != ruby_text_length(&telling->ruby->slots, &telling->view, key) ||
	    text_run(text, length) != length)
		return false;
	for (size_t i = 0; i < length; i++)
		if (encoding != UTF_8 && (unsigned char)text[i] > '\x7f')
			return false;
	path_text_add(&telling->path, "[\"");
	for (size_t i = 0; i < length; i++)
		path_text_add(&telling->path, strchr("\"\\#", text[i]) ? "\\%c" : "%c", text[i]);
	path_text_add(&telling->path, "\"]");
	return true;
}

/* A key that can be written: a number, a symbol, a short string. */
static bool add_key(struct telling *telling, uint64_t key)
{
	enum { NIL = 4, OLD_NIL = 8, TRUE = 0x14, FALSE = 0 };
	char text[RUBY_MOST_NAME + 1];

	if (key & 1) {
		path_text_add(&telling->path, "[%" PRId64 "]", (int64_t)key >> 1);
		return true;
	}
	if (key == NIL || key == OLD_NIL || key == TRUE || key == FALSE) {
		path_text_add(&telling->path, key == TRUE    ? "[true]"
					      : key == FALSE ? "[false]"
							     : "[nil]");
		return true;
	}
	if (ruby_read_symbol(&telling->ruby->symbols, &telling->view, key, text)) {
		if (!is_plain(text))
			return false;
		path_text_add(&telling->path, "[:%s]", text);
		return true;
	}
	return add_string(telling, key);
}

struct keeping {
	const struct ruby *ruby;
	uint64_t target;
};

static bool keep_members(void *data, const struct ruby_link *link)
{
	struct keeping *keeping = data;

	if (link->kind == LINK_VARIABLE && link->which == keeping->ruby->symbols.members)
		keeping->target = link->target;
	return keeping->target != 0;
}

/* The class of a Struct, or one that it is derived from, has the names of its members. */
static void add_member(struct telling *telling, uint64_t number)
{
	enum { MOST_BASES = 64 };
	struct ruby *ruby = telling->ruby;
	struct keeping keeping = { ruby, 0 };
	struct ruby_walk walk = ruby_walk_begin(ruby, keep_members, &keeping);
	uint64_t class = ruby_class_behind(&walk, telling->source), names, count, name, flags;
	char text[RUBY_MOST_NAME + 1];

	walk.hidden_name = ruby->symbols.members;
	for (int i = 0; i < MOST_BASES && keeping.target == 0; i++) {
		flags = ruby_slot_flags(&ruby->slots, &telling->view, class);
		if (flags % RUBY_TYPES == RUBY_CLASS)
			ruby_walk_class(&walk, class, flags);
		class = ruby_super(&ruby->slots, &telling->view, class);
	}
	if (ruby_read_array(&ruby->slots, &telling->view, keeping.target, &names, &count) &&
	    number < count && view_word(&telling->view, names + WORD * number, &name) &&
	    ruby_read_symbol(&ruby->symbols, &telling->view, name, text) && is_plain(text))
		path_text_add(&telling->path, ".%s", text);
	else
		path_text_add(&telling->path, "[%" PRIu64 "]", number);
}

static void add_value(struct telling *telling, const struct ruby_link *link)
{
	if (!telling->with_content)
		path_text_add(&telling->path, "[...]");
	else if (!add_key(telling, link->which))
		path_text_add(&telling->path, ".values[%" PRIu64 "]", link->number);
}

static void add_constant(struct telling *telling, const char *name, bool is_private)
{
	if (telling->is_at_start)
		telling->path.used = 0;
	path_text_add(&telling->path,
		      telling->is_at_start ? "%s"
		      : is_private	   ? ".const_get(:%s)"
					   : "::%s",
		      name);
}

/* Classes, and what is in Procs, Bindings and Methods. */
static void add_other(struct telling *telling, const struct ruby_link *link)
{
	bool is_proc = link->kind == LINK_PROC_LOCAL || link->kind == LINK_PROC_SELF;
	char buffer[RUBY_MOST_NAME + 1];

	if (link->kind == LINK_CLASS)
		path_text_add(&telling->path, ".class");
	else if (link->kind == LINK_SINGLETON)
		path_text_add(&telling->path, ".singleton_class");
	else if (link->kind == LINK_LOCAL || link->kind == LINK_PROC_LOCAL)
		path_text_add(&telling->path, "%s.local_variable_get(:%s)",
			      is_proc ? ".binding" : "", symbol_text(telling, link->which, buffer));
	else
		path_text_add(&telling->path, "%s.receiver", is_proc ? ".binding" : "");
}

static bool tell_link(void *data, const struct ruby_link *link)
{
	struct telling *telling = data;
	char buffer[RUBY_MOST_NAME + 1];

	if (link->target != telling->target)
		return false;
	if (link->kind == LINK_CONSTANT || link->kind == LINK_PRIVATE)
		add_constant(telling, symbol_text(telling, link->which, buffer),
			     link->kind == LINK_PRIVATE);
	else if (link->kind == LINK_MEMBER)
		add_member(telling, link->number);
	else if (link->kind == LINK_VARIABLE)
		path_text_add(&telling->path, ".%s", symbol_text(telling, link->which, buffer));
	else if (link->kind == LINK_ITEM)
		path_text_add(&telling->path, "[%" PRIu64 "]", link->number);
	else if (link->kind == LINK_VALUE)
		add_value(telling, link);
	else if (link->kind == LINK_KEY)
		path_text_add(&telling->path, ".keys[%" PRIu64 "]", link->number);
	else if (link->kind == LINK_DEFAULT)
		path_text_add(&telling->path, ".default");
	else if (link->kind == LINK_DEFAULT_PROC)
		path_text_add(&telling->path, ".default_proc");
	else
		add_other(telling, link);
	return true;
}

static void tell_name(struct telling *telling, allocation_id id)
{
	const struct ruby *ruby = telling->ruby;

	for (size_t i = 0; i < ruby->named.count; i++)
		if (ruby->named.items[i].id == id) {
			path_text_add(&telling->path, "%s", ruby->named.items[i].text);
			telling->is_at_start = strcmp(ruby->named.items[i].text, "Object") == 0;
			return;
		}
}

void ruby_tell_path(struct object_space *space, const allocation_id *ids, size_t count,
		    bool with_content, char *ret, size_t size)
{
	struct ruby *ruby = (struct ruby *)space;
	struct telling telling = {
		.ruby = ruby,
		.view = { ruby->space.image },
		.with_content = with_content,
		.path = { ret, size, 0 },
	};

	ret[0] = '\0';
	tell_name(&telling, ids[0]);
	for (size_t i = 0; i + 1 < count; i++) {
		struct ruby_walk walk = ruby_walk_begin(ruby, tell_link, &telling);

		telling.source = allocation_start(ruby->space.index, ids[i]);
		telling.target = allocation_start(ruby->space.index, ids[i + 1]);
		ruby_walk_object(&walk, ids[i]);
		telling.is_at_start = false;
	}
}
