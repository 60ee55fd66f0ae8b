/*
 * Names by which programs reach tables and functions: global variables, and members of modules.
 */
#include "analyzer/runtimes/lua/lua.h"

#include "analyzer/base/text.h"

#include <inttypes.h>

struct naming {
	struct lua *lua;
	struct view view;
	const char *before; /* "json", or NULL */
	bool takes_all;	    /* also names that are none of variables */
	struct error *error;
};

static bool is_name(const char *text)
{
	return text[0] && strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				       "0123456789_.") == strlen(text);
}

static bool name_entry(void *data, const struct lua_entry *entry)
{
	struct naming *naming = data;
	struct lua *lua = naming->lua;
	char text[LUA_MOST_NAME];
	const char *name;
	enum lua_kind kind;

	if (!lua_is_object(&entry->key) || !lua_is_object(&entry->value) ||
	    !lua_read_text(lua, &naming->view, entry->key.word, text, sizeof(text)) ||
	    !(naming->takes_all || is_name(text)))
		return false;
	kind = lua_kind_at(lua, entry->value.word);
	if ((kind != LUA_TABLE && kind != LUA_FUNCTION && kind != LUA_C_FUNCTION) ||
	    address_map_find(&lua->named, entry->value.word) != NOT_IN_MAP)
		return false;
	name = naming->before ? name_pool_print(&lua->space.texts, "%s.%s", naming->before, text)
			      : name_pool_print(&lua->space.texts, "%s", text);
	naming->error =
		name ? address_map_add(&lua->named, entry->value.word, (uint32_t)lua->texts.count)
		     : &error_no_memory;
	if (!naming->error)
		naming->error = array_append(&lua->texts, name);
	return naming->error != NULL;
}

static bool name_members(void *data, const struct lua_entry *entry)
{
	struct naming *naming = data;
	const char *name =
		lua_is_object(&entry->value) ? lua_name_of(naming->lua, entry->value.word) : NULL;

	/* A name with a dot is a member's. */
	if (!name || lua_kind_at(naming->lua, entry->value.word) != LUA_TABLE)
		return false;
	naming->before = name;
	lua_visit_entries(naming->lua, &naming->view, entry->value.word, &naming->lua->steps,
			  name_entry, naming);
	return naming->error != NULL;
}

static struct error *name_of_state(struct lua *lua, uint64_t state)
{
	struct naming naming = { .lua = lua, .view = { lua->space.image } };
	uint64_t tables[2] = { lua_globals(lua, &naming.view, state) };
	uint64_t registry = lua_registry(lua, &naming.view, state);

	tables[1] = lua_get(lua, &naming.view, registry, "_LOADED", &lua->steps);
	for (size_t i = 0; i < 2 && !naming.error; i++)
		lua_visit_entries(lua, &naming.view, tables[i], &lua->steps, name_entry, &naming);
	for (size_t i = 0; i < 2 && !naming.error; i++)
		lua_visit_entries(lua, &naming.view, tables[i], &lua->steps, name_members, &naming);
	/* C code names metatables there: luaL_newmetatable(). */
	naming.before = NULL;
	naming.takes_all = true;
	if (!naming.error)
		lua_visit_entries(lua, &naming.view, registry, &lua->steps, name_entry, &naming);
	return naming.error;
}

struct error *lua_find_names(struct lua *lua)
{
	for (size_t i = 0; i < lua->states.count; i++)
		TRY(name_of_state(lua, lua->states.items[i]));
	return NULL;
}

const char *lua_name_of(const struct lua *lua, uint64_t object)
{
	uint32_t number = object ? address_map_find(&lua->named, object) : NOT_IN_MAP;

	return number == NOT_IN_MAP ? NULL : lua->texts.items[number];
}

void lua_tell_file(const struct lua *lua, struct view *view, uint64_t proto, char *ret, size_t size)
{
	char text[LUA_MOST_NAME];

	snprintf(ret, size, "?");
	if (!proto || !lua_read_text(lua, view, lua_word(view, proto + lua->layout->proto.source),
				     text, sizeof(text)))
		return;
	/* The source of what is no file is its text. */
	if (text[0] == '@' || text[0] == '=')
		snprintf(ret, size, "%s", text + 1);
	else
		snprintf(ret, size, "(string)");
}

void lua_tell_source(const struct lua *lua, struct view *view, uint64_t proto, char *ret,
		     size_t size)
{
	static const uint32_t BUILT_IN = UINT32_MAX; /* LuaJIT has some as byte code */
	uint32_t line = proto ? lua_number(view, proto + lua->layout->proto.first_line) : 0;
	char file[LUA_MOST_NAME];

	lua_tell_file(lua, view, proto, file, sizeof(file));
	if (line == BUILT_IN)
		snprintf(ret, size, "(built in)");
	else
		snprintf(ret, size, "%s:%" PRIu32, file, line);
}
