#include "analyzer/runtimes/fibers.h"

#include "analyzer/base/list.h"
#include "analyzer/base/sort.h"
#include "analyzer/runtimes/runtime.h"

struct error *fibers_add(struct fibers *fibers, struct fiber fiber)
{
	struct error *error = memory_reserve(&fibers->list, (fibers->count + 1) * sizeof(fiber));

	if (error)
		free((char *)fiber.name);
	else
		((struct fiber *)fibers->list.bytes)[fibers->count++] = fiber;
	return error;
}

void fibers_set_runtime(struct fibers *fibers, const struct runtime *runtime)
{
	struct fiber *list = fibers->list.bytes;

	for (size_t i = fibers->count; i > 0 && !list[i - 1].runtime; i--)
		list[i - 1].runtime = runtime;
}

DEFINE_COMPARE(compare_fibers, struct fiber, ASCENDING(start))

/* Of two stacks that overlap, one is not what it seems; a thread's is. */
static void drop_overlapping(struct fibers *fibers)
{
	struct fiber *list = fibers->list.bytes;
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
	SORT((struct fiber *)fibers->list.bytes, fibers->count, compare_fibers);
	drop_overlapping(fibers);
}

void fibers_deinit(struct fibers *fibers)
{
	struct fiber *list = fibers->list.bytes;

	for (size_t i = 0; i < fibers->count; i++)
		free((char *)list[i].name);
	memory_release(&fibers->list);
	fibers->count = 0;
}

size_t fiber_count(const struct fibers *fibers)
{
	return fibers->count;
}

const struct fiber *fiber_at(const struct fibers *fibers, size_t number)
{
	return (const struct fiber *)fibers->list.bytes + number;
}

const struct fiber *fiber_find(const struct fibers *fibers, uint64_t address)
{
	const struct fiber *list = fibers->list.bytes;
	size_t low = LIST_ABOVE(list, fibers->count, start, address);

	return low > 0 && address < list[low - 1].end ? &list[low - 1] : NULL;
}

bool fiber_registers(const struct image *image, const struct fiber *fiber, struct frame_state *ret)
{
	return !fiber->running && fiber->runtime->fiber_registers(image, fiber, ret);
}
