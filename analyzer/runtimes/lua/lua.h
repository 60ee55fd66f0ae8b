/*
 * Lua 5.1 to 5.4, and LuaJIT 2.1 with references of 64 bits: lobject.h and lstate.h of Lua,
 *lj_obj.h of LuaJIT.
 *
 *	state	| lua_State: stack, calls | global_State: registry, metatables, lists |
 *	object	| next | type, color | ...
 *	value	| word | type |, in LuaJIT | 17 bits of type, 47 of address |
 *
 * All that a state has is on a few lists. Their objects are allocations, and so are parts of these:
 * the array and the nodes of a table, the stack of a thread, the code of a function. The collector
 * looks at these alone: neither at memory of C code, nor at its stacks.
 */
#pragma once

#include "analyzer/base/address_map.h"
#include "analyzer/base/array.h"
#include "analyzer/base/budget.h"
#include "analyzer/runtimes/object_links.h"
#include "analyzer/runtimes/runtime.h"

enum { LUA_WORD = 8, LUA_TYPES = 16, LUA_MOST_NAME = 128 };

/* The kind of an allocation: an object, or a part of one. */
enum lua_kind {
	LUA_NONE,
	LUA_STRING,
	LUA_TABLE,
	LUA_FUNCTION,
	LUA_C_FUNCTION,
	LUA_USERDATA,
	LUA_THREAD,
	LUA_PROTO,
	LUA_UPVALUE,
	LUA_CDATA,
	LUA_TRACE,
	LUA_STATE,
	LUA_FIRST_PART,
	LUA_ARRAY = LUA_FIRST_PART,
	LUA_NODES,
	LUA_STACK,
	LUA_CALLS,
	LUA_CONSTANTS,
	LUA_REFERENCES, /* of a prototype: others, names of variables */
	LUA_CODE,
	LUA_BUCKETS, /* of the table of strings */
	LUA_KINDS,
};

/* Flags beside the kind. */
enum {
	LUA_KIND = 0x1f,
	LUA_FIXED = 0x20, /* on a list of what is not to be freed */
	LUA_WEAK_KEYS = 0x40,
	LUA_WEAK_VALUES = 0x80,
};

/* Offsets, and sizes, in bytes. Those that a version does not have are 0. */
struct lua_layout {
	const char *version;
	bool is_jit;
	uint8_t type, color;	  /* of an object */
	uint8_t fixed;		  /* a bit of the color */
	uint8_t kinds[LUA_TYPES]; /* enum lua_kind, by type */
	uint8_t integer;	  /* the type of a number that is none of floating point */
	uint8_t collectable;	  /* a bit of the type of a value */
	uint8_t c_function;	  /* the type of a function in C; else it says so itself */
	bool strings_listed;	  /* with all objects; else in the table of strings alone */
	bool upvalues_listed;	  /* also those of stacks */
	struct {
		uint16_t size, thread, global;
	} state;
	struct {
		uint16_t top, base, global, call, stack, upvalues, environment, calls, code;
	} thread;
	struct {
		uint16_t registry, main, strings;
		uint16_t objects, finalized, finalizing, fixed; /* lists */
		uint16_t names, names_end; /* of metamethods; and the metatables of types */
		uint16_t metatables;	   /* of nil, booleans, and so on */
		uint16_t light;
	} global;
	struct {
		uint16_t function, top, base, code, previous, status;
		uint16_t in_c; /* a bit of the status */
		uint16_t size;
	} call;
	struct {
		uint16_t array, nodes, metatable, array_size, node_count;
		uint16_t size;
	} table;
	struct {
		uint16_t size, key, key_type;
	} node;
	struct {
		uint16_t count, in_c, environment, proto, upvalues, c_upvalues;
	} function;
	struct {
		uint16_t constants, code, protos, lines, far_lines, locals, upvalues, source;
		uint16_t constant_count, code_count, proto_count, upvalue_count, line_count,
			far_line_count, local_count;
		uint16_t first_line, size;
		uint8_t upvalue_size; /* of the description of one */
	} proto;
	struct {
		uint16_t place, value, next;
	} upvalue;
	struct {
		uint16_t length, text;
	} string;
	struct {
		uint16_t metatable, environment, data;
		uint16_t value_count; /* of the values before its data */
	} userdata;
};

extern const struct lua_layout *const lua_layouts[]; /* NULL at the end */

/* The used part of a stack. */
struct lua_stack {
	allocation_id id;
	uint64_t end;
};

struct lua {
	struct object_space space;
	const struct lua_layout *layout;
	ARRAY(uint64_t) states;		/* addresses of their main threads */
	ARRAY(uint8_t) kinds;		/* by allocation: enum lua_kind and flags */
	ARRAY(struct lua_stack) stacks; /* by id */
	struct address_map named;	/* by the address of an object: its name's number */
	ARRAY(const char *) texts;	/* by that number */
	struct budget steps;		/* through lists */
};

enum lua_type {
	LUA_NIL,
	LUA_FALSE,
	LUA_TRUE,
	LUA_LIGHT, /* an address of C code */
	LUA_INTEGER,
	LUA_REAL,
	LUA_OBJECT,
};

struct lua_value {
	enum lua_type type;
	uint64_t word; /* an object's is its address */
};

static inline bool lua_is_object(const struct lua_value *value)
{
	return value->type == LUA_OBJECT;
}

/* The value at place; false: it is absent. */
bool lua_read_value(const struct lua *lua, struct view *view, uint64_t place,
		    struct lua_value *ret);

/* Bits of the address in a value of LuaJIT. */
static const uint64_t LUA_JIT_ADDRESS = (UINT64_C(1) << 47) - 1;

/* The global state of a main thread. */
static inline uint64_t lua_global(const struct lua *lua, uint64_t state)
{
	return state - lua->layout->state.thread + lua->layout->state.global;
}

static inline enum lua_kind lua_kind_of(const struct lua *lua, allocation_id id)
{
	return (enum lua_kind)(lua->kinds.items[id] & LUA_KIND);
}

/* The address of the object in the allocation: from 5.2 on, something may be before a thread. */
static inline uint64_t lua_start(const struct lua *lua, allocation_id id)
{
	enum lua_kind kind = lua_kind_of(lua, id);

	return allocation_start(lua->space.index, id) +
	       (kind == LUA_THREAD || kind == LUA_STATE ? lua->layout->state.thread : 0);
}

/* The object at that address, and its kind; NO_ALLOCATION and LUA_NONE: none is there. */
allocation_id lua_find(const struct lua *lua, uint64_t address);
enum lua_kind lua_kind_at(const struct lua *lua, uint64_t address);

/* The word at address; 0 if it is absent. A number of 4 bytes. */
uint64_t lua_word(struct view *view, uint64_t address);
uint32_t lua_number(struct view *view, uint64_t address);
uint8_t lua_byte(struct view *view, uint64_t address);

/* The text of the string at that address; false: none is there. */
bool lua_find_text(const struct lua *lua, struct view *view, uint64_t string, uint64_t *ret_start,
		   uint64_t *ret_size);
/* Likewise, if it can be printed, cut off at size. */
bool lua_read_text(const struct lua *lua, struct view *view, uint64_t string, char *ret,
		   size_t size);

/* An entry of a table: its key is a value, and where both stand. */
struct lua_entry {
	struct lua_value key, value;
	uint64_t place, key_place; /* key_place 0: a number, for it is in the array */
};

/* True: enough. */
typedef bool lua_entry_visitor(void *data, const struct lua_entry *entry);

/* Visit the entries that are not nil. */
bool lua_visit_entries(const struct lua *lua, struct view *view, uint64_t table,
		       struct budget *steps, lua_entry_visitor *visit, void *data);

/* The key of a node, which stands there. */
bool lua_read_key(const struct lua *lua, struct view *view, uint64_t place, struct lua_value *ret);

/* The object that the table has under that text; 0: none. */
uint64_t lua_get(const struct lua *lua, struct view *view, uint64_t table, const char *key,
		 struct budget *steps);

/* The table, or userdata, 's metatable, or 0. */
uint64_t lua_metatable(const struct lua *lua, struct view *view, uint64_t object);

/* The registry, the table of global variables, and that of modules; 0: not known. */
uint64_t lua_registry(const struct lua *lua, struct view *view, uint64_t state);
uint64_t lua_globals(const struct lua *lua, struct view *view, uint64_t state);

struct lua_part {
	enum lua_kind kind;
	uint64_t start;
	uint64_t asked; /* bytes; 0: not known */
	uint64_t count; /* of what it has */
};

enum { LUA_MOST_PARTS = 8 };

/* The array and the nodes of a table, whether or not it has any. */
size_t lua_table_parts(const struct lua *lua, struct view *view, uint64_t table,
		       struct lua_part ret[static 2]);

/* The parts of the object; returns how many. */
size_t lua_parts_of(const struct lua *lua, struct view *view, allocation_id id,
		    struct lua_part ret[static LUA_MOST_PARTS]);

/* The thread that the allocation has, or 0. */
static inline uint64_t lua_thread_at(const struct lua *lua, allocation_id id)
{
	enum lua_kind kind = lua_kind_of(lua, id);

	return kind == LUA_THREAD || kind == LUA_STATE ? lua_start(lua, id) : 0;
}

/* From 5.2 on, visit the blocks of a thread's calls but for the outermost, which it has itself. */
bool lua_visit_call_blocks(const struct lua *lua, struct view *view, uint64_t thread,
			   bool (*visit)(void *data, uint64_t address), void *data);

/* The prototype of a function in Lua, and its source and first line; false: it is none. */
uint64_t lua_proto_of(const struct lua *lua, struct view *view, uint64_t function);
void lua_tell_file(const struct lua *lua, struct view *view, uint64_t proto, char *ret,
		   size_t size);
void lua_tell_source(const struct lua *lua, struct view *view, uint64_t proto, char *ret,
		     size_t size);

/* The number-th upvalue of a function, and its value's place, or 0; false: it has no such. */
struct lua_upvalue {
	uint64_t object; /* 0: a function in C has the value itself */
	uint64_t place;
	char name[LUA_MOST_NAME]; /* empty: not known */
};

bool lua_upvalue_of(const struct lua *lua, struct view *view, uint64_t function, size_t number,
		    struct lua_upvalue *ret);

/* Learn how programs call tables and functions by a global variable or a module's member. */
struct error *lua_find_names(struct lua *lua);

/* Such a name, "json.decode", or NULL. */
const char *lua_name_of(const struct lua *lua, uint64_t object);

/* A call that a thread of Lua is in. */
struct lua_call {
	uint64_t place; /* of the function's value, on the stack */
	uint64_t function;
	uint64_t base, end;   /* of its variables */
	uint64_t proto;	      /* 0: in C */
	uint64_t instruction; /* the number of that which it is in; UINT64_MAX: not known */
};

/* True: enough. */
typedef bool lua_call_visitor(void *data, const struct lua_call *call);

/* Visit the calls of the thread, the innermost first. */
bool lua_visit_calls(const struct lua *lua, struct view *view, uint64_t thread,
		     lua_call_visitor *visit, void *data);

/* The end of the thread's values on its stack. */
uint64_t lua_stack_end(const struct lua *lua, struct view *view, uint64_t thread);

/* The name of the variable in that slot of the call; false: it has none. */
bool lua_local_name(const struct lua *lua, struct view *view, const struct lua_call *call,
		    uint64_t slot, char *ret, size_t size);

/* Likewise, with what the caller calls the function, "handler"; NULL: not known. */
typedef bool lua_named_call_visitor(void *data, const struct lua_call *call, const char *name);

bool lua_visit_named_calls(const struct lua *lua, struct view *view, uint64_t thread,
			   lua_named_call_visitor *visit, void *data);

/*
 * Gets a variable of a running function: "handler", "request", or the function itself, with the
 * name "". True: enough.
 */
typedef bool lua_local_visitor(void *data, const char *function, const char *name, uint64_t place);

/* Visit those that have names; with all also others, whose name is NULL. */
bool lua_visit_locals(const struct lua *lua, struct view *view, uint64_t thread, bool all,
		      lua_local_visitor *visit, void *data);

/* Name what LuaJIT compiled, for the bill. */
struct error *lua_find_jit_code(struct lua *lua);

#define LUA_SLOTS                                                                            \
	lua, open, release, find_objects, is_collected, is_link, resolve, find_unused, text, \
		visit_structure
DECLARE_SLOTS(runtime, LUA_SLOTS);
#define LUA_CALL_SLOTS lua, visit_frames
DECLARE_SLOTS(runtime_calls, LUA_CALL_SLOTS);
#define LUA_LINK_SLOTS lua, find_globals, find_locals, walk_links, target_of, tell_step
DECLARE_SLOTS(runtime_links, LUA_LINK_SLOTS);
extern const struct object_step lua_steps[];
