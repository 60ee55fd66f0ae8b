#include "cli/views/rows.h"
#include "cli/views/waste_rows.h"

#include <string.h>

/* So much fits a screen. */
enum { USUAL_ROWS = 12, USUAL_CONTENTS = 6, ROWS_OF_ONE = 20 };

struct waste_arguments {
	struct selection selection;
	bool has_kind;
	enum waste_kind kind;
};

/* The first word may be a kind; it is a set as well, or not. */
static bool take_kind(struct waste_arguments *arguments, const char *word)
{
	if (arguments->has_kind || arguments->selection.query.set)
		return false;
	for (enum waste_kind kind = 0; kind < WASTE_KINDS; kind++) {
		if (strcmp(waste_kind_name(kind), word) != 0)
			continue;
		arguments->has_kind = true;
		arguments->kind = kind;
		return true;
	}
	return false;
}

static struct error *check(struct waste_arguments *arguments)
{
	struct set_query *query = &arguments->selection.query;
	struct error *error = NULL;

	if (!query->set)
		error = query_take_word(query, "used");
	if (!error)
		error = selection_parse(ARGP_KEY_END, NULL, &arguments->selection);
	if (!error && query->set->ranges)
		return error_create(ERROR_USAGE, "'%s' is no set of allocations", query->set->name);
	if (!error && query->sort != SORT_DEFAULT && query->sort != SORT_BYTES)
		return error_create(ERROR_USAGE, "'waste' can only be sorted by bytes");
	return error;
}

static struct error *waste_parse(int key, const char *value, void *output)
{
	struct waste_arguments *arguments = output;

	if (key == ARGP_KEY_END)
		return check(arguments);
	if (key == ARGP_KEY_ARG && take_kind(arguments, value))
		return NULL;
	return selection_parse(key, value, &arguments->selection);
}

static void waste_release(void *output)
{
	struct waste_arguments *arguments = output;

	selection_release(&arguments->selection);
}

static struct error *write_waste(struct analysis *analysis, const struct waste_arguments *arguments,
				 const struct waste *waste, uint64_t rows, struct report *report)
{
	enum waste_kind only = arguments->has_kind ? arguments->kind : WASTE_KINDS;
	struct error *error = NULL;

	if (!arguments->has_kind)
		waste_write_sums(report, waste, only);
	waste_write_rows(report, waste, only, rows);
	if (only == WASTE_KINDS || only == WASTE_DUPLICATES)
		error = waste_write_contents(report, analysis, waste);
	if (!error)
		waste_write_total(report, waste, only);
	return error;
}

static struct error *waste_run(struct analysis *analysis, const void *input, struct report *report)
{
	const struct waste_arguments *arguments = input;
	const struct set_query *query = &arguments->selection.query;
	_cleanup_(members_deinit) struct members members = { 0 };
	_cleanup_(waste_deinit) struct waste waste = { 0 };
	struct set_query unordered = *query;
	uint64_t rows = USUAL_ROWS, contents = USUAL_CONTENTS;
	struct error *error;

	if (arguments->has_kind)
		rows = contents = ROWS_OF_ONE;
	if (query->limit)
		rows = contents = query->limit;
	unordered.any_order = true;
	error = query_select(analysis, &unordered, &members);
	if (!error)
		error = waste_find(analysis, &members.set, WASTE_ROWS, contents, &waste);
	return error ? error : write_waste(analysis, arguments, &waste, rows, report);
}

const struct command command_waste = {
	.name = "waste",
	.summary = "Find wasted memory",
	.words = "[duplicates|zeros|spare|slack] [SET [KIND]]",
	.choices = "duplicates|zeros|spare|slack",
	.example = "waste\n"
		   "waste duplicates --limit 50\n"
		   "waste slack used %VectorBody\n"
		   "waste leaked",
	.description =
		"Each byte of the set, which is 'used' unless another is named, counts as one kind of waste at most:\n"
		"'slack' is what an allocation has beyond what was asked for, 'spare' is room that containers keep for what may come. Both "
		"are reported only of allocations of which they are known.\n"
		"'zeros' are contents that are all zero, and whole pages of "
		"zeros at the end of others.\n"
		"'duplicates' are contents that are the same, byte by byte, as "
		"those of an allocation at a lower address. Contents of less than 16 bytes are left out.\n"
		"Behind one of these words, only it is shown, with more lines. The sets 'duplicates' and 'zeros' are the allocations: "
		"'list duplicates', 'explain zeros --limit 1'.",
	.word = WORD_SET,
	.options = &contents_options[SELECTION_OPTIONS],
	.parse = waste_parse,
	.arguments_size = sizeof(struct waste_arguments),
	.release = waste_release,
	.needs = STAGE_HEAP,
	.run = waste_run,
};
