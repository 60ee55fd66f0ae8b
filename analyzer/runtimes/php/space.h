/* The values of a PHP process. */
#pragma once

#include "analyzer/base/address_map.h"
#include "analyzer/base/array.h"
#include "analyzer/base/budget.h"
#include "analyzer/program/debug/names.h"
#include "analyzer/runtimes/runtime.h"

/*
 * Class numbers of values that are no objects, which are the first classes: so each is also its
 * place plus 1. The numbers of other classes are addresses.
 */
enum php_kind {
	PHP_STRING = 1,
	PHP_ARRAY,
	PHP_REFERENCE,
	PHP_RESOURCE,
	PHP_STACK, /* of calls and their variables */
	PHP_FIBER_STACK,
	PHP_ARENA, /* of what was compiled */
	PHP_OBJECTS,
	PHP_ROOTS, /* of the collector of cycles */
	PHP_KINDS,
};

/* The result of php_find_engine(), see engine.h. */
struct php_engine {
	const struct php_layout *layout;		 /* NULL: it is not known */
	uint64_t place;					 /* of the top of the stack of calls */
	uint64_t globals, functions, classes, constants; /* arrays */
	uint64_t call;					 /* the innermost */
	bool is_idle;	      /* between requests: there are neither variables nor calls */
	bool is_before_first; /* nor are constants known */
	uint64_t words;	      /* of the table of words, less 1; 0: not known */
	uint64_t words_place; /* of what says that; 0: not known */
};

/* The kinds of allocations without a class. */
enum php_part {
	PHP_PART_NONE,
	PHP_PART_CLASS,
	PHP_PART_FUNCTION,
	PHP_PART_CODE,	 /* operations of a function, and its constants */
	PHP_PART_NAMES,	 /* of a function's variables */
	PHP_PART_MEMBER, /* a class's description of a member or constant */
	PHP_PART_TABLE,	 /* elements of an array that is in no block for itself */
	PHP_PART_ELEMENTS,
	PHP_PART_OTHER,
};

/* An allocation that is part of a value, class or function; owner: its address, 0: the engine. */
struct php_owned {
	allocation_id id;
	uint64_t owner;
};

/* The block of the elements of the array at an address, which has room for more than it has. */
struct php_elements {
	allocation_id id;
	uint64_t array;
};

struct php {
	struct object_space space;
	ARRAY(uint64_t) offsets; /* in blocks, by class: C code may have something before objects */
	ARRAY(struct php_elements) elements; /* by id */
	uint64_t collector;		     /* of its variables; 0: they are not known */
	uint64_t store;			     /* EG(objects_store); 0: it is not known */
	uint64_t stack_top;		     /* of what is in use of the last page of the stack */
	struct php_engine engine;
	ARRAY(uint8_t) parts;	       /* by allocation: enum php_part */
	ARRAY(struct php_owned) owned; /* parts, in the order in which they were found */
	ARRAY(struct php_owned) inner; /* those of objects of C code, by owner: its block's start */
	struct address_map returned;   /* words that lead to the block before them, by parts.c */
	struct address_map owners;     /* by allocation: where a part is in that list */
};

/* The place of the allocation's class, plus 1, which may be a kind; 0: it has none. */
static inline uint32_t php_class_at(const struct php *php, allocation_id id)
{
	return object_classes_get(&php->space.classes, id);
}

/* The offset of objects of the class in their blocks. */
static inline uint64_t php_offset_of(const struct php *php, uint32_t class)
{
	return class < php->offsets.count ? php->offsets.items[class] : 0;
}

/* The class that is described at address; *ret is 0 if none is. One that is new is added. */
struct error *php_class_know(struct php *php, struct view *view, uint64_t address, uint32_t *ret);

/* The place of the class of closures, plus 1; 0: there is none. */
uint32_t php_find_closures(const struct php *php, struct view *view);

/* Find what belongs to classes, functions, the engine, and objects of C code. */
struct error *php_find_parts(struct php *php);

/* The block of the elements of the array; NO_ALLOCATION: it has none. */
struct php_array;
allocation_id php_elements_of(const struct allocation_index *index, const struct php_array *array);

/* Find the arrays with room; the words there are references to nothing. */
struct error *php_find_elements(struct php *php);
bool php_is_stale_element(const struct php *php, allocation_id id, uint64_t place);

/* Find what opcache shares with other processes. */
struct error *php_find_shared(struct php *php);
/* Visit the numbers by which it is found. */
struct error *php_shared_visit_structure(const struct php *php,
					 const struct structure_visitor *visitor);

/* Find the table of objects and the roots of the collector, and set the class of what these have.
 */
struct error *php_find_tables(struct php *php);
