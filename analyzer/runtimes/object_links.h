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

/* Walks the links of an object until visit() returns true. */
struct object_walk {
	struct object_space *space;
	struct view view;
	object_link_visitor *visit;
	void *data;
	struct budget steps; /* in a damaged core, all may share their tables */
	/*
	 * Values that are no objects, such as small numbers, are visited, too: their target is the
	 * value itself. find_globals() was called.
	 */
	bool with_values;
	bool is_over;
	struct error *error;
	unsigned int state; /* the language's own: 0 at first */
	uint64_t number;    /* likewise */
};

struct object_walk object_walk_begin(struct object_space *space, object_link_visitor *visit,
				     void *data);

/* False: the walk is over, as it may take no more steps. */
static inline bool object_walk_step(struct object_walk *walk)
{
	walk->is_over = walk->is_over || !budget_take(&walk->steps);
	return !walk->is_over;
}

/* Follow a link, unless the walk is over; returns whether it is. */
static inline bool object_walk_follow(struct object_walk *walk, const struct object_link *link)
{
	walk->is_over = walk->is_over || walk->visit(walk->data, link);
	return walk->is_over;
}

/* How a link counts among the items of an object. */
enum object_item {
	OBJECT_ITEM,
	OBJECT_ITEMS_BEHIND, /* the items of its target are the object's: a dict of attributes */
	OBJECT_KEY,	     /* it leads to the key of another item */
	OBJECT_NO_ITEM,	     /* the language does not count it, as the class */
};

/* How a language writes links of a kind. */
struct object_step {
	const char *text; /* # is the link's number, @ its name; NULL: tell_step() writes all */
	enum object_item item;
};

enum { OBJECT_MOST_NAME = 256 };

/* The text of a path, cut off where there is no more room. */
struct object_path {
	char *text;
	size_t size, used;
	struct object_space *space;
	struct view view;
	bool with_content;	     /* keys may be told, which are contents of memory */
	bool is_first;		     /* the step is the first one */
	unsigned int state;	     /* the language's own: 0 before the first step */
	size_t state_used;	     /* the same */
	allocation_id id;	     /* of the source */
	uint64_t source, target;     /* of the step, as in links */
	char name[OBJECT_MOST_NAME]; /* set by tell_step(); empty: the link's own */
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

/* Find the objects that have names of their own, which last, and others; see the slots. */
struct error *object_find_globals(struct object_space *space, struct bitmap *ret);
struct error *object_find_locals(struct object_space *space, struct bitmap *ret);

/* Names objects until there is an error. */
struct object_naming {
	struct object_space *space;
	struct view view;
	struct bitmap *named;
	struct error *error;
	char scope[2 * OBJECT_MOST_NAME]; /* the language's own: what the next names are in */
};

/* Name the object that links have as target, unless it has a name, and set it in named. */
void object_name(struct object_naming *naming, uint64_t target, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Visitors of a frame and its variables, which are named "function.<locals>.variable". */
void object_name_frame(void *data, const struct runtime_frame *frame);
void object_name_local(void *data, const struct runtime_local *local);

/*
 * The word at place refers to the object; 0: several words together do. What is_link() says of that
 * word decides whether the reference exists: visitors need not ask. An error ends the visit.
 */
typedef struct error *object_visitor(void *data, allocation_id id, uint64_t place);

/* Visit all links of an object, also to values that are no objects. */
struct error *object_visit_items(struct object_space *space, allocation_id id,
				 object_link_visitor *visit, void *data);

/* Visit the objects that an object links to, some perhaps twice. */
struct error *object_visit_references(struct object_space *space, allocation_id id,
				      object_visitor *visit, void *data);

/* Write a step. False: it is another link's. */
bool object_tell_step(struct object_path *path, const struct object_link *link);

/*
 * Write how the language gets from the first of a path of such references to the last, as
 * "app.users['anna'].orders[3]". It begins with the name of the first, if that has one. Contents of
 * memory, such as 'anna', are left out without with_content.
 */
void object_tell_path(struct object_space *space, const allocation_id *ids, size_t count,
		      bool with_content, char *ret, size_t size);
