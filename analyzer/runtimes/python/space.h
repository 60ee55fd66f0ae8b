/*
 * What is known of the objects of a process of CPython.
 */
#ifndef ANALYZER_RUNTIMES_PYTHON_SPACE_H
#define ANALYZER_RUNTIMES_PYTHON_SPACE_H

#include "analyzer/runtimes/python/frames.h"
#include "analyzer/runtimes/python/types.h"
#include "analyzer/runtimes/runtime.h"

/* What an object is known by without another one. */
struct python_name {
	allocation_id id;
	const char *text; /* "sys", "Session.handle.<locals>.items" */
};

enum { FLAG_SETS = 4 };

/*
 * What stands for the number of a type of what is no object: an object that is on a free list of
 * its type; values of attributes, behind so many words; the items of the list, or
 * the keys of the dict, of that id.
 */
#define PYTHON_DEAD   UINT32_MAX
#define PYTHON_VALUES (UINT32_MAX - 8)
#define PYTHON_ITEMS  (UINT32_C(1) << 31)

struct python {
	struct object_space space;
	struct runtime_context context;
	struct python_types types;
	struct python_threads threads;
	ARRAY(uint32_t) type_of; /* by allocation: the number of the type + 1, 0 or the above */
	uint8_t header_of[FLAG_SETS];	   /* in steps */
	ARRAY(struct memory_range) unused; /* of stacks of frames, see stale.h */
	uint64_t links; /* how far before an object those of the collector stand */
	/* Once python_find_names() was called: */
	ARRAY(struct python_name) names;
	uint64_t steps;		  /* that visits of references may take yet */
	unsigned int string_head; /* see values.h */
	bool values_are_counted;  /* those of attributes, from 3.13 on */
};

/* NULL: it is no object. */
const struct python_type *python_type_of(const struct python *python, allocation_id id);

/* How many bytes stand before objects of the type. */
uint64_t python_header_of(const struct python *python, const struct python_type *type);

/* The address of an object: an allocation may begin with what stands before it. */
uint64_t python_object_at(const struct python *python, allocation_id id);

#endif
