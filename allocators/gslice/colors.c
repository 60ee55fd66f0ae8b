/*
 * The color of slabs whose chunks are all in use: nothing in them says where the first begins.
 *
 * What refers to slabs of known color shows at which offsets in chunks of a bin references lead to:
 * to the start mostly, or to an object behind its private data. Of the colors that a slab may have,
 * the one counts with which references to it have such offsets.
 */
#include "allocators/gslice/gslice.h"

enum {
	STEP = 8,	      /* bytes: references are counted by that */
	MOST_READ = 64 << 20, /* bytes */
	PROGRESS_BYTES = 1 << 20,
};

/* Counts of references, by their offset in chunks. */
struct votes {
	struct gslice_heap *heap;
	ARRAY(uint32_t) known; /* a row for each bin: references to used chunks */
	ARRAY(uint32_t)
	unknown;	      /* one for each slab: by offset in it, modulo the size of a chunk */
	ARRAY(uint32_t) rows; /* of slabs: where theirs begins; NO_ROW: its color is known */
	uint64_t start, end;  /* of all slabs */
};

static void cleanup_release_votes(struct votes *votes)
{
	arrays_release(&votes->known, &votes->unknown, &votes->rows);
}

static const uint32_t NO_ROW = UINT32_MAX;

static bool is_unknown(const struct gslice_heap *heap, const struct gslice_slab *slab)
{
	return !slab->has_color && gslice_padding(heap, slab->bin) > gslice_unit(heap);
}

/* The row of the bin among the known ones; those of all bins up to it are as long as their chunks.
 */
static uint64_t bin_row(const struct gslice_heap *heap, uint32_t bin)
{
	return gslice_unit(heap) / STEP * bin * (bin + 1) / 2;
}

static uint64_t row_length(const struct gslice_heap *heap, uint32_t bin)
{
	return gslice_chunk_bytes(heap, bin) / STEP;
}

static struct error *make_rows(struct votes *votes)
{
	struct gslice_heap *heap = votes->heap;
	struct memory_account *account = heap->context.account;
	uint32_t length = 0, bins = 0;

	arrays_use(account, &votes->known, &votes->unknown, &votes->rows);
	TRY(array_resize(&votes->rows, heap->slabs.count));
	for (size_t i = 0; i < heap->slabs.count; i++) {
		const struct gslice_slab *slab = &heap->slabs.items[i];

		votes->rows.items[i] = is_unknown(heap, slab) ? length : NO_ROW;
		length += is_unknown(heap, slab) ? (uint32_t)row_length(heap, slab->bin) : 0;
		if (slab->bin >= bins)
			bins = slab->bin + 1;
		votes->end = slab->page + gslice_page_bytes(heap, slab->bin);
	}
	votes->start = heap->slabs.count ? heap->slabs.items[0].page : 0;
	TRY(array_resize(&votes->unknown, length));
	return array_resize(&votes->known, bin_row(heap, bins));
}

/* Links of lists lead to free chunks, and do not count. */
static bool leads_to_used(const struct gslice_heap *heap, const struct gslice_slab *slab,
			  uint64_t address)
{
	uint64_t offset = address - slab->page - slab->color;
	uint64_t number = offset / gslice_chunk_bytes(heap, slab->bin);

	return number < gslice_chunk_count(heap, slab->bin) &&
	       !((slab->free | slab->magazine) >> number & 1);
}

static void count_word(struct votes *votes, uint64_t word)
{
	struct gslice_heap *heap = votes->heap;
	const struct gslice_slab *slab = gslice_find_slab(heap, word);
	uint64_t offset, bytes;
	uint32_t row;

	if (!slab)
		return;
	bytes = gslice_chunk_bytes(heap, slab->bin);
	offset = word - slab->page;
	row = votes->rows.items[slab - heap->slabs.items];
	if (row != NO_ROW)
		votes->unknown.items[row + offset % bytes / STEP]++;
	else if (leads_to_used(heap, slab, word))
		votes->known
			.items[bin_row(heap, slab->bin) + (offset - slab->color) % bytes / STEP]++;
}

/* Count the references in the region, up to so many bytes. */
static struct error *count_region(struct votes *votes, const struct region *region,
				  uint64_t *budget)
{
	const struct heap_context *context = &votes->heap->context;
	const unsigned int word = votes->heap->word;
	uint64_t at = image_next_data(context->image, region->start), end;

	while (at<region->end && * budget> 0) {
		end = image_next_hole(context->image, at);
		end = end < region->end ? end : region->end;
		end = end - at < *budget ? end : at + *budget;
		*budget -= end - at;
		for (; end - at >= word && at < end; at += word) {
			uint64_t value = load_word(region->bytes + (at - region->start), word);

			if (value - votes->start < votes->end - votes->start)
				count_word(votes, value);
			if (at % PROGRESS_BYTES == 0)
				TRY(progress_check(context->progress, 0));
		}
		at = image_next_data(context->image, end);
	}
	return NULL;
}

static struct error *count(struct votes *votes)
{
	const struct image *image = votes->heap->context.image;
	uint64_t budget = MOST_READ;

	for (size_t i = 0; i < image->region_count; i++)
		if (image->regions[i].bytes && (image->regions[i].rights & RIGHT_WRITE))
			TRY(count_region(votes, &image->regions[i], &budget));
	return NULL;
}

/*
 * Score how well references to the slab fit that color. Without other evidence, they point to
 * starts.
 */
static uint64_t score(const struct votes *votes, const struct gslice_slab *slab, uint64_t color)
{
	const struct gslice_heap *heap = votes->heap;
	const uint32_t *seen = &votes->unknown.items[votes->rows.items[slab - heap->slabs.items]];
	const uint32_t *usual = &votes->known.items[bin_row(heap, slab->bin)];
	uint64_t length = row_length(heap, slab->bin), sum = 0;

	for (uint64_t i = 0; i < length; i++) {
		uint64_t place = (i + length - color / STEP) % length;

		sum += seen[i] * (usual[place] + (uint64_t)(place == 0));
	}
	return sum;
}

struct error *gslice_find_colors(struct gslice_heap *heap)
{
	_cleanup_(release_votes) struct votes votes = { heap };
	bool unknown = false;

	array_for_each(slab, &heap->slabs)
		unknown |= is_unknown(heap, slab);
	if (!unknown)
		return NULL;
	TRY(make_rows(&votes));
	TRY(count(&votes));
	array_for_each(slab, &heap->slabs) {
		uint64_t best = 0;

		if (!is_unknown(heap, slab))
			continue;
		for (uint64_t color = 0; color < gslice_padding(heap, slab->bin);
		     color += gslice_unit(heap)) {
			uint64_t sum = score(&votes, slab, color);

			if (sum > best) {
				best = sum;
				slab->color = (uint32_t)color;
			}
		}
	}
	return NULL;
}
