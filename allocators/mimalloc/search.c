/*
 * Finding segments: at each multiple of 32 MiB in memory without a file, slices must follow each
 * other through the whole segment. A word of its head, xor its address, is the same for all
 * segments, and shows those of huge allocations, which are longer.
 */
#include "allocators/mimalloc/mimalloc.h"

enum { PAGE_SIZE_LEAST = 2, HUGE_MOST = 1 << 26 /* slices */ };

/* A slice, which begins a page. */
struct slice_words {
	uint32_t slices, offset;
	uint16_t flags, capacity, reserved, more;
	uint64_t free;
	uint32_t used, bytes;
	uint64_t local, thread, heap;
};

struct search {
	struct mimalloc_heap *heap;
	struct view view;
};

static bool read_slice(struct search *search, uint64_t segment, uint64_t number,
		       struct slice_words *ret)
{
	return view_read(&search->view, segment + SLICES + SLICE_STRIDE * number, ret,
			 sizeof(*ret)) &&
	       ret->slices > 0 && ret->offset == 0;
}

/* Whether slices lead from the first one to the end. */
static bool is_segment(struct search *search, uint64_t segment)
{
	struct slice_words slice;
	uint64_t number = 0;
	unsigned int pages = 0;

	for (; number < SEGMENT_SLICES && read_slice(search, segment, number, &slice); pages++)
		number += slice.slices;
	return number == SEGMENT_SLICES && pages > 1;
}

/* Add the pages of the segment, of so many slices, behind the first. */
static struct error *add_pages(struct search *search, uint64_t segment, uint64_t slices)
{
	struct mimalloc_heap *heap = search->heap;
	struct slice_words slice;
	uint64_t number = 0;
	bool is_head = true;

	for (; number < slices && read_slice(search, segment, number, &slice);
	     number += slice.slices) {
		struct mimalloc_page page = {
			.start = segment + number * SLICE_BYTES,
			.end = segment + (number + slice.slices) * SLICE_BYTES,
			.metadata = segment + SLICES + SLICE_STRIDE * number,
			.lists = { slice.free, slice.local, slice.thread & ~UINT64_C(3) },
			.heap = slice.heap,
			.capacity = slice.capacity,
			.used = slice.used,
		};

		if (slice.bytes >= PAGE_SIZE_LEAST)
			page.bytes = slice.bytes;
		if (is_head)
			TRY(array_append(&heap->segments,
					 (struct mimalloc_segment){ segment,
								    segment + slices * SLICE_BYTES,
								    page.end }));
		else
			TRY(array_append(&heap->pages, page));
		is_head = false;
	}
	heap->bytes += slices * SLICE_BYTES;
	return NULL;
}

static struct error *look_for_segment(struct search *search, uint64_t segment)
{
	struct mimalloc_heap *heap = search->heap;
	uint64_t word;

	if (!is_segment(search, segment) ||
	    !view_word(&search->view, segment + SEGMENT_COOKIE, &word) ||
	    (heap->segments.count > 0 && (word ^ segment) != heap->cookie))
		return NULL;
	heap->cookie = word ^ segment;
	return add_pages(search, segment, SEGMENT_SLICES);
}

/* One for a huge allocation: the head, and a page. */
static struct error *look_for_huge(struct search *search, uint64_t segment)
{
	struct mimalloc_heap *heap = search->heap;
	struct slice_words head, page;
	uint64_t word;

	if (!view_word(&search->view, segment + SEGMENT_COOKIE, &word) ||
	    (word ^ segment) != heap->cookie || is_segment(search, segment) ||
	    !read_slice(search, segment, 0, &head) || head.slices >= SEGMENT_SLICES ||
	    !read_slice(search, segment, head.slices, &page) || page.slices > HUGE_MOST)
		return NULL;
	return add_pages(search, segment, (uint64_t)head.slices + page.slices);
}

/* Visit multiples of the size of segments in memory that the dump has. */
static struct error *visit(struct search *search,
			   struct error *(*look)(struct search *search, uint64_t segment))
{
	const struct image *image = search->view.image;
	uint64_t last = 0;

	for (size_t i = 0; i < image->region_count; i++) {
		const struct region *region = &image->regions[i];
		uint64_t at = (region->start + SEGMENT_BYTES - 1) / SEGMENT_BYTES * SEGMENT_BYTES;

		if (!region->bytes || !(region->rights & RIGHT_WRITE) || region->mapping)
			continue;
		while (at >= region->start && at < region->end && at != last) {
			uint64_t data = image_next_data(image, at);

			if (data < at + PAGE)
				TRY(look(search, at));
			last = at;
			at = data < at + PAGE
				     ? at + SEGMENT_BYTES
				     : (data + SEGMENT_BYTES - 1) / SEGMENT_BYTES * SEGMENT_BYTES;
		}
	}
	return progress_check(search->heap->context.progress, 0);
}

DEFINE_COMPARE(compare_pages, struct mimalloc_page, ASCENDING(start), ASCENDING(metadata))
DEFINE_COMPARE(compare_segments, struct mimalloc_segment, ASCENDING(start))

/* Those of a huge segment may seem to overlap others in a damaged dump. */
static void keep_apart(struct mimalloc_heap *heap)
{
	uint64_t end = 0;
	size_t kept = 0;

	array_sort(&heap->segments, compare_segments);
	array_sort(&heap->pages, compare_pages);
	for (size_t i = 0; i < heap->pages.count; i++) {
		const struct mimalloc_page *page = &heap->pages.items[i];

		if (page->start < end)
			continue;
		end = page->end;
		heap->pages.items[kept++] = *page;
	}
	heap->pages.count = kept;
}

struct error *mimalloc_search(struct mimalloc_heap *heap)
{
	struct search search = { .heap = heap, .view = { heap->context.image } };

	TRY(visit(&search, look_for_segment));
	if (heap->segments.count > 0)
		TRY(visit(&search, look_for_huge));
	keep_apart(heap);
	return NULL;
}
