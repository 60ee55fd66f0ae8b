/*
 * Links: how a language gets from one of its objects to another, in its own words. A runtime visits
 * them and writes the steps; references, names and paths follow from that.
 */
#pragma once

#include "analyzer/base/bitmap.h"
#include "analyzer/runtimes/runtime.h"

struct object_link {
	unsigned int kind; /* of the language's kinds */
	uint64_t target;   /* see object_target(); perhaps no object is there */
	uint64_t place;	   /* of the word that leads there; 0: several together do, or not known */
	/* As the kind has it: the address of a name or key, its number, and a name. */
	uint64_t which, number;
	const char *name;
};

/* The text of a path, cut off where there is no more room. */
struct object_path {
	char *text;
	size_t size, used;
	struct object_space *space;
	struct view view;
	bool with_content;	 /* keys may be told, which are contents of memory */
	bool is_first;		 /* the step is the first one */
	unsigned int state;	 /* the language's own: 0 before the first step */
	size_t state_used;	 /* the same */
	allocation_id id;	 /* of the source */
	uint64_t source, target; /* of the step, as in links */
};

#define path_add(path, ...)                                                                   \
	path_advance(path, snprintf((path)->text + (path)->used, (path)->size - (path)->used, \
				    __VA_ARGS__))

/* snprintf() was asked to write length bytes behind what was used. */
static inline void path_advance(struct object_path *path, int length)
{
	if (length > 0)
		path->used += (size_t)length;
	if (path->used >= path->size)
		path->used = path->size - 1;
}

/* The target of links to the object: its address, or what the slot says. */
uint64_t object_target(const struct object_space *space, allocation_id id);

/* The object that links have as target; NO_ALLOCATION: there is none. */
allocation_id object_find(const struct object_space *space, uint64_t target);

/* Find the objects that have names of their own, which last; see the slots. */
struct error *object_find_globals(struct object_space *space, struct bitmap *ret);

/* Name the object that links have as target, unless it has a name, and set it in named. */
struct error *object_name(struct object_space *space, struct bitmap *named, uint64_t target,
			  const char *format, ...) __attribute__((format(printf, 4, 5)));

/*
 * The word at place refers to the object; 0: several words together do. What is_link() says of that
 * word decides whether the reference exists: visitors need not ask. An error ends the visit.
 */
typedef struct error *object_visitor(void *data, allocation_id id, uint64_t place);

/* Visit the objects that an object links to, some perhaps twice. */
struct error *object_visit_references(struct object_space *space, allocation_id id,
				      object_visitor *visit, void *data);

/*
 * Write how the language gets from the first of a path of such references to the last, as
 * "app.users['anna'].orders[3]". It begins with the name of the first, if that has one. Contents of
 * memory, such as 'anna', are left out without with_content.
 */
void object_tell_path(struct object_space *space, const allocation_id *ids, size_t count,
		      bool with_content, char *ret, size_t size);
