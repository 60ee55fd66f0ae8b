/*
 * Caches of threads (tcache.h): each is in a ring that its arena leads to.
 *
 *	| next, previous | 24 bytes | bins, of 32 bytes each | stacks |
 *
 * A bin: requests, low water, fill, count, and where its stack ends (4.5) or begins (3.6).
 */
#include "allocators/jemalloc4/jemalloc4.h"

#include "analyzer/base/sort.h"

enum {
	BINS_AT = 40,
	BIN_BYTES = 32,
	BIN_COUNT = 16,
	BIN_STACK = 24,
	CACHE_BYTES = 1 << 17, /* at most */
	MOST_CACHED = 1 << 13,
	MOST_BINS = 128,
	MOST_CACHES = 1 << 20,
	ARENA_BYTES = 4096, /* in which it leads to a cache */
};

struct cache_search {
	struct jemalloc4_heap *heap;
	struct view view;
	size_t caches;
};

struct bin {
	uint64_t first, count, stack;
};

static bool read_bin(struct cache_search *search, uint64_t cache, unsigned int number,
		     struct bin *ret)
{
	uint64_t words[BIN_BYTES / 8], count;

	if (!view_read(&search->view, cache + BINS_AT + (uint64_t)BIN_BYTES * number, words,
		       sizeof(words)))
		return false;
	count = (uint32_t)words[BIN_COUNT / 8];
	*ret = (struct bin){ words[BIN_STACK / 8], count, words[BIN_STACK / 8] };
	if (search->heap->form->is_rising)
		ret->first -= 8 * count;
	return count <= MOST_CACHED && ret->stack % 8 == 0 && ret->first > cache &&
	       ret->stack - cache <= CACHE_BYTES;
}

/* How many bins the cache has: their stacks rise, and begin behind the last. */
static unsigned int count_bins(struct cache_search *search, uint64_t cache)
{
	uint64_t last = 0, first = UINT64_MAX;
	unsigned int count = 0;
	struct bin bin;

	while (count < MOST_BINS && cache + BINS_AT + (uint64_t)BIN_BYTES * (count + 1) <= first &&
	       read_bin(search, cache, count, &bin) && bin.stack > last) {
		first = bin.first < first ? bin.first : first;
		last = bin.stack;
		count++;
	}
	return count >= search->heap->layout.small_count ? count : 0;
}

/* Whether an allocation of the bin's class begins there, or in the first page of a large one. */
static bool is_of_bin(const struct jemalloc4_heap *heap, unsigned int bin, uint64_t address,
		      struct memory_range *ret)
{
	const struct run *run = jemalloc4_find_run(heap, address);

	if (!run || !jemalloc4_find_region(heap, address, ret))
		return false;
	if (run->kind == RUN_SMALL)
		return run->class == bin && ret->start == address;
	return run->kind == RUN_LARGE && bin >= heap->layout.small_count &&
	       address - run->start < PAGE;
}

static struct error *add_bin(struct cache_search *search, unsigned int number,
			     const struct bin *bin)
{
	struct jemalloc4_heap *heap = search->heap;
	const size_t first = heap->cached.count;

	for (uint64_t i = 0; i < bin->count; i++) {
		struct memory_range range;
		uint64_t word;

		if (view_word(&search->view, bin->first + 8 * i, &word) &&
		    is_of_bin(heap, number, word, &range))
			TRY(array_append(&heap->cached, range.start));
		else
			heap_damage_note(&heap->strangers, bin->first + 8 * i);
	}
	SORT(heap->cached.items + first, heap->cached.count - first, compare_u64);
	for (size_t i = first + 1; i < heap->cached.count; i++)
		if (heap->cached.items[i] == heap->cached.items[i - 1])
			heap_damage_note(&heap->lists.twice, heap->cached.items[i]);
	return NULL;
}

static struct error *add_cache(struct cache_search *search, uint64_t cache)
{
	unsigned int count = count_bins(search, cache);
	struct memory_range range;
	struct bin bin;

	search->caches++;
	for (unsigned int i = 0; i < count; i++)
		if (read_bin(search, cache, i, &bin))
			TRY(add_bin(search, i, &bin));
	if (jemalloc4_find_region(search->heap, cache, &range))
		TRY(array_append(&search->heap->own, range.start));
	return NULL;
}

static bool is_cache(struct cache_search *search, uint64_t address, uint64_t *ret_next)
{
	uint64_t previous;

	return address >= PAGE && address % METADATA_UNIT == 0 &&
	       view_word(&search->view, address, ret_next) && *ret_next >= PAGE &&
	       view_word(&search->view, *ret_next + 8, &previous) && previous == address &&
	       count_bins(search, address) > 0;
}

static struct error *add_ring(struct cache_search *search, uint64_t first)
{
	uint64_t cache = first, next;

	do {
		if (!is_cache(search, cache, &next))
			return NULL;
		TRY(add_cache(search, cache));
		TRY(progress_check(search->heap->context.progress, 0));
		cache = next;
	} while (cache != first && search->caches < MOST_CACHES);
	return NULL;
}

static struct error *search_arena(struct cache_search *search, uint64_t arena)
{
	struct view words = { search->heap->context.image };
	uint64_t word, next;

	for (uint64_t at = arena; at < arena + ARENA_BYTES; at += 8)
		if (view_word(&words, at, &word) && is_cache(search, word, &next))
			return add_ring(search, word);
	return NULL;
}

struct error *jemalloc4_find_caches(struct jemalloc4_heap *heap)
{
	struct cache_search search = { heap, { heap->context.image }, 0 };

	array_for_each(arena, &heap->arenas)
		TRY(search_arena(&search, arena->address));
	SORT(heap->cached.items, heap->cached.count, compare_u64);
	SORT(heap->own.items, heap->own.count, compare_u64);
	return NULL;
}
