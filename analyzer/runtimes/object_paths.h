/*
 * How programs reach their objects, in words of their language: "app.users['anna'].orders[3]".
 *
 * A breadth-first search goes from all that has a name along the references between objects that
 * the language has words for. So each object has one of its shortest paths, and what no path leads
 * to is reached by the interpreter or by code in C alone. 4 bytes an allocation.
 *
 * The graph decides what a reference is: a path has no step by a word that the graph leaves out,
 * such as that of a weak reference, and what nothing anchors has no path.
 */
#pragma once

#include "analyzer/base/progress.h"
#include "analyzer/runtimes/runtimes.h"

struct object_paths;

/* All is borrowed, and outlives the paths. */
struct object_paths_input {
	const struct runtimes *list; /* their objects are known */
	const struct image *image;
	const struct allocation_index *index;
	const struct bitmap *anchored;
	struct memory_account *account;
	struct progress *progress;
};

/* If no language has names, there are no paths. */
struct error *object_paths_create(const struct object_paths_input *input,
				  struct object_paths **ret);
void object_paths_destroy(struct object_paths *paths);
DEFINE_CLEANUP(object_paths_destroy, struct object_paths *)

/* How many objects have a path. */
size_t object_paths_count(const struct object_paths *paths);

bool object_paths_has(const struct object_paths *paths, allocation_id id);

/*
 * The objects on the path, from that with a name to the object itself: the last ones, at most most.
 * Returns how many there are in ret.
 */
size_t object_paths_steps(const struct object_paths *paths, allocation_id id, size_t most,
			  allocation_id *ret);

/*
 * Write the path of an object, its middle left out if it is long; contents of memory, such as keys,
 * only with_content. False: there is none.
 */
bool object_paths_tell(const struct object_paths *paths, allocation_id id, bool with_content,
		       char *ret, size_t size);

/*
 * The object that the program reaches by such a path, whatever its quotes; NO_ALLOCATION if there
 * is none. It need not be the shortest one. Each step looks at all that an object refers to, so
 * that one of very many is an error.
 */
struct error *object_paths_find(const struct object_paths *paths, const char *path,
				struct progress *progress, allocation_id *ret);

/*
 * Visits completions of a path that begins with text, up to the end of the step that text ends in.
 */
struct path_visitor {
	void (*visit)(void *data, const char *path);
	void *data;
};

struct error *object_paths_complete(const struct object_paths *paths, const char *text,
				    struct progress *progress, struct path_visitor visitor);

/* The nearest path that exists, to be freed; NULL: none is near, or memory is short. */
char *object_paths_nearest(const struct object_paths *paths, const char *path,
			   struct progress *progress);
