#include "analyzer/runtimes/lua/lua.h"

#include "analyzer/base/text.h"

enum {
	TYPE = 8, /* of a value */
	LIGHT_TYPE = 2,
	NUMBER_TYPE = 3,
	BOOLEAN_TYPE = 1,
	FIRST_OBJECT = 4, /* types */
	LAST_OBJECT_51 = 8,
	JIT_ADDRESS_BITS = 47,
	JIT_LAST_OBJECT = 12,
	LIGHT_LOW_BITS = 39,
};

uint64_t lua_word(struct view *view, uint64_t address)
{
	uint64_t word;

	return view_word(view, address, &word) ? word : 0;
}

uint32_t lua_number(struct view *view, uint64_t address)
{
	uint32_t number;

	return view_read(view, address, &number, sizeof(number)) ? number : 0;
}

uint8_t lua_byte(struct view *view, uint64_t address)
{
	uint8_t byte;

	return view_read(view, address, &byte, sizeof(byte)) ? byte : 0;
}

/* LuaJIT keeps the upper half of addresses of C code in a table. */
static uint64_t light_address(const struct lua *lua, struct view *view, uint64_t word)
{
	uint64_t state = lua->states.count ? lua->states.items[0] : 0;
	uint64_t table = lua_word(view, lua_global(lua, state) + lua->layout->global.light);
	uint64_t segment = word >> LIGHT_LOW_BITS & UINT8_MAX;

	return (uint64_t)lua_number(view, table + segment * sizeof(uint32_t)) << 32 |
	       (word & ((UINT64_C(1) << LIGHT_LOW_BITS) - 1));
}

static void decode_jit(const struct lua *lua, struct view *view, uint64_t word,
		       struct lua_value *ret)
{
	uint64_t type = (uint64_t) ~((int64_t)word >> JIT_ADDRESS_BITS);

	*ret = (struct lua_value){ LUA_REAL, word };
	if (type <= LUA_TRUE)
		ret->type = (enum lua_type)type;
	else if (type >= FIRST_OBJECT && type <= JIT_LAST_OBJECT)
		*ret = (struct lua_value){ LUA_OBJECT, word & LUA_JIT_ADDRESS };
	else if (type < FIRST_OBJECT)
		*ret = (struct lua_value){ LUA_LIGHT, light_address(lua, view, word) };
}

static enum lua_type plain_type(const struct lua_layout *layout, uint8_t type, uint64_t word)
{
	if (layout->collectable ? type & layout->collectable
				: type >= FIRST_OBJECT && type <= LAST_OBJECT_51)
		return LUA_OBJECT;
	switch (type % LUA_TYPES) {
	case BOOLEAN_TYPE:
		return type != BOOLEAN_TYPE || (word & UINT8_MAX) ? LUA_TRUE : LUA_FALSE;
	case LIGHT_TYPE:
		return LUA_LIGHT;
	case NUMBER_TYPE:
		return type == layout->integer ? LUA_INTEGER : LUA_REAL;
	default:
		return LUA_NIL;
	}
}

static bool read_value(const struct lua *lua, struct view *view, uint64_t place,
		       uint64_t type_place, struct lua_value *ret)
{
	uint64_t word;
	uint8_t type;

	if (!view_word(view, place, &word))
		return false;
	if (lua->layout->is_jit) {
		decode_jit(lua, view, word, ret);
		return true;
	}
	if (!view_read(view, type_place, &type, sizeof(type)))
		return false;
	*ret = (struct lua_value){ plain_type(lua->layout, type, word), word };
	return true;
}

bool lua_read_value(const struct lua *lua, struct view *view, uint64_t place, struct lua_value *ret)
{
	return read_value(lua, view, place, place + TYPE, ret);
}

bool lua_read_key(const struct lua *lua, struct view *view, uint64_t place, struct lua_value *ret)
{
	const struct lua_layout *layout = lua->layout;

	return read_value(lua, view, place, place - layout->node.key + layout->node.key_type, ret);
}

allocation_id lua_find(const struct lua *lua, uint64_t address)
{
	allocation_id id = address ? allocation_find(lua->space.index, address) : NO_ALLOCATION;

	return id != NO_ALLOCATION && lua_kind_of(lua, id) != LUA_NONE &&
			       (lua_start(lua, id) == address || lua_kind_of(lua, id) == LUA_CDATA)
		       ? id
		       : NO_ALLOCATION;
}

enum lua_kind lua_kind_at(const struct lua *lua, uint64_t address)
{
	allocation_id id = lua_find(lua, address);

	return id == NO_ALLOCATION ? LUA_NONE : lua_kind_of(lua, id);
}

/* Strings of up to 40 bytes say their length in a byte, from 5.3 on. */
bool lua_find_text(const struct lua *lua, struct view *view, uint64_t string, uint64_t *ret_start,
		   uint64_t *ret_size)
{
	enum { LONG = 0x14, SHORT_LENGTH = 11 };
	const struct lua_layout *layout = lua->layout;
	allocation_id id = lua_find(lua, string);

	if (id == NO_ALLOCATION || lua_kind_of(lua, id) != LUA_STRING)
		return false;
	if (layout->is_jit)
		*ret_size = lua_number(view, string + layout->string.length);
	else if (layout->strings_listed && lua_byte(view, string + layout->type) != LONG)
		*ret_size = lua_byte(view, string + SHORT_LENGTH);
	else
		*ret_size = lua_word(view, string + layout->string.length);
	*ret_start = string + layout->string.text;
	return allocation_size(lua->space.index, id) >= layout->string.text &&
	       *ret_size <= allocation_size(lua->space.index, id) - layout->string.text;
}

bool lua_read_text(const struct lua *lua, struct view *view, uint64_t string, char *ret,
		   size_t size)
{
	uint64_t start, length;

	if (!lua_find_text(lua, view, string, &start, &length))
		return false;
	if (length >= size)
		length = size - 1;
	if (length && !view_read(view, start, ret, length))
		return false;
	ret[length] = '\0';
	return text_run(ret, length) == length;
}

/* The items of the array, and how many nodes there are. */
static uint64_t array_count(const struct lua *lua, struct view *view, uint64_t table)
{
	enum { FLAGS = 10, IS_HINT = 1 << 7 };
	const struct lua_layout *layout = lua->layout;
	uint64_t count = lua_number(view, table + layout->table.array_size), power = 1;

	/* In 5.4, the size of the array may be the next power of 2. */
	if (!layout->upvalues_listed || !(lua_byte(view, table + FLAGS) & IS_HINT))
		return count;
	while (power < count)
		power *= 2;
	return power;
}

static uint64_t node_count(const struct lua *lua, struct view *view, uint64_t table)
{
	uint64_t place = table + lua->layout->table.node_count;

	return lua->layout->is_jit ? (uint64_t)lua_number(view, place) + 1
				   : UINT64_C(1) << (lua_byte(view, place) % 32);
}

size_t lua_table_parts(const struct lua *lua, struct view *view, uint64_t table,
		       struct lua_part ret[static 2])
{
	const struct lua_layout *layout = lua->layout;
	const uint64_t value = layout->is_jit ? LUA_WORD : 2 * LUA_WORD;
	uint64_t count = array_count(lua, view, table);

	ret[0] = (struct lua_part){ LUA_ARRAY, lua_word(view, table + layout->table.array),
				    count * value, count };
	count = node_count(lua, view, table);
	ret[1] = (struct lua_part){ LUA_NODES, lua_word(view, table + layout->table.nodes),
				    count * layout->node.size, count };
	return 2;
}

struct visiting {
	const struct lua *lua;
	struct view *view;
	struct budget *steps;
	lua_entry_visitor *visit;
	void *data;
};

static bool visit_array(const struct visiting *visiting, const struct lua_part *part)
{
	const bool is_jit = visiting->lua->layout->is_jit;
	uint64_t value = is_jit ? LUA_WORD : 2 * LUA_WORD;
	struct lua_entry entry = { .key.type = LUA_INTEGER };

	for (uint64_t i = 0; i < part->count; i++) {
		/* LuaJIT counts from 0. */
		entry.key.word = i + !is_jit;
		entry.place = part->start + i * value;
		if ((visiting->steps && !budget_take(visiting->steps)) ||
		    !lua_read_value(visiting->lua, visiting->view, entry.place, &entry.value))
			return false;
		if (entry.value.type != LUA_NIL && visiting->visit(visiting->data, &entry))
			return true;
	}
	return false;
}

static bool visit_nodes(const struct visiting *visiting, const struct lua_part *part)
{
	const struct lua_layout *layout = visiting->lua->layout;
	struct lua_entry entry;

	/* An empty table has a node that is a constant. */
	if (lua_kind_at(visiting->lua, part->start) != LUA_NODES)
		return false;
	for (uint64_t i = 0; i < part->count; i++) {
		entry.place = part->start + i * layout->node.size;
		entry.key_place = entry.place + layout->node.key;
		if ((visiting->steps && !budget_take(visiting->steps)) ||
		    !lua_read_value(visiting->lua, visiting->view, entry.place, &entry.value))
			return false;
		if (entry.value.type != LUA_NIL &&
		    lua_read_key(visiting->lua, visiting->view, entry.key_place, &entry.key) &&
		    visiting->visit(visiting->data, &entry))
			return true;
	}
	return false;
}

bool lua_visit_entries(const struct lua *lua, struct view *view, uint64_t table,
		       struct budget *steps, lua_entry_visitor *visit, void *data)
{
	const struct visiting visiting = { lua, view, steps, visit, data };
	struct lua_part parts[2];

	if (lua_kind_at(lua, table) != LUA_TABLE)
		return false;
	lua_table_parts(lua, view, table, parts);
	return visit_array(&visiting, &parts[0]) || visit_nodes(&visiting, &parts[1]);
}

struct getting {
	const struct lua *lua;
	struct view *view;
	const char *key;
	uint64_t found;
};

static bool is_wanted(void *data, const struct lua_entry *entry)
{
	struct getting *getting = data;
	char text[LUA_MOST_NAME];

	if (!lua_is_object(&entry->key) || !lua_is_object(&entry->value) ||
	    !lua_read_text(getting->lua, getting->view, entry->key.word, text, sizeof(text)) ||
	    strcmp(text, getting->key) != 0)
		return false;
	getting->found = entry->value.word;
	return true;
}

uint64_t lua_get(const struct lua *lua, struct view *view, uint64_t table, const char *key,
		 struct budget *steps)
{
	struct getting getting = { lua, view, key, 0 };
	const struct visiting visiting = { lua, view, steps, is_wanted, &getting };
	struct lua_part parts[2];

	if (lua_kind_at(lua, table) != LUA_TABLE)
		return 0;
	lua_table_parts(lua, view, table, parts);
	visit_nodes(&visiting, &parts[1]);
	return getting.found;
}

uint64_t lua_metatable(const struct lua *lua, struct view *view, uint64_t object)
{
	enum lua_kind kind = lua_kind_at(lua, object);

	return kind == LUA_TABLE      ? lua_word(view, object + lua->layout->table.metatable)
	       : kind == LUA_USERDATA ? lua_word(view, object + lua->layout->userdata.metatable)
				      : 0;
}

uint64_t lua_registry(const struct lua *lua, struct view *view, uint64_t state)
{
	struct lua_value value;

	return lua_read_value(lua, view, lua_global(lua, state) + lua->layout->global.registry,
			      &value) &&
			       lua_is_object(&value)
		       ? value.word
		       : 0;
}

static bool is_second(void *data, const struct lua_entry *entry)
{
	enum { GLOBALS = 2 };

	if (entry->key.type != LUA_INTEGER || entry->key.word != GLOBALS ||
	    !lua_is_object(&entry->value))
		return false;
	*(uint64_t *)data = entry->value.word;
	return true;
}

/* From 5.2 on, they are in the registry. */
uint64_t lua_globals(const struct lua *lua, struct view *view, uint64_t state)
{
	uint64_t globals = 0;

	if (lua->layout->thread.environment)
		return lua_word(view, state + lua->layout->thread.environment);
	lua_visit_entries(lua, view, lua_registry(lua, view, state), NULL, is_second, &globals);
	return globals;
}
