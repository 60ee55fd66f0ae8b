#include "analyzer/graph/embedding.h"

#include "analyzer/runtimes/runtimes.h"

#include <elf.h>

/* Anchors in the executable. */
struct search {
	const struct module *executable;
	struct bitmap from, outside; /* outside: of a language's objects */
};

static void search_deinit(struct search *search)
{
	bitmap_deinit(&search->from);
	bitmap_deinit(&search->outside);
}
DEFINE_DEINIT(search_deinit, struct search)

static bool visit(void *data, const struct anchor *anchor)
{
	struct search *search = data;

	if (anchor->kind == ROOT_STATIC &&
	    anchor->address - search->executable->start <
		    search->executable->end - search->executable->start)
		bitmap_set(&search->from, anchor->target);
	return true;
}

static const struct module *find_executable(const struct image *image,
					    const struct program *program)
{
	return program_find_module(program, image_auxiliary(image, AT_PHDR, 0));
}

bool embedding_is_there(const struct image *image, const struct program *program,
			const struct runtimes *runtimes)
{
	const struct module *executable = find_executable(image, program);

	return executable && runtimes_are_embedded(runtimes, program, executable);
}

struct error *embedding_find(const struct embedding_input *input, struct bitmap *ret)
{
	const struct bitmap *used = allocation_used(input->index);
	const size_t count = allocation_count(input->index);
	_cleanup_(search_deinit) struct search search = {
		.executable = find_executable(input->image, input->program),
	};

	if (!embedding_is_there(input->image, input->program, input->runtimes))
		return NULL;
	TRY(bitmap_init(&search.from, count, input->account));
	TRY(bitmap_init(&search.outside, count, input->account));
	bitmap_for_each(id, used)
		if (!runtimes_class_of(input->runtimes, (allocation_id)id))
			bitmap_set(&search.outside, id);
	roots_visit(input->roots, &search.outside, visit, &search);
	TRY(bitmap_init(ret, count, input->account));
	return graph_mark_within(input->graph, &search.outside, &search.from, ret, input->account,
				 input->progress);
}
