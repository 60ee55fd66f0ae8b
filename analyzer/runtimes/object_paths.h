/*
 * How programs reach their objects, in words of their language: "app.users['anna'].orders[3]".
 *
 * A breadth-first search goes from all that has a name along the references between objects that
 * the language has words for. So each object has one of its shortest paths, and what no path leads
 * to is reached by the interpreter or by code in C alone. 4 bytes an allocation.
 */
#ifndef ANALYZER_RUNTIMES_OBJECT_PATHS_H
#define ANALYZER_RUNTIMES_OBJECT_PATHS_H

#include "analyzer/base/progress.h"
#include "analyzer/runtimes/runtimes.h"

struct object_paths;

/* list is borrowed, and its objects are known. Where no language has names, there are no paths. */
struct error *object_paths_create(const struct runtimes *list, size_t allocations,
				  struct memory_account *account, struct progress *progress,
				  struct object_paths **ret);
void object_paths_destroy(struct object_paths *paths);
DEFINE_CLEANUP(object_paths_destroy, struct object_paths *)

/* How many objects have a path. */
size_t object_paths_count(const struct object_paths *paths);

/*
 * Write the path of an object, its middle left out if it is long; contents of memory, such as keys,
 * only with_content. False: there is none.
 */
bool object_paths_tell(const struct object_paths *paths, allocation_id id, bool with_content,
		       char *ret, size_t size);

#endif
