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

struct python {
	struct object_space space;
	struct runtime_context context;
	struct python_types types;
	struct python_threads threads;
	ARRAY(uint32_t) type_of;      /* by allocation: the number of the type + 1, 0 or DEAD */
	uint8_t header_of[FLAG_SETS]; /* in steps */
	uint64_t links;		      /* how far before an object those of the collector stand */
	/* Once python_find_names() was called: */
	ARRAY(struct python_name) names;
	uint64_t steps;		  /* that visits of references may take yet */
	unsigned int string_head; /* see values.h */
	bool values_are_counted;  /* those of attributes, from 3.13 on */
};

/* NULL: it is no object. */
const struct python_type *python_type_of(const struct python *python, allocation_id id);

/* The address of an object: an allocation may begin with what stands before it. */
uint64_t python_object_at(const struct python *python, allocation_id id);

#endif
