/*
 * The objects of pools, to which a word behind each of their blocks leads.
 *
 * Some programs hand out blocks from pools of one size each, and mark a block as its pool's by a
 * word behind what they return, as HAProxy does. None is known by name here: many blocks lead to
 * few objects of one size, all blocks of one object are of one size, which the object has, too, and
 * at one offset of all objects stands a name, another one in each.
 */
#pragma once

#include "analyzer/base/memory.h"
#include "analyzer/heap/index.h"
#include "analyzer/image/view.h"

struct label_objects {
	uint64_t name; /* its offset in each */
	uint64_t size; /* of the allocation that each is in; 0: there are none */
};

/* Find them by a thousand blocks. */
struct error *label_objects_find(const struct image *image, const struct allocation_index *index,
				 struct memory_account *account, struct label_objects *ret);

/* A block's mark: an object's address, and the place of the word that leads there. */
struct label_mark {
	uint64_t object, offset;
};

/* Find the mark of the used block that has that range. */
bool label_mark_find(const struct label_objects *objects, struct view *view,
		     const struct allocation_index *index, struct memory_range range,
		     struct label_mark *ret);

/* The name of an object that a mark led to, in quotes; to be freed, or NULL. */
char *label_object_name(const struct label_objects *objects, struct view *view, uint64_t object);
