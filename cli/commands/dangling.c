#include "analyzer/account/dangling.h"
#include "cli/views/rows.h"

static struct error *dangling_parse(int key, const char *value, void *output)
{
	struct selection *selection = output;

	if (key != ARGP_KEY_END)
		return selection_parse(key, value, selection);
	TRY(selection_end_of_allocations(selection));
	if (selection->query.sort != SORT_DEFAULT && selection->query.sort != SORT_COUNT)
		return error_create(ERROR_USAGE, "'dangling' can only be sorted by count");
	return NULL;
}

static struct error *write_rows(struct report *report, const struct analysis *analysis,
				const struct danglings *danglings, uint64_t limit)
{
	static const struct table table =
		TABLE("dangling", NULL, { "references", VALUE_COUNT }, { "to starts", VALUE_COUNT },
		      { "owners", VALUE_COUNT }, { "such as", VALUE_ADDRESS },
		      { "freed", VALUE_ADDRESS }, { "member", VALUE_TEXT });

	report_begin_table(report, &table);
	for (size_t i = 0; i < danglings->count && (!limit || i < limit); i++) {
		const struct dangling *row = &danglings->items[i];
		_cleanup_(free) char *name = dangling_name(analysis, row);

		TRY_MEMORY(name);
		report_row(report, row->references, row->to_starts, row->owners, row->example,
			   row->freed, name);
	}
	report_end_table(report);
	rows_left_out(report, "members", danglings->count, limit);
	return NULL;
}

static void write_total(struct report *report, const struct danglings *danglings)
{
	static const struct table table = TABLE(
		"total dangling",
		"{references,} {references|reference|references} of {members,} {members|member|members} {references|leads|lead} to freed memory.[ {doubtful,} {doubtful|member|members} more {doubtful|leads|lead} only into the middle of freed blocks, likely by chance.]",
		{ "references", VALUE_COUNT }, { "members", VALUE_COUNT },
		{ "doubtful", VALUE_COUNT });

	report_single(report, &table, danglings->references, danglings->count,
		      value_nonzero(danglings->doubtful));
}

static struct error *dangling_run(struct analysis *analysis, const void *input,
				  struct report *report)
{
	const struct selection *selection = input;
	const struct set_query *query = &selection->query;
	_cleanup_(members_deinit) struct members members = { 0 };
	_cleanup_(table_release) struct danglings danglings = { 0 };
	struct set_query unordered = *query;

	unordered.any_order = true;
	TRY(query_select(analysis, &unordered, &members));
	TRY(dangling_find(analysis, &members.set, &danglings));
	TRY(write_rows(report, analysis, &danglings, query->limit));
	write_total(report, &danglings);
	return NULL;
}

const struct command command_dangling = {
	.name = "dangling",
	.summary = "Show which members and variables still lead to freed memory",
	.words = "[SET [KIND]]",
	.example = "dangling\n"
		   "dangling used Session\n"
		   "dangling --limit 10",
	.description =
		"Who follows such a reference uses memory after it was freed, or frees it twice. A row counts the references in one member of one kind, or in one static variable: 'to starts' are those that lead to where a freed block begins; others lead into it, as to a member, or into blocks that were joined. Members without any that leads to a start are left out. 'such as' is the first owner, and 'freed' the block that it leads to. Words of stacks, spare room of containers and words that a language knows to be unused do not count. A reference may also be a word that the program will not look at again. The set is 'used' by default; static variables count with it alone.",
	.options = &contents_options[SELECTION_OPTIONS],
	.parse = dangling_parse,
	.shorten = selection_shorten,
	TAKES_SELECTION,
	.sums_up = true,
	.needs = STAGE_GRAPH,
	.run = dangling_run,
};
