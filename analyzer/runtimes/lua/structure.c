/*
 * Words of Lua that are no addresses, and no values of programs: types and flags of objects, tags
 * of values, counts, code; and the texts of names.
 *
 * All short strings are kept once, whatever they are for, so a key is a name only if code has it as
 * a constant, or if a function is called by it, or in the registry, which is of C code. Names are
 * also those of variables, upvalues and sources.
 */
#include "analyzer/base/bitmap.h"
#include "analyzer/runtimes/lua/lua.h"

enum {
	HEAD = 8,      /* where an object says its type, behind the next one */
	HEAD_END = 12, /* what follows may be padding */
	TAG = 8,       /* of a value, behind its word */
	VALUE = 16,
	LOCAL = 16,
};

struct structure {
	struct lua *lua;
	const struct structure_visitor *visitor;
	struct view view;
	struct bitmap constants; /* strings that code has */
	bool is_of_c;		 /* its keys are names that C code chose */
	struct error *error;
};

static void structure_deinit(struct structure *structure)
{
	bitmap_deinit(&structure->constants);
}
DEFINE_DEINIT(structure_deinit, struct structure)

static struct error *keep(const struct structure *structure, uint64_t start, uint64_t size)
{
	return structure->visitor->number(structure->visitor->data, start, size);
}

/* Ints and flags: where none was written, remains of values would stay. */
static struct error *keep_halves(struct structure *structure, uint64_t start, uint64_t end)
{
	enum { MOST = 1 << 20, LEAST = -1024, MOST_PART = 1 << 12 };
	int32_t half;

	for (uint64_t at = start; at + sizeof(half) <= end; at += sizeof(half))
		if (view_read(&structure->view, at, &half, sizeof(half)) &&
		    ((half > LEAST && half < MOST) ||
		     ((half & UINT16_MAX) < MOST_PART && (uint32_t)half >> 16 < MOST_PART)))
			TRY(keep(structure, at, sizeof(half)));
	return NULL;
}

static struct error *keep_name(struct structure *structure, uint64_t string)
{
	uint64_t start, size;

	return lua_find_text(structure->lua, &structure->view, string, &start, &size)
		       ? structure->visitor->name(structure->visitor->data, start, size + 1)
		       : NULL;
}

/* The type of a value; in LuaJIT, it is in the word, which stays unless that is a number. */
static struct error *keep_tag(struct structure *structure, uint64_t place)
{
	struct lua_value value;

	if (!structure->lua->layout->is_jit)
		return keep(structure, place + TAG, 1);
	if (!lua_read_value(structure->lua, &structure->view, place, &value) ||
	    value.type == LUA_INTEGER || value.type == LUA_REAL ||
	    (value.type == LUA_OBJECT && !lua_kind_at(structure->lua, value.word)))
		return NULL;
	return keep(structure, place, sizeof(uint64_t));
}

static struct error *keep_tags(struct structure *structure, allocation_id id)
{
	enum { MOST_FRAME = 1 << 16 /* of LuaJIT: slots, and what kind */ };
	const bool is_jit = structure->lua->layout->is_jit;
	const struct allocation_index *index = structure->lua->space.index;
	uint64_t start = allocation_start(index, id), end = start + allocation_size(index, id);
	uint64_t step = is_jit ? LUA_WORD : VALUE;

	for (uint64_t at = start; at + step <= end; at += step) {
		if (is_jit && lua_word(&structure->view, at) < MOST_FRAME)
			TRY(keep(structure, at, LUA_WORD));
		TRY(keep_tag(structure, at));
	}
	return NULL;
}

/* A value and a key; up to 5.3, what stands between them may be how far the next node is. */
static struct error *keep_nodes(struct structure *structure, allocation_id id)
{
	const struct lua_layout *layout = structure->lua->layout;
	const struct allocation_index *index = structure->lua->space.index;
	uint64_t start = allocation_start(index, id), end = start + allocation_size(index, id);

	for (uint64_t at = start; at + layout->node.size <= end; at += layout->node.size) {
		TRY(keep_tag(structure, at));
		if (layout->is_jit)
			TRY(keep_tag(structure, at + layout->node.key));
		else
			TRY(keep(structure, at + layout->node.key_type, 1));
	}
	return NULL;
}

/* True: memory is short. */
static bool keep_entry(void *data, const struct lua_entry *entry)
{
	struct structure *structure = data;
	const struct lua *lua = structure->lua;
	enum lua_kind kind;
	allocation_id id;

	if (!lua_is_object(&entry->key) || lua_kind_at(lua, entry->key.word) != LUA_STRING)
		return false;
	id = lua_find(lua, entry->key.word);
	kind = lua_is_object(&entry->value) ? lua_kind_at(lua, entry->value.word) : LUA_NONE;
	if (kind == LUA_FUNCTION || kind == LUA_C_FUNCTION ||
	    bitmap_get(&structure->constants, id) || structure->is_of_c)
		structure->error = keep_name(structure, entry->key.word);
	return structure->error != NULL;
}

/* True for a registry and its table of modules. */
static bool is_of_c(struct structure *structure, uint64_t table)
{
	struct lua *lua = structure->lua;

	array_for_each(state, &lua->states) {
		uint64_t registry = lua_registry(lua, &structure->view, *state);

		if (table == registry ||
		    (registry &&
		     table == lua_get(lua, &structure->view, registry, "_LOADED", &lua->steps)))
			return true;
	}
	return false;
}

static struct error *keep_table(struct structure *structure, uint64_t table)
{
	const struct lua_layout *layout = structure->lua->layout;

	TRY(keep(structure, table + layout->table.array_size, sizeof(uint32_t)));
	TRY(keep(structure, table + layout->table.node_count,
		 layout->is_jit ? sizeof(uint32_t) : 1));
	structure->is_of_c = is_of_c(structure, table);
	/* A type's own name, in its metatable. */
	TRY(keep_name(structure, lua_get(structure->lua, &structure->view, table, "__name",
					 &structure->lua->steps)));
	lua_visit_entries(structure->lua, &structure->view, table, &structure->lua->steps,
			  keep_entry, structure);
	return structure->error;
}

/* Descriptions of variables or upvalues, which begin with a name. */
static struct error *keep_names(struct structure *structure, const struct lua_part *part,
				uint64_t size)
{
	uint64_t end = part->start + part->asked;

	for (uint64_t at = part->start; size && at + size <= end; at += size) {
		TRY(keep_name(structure, lua_word(&structure->view, at)));
		TRY(keep_halves(structure, at + LUA_WORD, at + size));
	}
	return NULL;
}

/* The text with its end, as a name. Returns where it ends; 0: it has no end. */
static uint64_t keep_text(struct structure *structure, uint64_t text, uint64_t end)
{
	uint64_t at = text;

	while (at < end && lua_byte(&structure->view, at))
		at++;
	if (at < end && !structure->error)
		structure->error =
			structure->visitor->name(structure->visitor->data, text, at + 1 - text);
	return at < end ? at + 1 : 0;
}

/* Names of upvalues, and of variables: each is followed by two numbers of some bytes. */
static struct error *keep_jit_names(struct structure *structure, uint64_t proto, uint64_t end)
{
	enum { FIRST_NAME = 7, NUMBERS = 2 };
	const struct lua_layout *layout = structure->lua->layout;
	uint64_t at = lua_word(&structure->view, proto + layout->proto.upvalues);
	uint8_t count = lua_byte(&structure->view, proto + layout->proto.upvalue_count);

	while (at && at - proto < end - proto && count-- > 0)
		at = keep_text(structure, at, end);
	at = lua_word(&structure->view, proto + layout->proto.locals);
	while (at && at - proto < end - proto && lua_byte(&structure->view, at)) {
		at = lua_byte(&structure->view, at) < FIRST_NAME ? at + 1
								 : keep_text(structure, at, end);
		for (unsigned int i = 0; at && i < NUMBERS; i++) {
			while (at < end && lua_byte(&structure->view, at) & 0x80)
				at++;
			at++;
		}
	}
	return structure->error;
}

/* All is in one allocation: code, constants, and, at the end, lines and names. */
static struct error *keep_jit_proto(struct structure *structure, allocation_id id, uint64_t proto)
{
	enum { INSTRUCTION = 4 };
	const struct lua_layout *layout = structure->lua->layout;
	uint64_t end = proto + allocation_size(structure->lua->space.index, id);
	uint64_t lines = lua_word(&structure->view, proto + layout->proto.lines);
	uint64_t code = lua_number(&structure->view, proto + layout->proto.code_count);

	TRY(keep(structure, proto + layout->proto.size,
		 MIN(code * INSTRUCTION, end - proto - MIN(layout->proto.size, end - proto))));
	if (lines - proto >= end - proto)
		return NULL;
	TRY(keep(structure, lines, end - lines));
	return keep_jit_names(structure, proto, end);
}

static struct error *keep_proto(struct structure *structure, allocation_id id, uint64_t proto)
{
	const struct lua_layout *layout = structure->lua->layout;
	struct lua_part parts[LUA_MOST_PARTS];
	size_t count = lua_parts_of(structure->lua, &structure->view, id, parts);

	TRY(keep(structure, proto + HEAD, HEAD_END - HEAD));
	TRY(keep_halves(structure, proto + HEAD_END, proto + layout->proto.size));
	TRY(keep_name(structure, lua_word(&structure->view, proto + layout->proto.source)));
	if (layout->is_jit)
		return keep_jit_proto(structure, id, proto);
	for (size_t i = 0; i < count; i++) {
		if (parts[i].kind == LUA_CODE)
			TRY(keep(structure, parts[i].start, parts[i].asked));
		if (parts[i].kind == LUA_REFERENCES && parts[i].asked)
			TRY(keep_names(structure, &parts[i], parts[i].asked / parts[i].count));
	}
	return NULL;
}

static struct error *keep_string(struct structure *structure, uint64_t string)
{
	const struct lua_layout *layout = structure->lua->layout;

	TRY(keep(structure, string + HEAD, HEAD_END - HEAD));
	if (!layout->string.length)
		return NULL;
	/* The length of a short one is a byte from 5.3 on; then its word is a link. */
	return keep_halves(structure, string + layout->string.length,
			   string + MIN(layout->string.length + sizeof(uint64_t),
					(uint64_t)layout->string.text));
}

/* The tags of values that functions in C have, and from 5.4 on userdata before its data. */
static struct error *keep_own_values(struct structure *structure, uint64_t object, uint64_t end,
				     enum lua_kind kind)
{
	const struct lua_layout *layout = structure->lua->layout;
	uint64_t step = layout->is_jit ? LUA_WORD : VALUE, count = 0, first = 0;

	if (kind == LUA_C_FUNCTION) {
		count = lua_byte(&structure->view, object + layout->function.count);
		first = object + layout->function.c_upvalues;
	} else if (kind == LUA_USERDATA && layout->userdata.value_count) {
		count = lua_number(&structure->view, object + layout->userdata.value_count) &
			UINT16_MAX;
		first = object + layout->userdata.data;
	}
	for (uint64_t at = first; count-- > 0 && at + step <= end; at += step)
		TRY(keep_tag(structure, at));
	return NULL;
}

static struct error *keep_object(struct structure *structure, allocation_id id)
{
	const struct lua_layout *layout = structure->lua->layout;
	uint64_t start = allocation_start(structure->lua->space.index, id);
	uint64_t end = start + allocation_size(structure->lua->space.index, id);
	enum lua_kind kind = lua_kind_of(structure->lua, id);

	switch (kind) {
	case LUA_STRING:
		return keep_string(structure, start);
	case LUA_NODES:
		return keep_nodes(structure, id);
	case LUA_ARRAY:
	case LUA_STACK:
	case LUA_CONSTANTS:
		return keep_tags(structure, id);
	case LUA_THREAD:
	case LUA_STATE:
		TRY(keep(structure, lua_start(structure->lua, id) + HEAD, HEAD_END - HEAD));
		if (layout->is_jit)
			TRY(keep_tags(structure, id));
		return keep_halves(structure, start, end);
	case LUA_CALLS:
		return keep_halves(structure, start, end);
	case LUA_PROTO:
		return keep_proto(structure, id, start);
	default:
		break;
	}
	if (kind == LUA_NONE || kind > LUA_FIRST_PART)
		return NULL;
	TRY(keep(structure, start + HEAD, HEAD_END - HEAD));
	TRY(keep_own_values(structure, start, end, kind));
	/* A small table of LuaJIT has its array behind itself. */
	for (uint64_t at = start + layout->table.size;
	     kind == LUA_TABLE && layout->is_jit && at + LUA_WORD <= end; at += LUA_WORD)
		TRY(keep_tag(structure, at));
	if (kind == LUA_TABLE)
		return keep_table(structure, start);
	return kind == LUA_UPVALUE ? keep_tag(structure, start + layout->upvalue.value) : NULL;
}

static void note_constants(struct structure *structure, allocation_id id)
{
	const struct allocation_index *index = structure->lua->space.index;
	uint64_t start = allocation_start(index, id), end = start + allocation_size(index, id);
	struct lua_value value;

	for (uint64_t at = start; at + VALUE <= end; at += VALUE)
		if (lua_read_value(structure->lua, &structure->view, at, &value) &&
		    lua_is_object(&value) && lua_kind_at(structure->lua, value.word) == LUA_STRING)
			bitmap_set(&structure->constants, lua_find(structure->lua, value.word));
}

/* LuaJIT's prototypes have addresses of strings before their numbers. */
static void note_jit_constants(struct structure *structure, uint64_t proto)
{
	const struct lua *lua = structure->lua;
	uint64_t end = lua_word(&structure->view, proto + lua->layout->proto.constants);
	uint64_t count = lua_number(&structure->view, proto + lua->layout->proto.constant_count);

	for (uint64_t at = end; at > proto && count-- > 0;) {
		uint64_t word = lua_word(&structure->view, at -= LUA_WORD);

		if (lua_kind_at(lua, word) == LUA_STRING)
			bitmap_set(&structure->constants, lua_find(lua, word));
	}
}

struct error *lua_visit_structure(struct object_space *space,
				  const struct structure_visitor *visitor)
{
	struct lua *lua = (struct lua *)space;
	_cleanup_(structure_deinit) struct structure structure = { lua, visitor, { space->image } };

	TRY(bitmap_init(&structure.constants, lua->kinds.count, space->account));
	lua->steps.left = space->image->size;
	for (allocation_id id = 0; id < lua->kinds.count; id++)
		if (lua_kind_of(lua, id) == LUA_CONSTANTS)
			note_constants(&structure, id);
		else if (lua->layout->is_jit && lua_kind_of(lua, id) == LUA_PROTO)
			note_jit_constants(&structure, allocation_start(space->index, id));
	/* The size of an area of compiled code is behind the address of the next. */
	array_for_each(range, &space->ranges)
		TRY(keep(&structure, range->range.start + LUA_WORD, LUA_WORD));
	for (allocation_id id = 0; id < lua->kinds.count; id++)
		TRY(keep_object(&structure, id));
	return NULL;
}
