#include "analyzer/account/extents.h"

#include "analyzer/heap/debug_header.h"

/* A text that is shorter may as well be a few small numbers. */
enum { LEAST_TEXT = 8 };

struct error *extents_need(struct analysis *analysis)
{
	return analysis_cost(analysis, STAGE_PATTERNS).built &&
			       patterns_measure_nothing(analysis_patterns(analysis))
		       ? NULL
		       : analysis_need(analysis, STAGE_OWNERS);
}

void extents_init(struct extents *extents, const struct analysis *analysis)
{
	const struct allocation_index *index = analysis_index(analysis);
	const struct patterns *patterns = analysis_patterns(analysis);

	*extents = (struct extents){
		.analysis = analysis,
		.patterns = patterns,
		.managed = allocation_having(index, TRAIT_MANAGED),
		.bounds = allocation_bounds(index),
		.view.image = analysis_image(analysis),
	};
	patterns_init_reader(patterns, &extents->reader);
}

/* True if a whole word from offset on points into the heap, so that the bytes are a structure. */
static bool has_pointer(const struct extents *extents, const uint8_t *bytes, uint64_t offset,
			uint64_t size)
{
	const unsigned int word = image_word_size(extents->view.image);

	offset = (offset + word - 1) / word * word;
	for (; offset + word <= size; offset += word)
		if (heap_bounds_hold(&extents->bounds, load_word(bytes + offset, word)))
			return true;
	return false;
}

static void find_text(struct extents *extents, struct extent *extent)
{
	struct memory_range range = { extent->start, extent->start + extent->given };
	uint64_t known, length;
	const uint8_t *bytes = view_bytes(&extents->view, extent->start, &known);

	if (!bytes || known < extent->given)
		return;
	length = contents_text(bytes, extent->given);
	if (length < LEAST_TEXT)
		return;
	if (!allocation_fits(analysis_index(extents->analysis), range, length + 1, true) ||
	    has_pointer(extents, bytes, length + 1, extent->given))
		return;
	extent->size = length + 1;
	extent->slack = extent->given - extent->size;
	extent->knows_slack = true;
	extent->is_text = true;
}

static void take_pattern(const struct pattern_extent *known, struct extent *extent)
{
	uint64_t live = known->live_end - known->live_start;

	extent->knows_spare = true;
	extent->spare = known->spare;
	extent->knows_slack = known->asked != 0;
	if (known->asked)
		extent->slack = extent->given - known->asked;
	extent->start += known->live_start;
	extent->size = live;
	extent->is_mixed = known->spare > 0 && live > extent->given - extent->slack - known->spare;
}

/* The header is slack: nobody asked for it. */
static void take_header(struct extents *extents, struct extent *extent)
{
	struct debug_header header;
	uint64_t before;

	if (!debug_header_read(extents->view.image, extent->start, &header))
		return;
	before = header.object - extent->start;
	if (before >= extent->given || header.size > extent->given - before)
		return;
	extent->start = header.object;
	extent->size = header.size;
	extent->slack = extent->given - header.size;
	extent->knows_slack = true;
}

struct extent extent_of(struct extents *extents, allocation_id id)
{
	struct memory_range range =
		allocation_range_near(analysis_index(extents->analysis), id, &extents->hint);
	struct extent extent = {
		.given = range_size(range),
		.start = range.start,
		.size = range_size(range),
	};
	struct pattern_extent known;

	if (patterns_measure(extents->patterns, &extents->reader, id, &known))
		take_pattern(&known, &extent);
	else if (extents->managed && bitmap_get(extents->managed, id))
		take_header(extents, &extent);
	else
		find_text(extents, &extent);
	return extent;
}
