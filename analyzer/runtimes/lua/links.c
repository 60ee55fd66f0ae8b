/*
 * Which words are references, as the collector sees them: traverse...() of Lua's lgc.c, and
 * gc_traverse_...() of LuaJIT's lj_gc.c.
 */
#include "analyzer/base/sort.h"
#include "analyzer/runtimes/lua/lua.h"

enum { WORD = 8, VALUE = 16, JIT_TRACE_HEAD = 32 };

/* A word of a source that refers to an object or a part. */
struct asking {
	const struct lua *lua;
	struct view view;
	uint64_t start, end; /* of the source */
	uint64_t word, place;
	unsigned int flags; /* of the source */
	enum lua_kind kind, target;
	bool is_string, is_start; /* the target, the word: of the target */
};

static bool is_at(const struct asking *asking, uint16_t offset)
{
	return offset && asking->place == asking->start + offset;
}

/* True if an object's value stands at the place. */
static bool has_object(struct asking *asking, uint64_t first)
{
	const bool is_jit = asking->lua->layout->is_jit;
	struct lua_value value;

	return asking->place >= first &&
	       (asking->place - first) % (is_jit ? LUA_WORD : VALUE) == 0 &&
	       lua_read_value(asking->lua, &asking->view, asking->place, &value) &&
	       (lua_is_object(&value) || (value.type == LUA_LIGHT && asking->target == LUA_NONE));
}

static bool in_array(struct asking *asking, uint64_t first)
{
	return has_object(asking, first) &&
	       (!(asking->flags & LUA_WEAK_VALUES) || asking->is_string);
}

/* An entry whose value is nil has no key any more. */
static bool in_nodes(struct asking *asking)
{
	const struct lua_layout *layout = asking->lua->layout;
	uint64_t offset = (asking->place - asking->start) % layout->node.size;
	struct lua_value value, key;

	if (offset == 0)
		return in_array(asking, asking->place);
	return offset == layout->node.key &&
	       lua_read_value(asking->lua, &asking->view, asking->place - offset, &value) &&
	       value.type != LUA_NIL &&
	       lua_read_key(asking->lua, &asking->view, asking->place, &key) &&
	       (lua_is_object(&key) || (key.type == LUA_LIGHT && asking->target == LUA_NONE)) &&
	       (!(asking->flags & LUA_WEAK_KEYS) || asking->is_string);
}

static bool in_table(struct asking *asking)
{
	const struct lua_layout *layout = asking->lua->layout;

	return is_at(asking, layout->table.metatable) || is_at(asking, layout->table.array) ||
	       is_at(asking, layout->table.nodes) ||
	       (layout->is_jit && in_array(asking, asking->start + layout->table.size));
}

static bool in_function(struct asking *asking)
{
	const struct lua_layout *layout = asking->lua->layout;

	if (is_at(asking, layout->function.environment))
		return true;
	if (asking->kind == LUA_C_FUNCTION)
		return has_object(asking, asking->start + layout->function.c_upvalues);
	return is_at(asking, layout->function.proto) ||
	       asking->place >= asking->start + layout->function.upvalues;
}

/* C code may keep objects in its data, but no collector looks there: but for LuaJIT's buffers. */
static bool in_userdata(struct asking *asking)
{
	const struct lua_layout *layout = asking->lua->layout;
	uint64_t data = asking->start + layout->userdata.data;
	uint16_t count;

	return is_at(asking, layout->userdata.metatable) ||
	       is_at(asking, layout->userdata.environment) ||
	       (layout->is_jit && asking->place >= data) ||
	       (layout->userdata.value_count &&
		view_read(&asking->view, asking->start + layout->userdata.value_count, &count,
			  sizeof(count)) &&
		asking->place < data + (uint64_t)VALUE * count && has_object(asking, data));
}

/* In LuaJIT, constants stand before the numbers in the prototype. */
static bool in_proto(struct asking *asking)
{
	const struct lua_layout *layout = asking->lua->layout;
	uint64_t constants;

	if (is_at(asking, layout->proto.source))
		return true;
	if (!layout->is_jit)
		return asking->target >= LUA_FIRST_PART;
	constants = lua_word(&asking->view, asking->start + layout->proto.constants);
	return asking->place < constants &&
	       constants - asking->place <=
		       LUA_WORD *
			       (uint64_t)lua_number(&asking->view,
						    asking->start + layout->proto.constant_count);
}

static bool in_upvalue(struct asking *asking)
{
	const struct lua_layout *layout = asking->lua->layout;
	uint64_t value = asking->start + layout->upvalue.value;
	uint64_t place = lua_word(&asking->view, asking->start + layout->upvalue.place);

	if (asking->place == asking->start + layout->upvalue.place)
		return asking->target != LUA_STACK;
	if (place == value)
		return asking->place == value && has_object(asking, value);
	return is_at(asking, layout->upvalue.next) && asking->target == LUA_UPVALUE;
}

static bool in_stack(struct asking *asking, allocation_id source)
{
	const struct lua *lua = asking->lua;
	size_t i = BISECT(number, 0, lua->stacks.count, lua->stacks.items[number].id < source);

	return i < lua->stacks.count && lua->stacks.items[i].id == source &&
	       asking->place < lua->stacks.items[i].end && has_object(asking, asking->start);
}

/* At that distance from the start of a thread. */
static bool in_thread(const struct asking *asking, uint64_t offset)
{
	const struct lua_layout *layout = asking->lua->layout;

	return offset == layout->thread.stack ||
	       (layout->thread.calls && offset >= layout->thread.calls &&
		(asking->target == LUA_CALLS || asking->target == LUA_STACK)) ||
	       (layout->thread.environment && offset == layout->thread.environment) ||
	       (layout->upvalue.next && offset == layout->thread.upvalues);
}

/* The registry, metatables, names of events, and what is about to be finalized. */
static bool in_state(struct asking *asking)
{
	const struct lua_layout *layout = asking->lua->layout;
	uint64_t offset = asking->place - asking->start;

	if (asking->place < lua_global(asking->lua, asking->start))
		return in_thread(asking, offset);
	offset = asking->place - lua_global(asking->lua, asking->start);
	return offset == layout->global.registry || offset == layout->global.finalizing ||
	       (layout->is_jit && offset - LUA_WORD == layout->global.registry) ||
	       (layout->global.fixed && offset == layout->global.fixed) ||
	       offset == layout->global.strings ||
	       (offset >= layout->global.names && offset < layout->global.names_end);
}

static bool refers(struct asking *asking, allocation_id source)
{
	switch (asking->kind) {
	case LUA_TABLE:
		return in_table(asking);
	case LUA_ARRAY:
		return in_array(asking, asking->start);
	case LUA_NODES:
		return in_nodes(asking);
	case LUA_FUNCTION:
	case LUA_C_FUNCTION:
		return in_function(asking);
	case LUA_USERDATA:
		return in_userdata(asking);
	case LUA_THREAD:
		return in_thread(asking, asking->place - asking->start);
	case LUA_PROTO:
		return in_proto(asking);
	case LUA_UPVALUE:
		return in_upvalue(asking);
	case LUA_TRACE:
		return asking->place >= asking->start + JIT_TRACE_HEAD &&
		       asking->target < LUA_FIRST_PART && asking->is_start;
	case LUA_STATE:
		return in_state(asking);
	case LUA_STACK:
		return in_stack(asking, source);
	case LUA_CONSTANTS:
		return has_object(asking, asking->start);
	case LUA_CALLS:
		return asking->target >= LUA_FIRST_PART;
	case LUA_REFERENCES:
		return true;
	default:
		return false;
	}
}

/* An object that is not to be freed is held by what is before it in its list, or by its bucket. */
static bool is_kept(const struct asking *asking, allocation_id target)
{
	return (asking->lua->kinds.items[target] & LUA_FIXED) &&
	       (asking->kind == LUA_BUCKETS ||
		(asking->place == asking->start &&
		 (asking->kind == LUA_STRING || (asking->flags & LUA_FIXED))));
}

bool lua_is_link(const struct object_space *space, allocation_id source, allocation_id target,
		 uint64_t word, uint64_t place)
{
	const struct lua *lua = (const struct lua *)space;
	struct asking asking = {
		.lua = lua, .view = { space->image }, .word = word, .place = place
	};

	asking.target = lua_kind_of(lua, target);
	if (source == NO_ALLOCATION || lua_kind_of(lua, source) == LUA_NONE)
		return (word & space->tag_bits) ||
		       (asking.target != LUA_NONE && asking.target != LUA_STATE &&
			asking.target != LUA_TRACE);
	asking.flags = lua->kinds.items[source];
	asking.kind = lua_kind_of(lua, source);
	asking.start = lua_start(lua, source);
	asking.is_string = asking.target == LUA_STRING;
	asking.is_start = word == lua_start(lua, target);
	if (is_kept(&asking, target))
		return false;
	/* Parts of C code, such as what a userdata or the state has. */
	if (asking.target == LUA_NONE && !(word & space->tag_bits) &&
	    (asking.kind == LUA_STATE || asking.kind == LUA_CDATA || asking.kind == LUA_USERDATA))
		return false;
	return !refers(&asking, source);
}

/* The first string in a list that is never freed. */
static allocation_id find_fixed(const struct lua *lua, struct view *view, uint64_t address)
{
	enum { MOST = 1 << 12 };

	for (int i = 0; i < MOST; i++) {
		allocation_id id = lua_find(lua, address);

		if (id == NO_ALLOCATION || lua_kind_of(lua, id) != LUA_STRING)
			break;
		if (lua->kinds.items[id] & LUA_FIXED)
			return id;
		address = lua_word(view, address);
	}
	return NO_ALLOCATION;
}

/* LuaJIT's compiler has the address of a buffer less the number that it begins with. */
static allocation_id find_buffer(const struct lua *lua, struct view *view, allocation_id state,
				 uint64_t word)
{
	enum { END = WORD, BEGIN = WORD + 4, MIDDLE = 0x8000, MOST = 0x10000 };
	uint64_t start = allocation_start(lua->space.index, state);
	uint64_t end = start + allocation_size(lua->space.index, state);

	for (uint64_t at = lua_global(lua, start); at + BEGIN < end; at += WORD) {
		uint32_t first = lua_number(view, at + BEGIN), last = lua_number(view, at + END);

		if (lua_word(view, at) == word && first < MIDDLE && last > MIDDLE && last <= MOST)
			return allocation_find(lua->space.index, word + (uint64_t)WORD * first);
	}
	return NO_ALLOCATION;
}

allocation_id lua_resolve(const struct object_space *space, allocation_id source, uint64_t word)
{
	const struct lua *lua = (const struct lua *)space;
	struct view view = { space->image };
	struct lua_value value;
	uint64_t start;

	switch (lua_kind_of(lua, source)) {
	case LUA_UPVALUE:
		/* An open one holds the value, not the stack that it is on. */
		start = allocation_start(space->index, source);
		return word == lua_word(&view, start + lua->layout->upvalue.place) &&
				       word != start + lua->layout->upvalue.value &&
				       lua_read_value(lua, &view, word, &value) &&
				       lua_is_object(&value)
			       ? lua_find(lua, value.word)
			       : NO_ALLOCATION;
	case LUA_STATE:
		return lua->layout->is_jit ? find_buffer(lua, &view, source, word) : NO_ALLOCATION;
	case LUA_BUCKETS:
	case LUA_STRING:
		return lua->layout->strings_listed ? NO_ALLOCATION
						   : find_fixed(lua, &view, word & ~UINT64_C(1));
	default:
		return NO_ALLOCATION;
	}
}

bool lua_is_collected(const struct object_space *space, allocation_id id)
{
	enum lua_kind kind = lua_kind_of((const struct lua *)space, id);

	return kind != LUA_NONE && kind != LUA_STATE && kind != LUA_TRACE;
}

bool lua_text(const struct object_space *space, allocation_id id, uint64_t *ret_start,
	      uint64_t *ret_size)
{
	struct view view = { space->image };

	return lua_find_text((const struct lua *)space, &view, allocation_start(space->index, id),
			     ret_start, ret_size);
}
