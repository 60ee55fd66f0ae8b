/*
 * The calls that a thread of Lua is in, and variables of their functions.
 *
 * Lua has a CallInfo for each. In LuaJIT, the slot below a function's variables says where the
 * caller goes on, from which follows how far down its own begin, or it is their distance:
 *
 *	... | function | return address | variables ... | function | distance, kind | ...
 */
#include "analyzer/runtimes/lua/lua.h"

enum {
	INSTRUCTION = 4,
	MOST_CALLS = 1 << 20,
	/* In LuaJIT: kinds of frames, and what the compiler names variables by itself. */
	FRAME_KIND = 7,
	FRAME_RETURNS = 3, /* none of these bits: it has a return address */
	FRAME_GOES_ON = 2,
	FRAME_VARIADIC = 3,
	FRAME_SIZE = 11, /* of a prototype */
	FIRST_NAME = 7,
};

static uint64_t value_size(const struct lua *lua)
{
	return lua->layout->is_jit ? LUA_WORD : 2 * LUA_WORD;
}

uint64_t lua_proto_of(const struct lua *lua, struct view *view, uint64_t function)
{
	const struct lua_layout *layout = lua->layout;
	uint64_t proto;

	if (lua_kind_at(lua, function) != LUA_FUNCTION)
		return 0;
	proto = lua_word(view, function + layout->function.proto) -
		(layout->is_jit ? layout->proto.size : 0);
	return lua_kind_at(lua, proto) == LUA_PROTO ? proto : 0;
}

/* The number of the instruction before that address. */
static uint64_t instruction_at(const struct lua *lua, struct view *view, uint64_t proto,
			       uint64_t address)
{
	const struct lua_layout *layout = lua->layout;
	uint64_t code = layout->is_jit ? proto + layout->proto.size
				       : lua_word(view, proto + layout->proto.code);
	uint64_t number = (address - code) / INSTRUCTION;

	return proto && address > code &&
			       number <= lua_number(view, proto + layout->proto.code_count)
		       ? number - 1
		       : UINT64_MAX;
}

static struct lua_call read_call(const struct lua *lua, struct view *view, uint64_t thread,
				 uint64_t place)
{
	const struct lua_layout *layout = lua->layout;
	uint64_t slot = lua_word(view, place + layout->call.function);
	bool is_current = lua_word(view, thread + layout->thread.call) == place;
	struct lua_call call = { .place = slot, .function = lua_word(view, slot) };
	uint64_t code = layout->thread.code && is_current ? thread + layout->thread.code
							  : place + layout->call.code;

	call.proto = lua_proto_of(lua, view, call.function);
	call.base = !layout->thread.base && (!layout->call.base || !call.proto)
			    ? slot + value_size(lua)
			    : lua_word(view, place + layout->call.base);
	call.end = lua_word(view, call.proto || !is_current ? place + layout->call.top
							    : thread + layout->thread.top);
	call.instruction = instruction_at(lua, view, call.proto, lua_word(view, code));
	return call;
}

static bool visit_plain(const struct lua *lua, struct view *view, uint64_t thread,
			lua_call_visitor *visit, void *data)
{
	const struct lua_layout *layout = lua->layout;
	uint64_t place = lua_word(view, thread + layout->thread.call);
	uint64_t last = thread + layout->thread.calls;

	if (!layout->call.previous)
		last = lua_word(view, last);
	for (unsigned int i = 0; place && place != last && i < MOST_CALLS; i++) {
		struct lua_call call = read_call(lua, view, thread, place);

		if (visit(data, &call))
			return true;
		place = layout->call.previous ? lua_word(view, place + layout->call.previous)
					      : place - layout->call.size;
	}
	return false;
}

static uint64_t jit_caller(struct view *view, uint64_t frame, uint64_t link)
{
	if (link & FRAME_RETURNS)
		return frame - (link & ~(uint64_t)FRAME_KIND);
	return frame - LUA_WORD * (2 + (uint64_t)lua_byte(view, link - INSTRUCTION + 1));
}

/* Before a function that the virtual machine calls by itself stands where it goes on. */
static uint64_t return_address(struct view *view, uint64_t frame, uint64_t link)
{
	if ((link & FRAME_KIND) == FRAME_GOES_ON)
		return lua_word(view, frame - 2 * LUA_WORD);
	return link & FRAME_RETURNS ? 0 : link;
}

static bool visit_jit(const struct lua *lua, struct view *view, uint64_t thread,
		      lua_call_visitor *visit, void *data)
{
	const struct lua_layout *layout = lua->layout;
	uint64_t stack = lua_word(view, thread + layout->thread.stack);
	uint64_t frame = lua_word(view, thread + layout->thread.base) - LUA_WORD;
	struct lua_call call = { .end = lua_word(view, thread + layout->thread.top) };
	uint64_t goes_on = 0;

	for (unsigned int i = 0; frame > stack + LUA_WORD && i < MOST_CALLS; i++) {
		uint64_t link = lua_word(view, frame), caller = jit_caller(view, frame, link);
		struct lua_value function;

		if (!lua_read_value(lua, view, frame - LUA_WORD, &function))
			return false;
		call.place = frame - LUA_WORD;
		call.function = function.word;
		call.base = frame + LUA_WORD;
		call.proto = lua_proto_of(lua, view, call.function);
		call.instruction = instruction_at(lua, view, call.proto, goes_on);
		if (call.proto)
			call.end = call.base +
				   LUA_WORD * (uint64_t)lua_byte(view, call.proto + FRAME_SIZE);
		if (visit(data, &call))
			return true;
		/* Below the variables of a function with any number of arguments, it stands again.
		 */
		if ((link & FRAME_KIND) == FRAME_VARIADIC) {
			frame = caller;
			link = lua_word(view, frame);
			caller = jit_caller(view, frame, link);
		}
		goes_on = return_address(view, frame, link);
		if (caller >= frame)
			return false;
		call.end = frame - LUA_WORD;
		frame = caller;
	}
	return false;
}

bool lua_visit_calls(const struct lua *lua, struct view *view, uint64_t thread,
		     lua_call_visitor *visit, void *data)
{
	return (lua->layout->is_jit ? visit_jit : visit_plain)(lua, view, thread, visit, data);
}

static bool keep_end(void *data, const struct lua_call *call)
{
	*(uint64_t *)data = call->end;
	return true;
}

uint64_t lua_stack_end(const struct lua *lua, struct view *view, uint64_t thread)
{
	uint64_t end = lua_word(view, thread + lua->layout->thread.top), call_end = 0;

	lua_visit_calls(lua, view, thread, keep_end, &call_end);
	return call_end > end ? call_end : end;
}

/* A number in pieces of 7 bits. */
static uint64_t read_pieces(struct view *view, uint64_t *place)
{
	uint64_t number = 0;
	uint8_t byte;

	for (unsigned int shift = 0; shift < 32; shift += 7) {
		byte = lua_byte(view, (*place)++);
		number |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			break;
	}
	return number;
}

/* Read a text that ends in 0, behind which *place goes on. */
static bool read_name(struct view *view, uint64_t *place, char *ret, size_t size)
{
	enum { MOST = 256 };
	size_t length = 0;
	char byte;

	for (int i = 0; i < MOST; i++) {
		byte = (char)lua_byte(view, (*place)++);
		if (!byte)
			break;
		if (length + 1 < size)
			ret[length++] = byte;
	}
	ret[length] = '\0';
	return length > 0;
}

/* Each variable is a name, or the number of one, and two numbers: where it begins, and how long. */
static bool jit_local_name(const struct lua *lua, struct view *view, const struct lua_call *call,
			   uint64_t slot, char *ret, size_t size)
{
	enum { MOST_VARIABLES = 1 << 16 };
	uint64_t place = lua_word(view, call->proto + lua->layout->proto.locals), start = 0, end;

	for (int i = 0; place && i < MOST_VARIABLES; i++) {
		uint8_t first = lua_byte(view, place);

		ret[0] = '\0';
		if (first == 0)
			return false;
		if (first < FIRST_NAME)
			place++;
		else
			read_name(view, &place, ret, size);
		start += read_pieces(view, &place);
		if (call->instruction < start)
			return false;
		end = start + read_pieces(view, &place);
		if (call->instruction < end && slot-- == 0)
			return ret[0] != '\0';
	}
	return false;
}

bool lua_local_name(const struct lua *lua, struct view *view, const struct lua_call *call,
		    uint64_t slot, char *ret, size_t size)
{
	enum { LOCAL = 16, START = 8, END = 12 };
	const struct lua_layout *layout = lua->layout;
	uint64_t place, count;

	if (!call->proto || call->instruction == UINT64_MAX)
		return false;
	if (layout->is_jit)
		return jit_local_name(lua, view, call, slot, ret, size);
	place = lua_word(view, call->proto + layout->proto.locals);
	count = lua_number(view, call->proto + layout->proto.local_count);
	for (uint64_t i = 0; i < count; i++, place += LOCAL) {
		if (lua_number(view, place + START) > call->instruction)
			return false;
		if (call->instruction < lua_number(view, place + END) && slot-- == 0)
			return lua_read_text(lua, view, lua_word(view, place), ret, size) &&
			       ret[0] && ret[0] != '(';
	}
	return false;
}

/* The name of the number-th upvalue. */
static void read_upvalue_name(const struct lua *lua, struct view *view, uint64_t proto,
			      size_t number, char *ret, size_t size)
{
	const struct lua_layout *layout = lua->layout;
	uint64_t names = lua_word(view, proto + layout->proto.upvalues);

	ret[0] = '\0';
	if (!proto || !names)
		return;
	if (!layout->is_jit) {
		if (number >= lua_number(view, proto + layout->proto.upvalue_count) ||
		    !lua_read_text(lua, view,
				   lua_word(view, names + number * layout->proto.upvalue_size), ret,
				   size))
			ret[0] = '\0';
		return;
	}
	for (size_t i = 0; i <= number; i++)
		read_name(view, &names, ret, size);
}

bool lua_upvalue_of(const struct lua *lua, struct view *view, uint64_t function, size_t number,
		    struct lua_upvalue *ret)
{
	const struct lua_layout *layout = lua->layout;
	enum lua_kind kind = lua_kind_at(lua, function);

	*ret = (struct lua_upvalue){ 0 };
	if ((kind != LUA_FUNCTION && kind != LUA_C_FUNCTION) ||
	    number >= lua_byte(view, function + layout->function.count))
		return false;
	if (kind == LUA_C_FUNCTION) {
		ret->place = function + layout->function.c_upvalues + number * value_size(lua);
		return true;
	}
	ret->object = lua_word(view, function + layout->function.upvalues + number * LUA_WORD);
	ret->place = ret->object ? lua_word(view, ret->object + layout->upvalue.place) : 0;
	read_upvalue_name(lua, view, lua_proto_of(lua, view, function), number, ret->name,
			  sizeof(ret->name));
	return true;
}
