#include "cli/listing.h"

#include "analyzer/query/order.h"
#include "cli/rows.h"

struct listing {
	struct analysis *analysis;
	const struct selection *selection;
	bool contents;
	struct report *report;
};

static bool write_allocation(void *data, allocation_id id)
{
	struct listing *listing = data;
	struct report *report = listing->report;
	const struct allocation_index *index =
		analysis_index(listing->analysis);
	uint64_t start = allocation_start(index, id);
	uint64_t size = allocation_size(index, id);
	struct memory_view view;

	report_text(report,
		    bitmap_get(allocation_used(index), id) ? "Used" : "Free");
	report_number(report, start);
	report_number(report, size);
	rows_signature(report, listing->analysis, &listing->selection->query,
		       id);
	rows_identity(report, listing->analysis, id);
	if (listing->contents) {
		view = rows_view(listing->analysis, start, size,
				 listing->selection);
		report_memory(report, &view);
	} else {
		report_absent(report);
	}
	report_end_row(report);
	return !report_broken(report);
}

/* The empty line behind each is part of the format that scripts know. */
static const struct column allocation_columns[] = {
	{ "state", VALUE_TEXT },	{ "address", VALUE_ADDRESS },
	{ "size", VALUE_BYTES },	{ "signature", VALUE_ADDRESS },
	{ "name", VALUE_TEXT },		{ "identity", VALUE_TEXT },
	{ "at offset", VALUE_ADDRESS }, { "contents", VALUE_MEMORY },
};

static const struct table allocation_table = {
	"allocation", allocation_columns, 8,
	"{state} allocation at {address} of size {size}"
	"[\n... with signature {signature}][({name})]"
	"[\n... with identity {identity} at offset {at offset}]"
	"[\n{contents}]\n"
};

static struct error *write_allocations(struct listing *listing)
{
	const struct set_query *query = &listing->selection->query;
	_cleanup_(members_deinit) struct members members = { 0 };
	struct report *report = listing->report;
	struct set_total total;
	struct error *error = query_select(listing->analysis, query, &members);

	if (!error)
		error = analysis_need(listing->analysis, STAGE_CLASSES);
	if (error)
		return error;
	report_begin_table(report, &allocation_table);
	error = query_visit(listing->analysis, query, &members,
			    write_allocation, listing);
	report_end_table(report);
	if (error)
		return error;
	total = allocations_total(analysis_index(listing->analysis),
				  &members.set);
	rows_left_out(report, "allocations", total.count, query->limit);
	rows_total(report, "allocations", total);
	return NULL;
}

static void write_range_rows(struct listing *listing,
			     const struct ranges *ranges, size_t count)
{
	const struct range_kind *kind = listing->selection->query.set->ranges;

	report_begin_table(listing->report, &kind->table);
	for (size_t i = 0; i < count; i++) {
		kind->write(listing->analysis, ranges, &ranges->list[i],
			    listing->report);
		report_end_row(listing->report);
	}
	report_end_table(listing->report);
}

static void write_range_contents(struct listing *listing,
				 const struct ranges *ranges, size_t count)
{
	static const struct column columns[] = {
		{ "address", VALUE_ADDRESS },
		{ "size", VALUE_BYTES },
		{ "contents", VALUE_MEMORY },
	};
	static const struct table table = {
		"range", columns, 3,
		"Range at {address} of size {size}\n{contents}\n"
	};
	struct report *report = listing->report;

	report_begin_table(report, &table);
	for (size_t i = 0; i < count && !report_broken(report); i++) {
		const struct range *range = &ranges->list[i];
		struct memory_view view =
			rows_view(listing->analysis, range->start, range->size,
				  listing->selection);

		report_number(report, range->start);
		report_number(report, range->size);
		report_memory(report, &view);
		report_end_row(report);
	}
	report_end_table(report);
}

static struct error *write_ranges(struct listing *listing)
{
	const struct set_query *query = &listing->selection->query;
	_cleanup_(ranges_deinit) struct ranges ranges = { 0 };
	struct error *error = query_collect(listing->analysis, query, &ranges);
	size_t count = ranges.count;

	if (error)
		return error;
	if (query->limit && count > query->limit)
		count = query->limit;
	if (listing->contents && !query->set->ranges->contiguous)
		return error_create(ERROR_USAGE,
				    "'%s' are not stretches of memory to "
				    "show; see 'list %s'",
				    query->set->name, query->set->name);
	if (listing->contents)
		write_range_contents(listing, &ranges, count);
	else
		write_range_rows(listing, &ranges, count);
	rows_left_out(listing->report, rows_noun(query), ranges.count, count);
	rows_total(listing->report, rows_noun(query), ranges_total(&ranges));
	return NULL;
}

struct error *listing_write(struct analysis *analysis,
			    const struct selection *selection, bool contents,
			    struct report *report)
{
	struct listing listing = { analysis, selection, contents, report };

	if (selection->query.set->ranges)
		return write_ranges(&listing);
	return write_allocations(&listing);
}
