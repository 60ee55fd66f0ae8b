/*
 * Objects of JavaScript in the heap of V8: see v8/v8.h.
 *
 * A collector frees them, and none of its memory is a root, but for code and what is only read.
 */
#include "allocators/v8/v8.h"

#include "analyzer/heap/sink.h"
#include "analyzer/program/symbols.h"

#include <inttypes.h>

enum { ARENAS = V8_LARGE + 1 };

static const struct free_kind free_kinds[] = { { "free in V8" }, { NULL } };

static const struct arena_kind arena_kinds[ARENAS + 1] = {
	[V8_NEW] = { .name = "v8-new", .group = "V8's heap: new objects", .used = "new objects" },
	[V8_OLD] = { .name = "v8-old", .group = "V8's heap: old objects", .used = "old objects" },
	[V8_LARGE] = { .name = "v8-large",
		       .group = "V8's heap: large objects",
		       .used = "large objects" },
	{ NULL },
};

struct v8_heap {
	struct heap heap;
	struct heap_context context;
	struct v8_heap_parts parts;
	uint64_t cut, cut_bytes; /* chunks in which a walk ended early, and what was left of them */
};

static const struct v8_heap *of(const struct heap *heap)
{
	return (const struct v8_heap *)heap;
}

const struct v8_heap_parts *v8_parts_of(const struct heap *heap)
{
	return &of(heap)->parts;
}

static void v8_close(struct heap *base)
{
	struct v8_heap *heap = (struct v8_heap *)base;

	v8_release(&heap->parts);
}

static struct error *v8_open(struct heap *base, const struct heap_context *context, bool *ret)
{
	struct v8_heap *heap = (struct v8_heap *)base;

	if (!program_has_code(context->program, "node", "node_module_register"))
		return NULL;
	heap->context = *context;
	arrays_use(context->account, &heap->parts.chunks, &heap->parts.labs);
	TRY(v8_find(context->image, context->program, &heap->parts));
	*ret = heap->parts.chunks.count > 0;
	return NULL;
}

/* The first that begins in the chunk at or above address, or NULL. */
static const struct v8_lab *find_lab(const struct v8_heap_parts *parts,
				     const struct v8_chunk *chunk, uint64_t address)
{
	const struct v8_lab *best = NULL;

	list_for_each(lab, parts->labs.items, parts->own_labs)
		if (lab->top >= address && lab->top < chunk->end && (!best || lab->top < best->top))
			best = lab;
	return best;
}

/* No objects exist yet in the rest of an allocation buffer. */
static struct block free_lab(const struct v8_chunk *chunk, const struct v8_lab *lab)
{
	uint64_t end = chunk->space == V8_NEW ? chunk->end : lab->limit;

	return (struct block){ lab->top, end - lab->top, BLOCK_FREE, 0 };
}

/*
 * The end of what was never written to from start on: other threads of V8 allocate there, too, and
 * where is not known. A core may have terabytes of holes.
 */
static uint64_t find_blank_end(struct view *view, uint64_t start, uint64_t end)
{
	uint64_t word;

	for (uint64_t at = start; at < end; at += V8_WORD) {
		if (at % V8_CHUNK_ALIGNMENT == 0)
			at = image_next_data(view->image, at);
		if (at < end && (!view_word(view, at, &word) || word != 0))
			return at;
	}
	return end;
}

static struct block block_of(uint64_t start, const struct v8_object *object)
{
	struct block block = { start, object->size, BLOCK_FREE, 0 };

	if (!object->is_free) {
		block.state = BLOCK_USED;
		block.traits = TRAIT_COLLECTABLE | (object->is_plain ? TRAIT_POINTERLESS : 0);
	}
	return block;
}

/* Memory without objects, up to end at most; its size is 0 if there is none. */
static struct error *find_gap(struct v8_heap *heap, const struct v8_chunk *chunk, struct view *view,
			      uint64_t end, struct block *ret)
{
	uint64_t start = ret->start;
	const struct v8_lab *lab;

	*ret = (struct block){ start, find_blank_end(view, start, end) - start, BLOCK_FREE, 0 };
	if (ret->size)
		return NULL;
	TRY(v8_find_lab(view->image, &heap->parts, start, &lab));
	if (lab && lab->limit <= end)
		*ret = free_lab(chunk, lab);
	return NULL;
}

/*
 * Anything that cannot be walked stays outside of the heap, and so is a root: pages that are not
 * swept yet, with objects whose maps are gone, and pages that a collection is working on.
 */
static struct error *walk_chunk(struct v8_heap *heap, const struct v8_chunk *chunk,
				arena_number arena, struct block_sink *sink)
{
	struct v8_reader reader = { { heap->context.image }, &heap->parts.layout, 0, 0 };
	const struct v8_lab *lab = find_lab(&heap->parts, chunk, chunk->start);
	struct block block = { chunk->start, 0, BLOCK_FREE, 0 };

	while (block.start < chunk->end) {
		uint64_t end = lab ? lab->top : chunk->end;
		struct v8_object object;

		if (lab && lab->top == block.start) {
			block = free_lab(chunk, lab);
		} else if (v8_read_object(&reader, block.start, end, &object)) {
			block = block_of(block.start, &object);
		} else {
			TRY(find_gap(heap, chunk, &reader.view, end, &block));
			if (!block.size)
				break;
		}
		if (block.start == chunk->start)
			TRY(block_sink_region(sink, chunk->start, chunk->end, arena));
		TRY(block_sink_add(sink, block));
		block.start += block.size;
		if (lab && lab->top < block.start)
			lab = find_lab(&heap->parts, chunk, block.start);
	}
	if (block.start == chunk->end)
		return NULL;
	/* Pages for new objects may have nothing but what was moved away. */
	if (chunk->space != V8_NEW) {
		heap->cut++;
		heap->cut_bytes += chunk->end - block.start;
	}
	if (block.start > chunk->start)
		block_sink_cut(sink, block.start);
	return NULL;
}

static struct error *v8_walk(struct heap *base, struct block_sink *sink)
{
	struct v8_heap *heap = (struct v8_heap *)base;

	TRY(block_sink_order(sink));
	block_sink_align(sink, V8_WORD);
	for (size_t i = 0; i < ARENAS; i++)
		TRY(array_append(&base->arenas, (struct arena){ &arena_kinds[i] }));
	array_for_each(chunk, &heap->parts.chunks) {
		struct block block;

		if (!v8_is_walked(chunk) ||
		    block_sink_place(sink, chunk->start, chunk->end, &block) != SINK_APART)
			continue;
		base->arenas.items[chunk->space].size += chunk->size;
		TRY(walk_chunk(heap, chunk, base->first_arena + (arena_number)chunk->space, sink));
	}
	if (heap->cut)
		findings_add(heap->context.findings, FINDING_NOTE,
			     "V8 was at work in %" PRIu64 " of its pages: up to %" PRIu64
			     " bytes of objects there are not counted",
			     heap->cut, heap->cut_bytes);
	return NULL;
}

static struct error *v8_visit_units(const struct heap *base, unit_visit visit, void *data)
{
	static const struct unit_kind kind = { "chunk", .given_back = true };

	array_for_each(chunk, &of(base)->parts.chunks)
		if (v8_is_walked(chunk) && chunk->space != V8_NEW)
			TRY(visit(data, base->allocator,
				  &(struct heap_unit){ &kind, chunk->start, chunk->end, 0 }));
	return NULL;
}

static size_t v8_holds(const struct heap *base, uint64_t address)
{
	const struct v8_chunk *chunks = of(base)->parts.chunks.items;
	size_t i = LIST_ABOVE(chunks, of(base)->parts.chunks.count, address, address);

	return i > 0 && address < chunks[i - 1].start && v8_is_walked(&chunks[i - 1])
		       ? (size_t)chunks[i - 1].space
		       : NO_ARENA;
}

/* Read-only chunks have what V8 was built with, and no value of a program. */
static bool is_built_in(const struct image *image, const struct v8_chunk *chunk)
{
	const struct region *region = image_find(image, chunk->start);

	return chunk->space == V8_READ_ONLY && region && !(region->rights & RIGHT_WRITE);
}

static struct error *v8_visit_structure(const struct heap *base, program_range_visitor *visit,
					void *data)
{
	const struct heap_context *context = &of(base)->context;

	TRY(v8_visit_layout(context->image, context->program, visit, data));
	array_for_each(chunk, &of(base)->parts.chunks) {
		TRY(v8_visit_head(context->image, chunk, visit, data));
		if (is_built_in(context->image, chunk))
			TRY(visit(data, chunk->start, chunk->end - chunk->start));
	}
	return NULL;
}

const struct allocator allocator_v8 = {
	.name = "v8",
	.summary = "objects of JavaScript in V8's heap, of Node.js 18 to 24",
	.is_private = true,
	.alignment = V8_WORD,
	.arena_kinds = arena_kinds,
	.free_kinds = free_kinds,
	.heap_size = sizeof(struct v8_heap),
	FILL_SLOTS(v8, open, close, walk, visit_units, holds, visit_structure),
};
