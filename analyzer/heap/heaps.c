#include "analyzer/heap/heaps.h"

#include "analyzer/program/symbols.h"

#include <string.h>

struct heap_slot {
	struct heap *heap;
	arena_number first;
};

struct heaps {
	struct heap_slot *slots;
	size_t count;
	arena_number arena_count;
	struct allocation_index *index;
};

/*
 * Allocators that are not understood: by a part of their library's name, or
 * by functions that only they have, when linked into a program.
 */
static const struct {
	const char *name;
	const char *library;
	const char *functions[4];
} strangers[] = {
	{ "jemalloc",
	  "jemalloc",
	  { "mallctl", "je_mallctl", "_rjem_mallctl" } },
	{ "tcmalloc", "tcmalloc", { "tc_malloc", "TCMallocInternalMalloc" } },
	{ "mimalloc", "mimalloc", { "mi_malloc" } },
	{ "musl's malloc", "ld-musl-", { "__malloc_donate" } },
	{ "snmalloc", "snmalloc", { "sn_rust_alloc" } },
	{ "Hoard", "libhoard", { NULL } },
};

enum { STRANGERS = sizeof(strangers) / sizeof(strangers[0]) };

static bool is_loaded(const struct module *module, size_t stranger)
{
	const char *slash = strrchr(module->path, '/');
	const char *name = slash ? slash + 1 : module->path;

	return strstr(name, strangers[stranger].library) ||
	       module_defines(module, strangers[stranger].functions) >= 0;
}

/* Say which allocators are loaded that nobody here understands. */
static bool report_strangers(const struct heap_context *context)
{
	bool found = false;

	for (size_t i = 0; i < STRANGERS; i++) {
		for (size_t j = 0; j < program_module_count(context->program);
		     j++) {
			const struct module *module =
				program_module(context->program, j);

			if (!is_loaded(module, i))
				continue;
			findings_add(context->findings, FINDING_INCOMPLETE,
				     "%s is loaded (%s), and its heap is not "
				     "understood: what it allocated is not "
				     "counted",
				     strangers[i].name, module->path);
			found = true;
			break;
		}
	}
	return found;
}

static struct error *open_heaps(struct heaps *heaps,
				const struct heap_context *context)
{
	size_t kinds = 0;

	while (allocators[kinds])
		kinds++;
	heaps->slots = calloc(kinds + 1, sizeof(*heaps->slots));
	if (!heaps->slots)
		return &error_no_memory;
	for (size_t i = 0; i < kinds; i++) {
		struct heap *heap = NULL;
		struct error *error = allocators[i]->open(context, &heap);

		if (error)
			return error_wrap(error, "%s", allocators[i]->name);
		if (!heap)
			continue;
		heap->allocator = allocators[i];
		heaps->slots[heaps->count++].heap = heap;
	}
	return NULL;
}

static struct error *walk_heaps(struct heaps *heaps,
				const struct heap_context *context)
{
	_cleanup_(block_sink_destroy) struct block_sink *sink = NULL;
	struct error *error = block_sink_create(context->account, &sink);

	for (size_t i = 0; i < heaps->count && !error; i++) {
		struct heap *heap = heaps->slots[i].heap;

		heaps->slots[i].first = heaps->arena_count;
		error = heap->allocator->walk(heap, heaps->arena_count, sink);
		heaps->arena_count +=
			(arena_number)heap->allocator->arena_count(heap);
	}
	if (!error)
		error = allocation_index_create(sink, &heaps->index);
	return error;
}

struct error *heaps_create(const struct heap_context *context,
			   struct heaps **ret)
{
	_cleanup_(heaps_destroy) struct heaps *heaps =
		calloc(1, sizeof(*heaps));
	struct error *error;

	if (!heaps)
		return &error_no_memory;
	progress_begin(context->progress, "walking the heap",
		       image_size(context->image));
	error = open_heaps(heaps, context);
	if (!error)
		error = walk_heaps(heaps, context);
	if (error)
		return error;
	if (!report_strangers(context) && heaps->count == 0)
		findings_add(context->findings, FINDING_INCOMPLETE,
			     "no heap was found: neither glibc's malloc nor "
			     "any other known allocator is in this process. "
			     "Counts of 0 mean nothing");
	*ret = take(heaps);
	return NULL;
}

void heaps_destroy(struct heaps *heaps)
{
	if (heaps->index)
		allocation_index_destroy(heaps->index);
	for (size_t i = 0; i < heaps->count; i++) {
		struct heap *heap = heaps->slots[i].heap;

		heap->allocator->close(heap);
	}
	free(heaps->slots);
	free(heaps);
}

const struct allocation_index *heaps_index(const struct heaps *heaps)
{
	return heaps->index;
}

size_t heaps_arena_count(const struct heaps *heaps)
{
	return heaps->arena_count;
}

/* The heap that the arena is one of. */
static const struct heap_slot *find_slot(const struct heaps *heaps,
					 arena_number number)
{
	size_t i = heaps->count - 1;

	while (heaps->slots[i].first > number)
		i--;
	return &heaps->slots[i];
}

struct arena heaps_arena(const struct heaps *heaps, arena_number number)
{
	const struct heap_slot *slot = find_slot(heaps, number);

	return slot->heap->allocator->arena(slot->heap, number - slot->first);
}

const struct allocator *heaps_arena_allocator(const struct heaps *heaps,
					      arena_number number)
{
	return find_slot(heaps, number)->heap->allocator;
}
