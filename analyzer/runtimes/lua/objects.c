/*
 * Finding a state by its shape, and its objects by its lists.
 */
#include "analyzer/base/sort.h"
#include "analyzer/runtimes/lua/lua.h"

#include <inttypes.h>

enum { NEXT = 0 };

/* True if a state with that layout begins there: it and its thread refer to each other. */
static bool is_state(const struct lua *lua, struct view *view, uint64_t start, uint64_t size)
{
	const struct lua_layout *layout = lua->layout;
	uint64_t thread = start + layout->state.thread, global = start + layout->state.global;
	uint8_t type = lua_byte(view, thread + layout->type);

	return size >= layout->state.size &&
	       lua_word(view, thread + layout->thread.global) == global &&
	       lua_word(view, global + layout->global.main) == thread && type < LUA_TYPES &&
	       layout->kinds[type] == LUA_THREAD;
}

/* The kind of the object at address, by what it says of itself. */
static enum lua_kind read_kind(const struct lua *lua, struct view *view, uint64_t address)
{
	enum { VARIANT = 0x30, MOST_VARIANT = 0x40 };
	const struct lua_layout *layout = lua->layout;
	uint8_t type = lua_byte(view, address + layout->type);
	enum lua_kind kind = (enum lua_kind)layout->kinds[type % LUA_TYPES];

	if (type >= MOST_VARIANT || (layout->is_jit && type >= LUA_TYPES))
		return LUA_NONE;
	if (kind == LUA_FUNCTION &&
	    (layout->c_function ? type == layout->c_function
				: lua_byte(view, address + layout->function.in_c) != 0))
		return LUA_C_FUNCTION;
	return type & VARIANT && kind != LUA_STRING ? LUA_NONE : kind;
}

/* Note the object; false: none is there, or it is known. */
static bool note_object(struct lua *lua, struct view *view, uint64_t address)
{
	const struct lua_layout *layout = lua->layout;
	enum lua_kind kind = address ? read_kind(lua, view, address) : LUA_NONE;
	allocation_id id = allocation_used_at(
		lua->space.index, kind == LUA_THREAD ? address - layout->state.thread : address);

	if (id == NO_ALLOCATION && kind == LUA_CDATA)
		id = allocation_find(lua->space.index, address);
	if (kind == LUA_NONE || id == NO_ALLOCATION || lua->kinds.items[id])
		return false;
	lua->kinds.items[id] = (uint8_t)kind;
	if (layout->fixed && kind == LUA_STRING &&
	    (lua_byte(view, address + layout->color) & layout->fixed))
		lua->kinds.items[id] |= LUA_FIXED;
	return true;
}

/* A damaged list ends where it makes no sense, or is known: some are rings. */
static void walk_list(struct lua *lua, struct view *view, uint64_t address)
{
	while (address && budget_take(&lua->steps) && note_object(lua, view, address)) {
		if (lua_kind_at(lua, address) == LUA_THREAD && !lua->layout->upvalues_listed)
			walk_list(lua, view,
				  lua_word(view, address + lua->layout->thread.upvalues));
		address = lua_word(view, address + NEXT);
	}
}

static void walk_strings(struct lua *lua, struct view *view, uint64_t table)
{
	enum { COUNT = 8, SIZE = 12 };
	const bool is_jit = lua->layout->is_jit;
	uint64_t buckets = lua_word(view, table);
	uint64_t count = is_jit ? (uint64_t)lua_number(view, table + COUNT) + 1
				: lua_number(view, table + SIZE);

	for (uint64_t i = 0; i < count && budget_take(&lua->steps); i++)
		walk_list(lua, view, lua_word(view, buckets + i * LUA_WORD) & ~UINT64_C(1));
}

static void walk_fixed(struct lua *lua, struct view *view, uint64_t address)
{
	while (address && budget_take(&lua->steps) && note_object(lua, view, address)) {
		lua->kinds.items[allocation_find(lua->space.index, address)] |= LUA_FIXED;
		address = lua_word(view, address + NEXT);
	}
}

static void walk_state(struct lua *lua, struct view *view, uint64_t thread)
{
	const struct lua_layout *layout = lua->layout;
	uint64_t global = lua_global(lua, thread);
	uint64_t ring = lua_word(view, global + layout->global.finalizing);

	walk_list(lua, view, lua_word(view, global + layout->global.objects));
	if (layout->global.finalized)
		walk_list(lua, view, lua_word(view, global + layout->global.finalized));
	else
		walk_list(lua, view, lua_word(view, thread + NEXT));
	walk_fixed(lua, view, ring);
	if (layout->global.fixed)
		walk_fixed(lua, view, lua_word(view, global + layout->global.fixed));
	if (!layout->strings_listed)
		walk_strings(lua, view, global + layout->global.strings);
	if (!layout->upvalues_listed)
		walk_list(lua, view, lua_word(view, thread + layout->thread.upvalues));
}

static bool note_call(void *data, uint64_t address)
{
	struct lua *lua = data;
	allocation_id id = allocation_used_at(lua->space.index, address);

	if (id == NO_ALLOCATION || lua->kinds.items[id])
		return true;
	lua->kinds.items[id] = LUA_CALLS;
	return false;
}

/* Up to 5.3, upvalues of functions are on no list. */
static void note_upvalues(struct lua *lua, struct view *view, uint64_t function)
{
	struct lua_upvalue upvalue;

	for (size_t i = 0; lua_upvalue_of(lua, view, function, i, &upvalue); i++) {
		allocation_id id = allocation_used_at(lua->space.index, upvalue.object);

		if (id != NO_ALLOCATION && !lua->kinds.items[id])
			lua->kinds.items[id] = LUA_UPVALUE;
	}
}

static struct error *note_parts(struct lua *lua, struct view *view, allocation_id id)
{
	struct lua_part parts[LUA_MOST_PARTS];
	size_t count = lua_parts_of(lua, view, id, parts);
	uint64_t thread = lua_thread_at(lua, id);

	for (size_t i = 0; i < count; i++) {
		allocation_id part = allocation_used_at(lua->space.index, parts[i].start);

		if (part == NO_ALLOCATION || lua->kinds.items[part])
			continue;
		lua->kinds.items[part] = (uint8_t)parts[i].kind;
		if (parts[i].kind == LUA_STACK)
			TRY(array_append(
				&lua->stacks,
				(struct lua_stack){ part, lua_stack_end(lua, view, thread) }));
	}
	if (thread)
		lua_visit_call_blocks(lua, view, thread, note_call, lua);
	if (lua_kind_of(lua, id) == LUA_FUNCTION && !lua->layout->upvalues_listed)
		note_upvalues(lua, view, allocation_start(lua->space.index, id));
	return NULL;
}

static struct error *reset_kinds(struct lua *lua)
{
	TRY(array_resize(&lua->kinds, 0));
	TRY(array_resize(&lua->kinds, allocation_count(lua->space.index)));
	lua->stacks.count = 0;
	lua->steps.left = lua->space.image->size;
	for (size_t i = 0; i < lua->states.count; i++)
		lua->kinds.items[allocation_find(lua->space.index, lua->states.items[i])] =
			LUA_STATE;
	return NULL;
}

static struct error *find_states(struct lua *lua, const struct lua_layout *layout)
{
	enum { LEAST = 600 };
	const struct allocation_index *index = lua->space.index;
	struct view view = { lua->space.image };
	size_t hint = 0;

	lua->layout = layout;
	lua->states.count = 0;
	bitmap_for_each(id, allocation_used(index)) {
		struct memory_range range = allocation_range_near(index, (allocation_id)id, &hint);

		if (range.end - range.start >= LEAST &&
		    is_state(lua, &view, range.start, range.end - range.start))
			TRY(array_append(&lua->states, range.start + layout->state.thread));
	}
	return NULL;
}

static size_t count_objects(const struct lua *lua)
{
	size_t count = 0;

	array_for_each(kind, &lua->kinds)
		count += *kind != LUA_NONE;
	return count;
}

/* Walk the lists of all states by a layout; returns how many objects and parts there are by it. */
static struct error *try_layout(struct lua *lua, const struct lua_layout *layout, size_t *ret)
{
	struct view view = { lua->space.image };

	*ret = 0;
	TRY(find_states(lua, layout));
	if (lua->states.count == 0)
		return NULL;
	TRY(reset_kinds(lua));
	for (size_t i = 0; i < lua->states.count; i++)
		walk_state(lua, &view, lua->states.items[i]);
	for (allocation_id id = 0; id < lua->kinds.count; id++)
		TRY(note_parts(lua, &view, id));
	*ret = count_objects(lua) - lua->states.count;
	return NULL;
}

/* Versions are not trusted: the layout by which most objects are found is right. */
static struct error *choose_layout(struct lua *lua, size_t *ret)
{
	const struct lua_layout *best = NULL;
	size_t most = 0, count;

	for (size_t i = 0; lua_layouts[i]; i++) {
		TRY(try_layout(lua, lua_layouts[i], &count));
		if (count > most) {
			most = count;
			best = lua_layouts[i];
		}
	}
	*ret = 0;
	return best ? try_layout(lua, best, ret) : NULL;
}

struct error *lua_open(struct object_space *space, bool *ret)
{
	struct lua *lua = (struct lua *)space;
	size_t count;

	arrays_use(space->account, &lua->states, &lua->kinds, &lua->stacks, &lua->named,
		   &lua->texts);
	TRY(choose_layout(lua, &count));
	*ret = count > 0;
	space->tag_bits = *ret && lua->layout->is_jit ? ~LUA_JIT_ADDRESS : 0;
	return *ret && lua->layout->is_jit ? lua_find_jit_code(lua) : NULL;
}

void lua_release(struct object_space *space)
{
	struct lua *lua = (struct lua *)space;

	arrays_release(&lua->states, &lua->kinds, &lua->stacks, &lua->texts);
	table_release(&lua->named);
}

static unsigned int weakness_of(struct lua *lua, struct view *view, uint64_t table)
{
	uint64_t metatable = lua_metatable(lua, view, table);
	uint64_t mode = metatable ? lua_get(lua, view, metatable, "__mode", &lua->steps) : 0;
	char text[LUA_MOST_NAME];

	if (!mode || !lua_read_text(lua, view, mode, text, sizeof(text)))
		return 0;
	return (strchr(text, 'k') ? LUA_WEAK_KEYS : 0) | (strchr(text, 'v') ? LUA_WEAK_VALUES : 0);
}

/* Parts are known: entries of metatables can be read. */
static void note_weakness(struct lua *lua, struct view *view, allocation_id id)
{
	uint64_t start = allocation_start(lua->space.index, id);
	unsigned int weakness = weakness_of(lua, view, start);
	struct lua_part parts[2];

	if (!weakness)
		return;
	lua->kinds.items[id] |= weakness;
	lua_table_parts(lua, view, start, parts);
	for (size_t i = 0; i < 2; i++) {
		allocation_id part = lua_find(lua, parts[i].start);

		if (part != NO_ALLOCATION && lua_kind_of(lua, part) == parts[i].kind)
			lua->kinds.items[part] |= weakness;
	}
}

/* Its metatable says it, or has a name, or what methods are looked up in does. */
static bool name_by_metatable(struct lua *lua, struct view *view, uint64_t object, char *ret,
			      size_t size)
{
	uint64_t metatable = lua_metatable(lua, view, object), name;
	const char *known;

	if (!metatable)
		return false;
	name = lua_get(lua, view, metatable, "__name", &lua->steps);
	if (name && lua_read_text(lua, view, name, ret, size) && ret[0])
		return true;
	known = lua_name_of(lua, metatable);
	if (!known)
		known = lua_name_of(lua, lua_get(lua, view, metatable, "__index", &lua->steps));
	if (known)
		snprintf(ret, size, "%s", known);
	return known != NULL;
}

static void tell_class(struct lua *lua, struct view *view, allocation_id id, char *ret, size_t size)
{
	static const char *const names[LUA_FIRST_PART] = {
		[LUA_STRING] = "string",     [LUA_TABLE] = "table",
		[LUA_FUNCTION] = "function", [LUA_C_FUNCTION] = "C function",
		[LUA_USERDATA] = "userdata", [LUA_THREAD] = "thread",
		[LUA_PROTO] = "proto",	     [LUA_UPVALUE] = "upvalue",
		[LUA_CDATA] = "cdata",	     [LUA_TRACE] = "trace",
		[LUA_STATE] = "lua_State",
	};
	enum lua_kind kind = lua_kind_of(lua, id);
	uint64_t start = allocation_start(lua->space.index, id);
	char source[LUA_MOST_NAME];

	if (kind == LUA_FUNCTION) {
		lua_tell_source(lua, view, lua_proto_of(lua, view, start), source, sizeof(source));
		snprintf(ret, size, "function %s", source);
	} else if (!name_by_metatable(lua, view, start, ret, size)) {
		snprintf(ret, size, "%s", names[kind]);
	}
}

/* Objects of one prototype, or with one metatable, have one class: it is named once. */
static struct error *find_class(struct lua *lua, struct view *view, allocation_id id,
				struct address_map *known, uint32_t *ret)
{
	uint64_t start = allocation_start(lua->space.index, id), key = lua_kind_of(lua, id);
	char name[2 * LUA_MOST_NAME];

	if (key == LUA_FUNCTION)
		key = lua_proto_of(lua, view, start);
	else if (lua_metatable(lua, view, start))
		key = lua_metatable(lua, view, start) | (key == LUA_USERDATA);
	*ret = address_map_find(known, key);
	if (*ret != NOT_IN_MAP)
		return NULL;
	tell_class(lua, view, id, name, sizeof(name));
	TRY(object_classes_name(&lua->space.classes, &lua->space.texts, name, ret));
	return address_map_add(known, key, *ret);
}

static struct error *set_classes(struct lua *lua, struct view *view, struct address_map *known)
{
	for (allocation_id id = 0; id < lua->kinds.count; id++) {
		enum lua_kind kind = lua_kind_of(lua, id);
		uint32_t class;

		if (kind == LUA_NONE || kind >= LUA_FIRST_PART)
			continue;
		TRY(find_class(lua, view, id, known, &class));
		TRY(object_classes_set(&lua->space.classes, id, class));
	}
	return NULL;
}

DEFINE_COMPARE(compare_stacks, struct lua_stack, ASCENDING(id))

struct error *lua_find_objects(struct object_space *space, struct debug *debug)
{
	struct lua *lua = (struct lua *)space;
	struct view view = { space->image };
	struct address_map known = { 0 };
	struct error *error;

	if (lua->kinds.count == 0)
		return NULL;
	array_sort(&lua->stacks, compare_stacks);
	for (allocation_id id = 0; id < lua->kinds.count; id++)
		if (lua_kind_of(lua, id) == LUA_TABLE)
			note_weakness(lua, &view, id);
	TRY(object_classes_init(&space->classes, allocation_count(space->index), space->account));
	TRY(lua_find_names(lua));
	arrays_use(space->account, &known);
	error = set_classes(lua, &view, &known);
	table_release(&known);
	space->has_objects = !error;
	return error;
}
