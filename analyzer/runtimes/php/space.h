/*
 * What is known of the values of a process of PHP.
 */
#ifndef ANALYZER_RUNTIMES_PHP_SPACE_H
#define ANALYZER_RUNTIMES_PHP_SPACE_H

#include "analyzer/base/address_map.h"
#include "analyzer/base/array.h"
#include "analyzer/program/debug/names.h"
#include "analyzer/runtimes/runtime.h"

/* What is no object: the number of its class. Numbers of others are addresses. */
enum php_kind {
	PHP_STRING = 1,
	PHP_ARRAY,
	PHP_REFERENCE,
	PHP_RESOURCE,
	PHP_STACK, /* of calls and their variables */
	PHP_ARENA, /* of what was compiled */
	PHP_OBJECTS,
	PHP_ROOTS, /* of the collector of cycles */
	PHP_KINDS,
};

struct php_class {
	uint64_t number;
	uint64_t offset;  /* of an object in its block: C code may have something before it */
	const char *name; /* NULL: not asked for yet */
	bool is_named;
};

struct php {
	struct object_space space;
	struct runtime_context context;
	struct address_map numbers;
	ARRAY(struct php_class) classes; /* the kinds first */
	ARRAY(uint32_t) class_of;	 /* by allocation: its class, 0: none */
	struct name_pool names;
	uint64_t stack_top; /* of what is in use of the last page of the stack */
};

/* The allocation's class, or NULL. */
const struct php_class *php_class_at(const struct php *php, allocation_id id);

/* The class that is described at address; *ret is 0 if none is. One that is new is added. */
struct error *php_class_know(struct php *php, struct view *view, uint64_t address, uint32_t *ret);

/* Find the table of objects and the roots of the collector, and set the class of what these have.
 */
struct error *php_find_tables(struct php *php);

#endif
