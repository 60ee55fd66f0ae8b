/*
 * Sets member by member: a header for each, then its contents where they are wanted, and the total
 * at the end.
 */
#include "analyzer/analysis/liveness.h"
#include "analyzer/query/order.h"
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

static void write_range_contents(struct listing *listing, const struct ranges *ranges)
{
	static const struct table table =
		TABLE("range", "Range at {address} of size {size}\n{contents}\n",
		      { "address", VALUE_ADDRESS }, { "size", VALUE_BYTES },
		      { "contents", VALUE_MEMORY });
	const struct set_query *query = &listing->selection->query;
	struct report *report = listing->report;
	size_t count = query->limit && query->limit < ranges->count ? query->limit : ranges->count;

	report_begin_table(report, &table);
	for (size_t i = 0; i < count && !report_broken(report); i++) {
		struct range range = ranges_at(ranges, i);
		struct memory_view view =
			rows_view(listing->analysis, range.start, range.size, listing->selection);

		report_row(report, range.start, range.size, &view);
	}
	report_end_table(report);
	rows_left_out(report, rows_noun(query), ranges_found(ranges), count);
	rows_total(report, rows_noun(query), ranges_total(ranges));
}

static struct error *write_ranges(struct listing *listing)
{
	const struct set_query *query = &listing->selection->query;
	const struct range_kind *kind = query->set->ranges;
	_cleanup_(ranges_deinit) struct ranges ranges = { 0 };

	TRY(query_collect(listing->analysis, query, &ranges));
	if (!listing->contents)
		TRY(analysis_need(listing->analysis, kind->needs));
	if (listing->contents && !kind->contiguous)
		return error_create(ERROR_USAGE,
				    "'%s' are not stretches of memory to show; see 'list %s'",
				    query->set->name, query->set->name);
	if (listing->contents)
		write_range_contents(listing, &ranges);
	else
		rows_ranges(listing->report, listing->analysis, kind, &ranges, query->limit);
	return NULL;
}

static struct error *write_set(struct analysis *analysis, const struct selection *selection,
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

static struct error *list_run(struct analysis *analysis, const void *arguments,
			      struct report *report)
{
	return write_set(analysis, arguments, false, report);
}

const struct command command_list = {
	.name = "list",
	.summary = "List a set, each member with its size and signature",
	.words = "SET [KIND]",
	.example = "list used --sort-by bytes --limit 10   # the largest\n"
		   "list leaked app::Session\n"
		   "list incoming 55d0c0ffee10   # what refers to it\n"
		   "list threads",
	.description = "The last line is that of 'count'.",
	TAKES_SELECTION,
	.options = &contents_options[ANNOTATION_OPTIONS],
	.parse = selection_parse,
	.run = list_run,
};

static struct error *show_run(struct analysis *analysis, const void *arguments,
			      struct report *report)
{
	return write_set(analysis, arguments, true, report);
}

const struct command command_show = {
	.name = "show",
	.summary = "List a set with the contents of each member",
	.words = "SET [KIND]",
	.example = "show leaked --limit 3 --ascii\n"
		   "show allocation 55d0c0ffee10\n"
		   "show stacks --show-up-to 80 --limit 1",
	.description = "Contents are 8-byte words, four to a line, behind the offset of the line.",
	TAKES_SELECTION,
	.options = contents_options,
	.parse = selection_parse,
	.run = show_run,
};
