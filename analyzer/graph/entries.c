#include "analyzer/graph/entries.h"

static void add_leak_roots(const struct leaks *leaks, struct bitmap *ret)
{
	for (size_t i = 0; i < leak_root_count(leaks); i++)
		bitmap_set(ret, leak_root(leaks, i)->id);
}

static struct error *add_garbage_roots(const struct entries_input *input, struct bitmap *ret)
{
	_cleanup_(leaks_destroy) struct leaks *roots = NULL;
	_cleanup_(bitmap_deinit) struct bitmap lost = { 0 };
	struct error *error;

	if (!input->liveness->garbage.words)
		return NULL;
	error = bitmap_init(&lost, ret->count, input->account);
	if (error)
		return error;
	bitmap_or(&lost, &input->liveness->garbage);
	bitmap_or(&lost, &input->liveness->held);
	error = leaks_create(input->graph, input->index, &lost, input->account, input->progress,
			     &roots);
	if (!error)
		add_leak_roots(roots, ret);
	return error;
}

struct error *entries_collect(const struct entries_input *input, struct bitmap *ret)
{
	struct bitmap entries = { 0 };
	struct error *error = bitmap_init(&entries, allocation_count(input->index), input->account);

	if (error)
		return error;
	for (enum root_kind kind = 0; kind < ROOT_KINDS; kind++)
		bitmap_or(&entries, root_targets(input->roots, kind));
	add_leak_roots(input->leaks, &entries);
	error = add_garbage_roots(input, &entries);
	if (error)
		bitmap_deinit(&entries);
	else
		*ret = entries;
	return error;
}
