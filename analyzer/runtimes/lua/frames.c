/*
 * The calls in Lua of a thread of the process, with their lines and variables.
 */
#include "analyzer/base/text.h"
#include "analyzer/runtimes/lua/lua.h"

#include <inttypes.h>

enum { MOST_TEXT = 80 };

/* A call waits for the one further out, whose variables say how it calls the function. */
struct naming {
	const struct lua *lua;
	struct view *view;
	lua_named_call_visitor *visit;
	void *data;
	struct lua_call call;
	bool waits;
	uint64_t table; /* whose member may be the function */
	char name[LUA_MOST_NAME];
};

static bool name_by_member(void *data, const struct lua_entry *entry)
{
	struct naming *naming = data;

	return lua_is_object(&entry->value) && entry->value.word == naming->call.function &&
	       lua_is_object(&entry->key) &&
	       lua_read_text(naming->lua, naming->view, entry->key.word, naming->name,
			     sizeof(naming->name));
}

/* By a member of the object, or of what its metatable looks up members in. */
static bool name_by_object(struct naming *naming, uint64_t object)
{
	struct budget steps = { 1 << 12 };
	uint64_t metatable = lua_metatable(naming->lua, naming->view, object);

	return lua_visit_entries(naming->lua, naming->view, object, &steps, name_by_member,
				 naming) ||
	       lua_visit_entries(
		       naming->lua, naming->view,
		       metatable ? lua_get(naming->lua, naming->view, metatable, "__index", &steps)
				 : 0,
		       &steps, name_by_member, naming);
}

static bool name_by_value(struct naming *naming, uint64_t place, const char *name)
{
	struct lua_value value;

	if (!lua_read_value(naming->lua, naming->view, place, &value) || !lua_is_object(&value))
		return false;
	if (value.word == naming->call.function && name && name[0]) {
		snprintf(naming->name, sizeof(naming->name), "%s", name);
		return true;
	}
	return name_by_object(naming, value.word);
}

static bool name_by_caller(struct naming *naming, const struct lua_call *caller)
{
	const uint64_t size = naming->lua->layout->is_jit ? LUA_WORD : 2 * LUA_WORD;
	struct lua_upvalue upvalue;
	char name[LUA_MOST_NAME];

	for (uint64_t slot = 0; slot < UINT8_MAX && caller->base + slot * size < caller->end;
	     slot++)
		if (lua_local_name(naming->lua, naming->view, caller, slot, name, sizeof(name)) &&
		    name_by_value(naming, caller->base + slot * size, name))
			return true;
	for (size_t i = 0; lua_upvalue_of(naming->lua, naming->view, caller->function, i, &upvalue);
	     i++)
		if (name_by_value(naming, upvalue.place, upvalue.name))
			return true;
	return false;
}

/* caller: NULL: there is none. */
static bool pass_on(struct naming *naming, const struct lua_call *caller)
{
	const char *name = lua_name_of(naming->lua, naming->call.function);

	if (!name && caller && caller->proto && name_by_caller(naming, caller))
		name = naming->name;
	if (!name && naming->call.proto &&
	    !lua_number(naming->view, naming->call.proto + naming->lua->layout->proto.first_line))
		name = "main chunk";
	return naming->visit(naming->data, &naming->call, name);
}

static bool take_call(void *data, const struct lua_call *call)
{
	struct naming *naming = data;

	if (naming->waits && pass_on(naming, call))
		return true;
	naming->call = *call;
	naming->waits = true;
	return false;
}

bool lua_visit_named_calls(const struct lua *lua, struct view *view, uint64_t thread,
			   lua_named_call_visitor *visit, void *data)
{
	struct naming naming = { lua, view, visit, data };

	return lua_visit_calls(lua, view, thread, take_call, &naming) ||
	       (naming.waits && pass_on(&naming, NULL));
}

struct local_visit {
	const struct lua *lua;
	struct view *view;
	lua_local_visitor *visit;
	void *data;
	bool all, visits_functions;
};

static bool visit_variables(void *data, const struct lua_call *call, const char *function)
{
	struct local_visit *visit = data;
	const uint64_t size = visit->lua->layout->is_jit ? LUA_WORD : 2 * LUA_WORD;
	char name[LUA_MOST_NAME];

	if (!function)
		function = "?";
	if (visit->visits_functions && !lua_name_of(visit->lua, call->function) &&
	    visit->visit(visit->data, function, "", call->place))
		return true;
	for (uint64_t slot = 0; slot <= UINT8_MAX && call->base + slot * size < call->end; slot++) {
		bool is_named =
			lua_local_name(visit->lua, visit->view, call, slot, name, sizeof(name));

		if ((is_named || visit->all) &&
		    visit->visit(visit->data, function, is_named ? name : NULL,
				 call->base + slot * size))
			return true;
	}
	return false;
}

bool lua_visit_locals(const struct lua *lua, struct view *view, uint64_t thread, bool all,
		      lua_local_visitor *visit, void *data)
{
	struct local_visit state = { lua, view, visit, data, all, true };

	return lua_visit_named_calls(lua, view, thread, visit_variables, &state);
}

struct reading {
	struct lua *lua;
	struct view view;
	const struct frame_visitor *visitor;
	uint64_t number;
};

/* From 5.4 on, a line is its distance from the one before; some stand in full. */
static uint32_t plain_line(struct reading *reading, uint64_t proto, uint64_t instruction)
{
	enum { FULL = -0x80, FAR_LINE = 8 };
	const struct lua_layout *layout = reading->lua->layout;
	struct view *view = &reading->view;
	uint64_t lines = lua_word(view, proto + layout->proto.lines), from = 0;
	uint64_t far = lua_word(view, proto + layout->proto.far_lines);
	uint32_t count = lua_number(view, proto + layout->proto.far_line_count);
	uint32_t line = lua_number(view, proto + layout->proto.first_line);

	if (!lines || instruction >= lua_number(view, proto + layout->proto.line_count))
		return 0;
	if (!layout->proto.far_lines)
		return lua_number(view, lines + instruction * sizeof(line));
	for (uint32_t i = 0; i < count && lua_number(view, far) <= instruction;
	     i++, far += FAR_LINE) {
		line = lua_number(view, far + sizeof(line));
		from = lua_number(view, far) + UINT64_C(1);
	}
	for (; from <= instruction; from++)
		line += (uint32_t)(int8_t)lua_byte(view, lines + from);
	return line;
}

/* Distances from the first line, as wide as the last of them needs. */
static uint32_t jit_line(struct reading *reading, uint64_t proto, uint64_t instruction)
{
	enum { BYTE = 256, SHORT = 65536 };
	const struct lua_layout *layout = reading->lua->layout;
	struct view *view = &reading->view;
	uint32_t first = lua_number(view, proto + layout->proto.first_line), distance;
	uint32_t count = lua_number(view, proto + layout->proto.line_count);
	uint64_t lines = lua_word(view, proto + layout->proto.lines);
	size_t size = count < BYTE ? 1 : count < SHORT ? 2 : 4;

	if (!lines || instruction == 0)
		return first;
	distance = lua_number(view, lines + (instruction - 1) * size);
	if (size < sizeof(distance))
		distance &= (1U << 8 * size) - 1;
	return first + distance;
}

static const char *tell_value(const struct lua_value *value, char *ret, size_t size)
{
	double number;

	memcpy(&number, &value->word, sizeof(number));
	switch (value->type) {
	case LUA_INTEGER:
		snprintf(ret, size, "%" PRId64, (int64_t)value->word);
		return "number";
	case LUA_REAL:
		snprintf(ret, size, "%.14g", number);
		return "number";
	case LUA_LIGHT:
		snprintf(ret, size, "%#" PRIx64, value->word);
		return "light userdata";
	case LUA_NIL:
		return "nil";
	default:
		snprintf(ret, size, "%s", value->type == LUA_TRUE ? "true" : "false");
		return "boolean";
	}
}

static void visit_local(struct reading *reading, const char *name, uint64_t place)
{
	struct object_space *space = &reading->lua->space;
	char text[MOST_TEXT] = "", quoted[MOST_TEXT + 2];
	struct runtime_local local = { .name = name, .address = place };
	struct lua_value value;
	allocation_id id;

	if (!lua_read_value(reading->lua, &reading->view, place, &value))
		return;
	if (!lua_is_object(&value)) {
		local.class_name = tell_value(&value, text, sizeof(text));
		local.value = text[0] ? text : NULL;
	} else {
		id = lua_find(reading->lua, value.word);
		if (id == NO_ALLOCATION || !object_class_of(space, id))
			return;
		local.address = value.word;
		local.class_name = object_class_name_at(space, id);
		if (lua_read_text(reading->lua, &reading->view, value.word, text, sizeof(text))) {
			snprintf(quoted, sizeof(quoted), "\"%s\"", text);
			local.value = quoted;
		}
	}
	reading->visitor->local(reading->visitor->data, &local);
}

static bool visit_frame_local(void *data, const char *function, const char *name, uint64_t place)
{
	visit_local(data, name, place);
	return false;
}

static bool visit_frame(void *data, const struct lua_call *call, const char *name)
{
	struct reading *reading = data;
	char file[LUA_MOST_NAME];
	struct runtime_frame frame = { .number = reading->number++, .function = name };
	struct local_visit locals = { reading->lua, &reading->view, visit_frame_local, reading };

	if (call->proto) {
		lua_tell_file(reading->lua, &reading->view, call->proto, file, sizeof(file));
		frame.file = file;
		if (call->instruction != UINT64_MAX)
			frame.line = (reading->lua->layout->is_jit ? jit_line : plain_line)(
				reading, call->proto, call->instruction);
	} else {
		frame.kind = "C";
	}
	reading->visitor->frame(reading->visitor->data, &frame);
	if (reading->visitor->local)
		visit_variables(&locals, call, name);
	return false;
}

struct resuming {
	const struct lua *lua;
	struct view *view;
	uint64_t thread; /* which the innermost call goes on in */
};

/* coroutine.resume() has the thread as its first argument, coroutine.wrap()'s function keeps it. */
static bool find_resumed(void *data, const struct lua_call *call)
{
	struct resuming *resuming = data;
	uint64_t places[2] = { call->base };
	struct lua_upvalue upvalue;
	struct lua_value value;

	if (call->proto)
		return true;
	if (lua_upvalue_of(resuming->lua, resuming->view, call->function, 0, &upvalue))
		places[1] = upvalue.place;
	for (size_t i = 0; i < 2 && !resuming->thread; i++)
		if (places[i] && lua_read_value(resuming->lua, resuming->view, places[i], &value) &&
		    lua_is_object(&value) && lua_kind_at(resuming->lua, value.word) == LUA_THREAD)
			resuming->thread = value.word;
	return true;
}

/* Visit the calls of the threads that a thread resumed before its own. */
static void visit_thread(struct reading *reading, uint64_t thread, unsigned int depth)
{
	enum { MOST_RESUMED = 200, STATUS = 10, JIT_STATUS = 11 };
	struct resuming resuming = { reading->lua, &reading->view, 0 };
	uint64_t status = reading->lua->layout->is_jit ? JIT_STATUS : STATUS;

	lua_visit_calls(reading->lua, &reading->view, thread, find_resumed, &resuming);
	if (resuming.thread && depth < MOST_RESUMED &&
	    lua_byte(&reading->view, resuming.thread + status) == 0)
		visit_thread(reading, resuming.thread, depth + 1);
	lua_visit_named_calls(reading->lua, &reading->view, thread, visit_frame, reading);
}

/* A thread that runs a state has its address on the stack. */
static bool runs(const struct lua *lua, const struct thread *thread, uint64_t state)
{
	enum { MOST_STACK = 1 << 20 };
	struct view view = { lua->space.image };
	uint64_t word;

	for (uint64_t i = 0; i < MOST_STACK; i += LUA_WORD) {
		if (!view_word(&view, (thread->used_from & ~UINT64_C(7)) + i, &word))
			return false;
		if (word == state)
			return true;
	}
	return false;
}

struct error *lua_visit_frames(struct object_space *space, uint32_t thread,
			       const struct frame_visitor *visitor)
{
	struct lua *lua = (struct lua *)space;
	struct reading reading = { .lua = lua, .view = { space->image }, .visitor = visitor };
	const struct program *program = space->program;
	bool is_only = lua->states.count == 1 && program->thread_count == 1;

	for (size_t i = 0; i < lua->states.count; i++)
		if (is_only || runs(lua, &program->threads[thread], lua->states.items[i]))
			visit_thread(&reading, lua->states.items[i], 0);
	return NULL;
}
