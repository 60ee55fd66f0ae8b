/* The objects of a CPython process. */
#pragma once

#include "analyzer/base/budget.h"
#include "analyzer/base/ranks.h"
#include "analyzer/runtimes/python/frames.h"
#include "analyzer/runtimes/python/types.h"
#include "analyzer/runtimes/runtime.h"

enum { FLAG_SETS = 4 };

/*
 * The kind of each allocation, as a number: 0 is unknown, a type's number + 1 an object of that
 * type, and a mark something else: an object on a free list of its type; the keys of a dict; the
 * items of a list; a block of a deque; the entries of a set; bytes; the nodes of an OrderedDict;
 * the elements of an array of numpy; values of attributes, behind that many words.
 */
#define PYTHON_MARKS	OBJECT_MARKS
#define PYTHON_DEAD	(PYTHON_MARKS + 0)
#define PYTHON_KEYS	(PYTHON_MARKS + 1)
#define PYTHON_ITEMS	(PYTHON_MARKS + 2)
#define PYTHON_BLOCK	(PYTHON_MARKS + 3)
#define PYTHON_TABLE	(PYTHON_MARKS + 4)
#define PYTHON_BYTES	(PYTHON_MARKS + 5)
#define PYTHON_NODES	(PYTHON_MARKS + 6)
#define PYTHON_ELEMENTS (PYTHON_MARKS + 7)
#define PYTHON_VALUES	(PYTHON_MARKS + 8)

/* In the lower half of a count: the object is never freed. */
#define PYTHON_IMMORTAL (UINT64_C(1) << 31)

/* An object of which not all words are references, in no heap. */
struct python_constant {
	struct memory_range range; /* from its count on */
	uint32_t type;		   /* its number */
};

struct python {
	struct object_space space;
	struct python_types types;
	struct python_threads threads;
	struct ranks blocks; /* items of lists, blocks of deques, bytes; and whose each are */
	ARRAY(allocation_id) owner_of;
	ARRAY(struct python_constant) constants; /* in the interpreter's data, by address */
	uint8_t header_of[FLAG_SETS];		 /* in steps */
	ARRAY(struct memory_range) unused;	 /* of stacks of frames, see stale.h */
	ARRAY(struct memory_range) chunks;	 /* heads of these stacks */
	uint64_t links; /* how far before an object those of the collector stand */
	/* Once python_find_globals() was called: */
	unsigned int string_head;	   /* see values.h */
	bool values_are_counted;	   /* values of attributes have a count, from 3.13 on */
	struct disassembler *disassembler; /* of getters; NULL: none was read */
};

static inline uint32_t python_number_of(const struct python *python, allocation_id id)
{
	return object_classes_get(&python->space.classes, id);
}

static inline void python_mark(struct python *python, allocation_id id, uint32_t mark)
{
	object_classes_mark(&python->space.classes, id, mark);
}

/* NULL: it is no object. */
const struct python_type *python_type_of(const struct python *python, allocation_id id);

/* How many bytes stand before objects of the type. */
uint64_t python_header_of(const struct python *python, const struct python_type *type);

/* The address of an object: an allocation may begin with what stands before it. */
uint64_t python_object_at(const struct python *python, allocation_id id);

/* Learn the names of all types, and how strings begin; *ret_module is the number of modules' type.
 */
struct error *python_learn_types(struct python *python, uint32_t *ret_module);

/* The name of the class of the object at that address; NULL: it is not known. */
const char *python_class_at(struct python *python, struct view *view, uint64_t object);
