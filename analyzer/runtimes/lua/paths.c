/*
 * How a program in Lua reaches an object: "_G.cache[17].name", "package.loaded['app'].users".
 */
#include "analyzer/base/text.h"
#include "analyzer/runtimes/lua/lua.h"

#include <inttypes.h>

enum { MOST_TEXT = 80 };

enum link_kind {
	LINK_ENTRY, /* which: where the key stands, or 0: number is it */
	LINK_KEY,
	LINK_METATABLE,
	LINK_ENVIRONMENT,
	LINK_UPVALUE,
	LINK_SAME,
	LINK_PROTO,
	LINK_LOCAL,
	LINK_CALLED, /* function of a call */
	LINK_USER_VALUE,
	LINK_CONSTANT,
};

const struct object_step lua_steps[] = {
	[LINK_KEY] = { ".(key)" },
	[LINK_METATABLE] = { ".(metatable)" },
	[LINK_ENVIRONMENT] = { ".(environment)" },
	[LINK_UPVALUE] = { ".(upvalue @)" },
	[LINK_SAME] = { "" },
	[LINK_PROTO] = { ".(proto)" },
	[LINK_LOCAL] = { ".(local @)" },
	[LINK_CALLED] = { ".(function)" },
	[LINK_USER_VALUE] = { ".(user value)" },
	[LINK_CONSTANT] = { ".(constant)" },
};

static struct lua *lua_of(const struct object_walk *walk)
{
	return (struct lua *)walk->space;
}

static bool follow(struct object_walk *walk, enum link_kind kind, uint64_t target, uint64_t place,
		   uint64_t which, uint64_t number, const char *name)
{
	const struct object_link link = { kind, target, place, which, number, name };

	return target && object_walk_follow(walk, &link);
}

static bool follow_entry(void *data, const struct lua_entry *entry)
{
	struct object_walk *walk = data;

	if (lua_is_object(&entry->key) &&
	    lua_kind_at(lua_of(walk), entry->key.word) != LUA_STRING &&
	    follow(walk, LINK_KEY, entry->key.word, entry->key_place, 0, 0, NULL))
		return true;
	if (lua_is_object(&entry->value) &&
	    follow(walk, LINK_ENTRY, entry->value.word, entry->place, entry->key_place,
		   entry->key.word, NULL))
		return true;
	return lua_is_object(&entry->key) &&
	       follow(walk, LINK_KEY, entry->key.word, entry->key_place, 0, 0, NULL);
}

static void walk_table(struct object_walk *walk, uint64_t table)
{
	uint64_t place = table + lua_of(walk)->layout->table.metatable;

	if (!lua_visit_entries(lua_of(walk), &walk->view, table, &walk->steps, follow_entry, walk))
		follow(walk, LINK_METATABLE, lua_word(&walk->view, place), place, 0, 0, NULL);
}

static bool follow_value(struct object_walk *walk, enum link_kind kind, uint64_t place,
			 uint64_t number, const char *name)
{
	struct lua_value value;

	return lua_read_value(lua_of(walk), &walk->view, place, &value) && lua_is_object(&value) &&
	       follow(walk, kind, value.word, place, 0, number, name);
}

static void walk_function(struct object_walk *walk, uint64_t function)
{
	const struct lua_layout *layout = lua_of(walk)->layout;
	uint64_t place = function + layout->function.environment;
	struct lua_upvalue upvalue;

	for (size_t i = 0; lua_upvalue_of(lua_of(walk), &walk->view, function, i, &upvalue); i++) {
		const char *name = upvalue.name[0] ? upvalue.name : NULL;
		uint64_t word = function + layout->function.upvalues + i * LUA_WORD;

		if (upvalue.object ? follow(walk, LINK_UPVALUE, upvalue.object, word, 0, i, name)
				   : follow_value(walk, LINK_UPVALUE, upvalue.place, i, name))
			return;
	}
	if (layout->function.environment &&
	    follow(walk, LINK_ENVIRONMENT, lua_word(&walk->view, place), place, 0, 0, NULL))
		return;
	place = function + layout->function.proto;
	follow(walk, LINK_PROTO, lua_proto_of(lua_of(walk), &walk->view, function), place, 0, 0,
	       NULL);
}

static void walk_userdata(struct object_walk *walk, uint64_t object)
{
	const struct lua_layout *layout = lua_of(walk)->layout;
	uint64_t place = object + layout->userdata.metatable;

	if (follow(walk, LINK_METATABLE, lua_word(&walk->view, place), place, 0, 0, NULL))
		return;
	place = object + layout->userdata.environment;
	if (layout->userdata.environment)
		follow(walk, LINK_USER_VALUE, lua_word(&walk->view, place), place, 0, 0, NULL);
	else
		follow_value(walk, LINK_USER_VALUE, object + layout->userdata.data, 0, NULL);
}

/* In LuaJIT, constants are before the middle of a list. */
static void walk_proto(struct object_walk *walk, uint64_t proto)
{
	enum { MOST_CONSTANTS = 1 << 16, VALUE = 16 };
	const struct lua_layout *layout = lua_of(walk)->layout;
	uint64_t constants = lua_word(&walk->view, proto + layout->proto.constants);
	uint64_t count = lua_number(&walk->view, proto + layout->proto.constant_count);
	uint64_t protos = lua_word(&walk->view, proto + layout->proto.protos);

	for (uint64_t i = 0; i < count && i < MOST_CONSTANTS; i++) {
		uint64_t place =
			layout->is_jit ? constants - (i + 1) * LUA_WORD : constants + i * VALUE;

		if (layout->is_jit ? follow(walk, LINK_CONSTANT, lua_word(&walk->view, place),
					    place, 0, 0, NULL)
				   : follow_value(walk, LINK_CONSTANT, place, 0, NULL))
			return;
	}
	if (layout->is_jit || !protos)
		return;
	count = lua_number(&walk->view, proto + layout->proto.proto_count);
	for (uint64_t i = 0; i < count && i < MOST_CONSTANTS; i++)
		if (follow(walk, LINK_PROTO, lua_word(&walk->view, protos + i * LUA_WORD),
			   protos + i * LUA_WORD, 0, 0, NULL))
			return;
}

static bool follow_local(void *data, const char *function, const char *name, uint64_t place)
{
	return follow_value(data, name && !name[0] ? LINK_CALLED : LINK_LOCAL, place, 0, name);
}

uint64_t lua_target_of(const struct object_space *space, allocation_id id)
{
	return lua_start((const struct lua *)space, id);
}

void lua_walk_links(struct object_walk *walk, allocation_id id)
{
	struct lua *lua = lua_of(walk);
	uint64_t start = lua_start(lua, id);

	switch (lua_kind_of(lua, id)) {
	case LUA_TABLE:
		walk_table(walk, start);
		break;
	case LUA_FUNCTION:
	case LUA_C_FUNCTION:
		walk_function(walk, start);
		break;
	case LUA_USERDATA:
		walk_userdata(walk, start);
		break;
	case LUA_UPVALUE:
		follow_value(walk, LINK_SAME,
			     lua_word(&walk->view, start + lua->layout->upvalue.place), 0, NULL);
		break;
	case LUA_PROTO:
		walk_proto(walk, start);
		break;
	case LUA_THREAD:
		lua_visit_locals(lua, &walk->view, start, true, follow_local, walk);
		break;
	default:
		break;
	}
}

static bool is_name(const char *text)
{
	return text[0] && (text[0] < '0' || text[0] > '9') &&
	       strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") ==
		       strlen(text);
}

static void add_text(struct object_path *path, const char *text)
{
	if (is_name(text)) {
		path_add(path, ".%s", text);
		return;
	}
	path_add(path, "['");
	for (const char *at = text; *at; at++)
		path_add(path, strchr("'\\", *at) ? "\\%c" : "%c", *at);
	path_add(path, "']");
}

static void add_number(struct object_path *path, const struct lua_value *key)
{
	double number;

	memcpy(&number, &key->word, sizeof(number));
	if (key->type == LUA_INTEGER)
		path_add(path, "[%" PRId64 "]", (int64_t)key->word);
	else
		path_add(path, "[%.14g]", number);
}

static void add_key(struct object_path *path, const struct object_link *link)
{
	const struct lua *lua = (const struct lua *)path->space;
	struct lua_value key = { LUA_INTEGER, link->number };
	char text[MOST_TEXT];

	if (!path->with_content)
		path_add(path, "[...]");
	else if (link->which && !lua_read_key(lua, &path->view, link->which, &key))
		path_add(path, "[?]");
	else if (key.type == LUA_INTEGER || key.type == LUA_REAL)
		add_number(path, &key);
	else if (key.type == LUA_TRUE || key.type == LUA_FALSE)
		path_add(path, key.type == LUA_TRUE ? "[true]" : "[false]");
	else if (lua_is_object(&key) &&
		 lua_read_text(lua, &path->view, key.word, text, sizeof(text)))
		add_text(path, text);
	else
		path_add(path, "[%s]",
			 lua_kind_at(lua, key.word) == LUA_TABLE ? "table" : "object");
}

bool lua_tell_step(struct object_path *path, const struct object_link *link)
{
	if (link->kind == LINK_ENTRY)
		add_key(path, link);
	else if (link->kind == LINK_UPVALUE && !link->name)
		snprintf(path->name, sizeof(path->name), "%" PRIu64, link->number + 1);
	return true;
}

struct error *lua_find_globals(struct object_naming *naming)
{
	static const char *const types[] = { "nil", "true", "io.stdout", "1", "''" };
	struct lua *lua = (struct lua *)naming->space;
	struct view *view = &naming->view;

	lua->steps.left = naming->space->image->size;
	for (size_t i = 0; i < lua->states.count; i++) {
		uint64_t state = lua->states.items[i], registry = lua_registry(lua, view, state);
		uint64_t metatables = lua_global(lua, state) + lua->layout->global.metatables;

		object_name(naming, lua_globals(lua, view, state), "_G");
		object_name(naming, lua_get(lua, view, registry, "_LOADED", &lua->steps),
			    "package.loaded");
		object_name(naming, registry, "registry");
		for (size_t type = 0; lua->layout->global.metatables && type < COUNT_OF(types);
		     type++)
			object_name(naming, lua_word(view, metatables + type * LUA_WORD),
				    "getmetatable(%s)", types[type]);
	}
	return NULL;
}

static bool name_local(void *data, const char *function, const char *name, uint64_t place)
{
	struct object_naming *naming = data;
	struct lua_value value;

	if (strcmp(function, "?") != 0 &&
	    lua_read_value((struct lua *)naming->space, &naming->view, place, &value) &&
	    lua_is_object(&value))
		object_name(naming, value.word, name && !name[0] ? "%s" : "%s(): %s", function,
			    name);
	return naming->error != NULL;
}

struct error *lua_find_locals(struct object_naming *naming)
{
	struct lua *lua = (struct lua *)naming->space;

	array_for_each(state, &lua->states)
		lua_visit_locals(lua, &naming->view, *state, false, name_local, naming);
	return NULL;
}
