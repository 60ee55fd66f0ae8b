/*
 * Finding segments of 1.x and 2.x: at each multiple of their size in memory without a file, the
 * metadata of pages must fill the whole segment. A word of its head, xor its address, is the same
 * for all segments, and shows those of huge allocations, which are of another length.
 */
#include "allocators/mimalloc/mimalloc.h"

#include "analyzer/base/list.h"

enum {
	SEGMENT_SLICES = 512,
	HUGE_MOST = 1 << 26, /* slices */
	PAGES_SEGMENT = 4 << 20,
	SHIFT_LEAST = 16, /* of the size of a page of 1.x */
	SHIFT_MOST = 22,
};

struct search {
	struct mimalloc_heap *heap;
	const struct mimalloc_layout *layout;
	struct view view;
};

static uint64_t segment_bytes(const struct mimalloc_layout *layout)
{
	return layout->form == FORM_SLICES ? (uint64_t)SEGMENT_SLICES * SLICE_BYTES : PAGES_SEGMENT;
}

static uint64_t metadata_at(const struct search *search, uint64_t segment, uint64_t number)
{
	return segment + search->layout->pages + search->layout->stride * number;
}

/* Add the segment with the page that is behind its head. */
static struct error *add_segment(struct search *search, uint64_t segment, uint64_t bytes,
				 uint64_t head)
{
	struct mimalloc_heap *heap = search->heap;

	heap->bytes += bytes;
	return array_append(&heap->segments,
			    (struct mimalloc_segment){ segment, segment + bytes, segment + head });
}

static struct error *add_page(struct search *search, uint64_t metadata, uint64_t start,
			      uint64_t end, bool is_behind_head)
{
	struct mimalloc_page page;

	if (!mimalloc_read_page(search->layout, &search->view, metadata, &page))
		return NULL;
	page.start = start;
	page.end = end;
	mimalloc_set_first(search->layout, is_behind_head, &page);
	return array_append(&search->heap->pages, page);
}

/* 2.x: the number of slices of the page that begins with the number-th; 0: none does. */
static uint64_t slices_from(struct search *search, uint64_t segment, uint64_t number)
{
	uint32_t slice[2]; /* how many, offset */

	return view_read(&search->view, metadata_at(search, segment, number), slice,
			 sizeof(slice)) &&
			       slice[1] == 0
		       ? slice[0]
		       : 0;
}

/* True if slices lead from the first one to the end, or to the last one, which may be a guard. */
static bool has_slices(struct search *search, uint64_t segment)
{
	uint64_t number = 0, slices;
	unsigned int pages = 0;

	for (; number < SEGMENT_SLICES && (slices = slices_from(search, segment, number)) > 0;
	     pages++)
		number += slices;
	return (number == SEGMENT_SLICES || number == SEGMENT_SLICES - 1) && pages > 1;
}

/* Add the pages of the segment, of so many slices, behind the head. */
static struct error *add_slices(struct search *search, uint64_t segment, uint64_t total)
{
	uint64_t number = slices_from(search, segment, 0), slices;

	TRY(add_segment(search, segment, total * SLICE_BYTES, number * SLICE_BYTES));
	for (; number < total && (slices = slices_from(search, segment, number)) > 0;
	     number += slices)
		TRY(add_page(search, metadata_at(search, segment, number),
			     segment + number * SLICE_BYTES,
			     segment + (number + slices) * SLICE_BYTES, false));
	return NULL;
}

/* Add a segment for a huge allocation: the head, and a page. */
static struct error *add_huge_slices(struct search *search, uint64_t segment)
{
	uint64_t head = slices_from(search, segment, 0), slices;

	if (head == 0 || head >= SEGMENT_SLICES)
		return NULL;
	slices = slices_from(search, segment, head);
	return slices == 0 || slices > HUGE_MOST ? NULL
						 : add_slices(search, segment, head + slices);
}

/* 1.x: what the segment's head says. */
struct pages_head {
	uint64_t bytes; /* of the head */
	uint64_t extent, shift;
};

static bool read_head(struct search *search, uint64_t segment, struct pages_head *ret)
{
	const struct mimalloc_layout *layout = search->layout;

	return view_word(&search->view, segment + layout->cookie - 8U, &ret->bytes) &&
	       view_word(&search->view, segment + layout->extent, &ret->extent) &&
	       view_word(&search->view, segment + layout->shift, &ret->shift) &&
	       ret->bytes > layout->pages && ret->bytes < ret->extent && ret->bytes < PAGES_SEGMENT;
}

/* True if all pages have their number. */
static bool has_pages(struct search *search, uint64_t segment)
{
	struct pages_head head;
	uint8_t number;

	if (!read_head(search, segment, &head) || head.extent != PAGES_SEGMENT ||
	    head.shift < SHIFT_LEAST || head.shift > SHIFT_MOST)
		return false;
	for (unsigned int i = 0; i < head.extent >> head.shift; i++)
		if (!view_read(&search->view, metadata_at(search, segment, i), &number, 1) ||
		    number != i)
			return false;
	return true;
}

static struct error *add_pages(struct search *search, uint64_t segment)
{
	struct pages_head head;
	uint64_t bytes;

	if (!read_head(search, segment, &head))
		return NULL;
	bytes = UINT64_C(1) << head.shift;
	TRY(add_segment(search, segment, head.extent, head.bytes));
	for (uint64_t i = 0; i < head.extent >> head.shift; i++) {
		uint64_t start = segment + i * bytes;

		TRY(add_page(search, metadata_at(search, segment, i),
			     i == 0 ? segment + head.bytes : start, start + bytes, i == 0));
	}
	return NULL;
}

static struct error *add_huge_page(struct search *search, uint64_t segment)
{
	struct pages_head head;
	uint64_t end, word;

	if (!read_head(search, segment, &head) || head.extent > (uint64_t)HUGE_MOST * SLICE_BYTES)
		return NULL;
	TRY(add_segment(search, segment, head.extent, head.bytes));
	end = segment + head.extent;
	/* Secure builds have a guard there. */
	if (!view_word(&search->view, end - 8, &word))
		end -= PAGE;
	return add_page(search, metadata_at(search, segment, 0), segment + head.bytes, end, true);
}

static bool is_segment(struct search *search, uint64_t segment)
{
	return search->layout->form == FORM_SLICES ? has_slices(search, segment)
						   : has_pages(search, segment);
}

static bool read_cookie(struct search *search, uint64_t segment, uint64_t *ret)
{
	if (!view_word(&search->view, segment + search->layout->cookie, ret))
		return false;
	*ret ^= segment;
	return true;
}

static struct error *look_for_segment(struct search *search, uint64_t segment)
{
	struct mimalloc_heap *heap = search->heap;
	uint64_t cookie;

	if (!is_segment(search, segment) || !read_cookie(search, segment, &cookie) ||
	    (heap->segments.count > 0 && cookie != heap->cookie))
		return NULL;
	heap->cookie = cookie;
	return search->layout->form == FORM_SLICES ? add_slices(search, segment, SEGMENT_SLICES)
						   : add_pages(search, segment);
}

static struct error *look_for_huge(struct search *search, uint64_t segment)
{
	uint64_t cookie;

	if (!read_cookie(search, segment, &cookie) || cookie != search->heap->cookie ||
	    is_segment(search, segment))
		return NULL;
	return search->layout->form == FORM_SLICES ? add_huge_slices(search, segment)
						   : add_huge_page(search, segment);
}

static struct error *visit(struct search *search,
			   struct error *(*look)(struct search *search, uint64_t segment))
{
	array_for_each(place, &search->heap->places)
		if (*place % segment_bytes(search->layout) == 0)
			TRY(look(search, *place));
	return progress_check(search->heap->context.progress, 0);
}

DEFINE_COMPARE(compare_segments, struct mimalloc_segment, ASCENDING(start))

struct error *mimalloc_find_segments(struct mimalloc_heap *heap)
{
	struct search search = { heap, heap->layout, { heap->context.image } };

	TRY(visit(&search, look_for_segment));
	if (heap->segments.count > 0)
		TRY(visit(&search, look_for_huge));
	array_sort(&heap->segments, compare_segments);
	mimalloc_keep_apart(heap);
	return NULL;
}

struct error *mimalloc_find_places(struct mimalloc_heap *heap)
{
	const struct image *image = heap->context.image;
	uint64_t last = 0;

	list_for_each(region, image->regions, image->region_count) {
		uint64_t at = (region->start + PAGES_SEGMENT - 1) / PAGES_SEGMENT * PAGES_SEGMENT;

		if (!region->bytes || !(region->rights & RIGHT_WRITE) || region->mapping)
			continue;
		while (at >= region->start && at < region->end && at != last) {
			uint64_t data = image_next_data(image, at);

			if (data < at + PAGE)
				TRY(array_append(&heap->places, at));
			last = at;
			at = data < at + PAGE
				     ? at + PAGES_SEGMENT
				     : (data + PAGES_SEGMENT - 1) / PAGES_SEGMENT * PAGES_SEGMENT;
		}
	}
	return progress_check(heap->context.progress, 0);
}
