/*
 * Lua 5.1 to 5.4, and LuaJIT 2.1: see lua.h.
 */
#include "analyzer/runtimes/lua/lua.h"

const struct runtime runtime_lua = {
	.name = "lua",
	.modules = "lua|luajit|liblua|nvim|=lua_newstate|=luaL_newstate",
	.space_size = sizeof(struct lua),
	.is_certain = true,
	FILL_SLOTS(LUA_SLOTS),
	.calls = &(const struct runtime_calls){ FILL_SLOTS(LUA_CALL_SLOTS) },
	.links = &(const struct runtime_links){ FILL_SLOTS(LUA_LINK_SLOTS), .steps = lua_steps },
};
