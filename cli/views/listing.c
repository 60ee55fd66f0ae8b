#include "cli/views/listing.h"

#include "analyzer/analysis/liveness.h"
#include "analyzer/query/order.h"
#include "cli/views/annotation_rows.h"
#include "cli/views/comment_row.h"
#include "cli/views/rows.h"

struct listing {
	struct analysis *analysis;
	const struct selection *selection;
	bool contents;
	struct report *report;
	struct annotating annotating;
	const struct table *table; /* of allocations */
	struct error *error;	   /* that ended a visit; owned */
	bool in_table;
};

/* The table ends where something stands between its rows, and goes on later. */
static void enter_table(struct listing *listing)
{
	if (!listing->in_table)
		report_begin_table(listing->report, listing->table);
	listing->in_table = true;
}

static void leave_table(struct listing *listing)
{
	if (listing->in_table)
		report_end_table(listing->report);
	listing->in_table = false;
}

/* Less than describe tells: whether it is used, which is known soon. */
static const char *state_of(const struct analysis *analysis, allocation_id id)
{
	enum live_state state = liveness_of(analysis, id);

	if (state == STATE_CACHED)
		state = STATE_FREE;
	return liveness_title(state < STATE_UNSWEPT ? STATE_USED : state);
}

static void write_annotations(struct listing *listing, allocation_id id)
{
	leave_table(listing);
	listing->error = annotation_rows_write(&listing->annotating, id, listing->report);
}

static bool write_allocation(void *data, allocation_id id)
{
	struct listing *listing = data;
	struct report *report = listing->report;
	const struct allocation_index *index = analysis_index(listing->analysis);
	uint64_t start = allocation_start(index, id);
	uint64_t size = allocation_size(index, id);
	struct memory_view view;

	enter_table(listing);
	rows_allocation(report, listing->analysis, &listing->selection->query, id,
			state_of(listing->analysis, id));
	view = rows_view(listing->analysis, start, size, listing->selection);
	report_row(report, VALUE_IF(listing->contents, &view));
	if (listing->annotating.rules)
		write_annotations(listing, id);
	return !listing->error && !report_broken(report);
}

/* The empty line behind each is part of the format that scripts know. */
#define LISTED_TABLE(name, sentence) \
	TABLE(name, sentence, ALLOCATION_COLUMNS, { "contents", VALUE_MEMORY })

#define LISTED ALLOCATION_SENTENCE "[\n{contents}]"

static const struct table allocation_table = LISTED_TABLE("allocation", LISTED "\n");

/* Where annotations come in front of the empty line. */
static const struct table annotated_table = LISTED_TABLE("allocation", LISTED);

static void write_comment(void *data, const struct member_comment *comment)
{
	struct listing *listing = data;

	leave_table(listing);
	comment_row(listing->report, listing->analysis, comment);
}

static struct error *write_allocations(struct listing *listing)
{
	const struct set_query *query = &listing->selection->query;
	_cleanup_(members_deinit) struct members members = { 0 };
	struct report *report = listing->report;
	const struct member_visitor visitor = { write_allocation, write_comment, listing };
	struct set_total total;
	struct error *error = query_select(listing->analysis, query, &members);

	if (!error)
		error = analysis_need(listing->analysis, STAGE_CLASSES);
	if (!error)
		error = annotation_rows_init(&listing->annotating, listing->analysis,
					     listing->selection);
	if (error)
		return error;
	listing->annotating.members = &members;
	listing->table = listing->annotating.rules ? &annotated_table : &allocation_table;
	enter_table(listing);
	error = query_visit(listing->analysis, query, &members, &visitor);
	leave_table(listing);
	if (!error)
		error = take(listing->error);
	if (error)
		return error;
	total = allocations_total(analysis_index(listing->analysis), &members.set);
	rows_left_out(report, "allocations", total.count, query->limit);
	rows_total(report, "allocations", total);
	return NULL;
}

static void write_range_rows(struct listing *listing, const struct ranges *ranges, size_t count)
{
	const struct range_kind *kind = listing->selection->query.set->ranges;

	report_begin_table(listing->report, &kind->table);
	for (size_t i = 0; i < count && !report_broken(listing->report); i++) {
		struct range range = ranges_at(ranges, i);

		kind->write(listing->analysis, ranges, &range, listing->report);
		report_end_row(listing->report);
	}
	report_end_table(listing->report);
}

static void write_range_contents(struct listing *listing, const struct ranges *ranges, size_t count)
{
	static const struct table table =
		TABLE("range", "Range at {address} of size {size}\n{contents}\n",
		      { "address", VALUE_ADDRESS }, { "size", VALUE_BYTES },
		      { "contents", VALUE_MEMORY });
	struct report *report = listing->report;

	report_begin_table(report, &table);
	for (size_t i = 0; i < count && !report_broken(report); i++) {
		struct range range = ranges_at(ranges, i);
		struct memory_view view =
			rows_view(listing->analysis, range.start, range.size, listing->selection);

		report_row(report, range.start, range.size, &view);
	}
	report_end_table(report);
}

static struct error *write_ranges(struct listing *listing)
{
	const struct set_query *query = &listing->selection->query;
	_cleanup_(ranges_deinit) struct ranges ranges = { 0 };
	struct error *error = query_collect(listing->analysis, query, &ranges);
	size_t count = ranges.count;

	if (!error && !listing->contents)
		error = analysis_need(listing->analysis, query->set->ranges->needs);
	if (error)
		return error;
	if (query->limit && count > query->limit)
		count = query->limit;
	if (listing->contents && !query->set->ranges->contiguous)
		return error_create(ERROR_USAGE,
				    "'%s' are not stretches of memory to show; see 'list %s'",
				    query->set->name, query->set->name);
	if (listing->contents)
		write_range_contents(listing, &ranges, count);
	else
		write_range_rows(listing, &ranges, count);
	rows_left_out(listing->report, rows_noun(query), ranges_found(&ranges), count);
	rows_total(listing->report, rows_noun(query), ranges_total(&ranges));
	return NULL;
}

struct error *listing_write(struct analysis *analysis, const struct selection *selection,
			    bool contents, struct report *report)
{
	struct listing listing = { analysis, selection, contents, report };
	struct error *error;

	if (selection->query.set->ranges)
		return write_ranges(&listing);
	error = write_allocations(&listing);
	annotating_deinit(&listing.annotating);
	error_destroy(listing.error);
	return error;
}
