/*
 * How a program in Ruby reaches an object: "App::SESSIONS["anna"].@basket[3]".
 *
 * Paths begin at global variables and at Object, whose constants need no name before them. Each
 * step is a link, see links.h.
 */
#include "analyzer/base/text.h"
#include "analyzer/runtimes/object_values.h"
#include "analyzer/runtimes/ruby/links.h"

#include <inttypes.h>

enum {
	WORD = 8,
	MOST_TEXT = 128,
};

struct error *ruby_visit_links(struct object_space *space, allocation_id id, struct budget *steps,
			       object_link_visitor *visit, void *data)
{
	struct ruby_walk walk = ruby_walk_begin((struct ruby *)space, visit, data);

	if (steps)
		walk.steps = *steps;
	ruby_walk_object(&walk, id);
	if (steps)
		*steps = walk.steps;
	return NULL;
}

struct error *ruby_visit_values(struct object_space *space, allocation_id id,
				object_link_visitor *visit, void *data)
{
	struct ruby_walk walk = ruby_walk_begin((struct ruby *)space, visit, data);

	walk.with_values = true;
	ruby_walk_object(&walk, id);
	return NULL;
}

int ruby_item_of(const struct object_link *link)
{
	return link->kind == LINK_KEY ? OBJECT_KEY
	       : link->kind == LINK_CLASS || link->kind == LINK_SINGLETON ||
			       link->kind == LINK_METHOD || link->kind == LINK_INSIDE
		       ? OBJECT_NO_ITEM
		       : OBJECT_ITEM;
}

bool ruby_skips(struct object_space *space, struct view *view, const struct object_link *link)
{
	return link->kind != LINK_CONSTANT && link->kind != LINK_PRIVATE &&
	       ruby_is_constant_class((struct ruby *)space, view, link->target);
}

static struct ruby *ruby_of(const struct object_path *path)
{
	return (struct ruby *)path->space;
}

/* True if all there is of the path is Object. */
static bool is_at_start(const struct object_path *path)
{
	return path->is_first && strcmp(path->text, "Object") == 0;
}

static const char *symbol_text(struct object_path *path, uint64_t serial,
			       char buffer[RUBY_MOST_NAME + 1])
{
	return ruby_symbol_text(&ruby_of(path)->symbols, &path->view, serial, buffer) ? buffer
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
static bool add_string(struct object_path *path, uint64_t key)
{
	enum { ENCODING_SHIFT = 22, ENCODINGS = 128, BINARY = 0, UTF_8 = 1, US_ASCII = 2 };
	uint64_t flags = ruby_slot_flags(&ruby_of(path)->slots, &path->view, key);
	uint64_t encoding = (flags >> ENCODING_SHIFT) % ENCODINGS;
	char text[MOST_TEXT];
	size_t length;

	if (encoding > US_ASCII ||
	    !ruby_read_text(&ruby_of(path)->slots, &path->view, key, text, sizeof(text)))
		return false;
	length = strlen(text);
	if (length != ruby_text_length(&ruby_of(path)->slots, &path->view, key) ||
	    text_run(text, length) != length)
		return false;
	for (size_t i = 0; i < length; i++)
		if (encoding != UTF_8 && (unsigned char)text[i] > '\x7f')
			return false;
	path_add(path, "[\"");
	for (size_t i = 0; i < length; i++)
		path_add(path, strchr("\"\\#", text[i]) ? "\\%c" : "%c", text[i]);
	path_add(path, "\"]");
	return true;
}

/* A key that can be written: a number, a symbol, a short string. */
static bool add_key(struct object_path *path, uint64_t key)
{
	enum { NIL = 4, OLD_NIL = 8, TRUE = 0x14, FALSE = 0 };
	char text[RUBY_MOST_NAME + 1];

	if (key & 1) {
		path_add(path, "[%" PRId64 "]", (int64_t)key >> 1);
		return true;
	}
	if (key == NIL || key == OLD_NIL || key == TRUE || key == FALSE) {
		path_add(path, key == TRUE ? "[true]" : key == FALSE ? "[false]" : "[nil]");
		return true;
	}
	if (ruby_read_symbol(&ruby_of(path)->symbols, &path->view, key, text)) {
		if (!is_plain(text))
			return false;
		path_add(path, "[:%s]", text);
		return true;
	}
	return add_string(path, key);
}

struct keeping {
	const struct ruby *ruby;
	uint64_t target;
};

static bool keep_members(void *data, const struct object_link *link)
{
	struct keeping *keeping = data;

	if (link->kind == LINK_VARIABLE && link->which == keeping->ruby->symbols.members)
		keeping->target = link->target;
	return keeping->target != 0;
}

/* The class of a Struct, or one that it is derived from, has the names of its members. */
static void add_member(struct object_path *path, uint64_t number)
{
	enum { MOST_BASES = 64 };
	struct ruby *ruby = ruby_of(path);
	struct keeping keeping = { ruby, 0 };
	struct ruby_walk walk = ruby_walk_begin(ruby, keep_members, &keeping);
	uint64_t class = ruby_class_behind(&walk, path->source), names, count, name, flags;
	char text[RUBY_MOST_NAME + 1];

	walk.hidden_name = ruby->symbols.members;
	for (int i = 0; i < MOST_BASES && keeping.target == 0; i++) {
		flags = ruby_slot_flags(&ruby->slots, &path->view, class);
		if (flags % RUBY_TYPES == RUBY_CLASS)
			ruby_walk_class(&walk, class, flags);
		class = ruby_super(&ruby->slots, &path->view, class);
	}
	if (ruby_read_array(&ruby->slots, &path->view, keeping.target, &names, &count) &&
	    number < count && view_word(&path->view, names + WORD * number, &name) &&
	    ruby_read_symbol(&ruby->symbols, &path->view, name, text) && is_plain(text))
		path_add(path, ".%s", text);
	else
		path_add(path, "[%" PRIu64 "]", number);
}

static void add_value(struct object_path *path, const struct object_link *link)
{
	if (!path->with_content)
		path_add(path, "[...]");
	else if (!add_key(path, link->which))
		path_add(path, ".values[%" PRIu64 "]", link->number);
}

static void add_constant(struct object_path *path, const char *name, bool is_private)
{
	if (is_at_start(path)) {
		path->used = 0;
		path_add(path, "%s", name);
	} else {
		path_add(path, is_private ? ".const_get(:%s)" : "::%s", name);
	}
}

/* The name of a variable of a Thread, which is a Symbol there. */
static void add_thread_variable(struct object_path *path, uint64_t symbol)
{
	char text[RUBY_MOST_NAME + 1];

	if (ruby_read_symbol(&ruby_of(path)->symbols, &path->view, symbol, text) && is_plain(text))
		path_add(path, ".thread_variable_get(:%s)", text);
	else
		path_add(path, ".thread_variable_get(...)");
}

/* Tell the steps into Threads, queues and other data of C code. */
static void add_inside(struct object_path *path, const struct object_link *link)
{
	char buffer[RUBY_MOST_NAME + 1];

	if (link->kind == LINK_METHOD)
		path_add(path, ".instance_method(:%s).<block>",
			 symbol_text(path, link->which, buffer));
	else if (link->kind == LINK_THREAD_LOCAL)
		path_add(path, "[:%s]", symbol_text(path, link->which, buffer));
	else if (link->kind == LINK_THREAD_VARIABLE)
		add_thread_variable(path, link->which);
	else
		path_add(path, link->kind == LINK_THREAD_VALUE ? ".value"
			       : link->kind == LINK_ITEMS      ? ".<items>"
							       : ".<inside>");
}

/* Classes, and what is in Procs, Bindings and Methods. */
static void add_other(struct object_path *path, const struct object_link *link)
{
	bool is_proc = link->kind == LINK_PROC_LOCAL || link->kind == LINK_PROC_SELF;
	char buffer[RUBY_MOST_NAME + 1];

	if (link->kind == LINK_CLASS)
		path_add(path, ".class");
	else if (link->kind == LINK_SINGLETON)
		path_add(path, ".singleton_class");
	else if (link->kind == LINK_LOCAL || link->kind == LINK_PROC_LOCAL)
		path_add(path, "%s.local_variable_get(:%s)", is_proc ? ".binding" : "",
			 symbol_text(path, link->which, buffer));
	else
		path_add(path, "%s.receiver", is_proc ? ".binding" : "");
}

bool ruby_tell_step(struct object_path *path, const struct object_link *link)
{
	char buffer[RUBY_MOST_NAME + 1];

	if (link->kind == LINK_CONSTANT || link->kind == LINK_PRIVATE)
		add_constant(path, symbol_text(path, link->which, buffer),
			     link->kind == LINK_PRIVATE);
	else if (link->kind == LINK_MEMBER)
		add_member(path, link->number);
	else if (link->kind == LINK_VARIABLE)
		path_add(path, ".%s", symbol_text(path, link->which, buffer));
	else if (link->kind == LINK_ITEM)
		path_add(path, "[%" PRIu64 "]", link->number);
	else if (link->kind == LINK_VALUE)
		add_value(path, link);
	else if (link->kind == LINK_KEY)
		path_add(path, ".keys[%" PRIu64 "]", link->number);
	else if (link->kind == LINK_DEFAULT)
		path_add(path, ".default");
	else if (link->kind == LINK_DEFAULT_PROC)
		path_add(path, ".default_proc");
	else if (link->kind >= LINK_METHOD)
		add_inside(path, link);
	else
		add_other(path, link);
	return true;
}
