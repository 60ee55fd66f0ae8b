/*
 * Types of CPython, 2.7 to 3.14.
 *
 * Include/object.h and cpython/object.h: an object begins with its count of references and its
 * type, and a type is an object, too. The members of a type that are read here have not moved in
 * all these versions. `type` is the one that is of itself; it is in the data of the interpreter's
 * module, where it is found without symbols.
 */
#pragma once

#include "analyzer/base/address_map.h"
#include "analyzer/base/budget.h"
#include "analyzer/image/view.h"
#include "analyzer/program/debug/names.h"
#include "analyzer/program/program.h"
#include "analyzer/runtimes/module_data.h"
#include "analyzer/runtimes/runtime.h"

/* Flags of types. */
enum {
	TYPE_INLINE_VALUES = 1 << 2,   /* 3.13 and later */
	TYPE_MANAGED_WEAKREF = 1 << 3, /* 3.12 and later */
	TYPE_MANAGED_DICT = 1 << 4,    /* 3.11 and later */
	TYPE_HEAP = 1 << 9,	       /* made by the program, not by the compiler */
	TYPE_READY = 1 << 12,
	TYPE_COLLECTED = 1 << 14, /* by the collector of cycles */
	TYPE_STRING = 1 << 28,
};

/* Builtin types whose objects have words that are no references. */
enum python_kind {
	PYTHON_OTHER,
	PYTHON_WEAK, /* does not hold its target */
	PYTHON_SET,
	PYTHON_DEQUE,
	PYTHON_GENERATOR, /* or a coroutine */
	PYTHON_FRAME,
	PYTHON_CODE,
	PYTHON_BYTEARRAY,
	PYTHON_ARRAY,
	PYTHON_TEXT_BUFFER, /* io.StringIO */
	PYTHON_FILE_BUFFER, /* io.BufferedReader and the like */
	PYTHON_ORDERED,	    /* collections.OrderedDict */
	PYTHON_DICT,	    /* from 3.6 on, with a version */
	PYTHON_NUMBERS,	    /* an array of numpy */
};

struct python_type {
	uint64_t address;
	uint64_t flags;
	uint64_t size;	       /* of an object without items, less what stands before it */
	uint64_t item;	       /* of each item */
	const char *name;      /* NULL: not asked for yet */
	bool is_named;	       /* the name is its own */
	enum python_kind kind; /* its own, or what it inherits */
};

struct python_types {
	const struct image *image;
	uint64_t root;			/* the address of `type`; 0: not found */
	struct object_classes *classes; /* a type has the same place there as here */
	ARRAY(struct python_type) list;
	struct name_pool names;
	struct budget steps; /* words to look at, in search of names of modules */
};

/* Find `type`; without it, there are no others. */
struct error *python_types_init(struct python_types *types, const struct runtime_context *context,
				struct object_classes *classes);
void python_types_deinit(struct python_types *types);

/* The number of the type at address, NOT_IN_MAP if none is there; one that is new is added. */
struct error *python_types_know(struct python_types *types, struct view *view, uint64_t address,
				uint32_t *ret);

/*
 * Its name, with its module's if the program made it: "dict", "app.Session". NULL if memory is
 * short.
 */
const char *python_types_name(struct python_types *types, uint32_t number);

/* Call visit with the names of all that it inherits from until that returns true. */
bool python_types_visit_bases(struct python_types *types, uint32_t number,
			      bool (*visit)(void *data, const char *name), void *data);
