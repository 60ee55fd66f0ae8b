/*
 * The caches of threads.
 *
 * For tools, the program has a variable of two magic words around the address of the list of
 * caches: the list's first four words have the first cache. Each is a slot of a root that nothing
 * else uses:
 *
 *	| statistics | buckets | root | thread | next cache | ...
 *	bucket	| first slot | number 8, limit 8, slot size 16 |
 *
 * Buckets begin with slots of 16, 32 and 48 bytes, and end where the root is named.
 */
#include "allocators/partition_alloc/partition_alloc.h"
#include "analyzer/base/budget.h"
#include "analyzer/base/sort.h"
#include "analyzer/program/module_words.h"

enum {
	REGISTRY_WORDS = 4,
	CACHE_WORDS = 512,
	BUCKET_WORDS = 2,
	MOST_STATISTICS = 64, /* words */
	MOST_CACHES = 1 << 16,
	LEAST_SLOT = 16,
};

static const uint64_t NEEDLE = 0x0e69e32f3ad9ea63, SECOND_NEEDLE = 0x9615ee1c5eb14caf;

struct cache_search {
	struct pa_heap *heap;
	struct view view, slots;
	uint64_t list;
	struct budget left; /* slots: no more than there can be */
};

static struct error *look_for_needle(void *data, uint64_t where, uint64_t word)
{
	struct cache_search *search = data;
	uint64_t words[4];

	if (word != NEEDLE || search->list)
		return NULL;
	for (size_t i = 2; i < COUNT_OF(words); i++)
		if (view_word(&search->view, where + i * PA_WORD, &word) && word == SECOND_NEEDLE)
			view_word(&search->view, where + PA_WORD, &search->list);
	return NULL;
}

static unsigned int slot_size_of(const uint64_t *bucket)
{
	return bucket[1] >> 16 & UINT16_MAX;
}

static bool is_root(const struct pa_heap *heap, uint64_t address)
{
	array_for_each(root, &heap->roots)
		if (root->address == address)
			return true;
	return false;
}

/* A link is an address, or an offset in a pool of 16 or 8 GiB. */
static const struct pa_span *follow(const struct pa_heap *heap, uint64_t from, uint64_t link,
				    uint64_t slot_size, uint64_t *ret)
{
	static const unsigned int pool_shifts[] = { 64, 34, 33 };

	for (size_t i = 0; i < COUNT_OF(pool_shifts); i++) {
		uint64_t shift = pool_shifts[i];
		uint64_t slot = shift == 64 ? link : (from >> shift << shift) + link;
		const struct pa_span *span = pa_find_span(heap, slot);

		if (!span || span->slot_size != slot_size ||
		    (slot - span->start) % slot_size != 0 ||
		    (slot - span->start) / slot_size >= span->slots)
			continue;
		*ret = slot;
		return span;
	}
	return NULL;
}

static struct error *read_slots(struct cache_search *search, const uint64_t *bucket,
				uint32_t thread, uint64_t cache)
{
	struct pa_heap *heap = search->heap;
	uint64_t slot = 0, link = bucket[0];
	unsigned int count = bucket[1] & UINT8_MAX;
	bool absent = false;

	for (; count && link && follow(heap, slot, link, slot_size_of(bucket), &slot) &&
	       budget_take(&search->left);
	     count--) {
		TRY(array_append(&heap->cached, (struct pa_cached){ slot, thread }));
		if (!pa_read_link(&search->slots, slot, &link, &absent))
			break;
	}
	if (count && !absent)
		heap_damage_note(&heap->lengths, cache);
	return NULL;
}

/* The place of the first bucket, or CACHE_WORDS. */
static size_t find_buckets(const uint64_t *words)
{
	for (size_t i = 0; i < MOST_STATISTICS; i++)
		if (slot_size_of(&words[i]) == LEAST_SLOT &&
		    slot_size_of(&words[i + BUCKET_WORDS]) == 2 * LEAST_SLOT &&
		    slot_size_of(&words[i + 2 * BUCKET_WORDS]) == 3 * LEAST_SLOT)
			return i;
	return CACHE_WORDS;
}

/* Read a cache; *ret_next is the next one, or 0. */
static struct error *read_cache(struct cache_search *search, uint64_t address, uint64_t *ret_next)
{
	struct pa_heap *heap = search->heap;
	uint64_t words[CACHE_WORDS];
	size_t first, end, known = 0;

	*ret_next = 0;
	while (known < CACHE_WORDS &&
	       view_word(&search->view, address + known * PA_WORD, &words[known]))
		known++;
	memset(&words[known], 0, (CACHE_WORDS - known) * PA_WORD);
	end = first = find_buckets(words);
	while (end + 2 * BUCKET_WORDS <= known && !is_root(heap, words[end]))
		end += BUCKET_WORDS;
	if (end + 2 * BUCKET_WORDS > known)
		return NULL;
	TRY(array_append(&heap->caches, address));
	*ret_next = words[end + 2];
	for (size_t i = first; i < end; i += BUCKET_WORDS)
		TRY(read_slots(search, &words[i], (uint32_t)words[end + 1], address));
	return NULL;
}

DEFINE_COMPARE(compare_cached, struct pa_cached, ASCENDING(address))

static struct error *find_list(struct cache_search *search)
{
	const struct heap_context *context = &search->heap->context;
	const struct module *last = NULL;

	array_for_each(root, &search->heap->roots) {
		const struct module *module = program_find_module(context->program, root->address);

		if (module && module != last && !search->list)
			TRY(module_visit_words(context->image, module, look_for_needle, search));
		last = module;
	}
	return NULL;
}

struct error *pa_find_caches(struct pa_heap *heap)
{
	struct cache_search search = { .heap = heap,
				       .view = { heap->context.image },
				       .slots = { heap->context.image },
				       .left = { image_held_bytes(heap->context.image) /
						 LEAST_SLOT } };
	struct budget left = { MOST_CACHES };
	uint64_t cache = 0;

	TRY(find_list(&search));
	for (size_t i = 0; search.list && i < REGISTRY_WORDS && !pa_find_span(heap, cache); i++)
		if (!view_word(&search.view, search.list + i * PA_WORD, &cache))
			break;
	while (pa_find_span(heap, cache) && budget_take(&left))
		TRY(read_cache(&search, cache, &cache));
	array_sort(&heap->cached, compare_cached);
	array_sort(&heap->caches, compare_u64);
	return NULL;
}
