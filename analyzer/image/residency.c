#include "analyzer/image/residency.h"

#include "analyzer/base/bytes.h"
#include "analyzer/base/list.h"

#include <string.h>

enum { PROGRESS_STEP = 1 << 20, AHEAD = 1 << 16 };

/* Add a span; join it with the one before if both are alike, unless cut. */
static struct error *add_span(struct residency *residency, struct span span, bool cut)
{
	struct span *spans = residency->spans.items;
	size_t count = residency->spans.count;
	if (span.start >= span.end)
		return NULL;
	if (count > 0 && !cut && spans[count - 1].end == span.start &&
	    spans[count - 1].resident == span.resident && spans[count - 1].shared == span.shared) {
		spans[count - 1].end = span.end;
		return NULL;
	}
	return array_append(&residency->spans, span);
}

/* True if no file backs the pages, so that holes of a core say something about them. */
static bool is_anonymous(const struct region *region)
{
	return !region->mapping;
}

/*
 * True if the kernel left holes for anonymous memory. gdb makes holes of zeros, and so does
 * unpacking.
 */
static bool has_holes(const struct image *image)
{
	struct image_origin origin = image->origin;

	if (origin.by_debugger || origin.unpacked)
		return false;
	list_for_each(region, image->regions, image->region_count) {
		if (region->origin == REGION_CORE && is_anonymous(region) && !region->untouched &&
		    image_next_hole(image, region->start) < region->end)
			return true;
	}
	return false;
}

/* The first address at or behind address where the dump has pages outside of a hole. */
static uint64_t end_of_hole(const struct image *image, const struct region *region,
			    uint64_t address)
{
	uint64_t data;

	if (address >= region->end)
		return region->end;
	data = image_next_data(image, address);
	if (data >= region->end)
		return region->end;
	data -= data % PAGE; /* in the file, pages may begin within a block */
	return data > address ? data : address;
}

/* Add the region's pages by whether they are all zeros. */
static struct error *add_by_contents(struct residency *residency, const struct region *region,
				     struct progress *progress, bool shared)
{
	uint64_t at = region->start, reported = at;

	while (at < region->end) {
		uint64_t end = at - at % PAGE + PAGE;
		bool zero;

		end = MIN(end, region->end);
		/* The first bytes of most pages tell. */
		if (region->end - at > AHEAD)
			__builtin_prefetch(region->bytes + (at - region->start) + AHEAD);
		zero = bytes_are_zero(region->bytes + (at - region->start), end - at);
		if (zero)
			end = end_of_hole(residency->image, region, end);
		residency->doubt += zero ? end - at : 0;
		TRY(add_span(residency, (struct span){ at, end, !zero, shared },
			     at == region->start));
		at = end;
		if (at - reported >= PROGRESS_STEP) {
			TRY(progress_check(progress, 0));
			reported = at;
		}
	}
	return NULL;
}

/* Add the region's parts by whether the dump has holes there. */
static struct error *add_by_holes(struct residency *residency, const struct region *region,
				  bool shared)
{
	const struct image *image = residency->image;
	uint64_t at = region->start;
	struct error *error = NULL;

	while (at < region->end && !error) {
		uint64_t data = image_next_data(image, at), hole;

		if (data > at) {
			residency->doubt += data - at;
			error = add_span(residency, (struct span){ at, data, false, shared },
					 at == region->start);
		}
		if (error || data >= region->end)
			break;
		hole = image_next_hole(image, data);
		if (hole <= data)
			hole = region->end;
		error = add_span(residency, (struct span){ data, hole, true, shared },
				 data == region->start);
		at = hole;
	}
	return error;
}

static struct error *add_region(struct residency *residency, const struct region *region,
				struct progress *progress)
{
	const struct smaps_area *area = smaps_find(&residency->smaps, region->start);
	bool shared = area && area->shared;
	bool known = is_anonymous(region) || residency->smaps.count > 0;
	struct span span = { region->start, region->end, !is_anonymous(region), shared };

	if (region->origin != REGION_CORE && area)
		span.resident = false; /* until smaps have their say */
	if (region->origin == REGION_ABSENT && !area && residency->image->missing > 0)
		span.resident = true;
	if (region->origin != REGION_CORE || !known) {
		residency->assumed += span.resident ? span.end - span.start : 0;
		return add_span(residency, span, true);
	}
	if (residency->source == RESIDENCY_ZEROS && !region->untouched)
		return add_by_contents(residency, region, progress, shared);
	return add_by_holes(residency, region, shared);
}

/* The spans of one mapping of smaps, to be brought to what it says. */
struct fitting {
	ARRAY(struct span) spans; /* the result */
	struct residency *residency;
};

static struct error *keep(struct fitting *fitting, struct span span)
{
	return span.start < span.end ? array_append(&fitting->spans, span) : NULL;
}

/* Turn up to *left bytes of the span over to resident, or back. */
static struct error *chunk(struct fitting *fitting, struct span span, uint64_t *left)
{
	struct span rest = span;
	uint64_t size = span.end - span.start;

	size = MIN(size, *left);
	*left -= size;
	rest.start = span.end = span.start + size;
	span.resident = !span.resident;
	TRY(keep(fitting, span));
	return keep(fitting, rest);
}

/* True if resident memory of the same range lies on both sides. */
static bool is_enclosed(const struct span *spans, size_t first, size_t end, size_t number)
{
	return number > first && number + 1 < end && spans[number - 1].resident &&
	       spans[number + 1].resident;
}

/*
 * Bring the spans [first, end), of one mapping, to what smaps say of it. More were resident than
 * have contents: zeros, first those between others. Fewer: some were swapped out.
 */
static struct error *fit(struct fitting *fitting, size_t first, size_t end, uint64_t resident)
{
	const struct span *spans = fitting->residency->spans.items;
	uint64_t have = 0, enclosed = 0, others;
	bool more;

	for (size_t i = first; i < end; i++) {
		uint64_t size = spans[i].end - spans[i].start;

		have += spans[i].resident ? size : 0;
		if (!spans[i].resident && is_enclosed(spans, first, end, i))
			enclosed += size;
	}
	more = resident > have;
	others = more ? resident - have : have - resident;
	if (more) {
		uint64_t inside = others < enclosed ? others : enclosed;

		others -= inside;
		enclosed = inside;
	}
	for (size_t i = first; i < end; i++) {
		bool inside = more && is_enclosed(spans, first, end, i);

		TRY(spans[i].resident == more
			    ? keep(fitting, spans[i])
			    : chunk(fitting, spans[i], inside ? &enclosed : &others));
	}
	return NULL;
}

/* Bring all spans to what smaps say. */
static struct error *fit_all(struct residency *residency)
{
	_cleanup_(array_release) struct fitting fitting = {
		.residency = residency,
		.spans = { .memory.account = residency->spans.memory.account },
	};
	const struct span *spans = residency->spans.items;
	size_t next = 0, first;

	list_for_each(area, residency->smaps.areas, residency->smaps.count) {
		while (next < residency->spans.count && spans[next].start < area->start)
			TRY(keep(&fitting, spans[next++]));
		first = next;
		while (next < residency->spans.count && spans[next].start < area->end)
			next++;
		TRY(fit(&fitting, first, next, area->resident));
	}
	while (next < residency->spans.count)
		TRY(keep(&fitting, spans[next++]));
	array_swap(&residency->spans, &fitting.spans);
	residency->doubt = residency->assumed = 0;
	return NULL;
}

enum residency_source residency_told_by(const struct image *image)
{
	if (image_note(image, NOTE_SMAPS).size > 0)
		return RESIDENCY_SMAPS;
	return has_holes(image) ? RESIDENCY_HOLES : RESIDENCY_ZEROS;
}

struct error *residency_create(const struct image *image, struct memory_account *account,
			       struct progress *progress, struct residency **ret)
{
	_cleanup_(residency_destroy) struct residency *residency = calloc(1, sizeof(*residency));

	TRY_MEMORY(residency);
	residency->image = image;
	residency->spans.memory.account = account;
	TRY(smaps_read(image, &residency->smaps));
	residency->source = has_holes(image) ? RESIDENCY_HOLES : RESIDENCY_ZEROS;
	for (size_t i = 0; i < image->region_count; i++)
		TRY(add_region(residency, &image->regions[i], progress));
	if (residency->smaps.count > 0) {
		residency->source = RESIDENCY_SMAPS;
		TRY(fit_all(residency));
	}
	*ret = take(residency);
	return NULL;
}

void residency_destroy(struct residency *residency)
{
	array_release(&residency->spans);
	smaps_deinit(&residency->smaps);
	free(residency);
}

static size_t find_above(const struct residency *residency, uint64_t address)
{
	return LIST_ABOVE(residency->spans.items, residency->spans.count, end, address);
}

const struct span *residency_above(const struct residency *residency, uint64_t address)
{
	size_t number = find_above(residency, address);

	return number < residency->spans.count ? &residency->spans.items[number] : NULL;
}

struct extent_sum residency_sum_spans(const struct residency *residency, uint64_t start,
				      uint64_t end, size_t *hint)
{
	const struct span *spans = residency->spans.items;
	struct extent_sum sum = { 0 };
	size_t i = *hint;

	if (i >= residency->spans.count || spans[i].start > start || spans[i].end <= start)
		i = find_above(residency, start);
	for (; i < residency->spans.count && spans[i].start < end; i++) {
		uint64_t low = spans[i].start > start ? spans[i].start : start;
		uint64_t high = spans[i].end < end ? spans[i].end : end;

		sum.mapped += high - low;
		sum.resident += spans[i].resident ? high - low : 0;
		*hint = i;
	}
	return sum;
}
