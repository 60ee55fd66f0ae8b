#include "cli/views/rows.h"

void rows_total(struct report *report, const char *noun, struct set_total total)
{
	static const struct column columns[] = {
		{ "what", VALUE_TEXT },
		{ "count", VALUE_COUNT },
		{ "bytes", VALUE_BYTES },
	};
	static const struct table table = { "total", columns, 3,
					    "{count} {what} use 0x{bytes} ({bytes,}) bytes." };

	report_begin_table(report, &table);
	report_text(report, noun);
	report_number(report, total.count);
	report_number(report, total.bytes);
	report_end_row(report);
	report_end_table(report);
}

double rows_share(uint64_t part, uint64_t whole)
{
	return whole ? (double)part / (double)whole : 0;
}

void rows_left_out(struct report *report, const char *noun, uint64_t total, uint64_t limit)
{
	static const struct column columns[] = {
		{ "count", VALUE_COUNT },
		{ "what", VALUE_TEXT },
	};
	static const struct table table = { "left out", columns, 2,
					    "... and {count} more {what} not shown." };

	if (limit == 0 || total <= limit)
		return;
	report_begin_table(report, &table);
	report_number(report, total - limit);
	report_text(report, noun);
	report_end_row(report);
	report_end_table(report);
}

void rows_not_looked_at(struct report *report, const char *noun, const struct ranges *ranges)
{
	static const struct column columns[] = {
		{ "count", VALUE_COUNT },
		{ "what", VALUE_TEXT },
	};
	static const struct table table = {
		"left out", columns, 2,
		"... and {count} more {what}: what they are in was not looked at."
	};

	if (ranges_found(ranges) == ranges->count)
		return;
	report_begin_table(report, &table);
	report_number(report, ranges_found(ranges) - ranges->count);
	report_text(report, noun);
	report_end_row(report);
	report_end_table(report);
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

void rows_signature(struct report *report, const struct analysis *analysis,
		    const struct set_query *query, allocation_id id)
{
	uint64_t signature = analysis_signature(analysis, id);
	const char *name;

	if (signature) {
		report_number(report, signature);
		name = classes_literal_name(analysis_classes(analysis), signature);
		report_text(report, name ? name : rows_signature_name(analysis, query, signature));
	} else {
		report_absent(report);
		report_absent(report);
	}
}

void rows_identity(struct report *report, const struct analysis *analysis, allocation_id id)
{
	struct identity identity;

	if (analysis_identity(analysis, id, &identity)) {
		report_text(report, identity.name);
		report_number(report, identity.offset);
	} else {
		report_absent(report);
		report_absent(report);
	}
}

static void write_retained(struct report *report, const struct analysis *analysis,
			   const struct set_query *query, allocation_id id)
{
	if (query->sort == SORT_RETAINED &&
	    bitmap_get(allocation_used(analysis_index(analysis)), id))
		report_number(report, dominators_retained(analysis_dominators(analysis), id));
	else
		report_absent(report);
}

void rows_allocation(struct report *report, const struct analysis *analysis,
		     const struct set_query *query, allocation_id id, const char *state)
{
	const struct allocation_index *index = analysis_index(analysis);

	report_text(report, state);
	report_number(report, allocation_start(index, id));
	report_number(report, allocation_size(index, id));
	rows_signature(report, analysis, query, id);
	rows_identity(report, analysis, id);
	write_retained(report, analysis, query, id);
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
