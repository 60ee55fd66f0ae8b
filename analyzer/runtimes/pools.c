#include "analyzer/runtimes/pools.h"

enum { MOST_STEPS = 1 << 24, MOST_WORDS = 16 };

struct error *pools_visit(struct object_space *space, const struct pool_kind *kind,
			  pool_visitor *visit, const void *data)
{
	struct view view = { space->image };

	bitmap_for_each(i, allocation_used(space->index)) {
		allocation_id id = (allocation_id)i;
		uint64_t header[MOST_WORDS];

		if (view_read(&view, allocation_start(space->index, id) + kind->offset, header,
			      kind->size) &&
		    kind->is_pool(space, id, header))
			TRY(visit(space, id, header, data));
	}
	return NULL;
}

struct error *pools_find(struct object_space *space, const struct pool_kind *kind)
{
	if (image_word_size(space->image) != sizeof(uint64_t))
		return NULL;
	space->steps = (struct budget){ MOST_STEPS };
	TRY(object_classes_init(&space->classes, allocation_count(space->index), space->account));
	TRY(pools_visit(space, kind, kind->add, NULL));
	space->has_objects = space->classes.list.count > 0;
	return NULL;
}
