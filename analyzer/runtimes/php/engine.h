/*
 * The Zend engine's state of a running program: tables of functions and classes, global variables,
 * calls. All are reachable from the engine's variables, zend_globals.h of 7.4 to 8.4, which do not
 * differ around the word that php_find_tables() finds:
 *
 *	global variables | included files | ... | functions | classes | constants | top of the
 *stack, its end, page, size | innermost call | ...
 */
#pragma once

#include "analyzer/runtimes/php/space.h"
#include "analyzer/runtimes/php/values.h"

/* Offsets in struct _zend_op_array, zend_compile.h, that differ between versions. */
struct php_layout {
	uint16_t count, variables; /* u32: how many operations and variables there are */
	uint16_t operations;
	uint16_t statics; /* variables that keep their value */
	uint16_t names;	  /* of variables */
	uint16_t file;
	uint16_t handler; /* of a function of C code: its address */
	uint16_t inner; /* u32, how many functions it declares, 12 bytes before these; 0: unknown */
	uint8_t indirect; /* the type of a value that stands elsewhere */
	bool has_lists;	  /* arrays without keys have values alone */
	bool is_doubled;  /* an address that is not in the table of words is that of an address */
};

struct php_function {
	bool is_compiled; /* it has what is below */
	uint64_t name, scope;
	uint64_t operations, names, file, statics;
	uint64_t inner; /* addresses of functions that it declares */
	uint32_t count, variables, inner_count;
};

/* An element of an array: where its value stands, and its key: a string, or a number. */
struct php_item {
	uint64_t place, key, number;
};

struct php_value {
	uint64_t word;
	uint8_t type;
};

/* Find them. Without, php->engine.layout is NULL, and nothing below is known. */
void php_find_engine(struct php *php);

/* Read the function at address, if there is one. */
bool php_read_function(const struct php *php, struct view *view, uint64_t address,
		       struct php_function *ret);

/* The value at place, or at the place that this leads to. */
bool php_read_value(const struct php *php, struct view *view, uint64_t place,
		    struct php_value *ret);

/* The allocation that the value is at the start of, but for what C code puts before objects. */
allocation_id php_find_value(const struct php *php, const struct php_value *value);

/* The target of a word in a class or function, which may be an index into the table of words. */
uint64_t php_follow(const struct php *php, struct view *view, uint64_t word);

/* Visit the elements of the array at address until visit() returns true. */
typedef bool php_item_visitor(void *data, const struct php_item *item);
void php_visit_items(struct php *php, struct view *view, uint64_t address, php_item_visitor *visit,
		     void *data);

/* The place of the class's static members, and how many these are; 0: it has none. */
uint64_t php_static_members(const struct php *php, struct view *view, uint64_t class,
			    uint32_t *ret_count);

/* A member of a class: properties_info has them. */
struct php_member {
	uint32_t offset, flags; /* of an object; of what is static, its number */
	char name[128];		/* without a class before it */
};
bool php_read_member(struct view *view, const struct php_item *item, struct php_member *ret);
/* The member at that offset of objects of the class. */
bool php_member_at(struct php *php, struct view *view, uint64_t class, uint64_t offset,
		   struct php_member *ret);
/* Read the object at address, in a block up to end; returns how many members its class declares. */
uint32_t php_count_members(struct view *view, uint64_t address, uint64_t end,
			   struct php_object *ret);

/* A short text that can be written as it is in a program. */
enum { PHP_MOST_KEY = 128 };
bool php_read_key(struct view *view, uint64_t key, char ret[static PHP_MOST_KEY]);

/* "App\Cache::wait" */
void php_tell_function(struct view *view, const struct php_function *function, char *ret,
		       size_t size);

/* A call: its struct _zend_execute_data. */
struct php_call {
	uint64_t address, operation, function;
	uint64_t self; /* an object, or 0 */
	bool is_code;  /* of a file, not of a function */
};

/* Only a process's first thread runs the engine, unless it is built for several. */
bool php_runs_in(const struct php *php, uint32_t thread);

/* Visit the calls that are running, the innermost first; false: what is next makes no sense. */
bool php_visit_calls(const struct php *php, void (*visit)(void *data, const struct php_call *call),
		     void *data);
/* Visit those from the one at that address on, likewise. */
bool php_visit_calls_from(const struct php *php, uint64_t address,
			  void (*visit)(void *data, const struct php_call *call), void *data);

enum {
	CLASS_STATICS = 56, /* of struct _zend_class_entry */
	CLASS_FUNCTIONS = 64,
	CLASS_MEMBERS = 120,
	CLASS_CONSTANTS = 176,
	MEMBER_IS_STATIC = 1 << 4,
	CALL_VARIABLES = 80, /* behind a call */
	PHP_POINTER = 12,    /* the least type of what is no value of a program */
};
