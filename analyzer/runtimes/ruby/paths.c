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

const struct object_step ruby_steps[] = {
	[LINK_VARIABLE] = { ".@" },
	[LINK_ITEM] = { "[#]" },
	[LINK_KEY] = { ".keys[#]", OBJECT_KEY },
	[LINK_DEFAULT] = { ".default" },
	[LINK_DEFAULT_PROC] = { ".default_proc" },
	[LINK_CLASS] = { ".class", OBJECT_NO_ITEM },
	[LINK_SINGLETON] = { ".singleton_class", OBJECT_NO_ITEM },
	[LINK_PROC_LOCAL] = { ".binding.local_variable_get(:@)" },
	[LINK_PROC_SELF] = { ".binding.receiver" },
	[LINK_LOCAL] = { ".local_variable_get(:@)" },
	[LINK_RECEIVER] = { ".receiver" },
	[LINK_METHOD] = { ".instance_method(:@).<block>", OBJECT_NO_ITEM },
	[LINK_THREAD_LOCAL] = { "[:@]" },
	[LINK_THREAD_VALUE] = { ".value" },
	[LINK_ITEMS] = { ".<items>" },
	[LINK_INSIDE] = { ".<inside>", OBJECT_NO_ITEM },
};

bool ruby_skips(struct object_space *space, struct view *view, const struct object_link *link)
{
	return link->kind != LINK_CONSTANT && link->kind != LINK_PRIVATE &&
	       ruby_is_constant_class((struct ruby *)space, view, link->target);
}

/* True if all there is of the path is Object. */
static bool is_at_start(const struct object_path *path)
{
	return path->is_first && strcmp(path->text, "Object") == 0;
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
	uint64_t flags = ruby_slot_flags(&ruby_of(path->space)->slots, &path->view, key);
	uint64_t encoding = (flags >> ENCODING_SHIFT) % ENCODINGS;
	char text[MOST_TEXT];
	size_t length;

	if (encoding > US_ASCII ||
	    !ruby_read_text(&ruby_of(path->space)->slots, &path->view, key, text, sizeof(text)))
		return false;
	length = strlen(text);
	if (length != ruby_text_length(&ruby_of(path->space)->slots, &path->view, key) ||
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
	if (ruby_read_symbol(&ruby_of(path->space)->symbols, &path->view, key, text)) {
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
	struct ruby *ruby = ruby_of(path->space);
	struct keeping keeping = { ruby, 0 };
	struct object_walk walk = object_walk_begin(&ruby->space, keep_members, &keeping);
	uint64_t class = ruby_class_behind(&walk, path->source), names, count, name, flags;
	char text[RUBY_MOST_NAME + 1];

	walk.number = ruby->symbols.members;
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

	if (ruby_read_symbol(&ruby_of(path->space)->symbols, &path->view, symbol, text) &&
	    is_plain(text))
		path_add(path, ".thread_variable_get(:%s)", text);
	else
		path_add(path, ".thread_variable_get(...)");
}

bool ruby_tell_step(struct object_path *path, const struct object_link *link)
{
	if (!ruby_symbol_text(&ruby_of(path->space)->symbols, &path->view, link->which, path->name))
		strcpy(path->name, "?");
	if (link->kind == LINK_CONSTANT || link->kind == LINK_PRIVATE)
		add_constant(path, path->name, link->kind == LINK_PRIVATE);
	else if (link->kind == LINK_MEMBER)
		add_member(path, link->number);
	else if (link->kind == LINK_VALUE)
		add_value(path, link);
	else if (link->kind == LINK_THREAD_VARIABLE)
		add_thread_variable(path, link->which);
	return true;
}
