#include "allocators/glibc/describe.h"

#include "allocators/glibc/lists.h"
#include "allocators/glibc/rings.h"
#include "analyzer/base/list.h"

#include <inttypes.h>
#include <string.h>

struct memory_range glibc_extent(const struct heap *base, size_t number, struct block block,
				 const struct free_kind *kind)
{
	const struct glibc_heap *heap = (const struct glibc_heap *)base;
	uint64_t chunk = block.start - heap->header, end = block.start + block.size;

	if (number == heap->arena_count)
		return (struct memory_range){ 0, UINT64_MAX };
	/* The last word of a block is the next chunk's, except of top. */
	if (!kind || !kind->ends_heap)
		end -= glibc_shared(heap);
	return (struct memory_range){ chunk, end };
}

bool glibc_keeps(const struct heap *base, struct block block)
{
	const struct glibc_heap *heap = (const struct glibc_heap *)base;

	return glibc_may_be_cache(block.size + heap->overhead, heap->word) &&
	       number_list_has(&heap->tcaches, block.start);
}

/* The bytes that malloc left out to align the start of a main heap. */
static uint64_t padding_of(const struct glibc_arena *arena)
{
	uint64_t lacks = arena->stated_size - arena->size;

	return arena->main && lacks < ALIGNMENT ? lacks : 0;
}

struct error *glibc_claim_padding(const struct glibc_heap *heap, struct block_sink *sink)
{
	size_t number = 0;

	for (size_t i = 0; i < heap->arena_count; i++) {
		uint64_t base, padding = padding_of(&heap->arenas[i]);

		if (!heap->arenas[i].main)
			continue;
		base = heap->parameters[number++].base;
		/*
		 * If chunks begin at 8 above a multiple of 16, the heap's region includes that
		 * padding.
		 */
		if (padding && base > padding && glibc_offset(heap) == 0)
			TRY(block_sink_claim(sink, base - padding, base));
	}
	return NULL;
}

/* The main arena whose heap begins behind address, or NO_ARENA. */
static size_t find_padded(const struct glibc_heap *heap, uint64_t address)
{
	list_for_each(parameters, heap->parameters, heap->parameters_count) {
		const struct glibc_arena *arena = &heap->arenas[parameters->arena];

		if (parameters->base - address - 1 < padding_of(arena))
			return parameters->arena;
	}
	return NO_ARENA;
}

size_t glibc_holds(const struct heap *base, uint64_t address)
{
	const struct glibc_heap *heap = (const struct glibc_heap *)base;
	const struct glibc_subheap *subheaps = heap->subheaps;
	size_t low = LIST_ABOVE(subheaps, heap->subheap_count, end, address);

	return low < heap->subheap_count && subheaps[low].start <= address
		       ? subheaps[low].arena
		       : find_padded(heap, address);
}

bool glibc_reserved(const struct heap *base, size_t number, struct memory_range *ret)
{
	const struct glibc_heap *heap = (const struct glibc_heap *)base;

	if (number >= heap->subheap_count)
		return false;
	ret->start = heap->subheaps[number].end;
	ret->end = heap->subheaps[number].limit;
	return true;
}

/* True if word is the address of a bin, or anything else in an arena. */
static bool may_be_bin(const struct glibc_heap *heap, uint64_t word)
{
	size_t above;

	if (word < heap->lowest_arena || word >= heap->end_of_arenas)
		return false;
	above = number_list_below(&heap->arena_addresses, word + 1);
	return word - heap->arena_addresses.items[above - 1] < heap->arenas[0].layout->size;
}

/*
 * True if one of the heap's chunks is at word. An object in a nested heap may end like a chunk's
 * header.
 */
static bool is_chunk(const struct glibc_heap *heap, const struct allocation_index *index,
		     uint64_t word)
{
	struct view view = { heap->context.image };
	allocation_id id;
	uint64_t size;

	if (!glibc_may_be_chunk(heap, word))
		return false;
	id = allocation_find(index, word + heap->header);
	return id != NO_ALLOCATION && allocation_start(index, id) == word + heap->header &&
	       view_word(&view, word + heap->word, &size) &&
	       (size & ~FLAGS) - allocation_size(index, id) <= heap->header;
}

/*
 * fd and bk, then fd_nextsize and bk_nextsize of a large chunk. No program points at chunks, whose
 * first word is the last one of the allocation below. A chunk that was split off a large free one
 * keeps its own chunk address: taken for references, such links hide leaks.
 */
unsigned int glibc_stale_links(const struct heap *base, const struct allocation_index *index,
			       uint64_t start, const uint64_t words[4])
{
	const struct glibc_heap *heap = (const struct glibc_heap *)base;
	uint64_t chunk = start - heap->header;
	unsigned int mask = 0;

	mask |= (unsigned int)(words[2] == chunk) << 2;
	mask |= (unsigned int)(words[3] == chunk) << 3;
	/* Nearly all blocks return here. */
	if ((words[0] | words[1]) % (2 * heap->word) != 0 || !words[0] || !words[1])
		return mask;
	if ((may_be_bin(heap, words[0]) || is_chunk(heap, index, words[0])) &&
	    (may_be_bin(heap, words[1]) || is_chunk(heap, index, words[1])))
		mask |= 0x3;
	return mask;
}

/*
 * The memory of an arena that malloc_trim(0) gives back: whole pages within free chunks, and the
 * end of the main heap.
 *
 * The rules are those of mtrim() and systrim() in malloc/malloc.c: fast bins are merged with free
 * chunks beside them, threads' caches are left alone, a free chunk keeps the page that its six
 * words of links reach into, and top keeps a chunk of the least size. The tops of other arenas
 * stay.
 */
enum { LINK_WORDS = 6 /* of struct malloc_chunk */ };

struct search {
	const struct glibc_heap *heap;
	const struct allocation_index *index;
	void (*visit)(void *data, const struct spare *spare);
	void *data;
	const struct heap_region *region;
	const struct glibc_arena *arena;
	uint64_t page; /* bytes, as the kernel has them */
};

static uint64_t whole_below(const struct search *search, uint64_t address)
{
	return address & ~(search->page - 1);
}

static uint64_t whole_above(const struct search *search, uint64_t address)
{
	return whole_below(search, address + search->page - 1);
}

static void tell_spare(const struct search *search, uint64_t start, uint64_t end,
		       enum spare_kind kind)
{
	const struct spare spare = { start, end, kind, search->region->arena };

	if (start < end)
		search->visit(search->data, &spare);
}

/* True if the memory from sbrk() ends at end, since only then it can be given back. */
static bool is_break(const struct search *search, uint64_t top, uint64_t end)
{
	const struct image *image = search->heap->context.image;
	uint64_t address = search->arena->base ? search->arena->base : top;
	const struct region *region;

	while (address <= end && (region = image_find(image, address)) &&
	       (region->rights & RIGHT_WRITE) && !region->mapping)
		address = region->end;
	return address == end;
}

/* The chunk at the end of an arena, merged with free chunks below it. */
static void visit_top(const struct search *search, uint64_t chunk, uint64_t end)
{
	uint64_t size = end - chunk, least = search->heap->minimum;

	if (search->arena->main && is_break(search, chunk, end)) {
		if (size > least + 1)
			tell_spare(search, end - whole_below(search, size - least - 1), end,
				   SPARE_END);
	} else {
		tell_spare(search, whole_above(search, chunk + search->heap->header),
			   whole_below(search, end), SPARE_KEPT);
	}
}

/* Go over the region's free chunks, merging those that touch. */
static void visit_region(const struct search *search)
{
	const struct bitmap *used = allocation_used(search->index);
	const struct bitmap *cached = allocation_cached(search->index);
	size_t last = search->region->first + (size_t)search->region->count;
	uint64_t chunk = 0, end = 0;
	size_t hint = 0;

	for (size_t id = search->region->first; id < last; id++) {
		struct memory_range range;

		if (bitmap_get(used, id) || bitmap_get(cached, id))
			continue;
		range = allocation_range_near(search->index, (allocation_id)id, &hint);
		if (range.start - search->heap->header != end) {
			tell_spare(search,
				   whole_above(search, chunk + LINK_WORDS * search->heap->word),
				   whole_below(search, end), SPARE_INSIDE);
			chunk = range.start - search->heap->header;
		}
		if (range.start - search->heap->header == search->arena->top) {
			visit_top(search, chunk, range.end);
			return;
		}
		/* The last word of a free block belongs to the next chunk. */
		end = range.end - glibc_shared(search->heap);
	}
	tell_spare(search, whole_above(search, chunk + LINK_WORDS * search->heap->word),
		   whole_below(search, end), SPARE_INSIDE);
}

void glibc_visit_spare(const struct heap *base, const struct allocation_index *index,
		       void (*visit)(void *data, const struct spare *spare), void *data)
{
	const struct glibc_heap *heap = (const struct glibc_heap *)base;
	for (size_t i = 0; i < heap_region_count(index); i++) {
		struct search search = { heap, index, visit, data,
					 .page = image_page_size(heap->context.image) };
		arena_number arena;

		search.region = heap_region(index, i);
		arena = search.region->arena - heap->heap.first_arena;
		/* The last one has no free chunks. */
		if (search.region->arena < heap->heap.first_arena || arena >= heap->arena_count)
			continue;
		search.arena = &heap->arenas[arena];
		visit_region(&search);
	}
}

enum { NAME = 64 };

/* "the main arena at 0x..." */
static void name_arena(const struct glibc_arena *arena, char name[NAME])
{
	snprintf(name, NAME, "the %sarena at %#" PRIx64, arena->main ? "main " : "",
		 arena->address);
}

static void tell_arena(const struct glibc_heap *heap, const struct glibc_arena *arena,
		       uint64_t address, char *ret, size_t size)
{
	const struct arena_layout *layout = arena->layout;
	uint64_t offset = address - arena->address;
	char name[NAME];

	name_arena(arena, name);
	if (offset - layout->bins < heap->header * BINS) {
		uint64_t number = (offset - layout->bins) / heap->header + 1;

		snprintf(ret, size, "the %s %" PRIu64 " of %s", glibc_bin_kind(number), number,
			 name);
	} else if (layout->fastbins &&
		   offset - layout->fastbins < (uint64_t)heap->word * glibc_fastbins(heap)) {
		snprintf(ret, size, "the fast bin of size %#" PRIx64 " of %s",
			 glibc_fast_size(heap,
					 (unsigned int)(offset - layout->fastbins) / heap->word),
			 name);
	} else if (offset - layout->top < heap->word) {
		snprintf(ret, size, "the pointer to the free end (top) of %s", name);
	} else {
		snprintf(ret, size, "the control structure of %s", name);
	}
}

/* The arena whose control structure holds address, or NULL. */
static const struct glibc_arena *find_arena(const struct glibc_heap *heap, uint64_t address)
{
	list_for_each(arena, heap->arenas, heap->arena_count) {
		if (arena->address && address - arena->address < arena->layout->size)
			return arena;
	}
	return NULL;
}

static bool tell_head(const struct glibc_heap *heap, uint64_t address, char *ret, size_t size)
{
	char name[NAME];

	list_for_each(subheap, heap->subheaps, heap->subheap_count) {
		if (address < subheap->start || address >= subheap->first)
			continue;
		name_arena(&heap->arenas[subheap->arena], name);
		snprintf(ret, size, "the head of a heap of %s", name);
		return true;
	}
	return false;
}

static bool is_in_arena(const struct glibc_heap *heap, uint64_t address)
{
	return find_arena(heap, address) != NULL;
}

static bool tell_bin(const struct glibc_heap *heap, uint64_t chunk, char *ret, size_t size)
{
	uint64_t head = glibc_ring_head(heap, chunk, is_in_arena);

	if (!head)
		return false;
	/* The head's links are behind the header of a chunk that it seems to be. */
	memcpy(ret, "in ", sizeof("in "));
	tell_arena(heap, find_arena(heap, head), head + heap->header, ret + 3, size - 3);
	return true;
}

static bool tell_top(const struct glibc_heap *heap, uint64_t chunk, char *ret, size_t size)
{
	char name[NAME];

	for (size_t i = 0; i < heap->arena_count; i++) {
		if (heap->arenas[i].top != chunk)
			continue;
		name_arena(&heap->arenas[i], name);
		snprintf(ret, size, "the free end (top) of %s", name);
		return true;
	}
	return false;
}

static bool tell_cache(const struct glibc_heap *heap, uint64_t chunk, char *ret, size_t size)
{
	const struct program *program = heap->context.program;
	uint32_t thread;
	uint64_t tcache;

	if (!glibc_find_cache(heap, chunk + heap->header, &tcache, &thread))
		return false;
	if (thread == NO_THREAD)
		snprintf(ret, size, "in the cache at %#" PRIx64 " of a thread", tcache);
	else
		snprintf(ret, size, "in the cache at %#" PRIx64 " of thread %u", tcache,
			 program->threads[thread].id);
	return true;
}

static bool tell_fast(const struct glibc_heap *heap, uint64_t chunk, char *ret, size_t size)
{
	struct view view = { heap->context.image };
	uint64_t header;

	if (!number_list_has(&heap->fast, chunk) || !view_word(&view, chunk + heap->word, &header))
		return false;
	snprintf(ret, size, "in a fast bin of size %#" PRIx64, header_size(header));
	return true;
}

bool glibc_tell(const struct heap *base, uint64_t address, char *ret, size_t size)
{
	const struct glibc_heap *heap = (const struct glibc_heap *)base;
	const struct glibc_arena *arena = find_arena(heap, address);
	uint64_t chunk = address - heap->header;

	if (arena) {
		tell_arena(heap, arena, address, ret, size);
		return true;
	}
	return tell_head(heap, address, ret, size) || tell_top(heap, chunk, ret, size) ||
	       tell_cache(heap, chunk, ret, size) || tell_fast(heap, chunk, ret, size) ||
	       tell_bin(heap, chunk, ret, size);
}
