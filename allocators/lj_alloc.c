/*
 * LuaJIT's own allocator, lj_alloc.c of LuaJIT 2.1: Doug Lea's malloc, in segments that it maps.
 *
 * A segment is chunks side by side; a chunk's size has two flags, as in glibc. The heap's state is
 *a chunk, at the start of a page, in which bins lead to themselves while they are empty; memory
 *that is mapped later grows the segment either way. The top is the free end of one segment; others
 *end in a chunk that describes the next.
 *
 *	| chunk | ... | chunk: state | chunk | ... | top | foot |
 *	| chunk | ... | chunk: base, size, next | fence ... |
 *
 * What is large is a mapping for itself, which begins with 1 and its size; it is on no list.
 */
#include "analyzer/base/budget.h"
#include "analyzer/base/error.h"
#include "analyzer/heap/allocator.h"
#include "analyzer/image/view.h"
#include "analyzer/program/symbols.h"

#include <inttypes.h>

enum {
	WORD = 8,
	HEAD = 16, /* of a chunk; the first word is the last of a used chunk before */
	PREVIOUS_USED = 1,
	USED = 2,
	FLAGS = 7,
	IS_DIRECT = 1,
	DIRECT_FOOT = 32,
	LEAST_DIRECT = 128 << 10,
	LEAST_CHUNK = 32,
	PAGE_BYTES = 4096,
	/* Offsets in the state. */
	TOP_SIZE = 16,
	TOP = 32,
	BINS = 56,
	SEGMENT = 840,
	OLD_STATE_CHUNK = 872,
	STATE_CHUNK = 880,
};

struct segment {
	uint64_t base, end;
	uint64_t top;	/* 0: it has none */
	uint64_t state; /* 0: it is in another */
	uint64_t place; /* where it is described: base, size, next */
	bool is_direct;
};

struct lj_heap {
	struct heap heap;
	struct heap_context context;
	ARRAY(struct segment) segments; /* by address */
};

static const struct arena_kind arena_kinds[] = {
	{ .name = "luajit", .group = "LuaJIT's segments" },
	{ .name = "luajit-direct", .group = "LuaJIT's large blocks" },
	{ NULL },
};

static const struct free_kind free_kinds[] = {
	{ "LuaJIT's free chunks" },
	{ "LuaJIT's top", .ends_heap = true },
	{ NULL },
};

static struct lj_heap *of(const struct heap *heap)
{
	return (struct lj_heap *)heap;
}

static uint64_t word_at(struct view *view, uint64_t address)
{
	uint64_t word;

	return view_word(view, address, &word) ? word : 0;
}

static bool is_mapped(struct view *view, uint64_t start, uint64_t end)
{
	uint64_t known;

	return start < end && view_bytes(view, start, &known) &&
	       view_reach(view, start, end) >= end;
}

/* True if the chunk there is the state: it says its segment, and its bin is a ring. */
static bool is_state(struct view *view, uint64_t chunk)
{
	uint64_t head = word_at(view, chunk + WORD) & ~(uint64_t)PREVIOUS_USED;
	uint64_t state = chunk + HEAD, bin = state + BINS, base, size;

	if (head != (STATE_CHUNK | USED) && head != (OLD_STATE_CHUNK | USED))
		return false;
	base = word_at(view, state + SEGMENT);
	size = word_at(view, state + SEGMENT + WORD);
	return size && base % PAGE_BYTES == 0 && size % PAGE_BYTES == 0 &&
	       word_at(view, word_at(view, bin + HEAD) + HEAD + WORD) == bin &&
	       word_at(view, word_at(view, bin + HEAD + WORD) + HEAD) == bin;
}

static bool is_direct(struct view *view, uint64_t base, uint64_t *ret_end)
{
	uint64_t size;

	if (word_at(view, base) != IS_DIRECT)
		return false;
	size = word_at(view, base + WORD);
	if ((size & FLAGS) != USED)
		return false;
	size -= USED;
	*ret_end = base + size + DIRECT_FOOT;
	return size >= LEAST_DIRECT / 2 && size <= UINT32_MAX * UINT64_C(1024) &&
	       *ret_end % PAGE_BYTES == 0 && is_mapped(view, base, *ret_end) &&
	       word_at(view, base + size + WORD) == (PREVIOUS_USED | USED | WORD);
}

static struct error *add_segments(struct lj_heap *heap, struct view *view, uint64_t state)
{
	uint64_t top = word_at(view, state + TOP), at = state + SEGMENT;
	struct budget steps = { 1 << 20 };

	for (; at && budget_take(&steps); at = word_at(view, at + HEAD)) {
		struct segment segment = { .base = word_at(view, at), .place = at };

		segment.end = segment.base + word_at(view, at + WORD);
		if (segment.base % PAGE_BYTES != 0 || segment.end % PAGE_BYTES != 0 ||
		    !is_mapped(view, segment.base, segment.end))
			break;
		if (top - segment.base < segment.end - segment.base)
			segment.top = top;
		if (state - segment.base < segment.end - segment.base)
			segment.state = state;
		TRY(array_append(&heap->segments, segment));
	}
	return NULL;
}

/* Look at each page of memory that is no file's. */
static struct error *search_region(struct lj_heap *heap, const struct region *region)
{
	const struct image *image = heap->context.image;
	struct view view = { image };
	uint64_t at = (region->start + PAGE_BYTES - 1) & -(uint64_t)PAGE_BYTES;

	while (at < region->end) {
		uint64_t end = 0;

		if (is_state(&view, at)) {
			TRY(add_segments(heap, &view, at + HEAD));
		} else if (is_direct(&view, at, &end)) {
			TRY(array_append(
				&heap->segments,
				(struct segment){ .base = at, .end = end, .is_direct = true }));
		}
		at = end > at ? end : at + PAGE_BYTES;
		at = image_next_data(image, at) & -(uint64_t)PAGE_BYTES;
	}
	return NULL;
}

DEFINE_COMPARE(compare_segments, struct segment, ASCENDING(base))

static struct error *lj_alloc_open(struct heap *base, const struct heap_context *context, bool *ret)
{
	struct lj_heap *heap = of(base);
	size_t states = 0;

	heap->context = *context;
	arrays_use(context->account, &heap->segments, &base->owned);
	if (!program_has_code(context->program, "luajit", "luaJIT_setmode"))
		return NULL;
	for (size_t i = 0; i < context->image->region_count; i++) {
		const struct region *region = &context->image->regions[i];

		if (region->bytes && (region->rights & RIGHT_WRITE) &&
		    !program_find_module(context->program, region->start))
			TRY(search_region(heap, region));
	}
	array_sort(&heap->segments, compare_segments);
	array_for_each(segment, &heap->segments) {
		states += segment->top != 0;
		TRY(array_append(&base->owned,
				 (struct memory_range){ segment->base, segment->end }));
	}
	*ret = states > 0;
	return NULL;
}

static void lj_alloc_close(struct heap *base)
{
	arrays_release(&of(base)->segments, &base->owned);
}

static struct error *walk_chunks(struct lj_heap *heap, const struct segment *segment,
				 struct block_sink *sink)
{
	struct view view = { heap->context.image };
	uint64_t chunk = segment->base, word;

	while (chunk < segment->end && segment->end - chunk >= HEAD &&
	       view_word(&view, chunk + WORD, &word)) {
		uint64_t size = word & ~(uint64_t)FLAGS;
		bool is_used = word & USED;

		/* A fence, or the foot. */
		if (size < LEAST_CHUNK)
			break;
		if (size > segment->end - chunk || size % WORD != 0) {
			findings_add(heap->context.findings, FINDING_INCOMPLETE,
				     "the chunk of LuaJIT's heap at %#" PRIx64
				     " makes no sense: the rest of its segment is left out",
				     chunk);
			break;
		}
		TRY(block_sink_add(sink, (struct block){ chunk + HEAD, size - WORD,
							 is_used ? BLOCK_USED : BLOCK_FREE }));
		if (chunk == segment->top)
			break;
		chunk += size;
	}
	return NULL;
}

static struct error *lj_alloc_walk(struct heap *base, struct block_sink *sink)
{
	struct lj_heap *heap = of(base);

	for (size_t i = 0; i < heap->segments.count; i++) {
		const struct segment *segment = &heap->segments.items[i];

		TRY(array_append(&base->arenas,
				 (struct arena){ &arena_kinds[segment->is_direct], segment->base,
						 segment->end - segment->base }));
		if (i && segment->base < heap->segments.items[i - 1].end)
			continue;
		TRY(block_sink_region(sink, segment->base, segment->end,
				      base->first_arena + (arena_number)i));
		if (!segment->is_direct)
			TRY(walk_chunks(heap, segment, sink));
		else
			TRY(block_sink_add(sink, (struct block){ segment->base + HEAD,
								 segment->end - segment->base -
									 HEAD - DIRECT_FOOT,
								 BLOCK_USED }));
	}
	return NULL;
}

static unsigned int lj_alloc_free_kind(const struct heap *heap, size_t number, allocation_id id,
				       struct block block)
{
	return block.start == of(heap)->segments.items[number].top + HEAD;
}

/* A chunk that is used may also use the first word of the next. */
static struct memory_range lj_alloc_extent(const struct heap *heap, size_t number,
					   struct block block, const struct free_kind *kind)
{
	return (struct memory_range){ block.start - WORD, block.start + block.size };
}

static bool lj_alloc_size_fits(uint64_t size, uint64_t wanted, bool exactly)
{
	return size - wanted <
	       (uint64_t)(wanted < LEAST_DIRECT ? LEAST_CHUNK : PAGE_BYTES + 2 * DIRECT_FOOT);
}

/* The heap's own state is a chunk. */
static bool lj_alloc_keeps(const struct heap *heap, struct block block)
{
	array_for_each(segment, &of(heap)->segments)
		if (block.start == segment->state)
			return true;
	return false;
}

/* The state stays as a block. Fences at the end of a segment are small numbers. */
static struct error *lj_alloc_visit_structure(const struct heap *heap, program_range_visitor *visit,
					      void *data)
{
	enum { END_BYTES = 128 };
	struct view view = { of(heap)->context.image };

	array_for_each(segment, &of(heap)->segments) {
		if (!segment->place)
			continue;
		TRY(visit(data, segment->place, HEAD));
		for (uint64_t at = segment->end - END_BYTES; at < segment->end; at += WORD)
			if (word_at(&view, at) < LEAST_CHUNK)
				TRY(visit(data, at, WORD));
	}
	return NULL;
}

const struct allocator allocator_lj_alloc = {
	.name = "lj_alloc",
	.summary = "LuaJIT's own malloc",
	.is_private = true,
	.alignment = WORD,
	.arena_kinds = arena_kinds,
	.free_kinds = free_kinds,
	.heap_size = sizeof(struct lj_heap),
	FILL_SLOTS(lj_alloc, open, close, walk, free_kind, extent, size_fits, keeps,
		   visit_structure),
};
