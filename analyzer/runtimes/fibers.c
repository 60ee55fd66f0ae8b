#include "analyzer/runtimes/fibers.h"

#include "analyzer/base/list.h"
#include "analyzer/runtimes/runtime.h"

struct error *fibers_add(struct fibers *fibers, struct fiber fiber)
{
	struct error *error = array_append(fibers, fiber);

	if (error)
		free((char *)fiber.name);
	return error;
}

DEFINE_COMPARE(compare_fibers, struct fiber, ASCENDING(start))

/* If two stacks overlap, drop one; a thread's stack is real. */
static void drop_overlapping(struct fibers *fibers)
{
	struct fiber *list = fibers->items;
	size_t kept = 0;

	for (size_t i = 0; i < fibers->count; i++) {
		struct fiber *last = kept > 0 ? &list[kept - 1] : NULL;
		const struct fiber fiber = list[i];

		if (!last || fiber.start >= last->end) {
			list[kept++] = fiber;
			continue;
		}
		free((char *)(fiber.thread != NO_THREAD ? last->name : fiber.name));
		if (fiber.thread != NO_THREAD)
			*last = fiber;
	}
	fibers->count = kept;
}

void fibers_sort(struct fibers *fibers)
{
	array_sort(fibers, compare_fibers);
	drop_overlapping(fibers);
}

void fibers_deinit(struct fibers *fibers)
{
	for (size_t i = 0; i < fibers->count; i++)
		free((char *)fibers->items[i].name);
	array_release(fibers);
}

const struct fiber *fiber_find(const struct fibers *fibers, uint64_t address)
{
	return LIST_HOLDER(fibers->items, fibers->count, start, end, address);
}

bool fiber_registers(const struct image *image, const struct fiber *fiber, struct frame_state *ret)
{
	return !fiber->running && fiber->runtime->fibers->fiber_registers(image, fiber, ret);
}
