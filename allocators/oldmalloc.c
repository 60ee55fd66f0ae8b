/*
 * musl's malloc up to 1.2.0 (oldmalloc).
 *
 * Nothing is needed but the dump's memory: no symbols, no debug information. See
 * oldmalloc/oldmalloc.h for the layouts, oldmalloc/search.c for how the heap is found.
 */
#include "allocators/oldmalloc/oldmalloc.h"

#include <inttypes.h>

static void oldmalloc_close(struct heap *heap)
{
	free(heap);
}

static void cleanup_oldmalloc_close(struct oldmalloc_heap **heap)
{
	if (*heap)
		oldmalloc_close(&(*heap)->heap);
}

static struct error *oldmalloc_open(const struct heap_context *context, struct heap **ret)
{
	_cleanup_(oldmalloc_close) struct oldmalloc_heap *heap = calloc(1, sizeof(*heap));
	bool found;

	if (!heap)
		return &error_no_memory;
	heap->context = *context;
	TRY(oldmalloc_search(heap, &found));
	*ret = found ? &take(heap)->heap : NULL;
	return NULL;
}

static void report(const struct oldmalloc_heap *heap, struct findings *findings)
{
	if (heap->sizes.count > 0)
		findings_add(
			findings, FINDING_INCOMPLETE,
			"oldmalloc: chunks whose size the next chunk contradicts: %" PRIu64
			", the first at %#" PRIx64 ", with %#" PRIx64 " in its header and %#" PRIx64
			" in the next one; what has no size is not counted",
			heap->sizes.count, heap->sizes.first, heap->wrong_size, heap->stated_size);
	heap_damage_report(&heap->links, findings, "oldmalloc",
			   "free chunks to which the list of their bin does not lead",
			   "they count as free");
}

static struct error *oldmalloc_walk(struct heap *base, arena_number first, struct block_sink *sink)
{
	struct oldmalloc_heap *heap = (struct oldmalloc_heap *)base;

	TRY(block_sink_claim(sink, heap->mask, bins_end(heap->mask)));
	TRY(oldmalloc_add_blocks(heap, first, sink));
	report(heap, heap->context.findings);
	return NULL;
}

static const struct arena_kind oldmalloc_arena_kinds[] = {
	[OLDMALLOC_HEAP] = { .name = "heap", .group = "The heap of musl" },
	[OLDMALLOC_MAPPED] = { .name = "mmapped",
			       .group = "Single mappings of musl",
			       .used = "used, mmapped" },
	{ NULL },
};

static const struct free_kind oldmalloc_free_kinds[] = {
	{ "bin" },
	{ NULL },
};

static size_t oldmalloc_arena_count(const struct heap *base)
{
	return OLDMALLOC_ARENAS;
}

static struct arena oldmalloc_arena(const struct heap *base, size_t number)
{
	const struct oldmalloc_heap *heap = (const struct oldmalloc_heap *)base;

	return (struct arena){ .kind = &oldmalloc_arena_kinds[number],
			       .address = number == OLDMALLOC_HEAP ? heap->mask : 0,
			       .size = heap->bytes[number] };
}

/* The chunk; of a mapped one, the mapping. */
static struct memory_range oldmalloc_extent(const struct heap *base, size_t number,
					    struct block block, const struct free_kind *kind)
{
	const struct oldmalloc_heap *heap = (const struct oldmalloc_heap *)base;
	uint64_t chunk = block.start - CHUNK_HEADER, before;

	if (number == OLDMALLOC_MAPPED && image_read_u64(heap->context.image, chunk, &before))
		chunk -= before;
	return (struct memory_range){ chunk, block.start + block.size };
}

/* Chunks are multiples of their unit with the header; mapped ones of pages. */
static bool oldmalloc_size_fits(uint64_t size, uint64_t wanted, bool exactly)
{
	uint64_t more = size - wanted;

	if (more < CHUNK_UNIT)
		return true;
	return (size + 2 * CHUNK_HEADER) % PAGE == 0 && more < PAGE + CHUNK_UNIT;
}

static bool may_be_link(const struct oldmalloc_heap *heap, uint64_t word)
{
	return (word % CHUNK_UNIT == CHUNK_HEADER && word >= heap->start && word < heap->end) ||
	       (word >= bin_chunk(heap, 0) && word < bins_end(heap->mask));
}

/*
 * A block that was free begins with links to headers of chunks, which may be inside of others by
 * now. In a list of the program's own, the neighbours lead back.
 */
static unsigned int oldmalloc_stale_links(const struct heap *base,
					  const struct allocation_index *index, uint64_t start,
					  const uint64_t words[4])
{
	const struct oldmalloc_heap *heap = (const struct oldmalloc_heap *)base;
	const struct image *image = heap->context.image;
	uint64_t back;

	if (!may_be_link(heap, words[0]) || !may_be_link(heap, words[1]) ||
	    (image_read_u64(image, words[0] + 8, &back) && back == start) ||
	    (image_read_u64(image, words[1], &back) && back == start))
		return 0;
	return 0x3;
}

static bool oldmalloc_lives_in(const struct heap *base, uint64_t start, uint64_t end)
{
	const struct oldmalloc_heap *heap = (const struct oldmalloc_heap *)base;

	return heap->module_start == start && heap->module_end == end;
}

static bool oldmalloc_tell(const struct heap *base, uint64_t address, char *ret, size_t size)
{
	const struct oldmalloc_heap *heap = (const struct oldmalloc_heap *)base;
	uint64_t own;

	if (address - heap->mask < BINS_AT) {
		snprintf(ret, size, "the mask of bins with free chunks");
		return true;
	}
	if (address - heap->mask < bins_end(heap->mask) - heap->mask) {
		snprintf(ret, size, "in bin %u of free chunks",
			 (unsigned int)((address - heap->mask - BINS_AT) / BIN_BYTES));
		return true;
	}
	if (address % CHUNK_UNIT != 0 || !image_read_u64(heap->context.image, address - 8, &own) ||
	    own < CHUNK_UNIT || (own & CHUNK_USED))
		return false;
	snprintf(ret, size, "a chunk of bin %u", oldmalloc_bin(own));
	return true;
}

const struct allocator allocator_oldmalloc = {
	.name = "oldmalloc",
	.summary = "musl's malloc up to 1.2.0",
	.alignment = CHUNK_HEADER,
	.open = oldmalloc_open,
	.walk = oldmalloc_walk,
	.close = oldmalloc_close,
	.arena_count = oldmalloc_arena_count,
	.arena = oldmalloc_arena,
	.arena_kinds = oldmalloc_arena_kinds,
	.free_kinds = oldmalloc_free_kinds,
	.extent = oldmalloc_extent,
	.size_fits = oldmalloc_size_fits,
	.stale_links = oldmalloc_stale_links,
	.links_lead_anywhere = true,
	.lives_in = oldmalloc_lives_in,
	.tell = oldmalloc_tell,
};
