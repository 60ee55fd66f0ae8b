#include "analyzer/graph/signal_stacks.h"

#include "analyzer/base/list.h"
#include "analyzer/image/kernel_notes.h"
#include "analyzer/program/symbols.h"

#include <elf.h>

#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51
#endif

enum { ROUNDED = 24 }; /* by which malloc() may make a block larger */

/* sysconf(_SC_SIGSTKSZ): four times what the kernel says, or SIGSTKSZ. */
static uint64_t common_size(const struct image *image)
{
	uint64_t least = image_auxiliary(image, AT_MINSIGSTKSZ, 0);
	uint64_t usual = image->arch->signal_stack_size;

	return least > usual / 4 && least < UINT32_MAX ? 4 * least : usual;
}

/* A program without shared libraries has the function in it, if it calls it. */
static bool calls_it(const struct program *program)
{
	static const char *const name[] = { "sigaltstack", NULL };
	static const char *const start[] = { "main", NULL };

	list_for_each(module, program->modules, program->module_count) {
		if (module_needs(module, name) ||
		    (module_defines(module, name) && module_defines(module, start)))
			return true;
	}
	return false;
}

/* Take away what an unreachable block refers to. */
static void leave_unreferenced(const struct signal_stacks_input *input, struct bitmap *stacks)
{
	bitmap_for_each(id, input->unreachable) {
		struct edges edges = graph_outgoing(input->graph, (allocation_id)id);

		for (size_t i = 0; i < edges.count; i++)
			if (edges.targets[i] != id)
				bitmap_clear(stacks, edges.targets[i]);
	}
}

static struct error *find_sized(const struct signal_stacks_input *input, struct bitmap *ret)
{
	const struct bitmap *collectable = allocation_having(input->index, TRAIT_COLLECTABLE);
	uint64_t common = common_size(input->image);
	uint64_t usual = input->image->arch->signal_stack_size;

	bitmap_for_each(id, input->unreachable) {
		uint64_t size = allocation_size(input->index, (allocation_id)id);

		if ((size - usual > ROUNDED && size - common > ROUNDED) ||
		    (collectable && bitmap_get(collectable, id)))
			continue;
		TRY(ret->words ? NULL
			       : bitmap_init(ret, input->unreachable->count, input->account));
		bitmap_set(ret, id);
	}
	return NULL;
}

struct error *signal_stacks_guess(const struct signal_stacks_input *input, struct bitmap *ret)
{
	_cleanup_(bitmap_deinit) struct bitmap stacks = { 0 };
	size_t count;

	if (image_held_sought(input->image, HELD_SIGNAL_STACK))
		return NULL;
	TRY(find_sized(input, &stacks));
	if (!stacks.words || !calls_it(input->program))
		return NULL;
	leave_unreferenced(input, &stacks);
	count = bitmap_weight(&stacks);
	if (count > 0 && count <= input->program->thread_count) {
		*ret = take_struct(stacks);
	}
	return NULL;
}
