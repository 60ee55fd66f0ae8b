#include "analyzer/analysis/liveness.h"
#include "analyzer/kinds/types.h"

#include "tests/allocators/glibc/process.h"

/*
 * A state of Lua 5.1 with a table of globals, whose `cache` is a table with an array: a table, and
 * a slot that was set to nil. Two tables are lost.
 */
enum {
	STRING = 4,
	TABLE = 5,
	THREAD_TYPE = 8,
	STATE_SIZE = 616,
	GLOBAL = 184,
	TABLE_SIZE = 64,
	NODE_SIZE = 40,
	VALUE = 16,
};

static const uint64_t LUA = 0x400000;

struct lua_process {
	struct process process;
	uint64_t state, globals, registry, cache, kept, lost, stale;
	uint64_t last; /* of the list of objects */
};

static uint64_t add_block(struct lua_process *lua, uint64_t size)
{
	return process_allocate(&lua->process, (size + 8 + 15) & ~UINT64_C(15));
}

static void set_value(struct lua_process *lua, uint64_t place, uint64_t object, uint64_t type)
{
	core_set(&lua->process.core, place, object);
	core_set(&lua->process.core, place + 8, type);
}

static uint64_t add_table(struct lua_process *lua, uint64_t items)
{
	struct core *core = &lua->process.core;
	uint64_t table = add_block(lua, TABLE_SIZE), array = add_block(lua, items * VALUE);

	core_set(core, table, lua->last);
	core_set(core, table + 8, TABLE);
	core_set(core, table + 24, array);
	core_set(core, table + 56, items);
	return lua->last = table;
}

static uint64_t add_string(struct lua_process *lua, const char *text)
{
	struct core *core = &lua->process.core;
	uint64_t string = add_block(lua, 24 + strlen(text) + 1);

	core_set(core, string + 8, STRING);
	core_set(core, string + 16, strlen(text));
	memcpy(core_at(core, string + 24, strlen(text) + 1), text, strlen(text) + 1);
	return string;
}

static void add_state(struct lua_process *lua)
{
	struct core *core = &lua->process.core;
	uint64_t state = lua->state, stack = add_block(lua, 16 * VALUE);
	uint64_t calls = add_block(lua, 2 * NODE_SIZE), buckets = add_block(lua, 8);
	uint64_t name = add_string(lua, "cache"), nodes = add_block(lua, NODE_SIZE);

	core_set(core, state + 8, THREAD_TYPE);
	core_set(core, state + 16, stack);
	core_set(core, state + 32, state + GLOBAL);
	core_set(core, state + 40, calls);
	core_set(core, state + 64, stack);
	core_set(core, state + 80, calls);
	set_value(lua, state + 120, lua->globals, TABLE);
	core_set(core, state + GLOBAL, buckets);
	core_set(core, state + GLOBAL + 8, UINT64_C(1) << 32 | 1);
	core_set(core, buckets, name);
	core_set(core, state + GLOBAL + 40, lua->last);
	set_value(lua, state + GLOBAL + 160, lua->registry, TABLE);
	core_set(core, state + GLOBAL + 176, state);
	core_set(core, lua->globals + 32, nodes);
	set_value(lua, nodes, lua->cache, TABLE);
	set_value(lua, nodes + 16, name, STRING);
}

static void lua_init(struct lua_process *lua)
{
	struct core *core = &lua->process.core;

	*lua = (struct lua_process){ .last = 0 };
	process_init(&lua->process, &GLIBC_2_36);
	core_add_module(core, LUA, PAGE, "/usr/bin/lua5.1");
	lua->state = add_block(lua, STATE_SIZE);
	lua->registry = add_table(lua, 1);
	lua->globals = add_table(lua, 1);
	lua->cache = add_table(lua, 2);
	lua->kept = add_table(lua, 1);
	lua->lost = add_table(lua, 1);
	lua->stale = add_table(lua, 1);
	set_value(lua, core_get(core, lua->cache + 24), lua->kept, TABLE);
	set_value(lua, core_get(core, lua->cache + 24) + VALUE, lua->stale, 0);
	set_value(lua, core_get(core, lua->lost + 24), lua->lost, TABLE);
	add_state(lua);
	core_set(core, DATA, lua->state);
	/* The collector does not look at memory of C. */
	core_set(core, DATA + 8, lua->lost);
	process_finish(&lua->process);
	process_open(&lua->process, STAGE_OWNERS);
	assert_no_error(analysis_need(lua->process.analysis, STAGE_REACHABILITY));
}

static void lua_deinit(struct lua_process *lua)
{
	process_deinit(&lua->process);
}
DEFINE_DEINIT(lua_deinit, struct lua_process)

static enum live_state state_at(const struct lua_process *lua, uint64_t address)
{
	return liveness_of(lua->process.analysis, process_find(&lua->process, address));
}

TEST(objects_of_a_state_are_counted)
{
	_cleanup_(lua_deinit) struct lua_process lua;
	_cleanup_(types_deinit) struct types types = { 0 };
	size_t tables = 0, states = 0;

	lua_init(&lua);
	assert_no_error(analysis_need(lua.process.analysis, STAGE_CLASSES));
	assert_no_error(types_find(lua.process.analysis, TYPES_OBJECTS, &types));
	for (size_t i = 0; i < types.count; i++) {
		tables += strcmp(types.list[i].name, "table") == 0 ? types.list[i].count : 0;
		states += strcmp(types.list[i].name, "lua_State") == 0 ? types.list[i].count : 0;
	}
	assert_int_equal(tables, 4); /* in use */
	assert_int_equal(states, 1);
}

TEST(what_globals_do_not_lead_to_is_garbage)
{
	_cleanup_(lua_deinit) struct lua_process lua;

	lua_init(&lua);
	assert_int_equal(state_at(&lua, lua.state), STATE_ANCHORED);
	assert_int_equal(state_at(&lua, lua.cache), STATE_ANCHORED);
	assert_int_equal(state_at(&lua, lua.kept), STATE_ANCHORED);
	assert_int_equal(state_at(&lua, lua.lost), STATE_GARBAGE);
	assert_int_equal(state_at(&lua, lua.stale), STATE_GARBAGE);
	assert_int_equal(state_at(&lua, core_get(&lua.process.core, lua.lost + 24)), STATE_GARBAGE);
}

TEST(a_state_that_does_not_refer_to_itself_is_none)
{
	_cleanup_(lua_deinit) struct lua_process lua;
	struct process *process = &lua.process;

	lua_init(&lua);
	analysis_destroy(process->analysis);
	process->analysis = NULL;
	core_set(&process->core, lua.state + 32, lua.state);
	process_open(process, STAGE_REACHABILITY);
	assert_int_equal(state_at(&lua, lua.lost), STATE_ANCHORED);
	assert_int_equal(state_at(&lua, lua.stale), STATE_ANCHORED);
}
