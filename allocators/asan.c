/* AddressSanitizer, see asan/asan.h. */
#include "allocators/asan/asan.h"
#include "analyzer/base/sort.h"
#include "analyzer/program/symbols.h"

enum {
	SPACING_SHIFT = 36, /* of the memory for each size */
	WORD = 8,
	PAGE_BYTES = 4096,
	LARGE_WORDS = 4, /* that describe a large chunk */
	MOST_LARGE = 1 << 20,
};

static const uint64_t MAGIC = 0xcc6e96b9cc6e96b9, SPACING = UINT64_C(1) << SPACING_SHIFT;

enum { FREE_QUARANTINE, FREE_CHUNK };

static const struct free_kind asan_free_kinds[] = {
	[FREE_QUARANTINE] = { "quarantine" },
	[FREE_CHUNK] = { "free chunks" },
	{ NULL },
};

static const struct asan_heap *of(const struct heap *heap)
{
	return (const struct asan_heap *)heap;
}

/* Multiples of 16 up to 256, then four for each doubling. */
static uint64_t class_size(unsigned int number)
{
	enum { LINEAR = 16, LEAST = 16, STEPS_SHIFT = 2, STEPS = 3 };
	uint64_t power;

	if (number <= LINEAR)
		return (uint64_t)LEAST * number;
	number -= LINEAR;
	power = (uint64_t)LEAST * LINEAR << (number >> STEPS_SHIFT);
	return power + (power >> STEPS_SHIFT) * (number & STEPS);
}

struct asan_chunk asan_read_chunk(struct view *view, uint64_t start, uint64_t end)
{
	struct asan_chunk chunk = { start + ASAN_HEADER, end - start - ASAN_HEADER, 0,
				    ASAN_DAMAGED };
	uint64_t header = start, words[2], size;

	if (!view_read(view, start, words, sizeof(words)))
		return chunk;
	if (words[0] == MAGIC) {
		header = words[1];
		if (header % WORD != 0 || header - start >= end - start - ASAN_HEADER ||
		    !view_read(view, header, words, sizeof(words)))
			return chunk;
	}
	size = words[0] >> 32 | (words[0] >> 16 & UINT16_MAX) << 32;
	switch (words[0] & UINT8_MAX) {
	case ASAN_USED:
	case ASAN_QUARANTINED:
		if (size == 0 || size > end - header - ASAN_HEADER)
			return chunk;
		return (struct asan_chunk){ header + ASAN_HEADER, size, (uint32_t)words[1],
					    words[0] & UINT8_MAX };
	default:
		chunk.state = ASAN_FREE;
		return chunk;
	}
}

struct error *asan_visit_class(const struct asan_heap *heap, unsigned int number,
			       asan_visitor *visit, void *data)
{
	const struct image *image = heap->context.image;
	uint64_t size = class_size(number), at = heap->space + SPACING * number, skipped;
	struct view view = { image };

	for (; at < heap->ends[number] && size <= heap->ends[number] - at; at += size) {
		struct asan_chunk chunk;

		skipped = image_next_data(image, at) - at;
		if (skipped >= size) {
			at += skipped / size * size - size;
			continue;
		}
		chunk = asan_read_chunk(&view, at, at + size);
		TRY(visit(data, &chunk));
	}
	return NULL;
}

/* The end of the memory at start that can be written to, and that the core has. */
static uint64_t find_end(const struct image *image, uint64_t start, uint64_t end)
{
	const struct region *region = image_find(image, start);
	uint64_t at = start;

	for (; at < end && region && (region->rights & RIGHT_WRITE) && region->bytes;
	     region = image_find(image, at))
		at = MIN(region->end, end);
	return at;
}

struct votes {
	uint64_t right, wrong;
};

static struct error *vote(void *data, const struct asan_chunk *chunk)
{
	struct votes *votes = data;

	votes->right += chunk->state == ASAN_USED || chunk->state == ASAN_QUARANTINED;
	votes->wrong += chunk->state == ASAN_DAMAGED;
	return NULL;
}

/* Find the sizes that are in use, if the space begins there. */
static struct error *find_space(struct asan_heap *heap, uint64_t space, bool *ret)
{
	struct votes votes = { 0 };

	heap->space = space;
	for (unsigned int i = 1; i < ASAN_CLASSES; i++) {
		uint64_t start = space + SPACING * i;
		uint64_t end = find_end(heap->context.image, start, start + SPACING - SPACING / 16);

		heap->ends[i] = end;
		if (end == start)
			continue;
		TRY(asan_visit_class(heap, i, vote, &votes));
		TRY(array_append(&heap->heap.owned, (struct memory_range){ start, end }));
	}
	*ret = votes.right > votes.wrong;
	return NULL;
}

/* Read the page that describes a large chunk: mapping's start and size, size, place in the list. */
static bool read_large(struct view *view, uint64_t page, uint64_t place, struct asan_large *ret)
{
	uint64_t words[LARGE_WORDS];

	if (!page || page % PAGE_BYTES != 0 || !view_read(view, page, words, sizeof(words)) ||
	    words[3] != place || words[0] % PAGE_BYTES != 0 || words[1] % PAGE_BYTES != 0 ||
	    words[2] > words[1] || page - words[0] >= words[1] || words[0] > UINT64_MAX - words[1])
		return false;
	*ret = (struct asan_large){ words[0], words[0] + words[1], page + PAGE_BYTES };
	return ret->chunk < ret->end &&
	       asan_read_chunk(view, ret->chunk, ret->end).state != ASAN_DAMAGED;
}

/* Read the list at address; a describing page may begin with its own address. */
static struct error *read_list(struct asan_heap *heap, uint64_t address)
{
	struct view list = { heap->context.image }, larges = list;
	struct asan_large large;
	uint64_t page;

	for (uint64_t i = 0; i < MOST_LARGE && view_word(&list, address + WORD * i, &page) &&
			     page != address && read_large(&larges, page, i, &large);
	     i++) {
		TRY(array_append(&heap->larges, large));
		TRY(array_append(&heap->heap.owned,
				 (struct memory_range){ large.start, large.end }));
	}
	return NULL;
}

DEFINE_COMPARE(compare_larges, struct asan_large, ASCENDING(start))

/* Search each page of memory that is no file's. */
static struct error *find_larges(struct asan_heap *heap)
{
	const struct image *image = heap->context.image;

	list_for_each(region, image->regions, image->region_count) {
		if (!region->bytes || !(region->rights & RIGHT_WRITE) ||
		    region->start - heap->space < SPACING * ASAN_CLASSES)
			continue;
		for (uint64_t at = region->start; at < region->end && !heap->larges.count;
		     at += PAGE_BYTES) {
			at = image_next_data(image, at) & ~(uint64_t)(PAGE_BYTES - 1);
			if (at < region->end)
				TRY(read_list(heap, at));
		}
	}
	array_sort(&heap->larges, compare_larges);
	return NULL;
}

static const struct module *find_module(const struct heap_context *context)
{
	const struct program *program = context->program;

	list_for_each(module, program->modules, program->module_count)
		if (module_exports(context->image, module, "__asan_init"))
			return module;
	return NULL;
}

static struct error *asan_open(struct heap *base, const struct heap_context *context, bool *ret)
{
	static const uint64_t spaces[] = { 0x600000000000, 0x500000000000 };
	struct asan_heap *heap = (struct asan_heap *)base;

	heap->context = *context;
	arrays_use(context->account, &heap->larges);
	heap->module = find_module(context);
	for (size_t i = 0; heap->module && i < COUNT_OF(spaces) && !*ret; i++) {
		heap->heap.owned.count = 0;
		TRY(find_space(heap, spaces[i], ret));
	}
	return *ret ? find_larges(heap) : NULL;
}

static void asan_close(struct heap *base)
{
	array_release(&((struct asan_heap *)base)->larges);
}

struct walk {
	struct asan_heap *heap;
	struct block_sink *sink;
};

static struct error *add_chunk(void *data, const struct asan_chunk *chunk)
{
	struct walk *walk = data;
	bool is_used = chunk->state == ASAN_USED || chunk->state == ASAN_DAMAGED;

	if (chunk->state == ASAN_DAMAGED)
		heap_damage_note(&walk->heap->heads, chunk->start);
	if (chunk->size == 0)
		return NULL;
	return block_sink_add(walk->sink, (struct block){ chunk->start, chunk->size,
							  is_used ? BLOCK_USED : BLOCK_FREE });
}

static const struct arena_kind asan_arena_kinds[] = {
	{ .name = "asan", .group = "The heap of AddressSanitizer" },
	{ NULL },
};

static struct error *asan_walk(struct heap *base, struct block_sink *sink)
{
	struct asan_heap *heap = (struct asan_heap *)base;
	struct walk walk = { heap, sink };
	struct view view = { heap->context.image };
	struct arena arena = { .kind = asan_arena_kinds };

	TRY(block_sink_claim(sink, ASAN_SHADOW_START, ASAN_SHADOW_END));
	for (unsigned int i = 1; i < ASAN_CLASSES; i++) {
		uint64_t start = heap->space + SPACING * i;

		if (heap->ends[i] <= start)
			continue;
		arena.size += heap->ends[i] - start;
		TRY(block_sink_region(sink, start, heap->ends[i], base->first_arena));
		TRY(asan_visit_class(heap, i, add_chunk, &walk));
	}
	array_for_each(large, &heap->larges) {
		struct asan_chunk chunk = asan_read_chunk(&view, large->chunk, large->end);

		arena.size += large->end - large->start;
		TRY(block_sink_region(sink, large->start, large->end, base->first_arena));
		TRY(add_chunk(&walk, &chunk));
	}
	heap_damage_report(&heap->heads, heap->context.findings, "AddressSanitizer",
			   "chunks whose header makes no sense", "they count as used");
	return array_append(&base->arenas, arena);
}

static unsigned int asan_free_kind(const struct heap *heap, size_t number, allocation_id id,
				   struct block block)
{
	uint8_t state;

	return image_read(of(heap)->context.image, block.start - ASAN_HEADER, &state, 1) &&
			       state == ASAN_QUARANTINED
		       ? FREE_QUARANTINE
		       : FREE_CHUNK;
}

bool asan_find_extent(const struct asan_heap *heap, uint64_t address, struct memory_range *ret)
{
	uint64_t offset = address - heap->space, class = offset >> SPACING_SHIFT, size;
	size_t i = LIST_ABOVE(heap->larges.items, heap->larges.count, end, address);

	if (i < heap->larges.count && heap->larges.items[i].start <= address) {
		*ret = (struct memory_range){ heap->larges.items[i].start,
					      heap->larges.items[i].end };
		return true;
	}
	if (class == 0 || class >= ASAN_CLASSES || address >= heap->ends[class])
		return false;
	size = class_size((unsigned int)class);
	ret->start = address - offset % SPACING % size;
	ret->end = ret->start + size;
	return true;
}

static struct memory_range asan_extent(const struct heap *heap, size_t number, struct block block,
				       const struct free_kind *kind)
{
	struct memory_range extent = { block.start, block.start + block.size };

	asan_find_extent(of(heap), block.start, &extent);
	return extent;
}

static bool asan_size_fits(uint64_t size, uint64_t wanted, bool exactly)
{
	return size == (wanted ? wanted : 1);
}

static bool asan_lives_in(const struct heap *heap, uint64_t start, uint64_t end)
{
	return of(heap)->module->start - start < end - start;
}

struct visitor {
	const struct asan_heap *heap;
	program_range_visitor *visit;
	void *data;
	struct view view;
};

/* Visit a chunk's header, and what leads there, and to the stack that allocated it. */
static struct error *visit_chunk(void *data, const struct asan_chunk *chunk)
{
	struct visitor *visitor = data;
	struct memory_range extent;
	uint64_t first;

	if (chunk->state != ASAN_USED && chunk->state != ASAN_QUARANTINED)
		return NULL;
	TRY(visitor->visit(visitor->data, chunk->start - ASAN_HEADER, ASAN_HEADER));
	if (asan_find_extent(visitor->heap, chunk->start, &extent) &&
	    view_word(&visitor->view, extent.start, &first) && first == MAGIC)
		TRY(visitor->visit(visitor->data, extent.start, sizeof(first)));
	return chunk->stack ? asan_visit_trace(visitor->heap, &visitor->view, chunk->stack,
					       visitor->visit, visitor->data)
			    : NULL;
}

static struct error *visit_large(struct visitor *visitor, const struct asan_large *large)
{
	struct asan_chunk chunk = asan_read_chunk(&visitor->view, large->chunk, large->end);
	uint64_t first;

	TRY(visitor->visit(visitor->data, large->chunk - PAGE_BYTES, LARGE_WORDS * WORD));
	if (view_word(&visitor->view, large->chunk, &first) && first == MAGIC)
		TRY(visitor->visit(visitor->data, large->chunk, sizeof(first)));
	return visit_chunk(visitor, &chunk);
}

static struct error *asan_visit_structure(const struct heap *heap, program_range_visitor *visit,
					  void *data)
{
	struct visitor visitor = { of(heap), visit, data, { of(heap)->context.image } };

	for (unsigned int i = 1; i < ASAN_CLASSES; i++)
		TRY(asan_visit_class(of(heap), i, visit_chunk, &visitor));
	array_for_each(large, &of(heap)->larges)
		TRY(visit_large(&visitor, large));
	return NULL;
}

const struct allocator allocator_asan = {
	.name = "asan",
	.summary = "AddressSanitizer of GCC 12 and Clang 14 or later, on x86-64",
	.alignment = 16,
	.heap_size = sizeof(struct asan_heap),
	.noting = &asan_noting,
	FILL_SLOTS(asan, open, walk, close, arena_kinds, free_kinds, free_kind, extent, size_fits,
		   lives_in, visit_structure),
	.visits_heads = true,
};
