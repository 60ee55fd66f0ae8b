#include "cli/views/rows.h"

void rows_total(struct report *report, const char *noun, struct set_total total)
{
	static const struct table table =
		TABLE("total", "{count} {what} use 0x{bytes} ({bytes,}) bytes.",
		      { "what", VALUE_TEXT }, { "count", VALUE_COUNT }, { "bytes", VALUE_BYTES });

	report_single(report, &table, noun, total.count, total.bytes);
}

double rows_share(uint64_t part, uint64_t whole)
{
	return whole ? (double)part / (double)whole : 0;
}

void rows_left_out(struct report *report, const char *noun, uint64_t total, uint64_t limit)
{
	static const struct table table =
		TABLE("left out", "... and {count} more {what} not shown.",
		      { "count", VALUE_COUNT }, { "what", VALUE_TEXT });

	if (limit == 0 || total <= limit)
		return;
	report_single(report, &table, total - limit, noun);
}

void rows_not_looked_at(struct report *report, const char *noun, const struct ranges *ranges)
{
	static const struct table table = TABLE(
		"left out", "... and {count} more {what}: what they are in was not looked at.",
		{ "count", VALUE_COUNT }, { "what", VALUE_TEXT });

	if (ranges_found(ranges) == ranges->count)
		return;
	report_single(report, &table, ranges_found(ranges) - ranges->count, noun);
}

const char *rows_noun(const struct set_query *query)
{
	return query->set->ranges ? query->set->ranges->noun : "allocations";
}

const char *rows_signature_name(const struct analysis *analysis, const struct set_query *query,
				uint64_t signature)
{
	struct classes *classes = analysis_classes(analysis);

	return query->full_names ? classes_full_name(classes, signature)
				 : classes_name(classes, signature);
}

void rows_kind(struct report *report, const struct analysis *analysis,
	       const struct set_query *query, allocation_id id)
{
	uint64_t signature = analysis_signature(analysis, id);
	struct identity identity = { .name = NULL };
	const char *name = NULL;

	if (signature) {
		name = classes_literal_name(analysis_classes(analysis), signature);
		if (!name)
			name = rows_signature_name(analysis, query, signature);
	}
	if (!analysis_identity(analysis, id, &identity))
		identity.name = NULL;
	report_add(report, value_nonzero(signature), name, identity.name,
		   VALUE_IF(identity.name, identity.offset));
}

void rows_allocation(struct report *report, const struct analysis *analysis,
		     const struct set_query *query, allocation_id id, const char *state)
{
	const struct allocation_index *index = analysis_index(analysis);
	bool retains = query->sort == SORT_RETAINED && bitmap_get(allocation_used(index), id);

	report_add(report, state, allocation_start(index, id), allocation_size(index, id));
	rows_kind(report, analysis, query, id);
	report_add(report,
		   VALUE_IF(retains, dominators_retained(analysis_dominators(analysis), id)));
}

/* How far from address on nothing is known. */
static uint64_t gap_size(const struct image *image, uint64_t address)
{
	size_t low = 0, high = image_region_count(image);

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (image_region(image, middle)->end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	/* Behind the last region, it is as far as can be told at a time. */
	if (low == image_region_count(image))
		return UINT64_MAX - address ? UINT64_MAX - address : 1;
	if (image_region(image, low)->start > address)
		return image_region(image, low)->start - address;
	return image_region(image, low)->end - address;
}

static const uint8_t *shown_bytes(const void *source, uint64_t address, uint64_t *ret_size)
{
	/* So much is written before the next look at Ctrl-C. */
	enum { PIECE = 1 << 16 };
	struct analysis *analysis = (struct analysis *)source;
	const struct image *image = analysis_image(analysis);
	const uint8_t *bytes;

	*ret_size = 0;
	if (atomic_load(&analysis_progress(analysis)->interrupted))
		return NULL;
	bytes = image_bytes(image, address, ret_size);
	if (!bytes)
		*ret_size = gap_size(image, address);
	else if (*ret_size > PIECE)
		*ret_size = PIECE;
	return bytes;
}

struct memory_view rows_view(struct analysis *analysis, uint64_t start, uint64_t size,
			     const struct selection *selection)
{
	if (selection->has_show_up_to && selection->show_up_to < size)
		size = selection->show_up_to;
	return (struct memory_view){
		.address = start,
		.size = size,
		.origin = start,
		.ascii = selection->ascii,
		.bytes = shown_bytes,
		.source = analysis,
	};
}
