/*
 * The blocks that objects have beside their own, and what these hold.
 */
#include "analyzer/classify/classifier.h"
#include "analyzer/runtimes/lua/lua.h"

static struct lua_part part_of(struct view *view, uint64_t place, enum lua_kind kind,
			       uint64_t count, uint64_t unit)
{
	return (struct lua_part){ kind, lua_word(view, place), count * unit, count };
}

/* All of a prototype of LuaJIT is in its own allocation. */
static size_t proto_parts(const struct lua *lua, struct view *view, uint64_t proto,
			  struct lua_part ret[static LUA_MOST_PARTS])
{
	enum { VALUE = 16, FAR_LINE = 8, LOCAL = 16, INSTRUCTION = 4 };
	const struct lua_layout *layout = lua->layout;
	const uint64_t line = layout->proto.far_lines ? 1 : sizeof(uint32_t);
	size_t count = 0;

	ret[count++] = part_of(view, proto + layout->proto.constants, LUA_CONSTANTS,
			       lua_number(view, proto + layout->proto.constant_count), VALUE);
	ret[count++] = part_of(view, proto + layout->proto.code, LUA_CODE,
			       lua_number(view, proto + layout->proto.code_count), INSTRUCTION);
	ret[count++] = part_of(view, proto + layout->proto.protos, LUA_REFERENCES, 0, 0);
	ret[count++] = part_of(view, proto + layout->proto.lines, LUA_CODE,
			       lua_number(view, proto + layout->proto.line_count), line);
	ret[count++] = part_of(view, proto + layout->proto.locals, LUA_REFERENCES,
			       lua_number(view, proto + layout->proto.local_count), LOCAL);
	ret[count++] = part_of(view, proto + layout->proto.upvalues, LUA_REFERENCES,
			       lua_number(view, proto + layout->proto.upvalue_count),
			       layout->proto.upvalue_size);
	if (layout->proto.far_lines)
		ret[count++] =
			part_of(view, proto + layout->proto.far_lines, LUA_CODE,
				lua_number(view, proto + layout->proto.far_line_count), FAR_LINE);
	return count;
}

static size_t thread_parts(const struct lua *lua, struct view *view, uint64_t thread,
			   struct lua_part ret[static 2])
{
	const struct lua_layout *layout = lua->layout;
	size_t count = 1;

	ret[0] = part_of(view, thread + layout->thread.stack, LUA_STACK, 0, 0);
	if (layout->thread.calls && !layout->call.previous)
		ret[count++] = part_of(view, thread + layout->thread.calls, LUA_CALLS, 0, 0);
	return count;
}

size_t lua_parts_of(const struct lua *lua, struct view *view, allocation_id id,
		    struct lua_part ret[static LUA_MOST_PARTS])
{
	uint64_t start = lua_start(lua, id);

	switch (lua_kind_of(lua, id)) {
	case LUA_TABLE:
		return lua_table_parts(lua, view, start, ret);
	case LUA_PROTO:
		return lua->layout->is_jit ? 0 : proto_parts(lua, view, start, ret);
	case LUA_THREAD:
		return thread_parts(lua, view, start, ret);
	case LUA_STATE:
		ret[0] = part_of(view, lua_global(lua, start) + lua->layout->global.strings,
				 LUA_BUCKETS, 0, 0);
		return 1 + thread_parts(lua, view, start, ret + 1);
	default:
		return 0;
	}
}

/* The allocator may give more than was asked for: there are no values in the rest. */
struct error *lua_find_unused(struct object_space *space, struct unused *ret)
{
	const struct lua *lua = (const struct lua *)space;
	struct view view = { space->image };

	for (allocation_id id = 0; id < lua->kinds.count; id++) {
		struct lua_part parts[LUA_MOST_PARTS];
		size_t count = lua_parts_of(lua, &view, id, parts);

		for (size_t i = 0; i < count; i++)
			if (parts[i].asked && lua_kind_at(lua, parts[i].start) == parts[i].kind)
				TRY(unused_add_rest(ret, parts[i].start, parts[i].asked));
	}
	return NULL;
}

extern const struct runtime runtime_lua;

bool lua_visit_call_blocks(const struct lua *lua, struct view *view, uint64_t thread,
			   bool (*visit)(void *data, uint64_t address), void *data)
{
	enum { MOST_CALLS = 1 << 18 }; /* LUAI_MAXCCALLS is less */
	const struct lua_layout *layout = lua->layout;
	uint64_t call = thread + layout->thread.calls;

	for (unsigned int i = 0; layout->call.previous && i < MOST_CALLS; i++) {
		call = lua_word(view, call + layout->call.previous + LUA_WORD);
		if (!call)
			return false;
		if (visit(data, call))
			return true;
	}
	return false;
}

struct claiming {
	struct reader *reader;
	uint64_t owner;
};

static bool claim_call(void *data, uint64_t address)
{
	struct claiming *claiming = data;
	struct memory_range range;
	allocation_id id = reader_start(claiming->reader, address, &range);

	if (id != NO_ALLOCATION)
		reader_claim(claiming->reader, id, claiming->owner);
	return id == NO_ALLOCATION;
}

static const struct lua *lua_of(const struct reader *reader)
{
	return (const struct lua *)runtimes_space(reader->runtimes, &runtime_lua);
}

static void inspect(struct reader *reader, const struct subject *subject)
{
	const struct lua *lua = lua_of(reader);
	struct lua_part parts[LUA_MOST_PARTS];
	struct memory_range range;
	size_t count = lua ? lua_parts_of(lua, &reader->view, subject->id, parts) : 0;

	for (size_t i = 0; i < count; i++) {
		allocation_id id = NO_ALLOCATION;

		if (parts[i].start)
			id = reader_start(reader, parts[i].start, &range);
		if (id != NO_ALLOCATION && (int)lua_kind_of(lua, id) == reader_kind(reader))
			reader_claim(reader, id, subject->range.start);
	}
	if (lua && reader_kind(reader) == LUA_CALLS && lua_thread_at(lua, subject->id))
		lua_visit_call_blocks(lua, &reader->view, lua_thread_at(lua, subject->id),
				      claim_call,
				      &(struct claiming){ reader, subject->range.start });
}

struct counting {
	uint64_t array, nodes;
};

static bool count_entry(void *data, const struct lua_entry *entry)
{
	struct counting *counting = data;

	counting->array += !entry->key_place;
	counting->nodes += entry->key_place != 0;
	return false;
}

static void tell(struct reader *reader, struct memory_range range, struct pattern_facts *facts)
{
	const bool is_array = reader_kind(reader) == LUA_ARRAY;
	const struct lua *lua = lua_of(reader);
	struct counting counting = { 0, 0 };
	struct lua_part parts[2];

	if (!lua || lua_kind_at(lua, facts->owner) != LUA_TABLE)
		return;
	lua_table_parts(lua, &reader->view, facts->owner, parts);
	lua_visit_entries(lua, &reader->view, facts->owner, NULL, count_entry, &counting);
	if (parts[!is_array].start != range.start ||
	    parts[!is_array].asked > range.end - range.start)
		return;
	facts->unit = is_array ? "elements" : "entries";
	facts->length = is_array ? counting.array : counting.nodes;
	facts->has_capacity = true;
	facts->capacity = parts[!is_array].count;
	facts->live_end = parts[!is_array].asked;
	facts->asked = parts[!is_array].asked;
	facts->is_measured = true;
}

#define LUA(...)                                                                  \
	.runtime = &runtime_lua, .strength = STRENGTH_MARKED, .inspect = inspect, \
	.least_size = LUA_WORD, __VA_ARGS__

CLASSIFIER(lua_array, "LuaArray", "the array of a table of Lua", "the array of the table",
	   LUA(.kind = LUA_ARRAY, .tell = tell));
CLASSIFIER(lua_buckets, "LuaStringTable", "the table of all strings of Lua", "the table of strings",
	   LUA(.kind = LUA_BUCKETS));
CLASSIFIER(lua_calls, "LuaCalls", "the calls that a thread of Lua is in", "calls of the thread",
	   LUA(.kind = LUA_CALLS));
CLASSIFIER(lua_code, "LuaCode", "the code of a function of Lua, or its lines",
	   "code of the function", LUA(.kind = LUA_CODE));
CLASSIFIER(lua_constants, "LuaConstants", "the constants of a function of Lua",
	   "constants of the function", LUA(.kind = LUA_CONSTANTS));
CLASSIFIER(lua_names, "LuaNames",
	   "the names of variables of a function of Lua, or the functions within it",
	   "names of the function", LUA(.kind = LUA_REFERENCES));
CLASSIFIER(lua_nodes, "LuaHash", "the keys and values of a table of Lua that are not in its array",
	   "the hash part of the table", LUA(.kind = LUA_NODES, .tell = tell));
CLASSIFIER(lua_stack, "LuaStack", "the stack of a thread of Lua", "the stack of the thread",
	   LUA(.kind = LUA_STACK));
