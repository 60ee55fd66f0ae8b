/*
 * Finding PartitionAlloc's metadata pages.
 *
 * Each begins a mapping, as a guard is before it. So one read of the first words of each mapping
 * that can be written to is what this costs where there is none.
 */
#include "allocators/partition_alloc/partition_alloc.h"
#include "analyzer/base/sort.h"

enum {
	ENTRY = 32,
	ENTRIES = PA_SUPER_PAGE >> PA_PAGE_SHIFT,
	ENTRY_WORDS = ENTRY / PA_WORD,
	ROOT_ALIGNMENT = 64,
	MOST_ROOTS = 64,
	ROOT_BYTES = 16 << 10, /* that have its buckets */
	ROOT_HEAD = 64,	       /* words in which it has the distance */
	MOST_EXTRAS = 32,
	LARGEST_SLOT = 1 << 20,
	LARGEST_DIRECT = 1 << 30,
	PLACE_MASK = 0x3f, /* which page of its span it is */
};

enum entry_word { HEAD, NEXT, BUCKET, COUNTS };

/* The fields of an entry's fourth word. */
struct layout {
	unsigned int allocated, unprovisioned, raw; /* the lowest bits */
	unsigned int bits;
};

static const struct layout layouts[] = {
	{ 0, 15, 31, 15 },
	{ 1, 14, 27, 13 },
};

struct search {
	struct pa_heap *heap;
	const struct layout *layout;
	struct view view, buckets;
	uint64_t page;
	uint64_t words[ENTRIES * ENTRY_WORDS];
};

struct bucket {
	uint64_t slot_size, bytes; /* bytes of a span's system pages; 0: of a large allocation */
};

static uint32_t bits_of(uint64_t word, unsigned int lowest, unsigned int count)
{
	return (uint32_t)(word >> lowest & ((UINT64_C(1) << count) - 1));
}

/* The size of slots had 4 bytes once, and has 8 now. */
static bool read_bucket(struct search *search, uint64_t address, struct bucket *ret)
{
	uint64_t words[5], pages;

	if (address % PA_WORD != 0 || !view_read(&search->buckets, address, words, sizeof(words)))
		return false;
	pages = words[3] >> 32 ? words[3] >> 32 & UINT8_MAX : words[4] & UINT8_MAX;
	*ret = (struct bucket){ words[3] & UINT32_MAX, pages * PA_SYSTEM_PAGE };
	return ret->slot_size >= 2 * PA_WORD && ret->slot_size % PA_WORD == 0 &&
	       (pages ? ret->slot_size <= LARGEST_SLOT && ret->slot_size <= ret->bytes
		      : ret->slot_size <= LARGEST_DIRECT && ret->slot_size % PA_SYSTEM_PAGE == 0);
}

static bool is_first(const uint64_t *entry)
{
	return entry[BUCKET] && (entry[COUNTS] >> 48 & PLACE_MASK) == 0 && entry[COUNTS] >> 56 == 0;
}

/* Read the span of an entry; false if it is none. */
static bool read_span(const struct search *search, const struct bucket *bucket, size_t number,
		      struct pa_span *ret)
{
	const struct layout *layout = search->layout;
	const uint64_t *entry = &search->words[number * ENTRY_WORDS];
	uint64_t bytes = bucket->bytes ? bucket->bytes : bucket->slot_size;
	uint64_t slots = bytes / bucket->slot_size;
	uint32_t unprovisioned = bits_of(entry[COUNTS], layout->unprovisioned, layout->bits);

	*ret = (struct pa_span){
		.start = number << PA_PAGE_SHIFT,
		.metadata = search->page + number * ENTRY,
		.bytes = bytes,
		.slot_size = bucket->slot_size,
		.head = entry[HEAD],
		.slots = (uint32_t)slots - unprovisioned,
		.allocated = bits_of(entry[COUNTS], layout->allocated, layout->bits),
	};
	if (bits_of(entry[COUNTS], layout->raw, 1) && number + 1 < ENTRIES)
		ret->raw_size = entry[ENTRY_WORDS];
	if (ret->raw_size > ret->slot_size)
		ret->raw_size = 0;
	return slots <= PA_MOST_SLOTS && unprovisioned <= slots && ret->allocated <= ret->slots;
}

/* Buckets are in the root, or in the page if it is of a large allocation. */
static bool has_bucket(const struct search *search, uint64_t bucket)
{
	return bucket - search->words[0] < ROOT_BYTES ||
	       bucket - search->page < PA_SYSTEM_PAGE - ENTRY;
}

/* True if the page that was read is a metadata page: all spans that it has make sense. */
static bool is_metadata(struct search *search)
{
	struct bucket bucket;
	struct pa_span span;
	size_t count = 0;

	for (size_t i = 1; i + 1 < ENTRIES; i++) {
		const uint64_t *entry = &search->words[i * ENTRY_WORDS];

		if (!is_first(entry))
			continue;
		if (!has_bucket(search, entry[BUCKET]) ||
		    !read_bucket(search, entry[BUCKET], &bucket) ||
		    !read_span(search, &bucket, i, &span))
			return false;
		count++;
		if (!bucket.bytes)
			break;
	}
	return count > 0;
}

static bool is_writable(const struct image *image, uint64_t address)
{
	const struct region *region = image_find(image, address);

	return region && (region->rights & RIGHT_WRITE);
}

/*
 * Find the distance from super pages to their metadata pages: the word before it has the bytes at
 * the ends of slots. False: the root has none that fits.
 */
static bool read_root(struct search *search, struct pa_root *ret)
{
	uint64_t words[ROOT_HEAD];

	*ret = (struct pa_root){ .address = search->words[0], .distance = PA_SYSTEM_PAGE };
	if (!view_read(&search->buckets, ret->address, words, sizeof(words)))
		return false;
	for (size_t i = 1; i < ROOT_HEAD; i++) {
		if (words[i] == 0 || words[i] % PA_SYSTEM_PAGE != 0 ||
		    (search->page - words[i]) % PA_SUPER_PAGE != 0)
			continue;
		ret->distance = words[i];
		if ((uint32_t)words[i - 1] <= MOST_EXTRAS)
			ret->extras = (uint32_t)words[i - 1];
		return true;
	}
	return search->page % PA_SUPER_PAGE == PA_SYSTEM_PAGE;
}

/* The number of the root, which is a new one if no page before had it. */
static struct error *find_root(struct search *search, uint32_t *ret, bool *ret_found)
{
	struct pa_heap *heap = search->heap;
	struct pa_root root;

	for (*ret = 0; *ret < heap->roots.count; ++*ret)
		if (heap->roots.items[*ret].address == search->words[0]) {
			*ret_found =
				(search->page - heap->roots.items[*ret].distance) % PA_SUPER_PAGE ==
				0;
			return NULL;
		}
	*ret_found = heap->roots.count < MOST_ROOTS && read_root(search, &root);
	return *ret_found ? array_append(&heap->roots, root) : NULL;
}

static struct error *add_spans(struct search *search, uint32_t root)
{
	struct pa_heap *heap = search->heap;
	uint64_t super_page = search->page - heap->roots.items[root].distance;
	struct bucket bucket;
	struct pa_span span;

	TRY(array_append(&heap->metadata, search->page));
	for (size_t i = 1; i + 1 < ENTRIES; i++) {
		const uint64_t *entry = &search->words[i * ENTRY_WORDS];

		if (!is_first(entry) || !read_bucket(search, entry[BUCKET], &bucket) ||
		    !read_span(search, &bucket, i, &span))
			continue;
		span.start += super_page;
		span.root = root;
		if (span.bytes > UINT64_MAX - span.start)
			continue;
		TRY(array_append(&heap->spans, span));
		if (!bucket.bytes)
			break;
	}
	return NULL;
}

/* Read the page that begins the region, if it can be one. */
static bool read_page(struct search *search, const struct region *region)
{
	uint64_t size = region->end - region->start;

	if (!region->bytes || !(region->rights & RIGHT_WRITE) || size < PA_SYSTEM_PAGE ||
	    region->start % PA_SYSTEM_PAGE != 0)
		return false;
	memcpy(search->words, region->bytes, ENTRY);
	if (search->words[0] < PA_SUPER_PAGE || search->words[0] % ROOT_ALIGNMENT != 0 ||
	    search->words[1] % PA_SYSTEM_PAGE != 0 ||
	    !is_writable(search->heap->context.image, search->words[0]))
		return false;
	search->page = region->start;
	memcpy(search->words, region->bytes, sizeof(search->words));
	return true;
}

static struct error *search_regions(struct search *search)
{
	const struct image *image = search->heap->context.image;

	list_for_each(region, image->regions, image->region_count) {
		uint32_t root;
		bool found;

		if (!read_page(search, region) || !is_metadata(search))
			continue;
		TRY(find_root(search, &root, &found));
		if (found)
			TRY(add_spans(search, root));
		else
			heap_damage_note(&search->heap->misfits, search->page);
	}
	return NULL;
}

DEFINE_COMPARE(compare_spans, struct pa_span, ASCENDING(start), ASCENDING(metadata))

/* Leave out what overlaps another, as only a damaged core has, and spans whose memory is not there.
 */
static void sort_spans(struct pa_heap *heap)
{
	uint64_t end = 0;
	size_t kept = 0;

	array_sort(&heap->spans, compare_spans);
	array_for_each(span, &heap->spans) {
		if (!is_writable(heap->context.image, span->start))
			continue;
		if (span->start < end) {
			heap_damage_note(&heap->overlaps, span->metadata);
			continue;
		}
		end = pa_span_end(span);
		heap->roots.items[span->root].bytes += span->bytes;
		heap->spans.items[kept++] = *span;
	}
	heap->spans.count = kept;
}

/* How many lists of free slots are as long as counts say. */
static size_t vote(struct pa_heap *heap)
{
	struct view view = { heap->context.image };
	size_t votes = 0;

	array_for_each(span, &heap->spans) {
		uint64_t slot = span->head, link;
		uint32_t left = span->slots - span->allocated;
		bool absent;

		for (; left && slot - span->start < span->bytes &&
		       pa_read_link(&view, slot, &link, &absent);
		     left--)
			slot = link ? (span->start & -(uint64_t)PA_SUPER_PAGE) |
					       (link & (PA_SUPER_PAGE - 1))
				    : 0;
		votes += left == 0 && slot == 0;
	}
	return votes;
}

struct error *pa_search(struct pa_heap *heap)
{
	struct search search = { .heap = heap,
				 .view = { heap->context.image },
				 .buckets = { heap->context.image } };
	const struct layout *best = NULL;
	size_t most = 0;

	for (size_t i = 0; i <= COUNT_OF(layouts); i++) {
		size_t votes;

		search.layout = i < COUNT_OF(layouts) ? &layouts[i] : best;
		if (!search.layout)
			break;
		heap->roots.count = heap->spans.count = heap->metadata.count = 0;
		heap->overlaps = heap->misfits = (struct heap_damage){ 0 };
		TRY(search_regions(&search));
		sort_spans(heap);
		votes = i < COUNT_OF(layouts) ? vote(heap) : 0;
		if (votes > most) {
			most = votes;
			best = search.layout;
		}
	}
	return NULL;
}
