/*
 * Chooses the layout that fits. Versions and builds differ in the bits of an extent, so all extents
 * vote.
 *
 * A layout fits a slab if its size is a multiple of its class, and its bitmap has as many bits set
 * as its bits say there are free regions; a large extent if its size is that of its class; a free
 * one if it has no class. The same equalities then report damage.
 */
#include "allocators/jemalloc/jemalloc.h"

enum {
	SAMPLE = 2000,	   /* extents that vote */
	BITMAP_FIRST = 40, /* with words of 8 bytes; else half of it, as are steps */
	BITMAP_LAST = 104,
	BITMAP_USUAL = 64, /* in 5.0 to 5.3 */
	QUANTUM_LEAST = 3,
	QUANTUM_MOST = 4,
};

/* Shifts of the state and the class: 5.3; 5.1 and 5.2; 5.0. */
static const struct {
	unsigned int state, class;
} shifts[] = { { 17, 20 }, { 16, 18 }, { 15, 17 } };

enum { SHIFTS = COUNT_OF(shifts) };

bool jemalloc_read_bitmap(struct view *view, const struct jemalloc_layout *layout,
			  const struct jemalloc_extent *slab, uint64_t count,
			  uint64_t ret[MOST_BITMAP_WORDS])
{
	const uint64_t word = image_word_size(view->image);

	return view_read(view, slab->metadata + layout->bitmap, ret,
			 (count + 8 * word - 1) / (8 * word) * word);
}

uint32_t jemalloc_count_bits(const uint64_t *words, uint64_t count, bool *ret_beyond)
{
	uint64_t rest = count % 64, last;
	uint32_t bits = 0;

	for (uint64_t i = 0; i < count / 64; i++)
		bits += (uint32_t)__builtin_popcountll(words[i]);
	*ret_beyond = false;
	if (rest == 0)
		return bits;
	last = words[count / 64];
	*ret_beyond = last >> rest;
	return bits + (uint32_t)__builtin_popcountll(last & ((UINT64_C(1) << rest) - 1));
}

/* True if the regions of the slab can be as many as its size and class say. */
static bool has_regions(const struct jemalloc_geometry *geometry,
			const struct jemalloc_layout *layout, const struct jemalloc_extent *slab)
{
	return extent_class(layout, slab) < layout->small_count &&
	       slab->bytes % class_bytes(layout, slab) == 0 &&
	       region_count(layout, slab) <= UINT64_C(1) << (geometry->log_page - 3);
}

static bool bitmap_fits(struct view *view, const struct jemalloc_geometry *geometry,
			const struct jemalloc_layout *layout, const struct jemalloc_extent *slab)
{
	uint64_t words[MOST_BITMAP_WORDS] = { 0 }, count = region_count(layout, slab);
	bool beyond;

	return jemalloc_read_bitmap(view, layout, slab, count, words) &&
	       jemalloc_count_bits(words, count, &beyond) == stated_free(geometry, layout, slab) &&
	       !beyond;
}

/*
 * A large extent has up to a page more than the class, so that where the allocation begins varies.
 * From 5.3.1 on, it may be smaller than the class, if larger than the one before. One that is
 * sampled for a profile is of a small class.
 */
static bool large_fits(const struct jemalloc_geometry *geometry,
		       const struct jemalloc_layout *layout, const struct jemalloc_extent *extent)
{
	uint64_t page = UINT64_C(1) << geometry->log_page;
	unsigned int class = extent_class(layout, extent);

	if (class < layout->small_count)
		return extent->bytes >= layout->classes[class];
	return extent->bytes > layout->classes[class - 1] &&
	       extent->bytes <= layout->classes[class] + page;
}

static bool extent_fits(const struct jemalloc_geometry *geometry,
			const struct jemalloc_layout *layout, const struct jemalloc_extent *extent)
{
	if (!is_active(layout, extent))
		return extent_class(layout, extent) == layout->class_count;
	return is_slab(extent) ? has_regions(geometry, layout, extent)
			       : large_fits(geometry, layout, extent);
}

/* How many of the sample fit; *ret_slabs: of slabs, those whose bitmap fits, too. */
static size_t count_fits(const struct jemalloc *je, struct view *view,
			 const struct jemalloc_layout *layout, size_t step)
{
	size_t fits = 0;

	for (size_t i = 0; i < je->extents.count; i += step) {
		const struct jemalloc_extent *extent = &je->extents.items[i];

		if (extent_fits(&je->geometry, layout, extent) &&
		    (!is_active(layout, extent) || !is_slab(extent) ||
		     bitmap_fits(view, &je->geometry, layout, extent)))
			fits++;
	}
	return fits;
}

static void try_layout(struct jemalloc *je, struct view *view, struct jemalloc_layout *layout,
		       size_t step, size_t *most)
{
	const unsigned int word = je->geometry.word;

	for (layout->bitmap = BITMAP_FIRST / 8 * word; layout->bitmap <= BITMAP_LAST;
	     layout->bitmap += word) {
		size_t fits = count_fits(je, view, layout, step);

		if (fits > *most || (fits == *most && layout->bitmap == BITMAP_USUAL)) {
			*most = fits;
			je->layout = *layout;
		}
	}
}

static uint64_t find_padding(const struct jemalloc *je)
{
	array_for_each(extent, &je->extents)
		if (is_active(&je->layout, extent) && !is_slab(extent) &&
		    extent_class(&je->layout, extent) >= je->layout.small_count &&
		    (extent->offset || extent->bytes > class_bytes(&je->layout, extent)))
			return page_size(je);
	return 0;
}

bool jemalloc_choose_layout(struct jemalloc *je, const struct image *image)
{
	size_t step = je->extents.count / SAMPLE + 1, most = 0;
	size_t count = (je->extents.count + step - 1) / step;
	struct view view = { image };

	for (size_t i = 0; i < SHIFTS; i++)
		for (unsigned int quantum = QUANTUM_MOST; quantum >= QUANTUM_LEAST; quantum--) {
			struct jemalloc_layout layout = { .state_shift = shifts[i].state,
							  .class_shift = shifts[i].class };

			jemalloc_set_classes(&layout, quantum, je->geometry.log_page,
					     je->geometry.word);
			try_layout(je, &view, &layout, step, &most);
		}
	je->padding = find_padding(je);
	return count > 0 && most >= count - count / 4;
}

/* True if a large allocation begins where one can, and ends with its extent. */
static bool is_placed(const struct jemalloc *je, const struct jemalloc_extent *extent)
{
	return extent->offset % ALIGNMENT == 0 && large_range(je, extent).end <= extent_end(extent);
}

static bool has_valid_size(const struct jemalloc *je, const struct jemalloc_extent *extent)
{
	if (extent->bytes == 0 || extent->bytes > (UINT64_C(1) << 56) - extent->start)
		return false;
	return !is_active(&je->layout, extent) ||
	       (extent_fits(&je->geometry, &je->layout, extent) &&
		(is_slab(extent) || is_placed(je, extent)));
}

static bool is_possible(struct jemalloc *je, const struct jemalloc_extent *extent, uint64_t end)
{
	bool valid = has_valid_size(je, extent);

	if (!valid)
		heap_damage_note(&je->misfits, extent->start);
	else if (extent->start < end)
		heap_damage_note(&je->overlaps, extent->start);
	return valid && extent->start >= end;
}

/* One with a state that is none of the four, or active without a class, is in between. */
static bool is_changing(const struct jemalloc_layout *layout, const struct jemalloc_extent *extent)
{
	return !is_active(layout, extent) && !is_free_extent(layout, extent);
}

struct error *jemalloc_check_extents(struct jemalloc *je, const struct image *image)
{
	struct jemalloc_extent *extents = je->extents.items;
	size_t kept = 0;
	uint64_t end = 0;

	for (size_t i = 0; i < je->extents.count; i++) {
		if (!is_possible(je, &extents[i], end))
			continue;
		end = extent_end(&extents[i]);
		if (is_changing(&je->layout, &extents[i]))
			TRY(array_append(&je->changing,
					 (struct memory_range){ extents[i].start, end }));
		else if (!image_find(image, extents[i].start))
			heap_damage_note(&je->absent, extents[i].start);
		else
			extents[kept++] = extents[i];
	}
	je->extents.count = kept;
	return NULL;
}
