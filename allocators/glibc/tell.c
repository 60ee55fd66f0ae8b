#include "allocators/glibc/tell.h"

#include "allocators/glibc/bins.h"
#include "allocators/glibc/lists.h"
#include "allocators/glibc/rings.h"

#include <inttypes.h>
#include <string.h>

enum { NAME = 64 };

/* "the main arena at 0x..." */
static void name_arena(const struct glibc_arena *arena, char name[NAME])
{
	snprintf(name, NAME, "the %sarena at %#" PRIx64, arena->main ? "main " : "",
		 arena->address);
}

static void tell_arena(const struct glibc_arena *arena, uint64_t address, char *ret, size_t size)
{
	const struct arena_layout *layout = arena->layout;
	uint64_t offset = address - arena->address;
	char name[NAME];

	name_arena(arena, name);
	if (offset - layout->bins < UINT64_C(16) * BINS) {
		uint64_t number = (offset - layout->bins) / 16 + 1;

		snprintf(ret, size, "the %s %" PRIu64 " of %s", glibc_bin_kind(number), number,
			 name);
	} else if (layout->fastbins && offset - layout->fastbins < UINT64_C(8) * FASTBINS) {
		snprintf(ret, size, "the fast bin of size %#" PRIx64 " of %s",
			 (offset - layout->fastbins) / 8 * 16 + MINIMUM_CHUNK, name);
	} else if (offset - layout->top < 8) {
		snprintf(ret, size, "the pointer to the free end (top) of %s", name);
	} else {
		snprintf(ret, size, "the control structure of %s", name);
	}
}

/* The arena whose control structure holds address, or NULL. */
static const struct glibc_arena *find_arena(const struct glibc_heap *heap, uint64_t address)
{
	for (size_t i = 0; i < heap->arena_count; i++) {
		const struct glibc_arena *arena = &heap->arenas[i];

		if (arena->address && address - arena->address < arena->layout->size)
			return arena;
	}
	return NULL;
}

static bool tell_head(const struct glibc_heap *heap, uint64_t address, char *ret, size_t size)
{
	char name[NAME];

	for (size_t i = 0; i < heap->subheap_count; i++) {
		const struct glibc_subheap *subheap = &heap->subheaps[i];

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
	/* The head's own links stand behind what it pretends to be. */
	memcpy(ret, "in ", sizeof("in "));
	tell_arena(find_arena(heap, head), head + HEADER, ret + 3, size - 3);
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

	if (!glibc_find_cache(heap, chunk + HEADER, &tcache, &thread))
		return false;
	if (thread == NO_THREAD)
		snprintf(ret, size, "in the cache at %#" PRIx64 " of a thread", tcache);
	else
		snprintf(ret, size, "in the cache at %#" PRIx64 " of thread %u", tcache,
			 program_thread(program, thread)->id);
	return true;
}

static bool tell_fast(const struct glibc_heap *heap, uint64_t chunk, char *ret, size_t size)
{
	struct view view = { heap->context.image };
	uint64_t header;

	if (!number_list_has(&heap->fast, chunk) || !view_word(&view, chunk + 8, &header))
		return false;
	snprintf(ret, size, "in a fast bin of size %#" PRIx64, header & ~(uint64_t)FLAGS);
	return true;
}

bool glibc_tell_address(const struct glibc_heap *heap, uint64_t address, char *ret, size_t size)
{
	const struct glibc_arena *arena = find_arena(heap, address);
	uint64_t chunk = address - HEADER;

	if (arena) {
		tell_arena(arena, address, ret, size);
		return true;
	}
	return tell_head(heap, address, ret, size) || tell_top(heap, chunk, ret, size) ||
	       tell_cache(heap, chunk, ret, size) || tell_fast(heap, chunk, ret, size) ||
	       tell_bin(heap, chunk, ret, size);
}
