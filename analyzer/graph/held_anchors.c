#include "analyzer/graph/held_anchors.h"

#include "analyzer/image/kernel_notes.h"

/* The number of the thread that the value is of. */
static uint32_t find_holder(const struct program *program, struct held_value value)
{
	if (value.kind != HELD_SIGNAL_STACK && value.kind != HELD_SIGNAL)
		return NO_THREAD;
	for (uint32_t i = 0; i < program_thread_count(program); i++)
		if (program_thread(program, i)->id == value.holder)
			return i;
	return NO_THREAD;
}

static allocation_id find_target(const struct allocation_index *index, struct held_value value)
{
	return value.kind < HELD_KINDS ? allocation_find(index, value.value) : NO_ALLOCATION;
}

/* What is held, and the core does not say so, are assumed stacks. */
static void visit_assumed(const struct held_anchors *held,
			  bool (*visit)(void *data, const struct anchor *anchor), void *data)
{
	const struct image *image = held->image;
	_cleanup_(bitmap_deinit) struct bitmap rest = { 0 };
	struct anchor anchor = { .kind = ROOT_KERNEL, .thread = NO_THREAD, .held = ASSUMED_STACK };
	struct error *error;

	if (image_held_sought(image, HELD_SIGNAL_STACK) ||
	    bitmap_next(held->all, 0) == held->all->count)
		return;
	error = bitmap_init(&rest, held->all->count, held->account);
	if (error) {
		error_destroy(error);
		return;
	}
	bitmap_copy(&rest, held->all);
	for (size_t i = 0; i < image_held_count(image); i++) {
		allocation_id id = find_target(held->index, image_held(image, i));

		if (id != NO_ALLOCATION)
			bitmap_clear(&rest, id);
	}
	bitmap_for_each(id, &rest) {
		anchor.target = (allocation_id)id;
		if (!visit(data, &anchor))
			return;
	}
}

void held_anchors_visit(const struct held_anchors *held,
			bool (*visit)(void *data, const struct anchor *anchor), void *data)
{
	for (size_t i = 0; i < image_held_count(held->image); i++) {
		struct held_value value = image_held(held->image, i);
		struct anchor anchor = {
			.kind = ROOT_KERNEL,
			.thread = NO_THREAD,
			.held = (uint32_t)i,
			.target = find_target(held->index, value),
		};

		if (anchor.target == NO_ALLOCATION)
			continue;
		anchor.thread = find_holder(held->program, value);
		if (!visit(data, &anchor))
			return;
	}
	visit_assumed(held, visit, data);
}

void malloc_anchors_visit(const struct allocation_index *index,
			  bool (*visit)(void *data, const struct anchor *anchor), void *data)
{
	for (size_t i = 0; i < allocation_held_count(index); i++) {
		struct anchor anchor = {
			.kind = ROOT_REGISTER,
			.register_name = INSIDE_MALLOC,
			.thread = NO_THREAD,
			.target = allocation_held(index, i),
		};

		if (anchor.target != NO_ALLOCATION && !visit(data, &anchor))
			return;
	}
}
