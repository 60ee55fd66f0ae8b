/*
 * Sets member by member: a header for each, then its contents where they are wanted, and the total
 * at the end.
 */
#include "analyzer/analysis/liveness.h"
#include "analyzer/kinds/kind_key.h"
#include "analyzer/query/columns.h"
#include "analyzer/query/order.h"
#include "cli/views/member_rows.h"
#include "cli/views/rows.h"

#include <inttypes.h>

struct listing {
	struct analysis *analysis;
	const struct selection *selection;
	bool contents;
	struct report *report;
	struct annotating annotating;
	bool shows_members;	   /* of values with a type */
	const struct table *table; /* of allocations */
	struct error *error;	   /* that ended a visit; owned */
	bool in_table;
	struct column_choice choice; /* of --columns */
	struct column_facts facts;
	struct column_row row;
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

/* The empty line behind each is part of the format that scripts know. */
#define LISTED_TABLE(name, sentence)                                      \
	TABLE(name, sentence, ALLOCATION_COLUMNS, { "type", VALUE_TEXT }, \
	      { "contents", VALUE_MEMORY })

#define LISTED ALLOCATION_SENTENCE "[\n... of type {type}][\n{contents}]"

static const struct table allocation_table = LISTED_TABLE("allocation", LISTED "\n");

/* For annotations or members, which follow the row before the empty line. */
static const struct table open_table = LISTED_TABLE("allocation", LISTED);

static void choose_table(struct listing *listing, bool has_members)
{
	const struct table *table =
		listing->annotating.rules || has_members ? &open_table : &allocation_table;

	if (listing->table != table)
		leave_table(listing);
	listing->table = table;
}

static bool write_allocation(void *data, allocation_id id)
{
	struct listing *listing = data;
	struct report *report = listing->report;
	const struct allocation_index *index = analysis_index(listing->analysis);
	uint64_t start = allocation_start(index, id);
	uint64_t size = allocation_size(index, id);
	struct memory_view view;
	struct typed typed;
	bool is_typed = analysis_type_of(listing->analysis, id, &typed);
	bool has_class = analysis_signature(listing->analysis, id) != 0;
	enum members_by by =
		listing->shows_members ? members_by(listing->analysis, id) : MEMBERS_UNKNOWN;
	/* Scripts for other tools expect words of objects of C++. */
	bool has_members = by != MEMBERS_UNKNOWN &&
			   (by != MEMBERS_BY_TYPE || !has_class || listing->selection->is_address ||
			    runtimes_have_fields(analysis_runtimes(listing->analysis), id));

	choose_table(listing, has_members);
	enter_table(listing);
	rows_allocation(report, listing->analysis, &listing->selection->query, id,
			state_of(listing->analysis, id));
	view = rows_view(listing->analysis, start, size, listing->selection);
	/* A class says it in the line of the signature. */
	report_row(report,
		   is_typed && !has_class ? typing_name(analysis_typing(listing->analysis), typed)
					  : NULL,
		   VALUE_IF(listing->contents && !has_members, &view));
	if (has_members) {
		leave_table(listing);
		listing->error = member_rows(report, listing->analysis, id, by);
	}
	if (listing->annotating.rules)
		write_annotations(listing, id);
	else if (has_members)
		rows_text(report, "");
	return !listing->error && !report_broken(report);
}

static bool write_columns(void *data, allocation_id id)
{
	struct listing *listing = data;

	enter_table(listing);
	listing->row.id = id;
	listing->error = column_choice_write(&listing->choice, &listing->row, listing->report);
	if (!listing->error && listing->annotating.rules)
		write_annotations(listing, id);
	return !listing->error && !report_broken(listing->report);
}

static void write_comment(void *data, const struct member_comment *comment)
{
	struct listing *listing = data;

	leave_table(listing);
	comment_row(listing->report, listing->analysis, comment);
}

/*
 * Members are for who asks for an address or a kind. Else, and where bytes are asked for, contents
 * are what scripts for other tools expect.
 */
static bool shows_members(const struct listing *listing)
{
	const struct selection *selection = listing->selection;
	bool has_kind = selection->is_address;

	for (size_t i = 0; i < selection->query.term_count; i++)
		has_kind |= selection->query.terms[i].kind.word != NULL;
	return has_kind && listing->contents && !selection->ascii && !selection->has_show_up_to &&
	       !listing->report->chap;
}

/* Build what the rows of the members need, and choose their table. */
static struct error *prepare_rows(struct listing *listing, const struct bitmap *members)
{
	struct analysis *analysis = listing->analysis;

	if (listing->selection->columns) {
		TRY(column_choice_need(&listing->choice, &listing->facts, members));
		column_row_init(&listing->row, &listing->facts);
		listing->table = &listing->choice.table;
		return NULL;
	}
	TRY(analysis_need(analysis, STAGE_CLASSES));
	listing->shows_members = shows_members(listing);
	choose_table(listing, false);
	/* Members also show the type that they point to. */
	return listing->shows_members ? analysis_need_types(analysis)
				      : kind_need_types(analysis, members);
}

static struct error *write_allocations(struct listing *listing)
{
	const struct set_query *query = &listing->selection->query;
	const char *columns = listing->selection->columns;
	_cleanup_(members_deinit) struct members members = { 0 };
	struct report *report = listing->report;
	const struct member_visitor visitor = { columns ? write_columns : write_allocation,
						write_comment, listing };
	struct set_total total;
	struct error *error;

	if (columns)
		TRY(column_choice_parse(columns, &listing->choice));
	TRY(query_select(listing->analysis, query, &members));
	TRY(annotation_rows_init(&listing->annotating, listing->analysis, listing->selection));
	TRY(prepare_rows(listing, &members.set));
	listing->annotating.members = &members;
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
		return error_create(ERROR_USAGE, "'%s' cannot be shown as memory; see 'list %s'",
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
	struct listing listing = { analysis, selection, contents, report,
				   .facts = { analysis, report->no_content } };
	const struct set *set = selection->query.set;
	struct error *error;

	if (set->ranges && selection->columns)
		return error_create(ERROR_USAGE,
				    "'%s' is not a set of allocations: --columns is for these",
				    set->name);
	if (set->ranges)
		return write_ranges(&listing);
	error = write_allocations(&listing);
	column_facts_deinit(&listing.facts);
	annotating_deinit(&listing.annotating);
	error_destroy(listing.error);
	return error;
}

static struct error *list_run(struct analysis *analysis, const void *arguments,
			      struct report *report)
{
	return write_set(analysis, arguments, false, report);
}

static const struct argp_option list_options[] = {
	{ "columns", KEEP(TEXT, struct selection, columns), "COLUMN,...", 0,
	  "Show these columns of each allocation, such as address,size,kind,retained ('help columns' lists all)",
	  0 },
	{ 0 },
};

const struct command command_list = {
	.name = "list",
	.summary = "List a set, each member with its size and signature",
	.words = "SET [KIND]",
	.example = "list used --sort-by bytes --limit 10   # the largest\n"
		   "list leaked app::Session\n"
		   "list incoming 55d0c0ffee10   # what refers to it\n"
		   "list leaked --columns address,size,kind --format csv\n"
		   "list threads",
	.description = "The last line is the same as that of 'count'.",
	TAKES_SELECTION,
	.shorten = selection_shorten,
	.options = &contents_options[ANNOTATION_OPTIONS],
	.own_options = list_options,
	.parse = selection_parse,
	.run = list_run,
};

/* An allocation without a type may be leaked and have a likely type. */
static struct error *need_type(struct listing *listing, allocation_id id)
{
	struct analysis *analysis = listing->analysis;
	struct typed typed;

	if (allocation_state(analysis_index(analysis), id) != BLOCK_USED)
		return NULL;
	TRY(analysis_need(analysis, STAGE_TYPES));
	if (analysis_type_of(analysis, id, &typed))
		return NULL;
	return analysis_need(analysis, STAGE_LEAKED_TYPES);
}

/* The allocation that the address is in. */
static struct error *show_address(struct analysis *analysis, const struct selection *selection,
				  struct report *report)
{
	struct listing listing = { analysis, selection, true, report };
	struct error *error;
	allocation_id id;

	TRY(analysis_need(analysis, STAGE_HEAP));
	TRY(analysis_need(analysis, STAGE_CLASSES));
	id = allocation_find(analysis_index(analysis), selection->address);
	if (id == NO_ALLOCATION)
		return error_create(ERROR_USAGE,
				    "there is no allocation at 0x%" PRIx64
				    "; 'dump' shows any memory",
				    selection->address);
	listing.shows_members = shows_members(&listing);
	TRY(need_type(&listing, id));
	error = annotation_rows_init(&listing.annotating, analysis, selection);
	if (!error)
		write_allocation(&listing, id);
	leave_table(&listing);
	annotating_deinit(&listing.annotating);
	return error ? error : listing.error;
}

static struct error *show_run(struct analysis *analysis, const void *arguments,
			      struct report *report)
{
	const struct selection *selection = arguments;

	if (selection->is_address)
		return show_address(analysis, selection, report);
	return write_set(analysis, arguments, true, report);
}

const struct command command_show = {
	.name = "show",
	.summary = "Show the contents of each member of a set, or of an address",
	.words = "ADDRESS | SET [KIND]",
	.example = "show leaked --limit 3 --ascii\n"
		   "show 55d0c0ffee10   # its members, where its type is known\n"
		   "show stacks --show-up-to 80 --limit 1",
	.description =
		"Where debug information gives the type of an address, or of a set narrowed to a C type or a class of Crystal, contents are members with names and values, as in gdb. Members of objects of PHP and elements of its arrays have names and keys without it. For an object of Crystal without it, they are words by offset, each with its target. Otherwise, and with --ascii or --show-up-to, they are words, 32 bytes to a line, after the offset of the line.",
	TAKES_SELECTION,
	.shorten = selection_shorten,
	.options = contents_options,
	.parse = selection_or_address_parse,
	.run = show_run,
};
