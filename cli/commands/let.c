#include "analyzer/base/text.h"
#include "analyzer/query/order.h"
#include "cli/views/rows.h"

#include <ctype.h>
#include <string.h>

/* let NAME = SET...; the words may touch the =. */
struct let_arguments {
	struct selection selection;
	char *name; /* NULL: list the sets that have names */
	bool has_equals;
	bool has_switch;
};

static bool is_name(const char *word)
{
	if (!isalpha((unsigned char)word[0]))
		return false;
	for (; *word; word++)
		if (!isalnum((unsigned char)*word) && *word != '-' && *word != '_')
			return false;
	return true;
}

static struct error *check_name(const char *name)
{
	if (!is_name(name))
		return error_not(name, "a name for a set: a letter, then letters, digits, - and _");
	if (set_find(name))
		return error_create(ERROR_USAGE, "'%s' is a set already; choose another name",
				    name);
	if (query_is_operator(name))
		return error_create(ERROR_USAGE, "'%s' stands between sets; choose another name",
				    name);
	if (is_address(name))
		return error_create(ERROR_USAGE,
				    "'%s' is an address, in hexadecimal; choose another name",
				    name);
	return NULL;
}

static struct error *take_name(struct let_arguments *arguments, const char *word, size_t length)
{
	arguments->name = strndup(word, length);
	return arguments->name ? check_name(arguments->name) : &error_no_memory;
}

/* Take the words up to the = and the first one behind it. */
static struct error *take_front(struct let_arguments *arguments, const char *word)
{
	size_t length = strcspn(word, "=");

	if (!arguments->name)
		TRY(take_name(arguments, word, length));
	else if (length > 0)
		return error_create(ERROR_USAGE, "'let %s' needs '=' before the set, not '%s'",
				    arguments->name, word);
	if (!word[length])
		return NULL;
	arguments->has_equals = true;
	word += length + 1;
	return *word ? selection_parse(ARGP_KEY_ARG, word, &arguments->selection) : NULL;
}

static struct error *check(struct let_arguments *arguments)
{
	struct set_query *query = &arguments->selection.query;

	TRY(query_check(query));
	if (query->set->ranges)
		return error_create(ERROR_USAGE,
				    "only sets of allocations can have a name; '%s' is not one",
				    query->set->name);
	if (query->sort != SORT_DEFAULT && !query->limit)
		return error_create(ERROR_USAGE,
				    "a named set has no order: '--sort-by' needs '--limit' here");
	return NULL;
}

static struct error *let_parse(int key, const char *value, void *output)
{
	struct let_arguments *arguments = output;

	if (key == ARGP_KEY_ARG && !arguments->has_equals)
		return take_front(arguments, value);
	if (key != ARGP_KEY_END) {
		arguments->has_switch |= key != ARGP_KEY_ARG;
		return selection_parse(key, value, &arguments->selection);
	}
	if (!arguments->name && !arguments->has_switch)
		return NULL;
	if (!arguments->name)
		return error_create(ERROR_USAGE, "a name is missing: 'let NAME = SET'");
	if (!arguments->has_equals)
		return error_create(ERROR_USAGE, "'%s' needs a set: write 'let %s = SET'",
				    arguments->name, arguments->name);
	return check(arguments);
}

static void let_release(void *input)
{
	struct let_arguments *arguments = input;

	free(arguments->name);
	selection_release(&arguments->selection);
}

static bool keep(void *data, allocation_id id)
{
	bitmap_set(data, id);
	return true;
}

/* The first ones, as the query orders them. */
static struct error *keep_first(struct analysis *analysis, const struct set_query *query,
				struct members *members)
{
	_cleanup_(bitmap_deinit) struct bitmap kept = { 0 };

	TRY(bitmap_init(&kept, members->set.count, analysis_account(analysis)));
	TRY(query_visit(analysis, query, members,
			&(struct member_visitor){ .member = keep, .data = &kept }));
	bitmap_deinit(&members->set);
	members->set = take(kept);
	return NULL;
}

static struct error *name_members(struct analysis *analysis, const struct let_arguments *arguments,
				  struct report *report)
{
	const struct set_query *query = &arguments->selection.query;
	_cleanup_(members_deinit) struct members members = { 0 };
	struct bitmap kept;

	TRY(query_select(analysis, query, &members));
	if (query->limit)
		TRY(keep_first(analysis, query, &members));
	rows_total(report, rows_noun(query),
		   allocations_total(analysis_index(analysis), &members.set));
	kept = take(members.set);
	return named_sets_assign(analysis_named_sets(analysis), arguments->name, &kept);
}

static void write_named(struct analysis *analysis, struct report *report)
{
	static const struct table table = TABLE(
		"set",
		"{set}: {count} {count|allocation uses|allocations use} 0x{bytes} ({bytes,}) bytes.",
		{ "set", VALUE_TEXT }, { "count", VALUE_COUNT }, { "bytes", VALUE_BYTES });
	const struct named_sets *sets = analysis_named_sets(analysis);
	const char *name;

	report_begin_table(report, &table);
	for (size_t i = 0; (name = named_sets_name(sets, i)) != NULL; i++) {
		struct set_total total =
			allocations_total(analysis_index(analysis), named_sets_find(sets, name));

		report_row(report, name, total.count, total.bytes);
	}
	report_end_table(report);
}

static void write_nothing_named(struct report *report)
{
	static const struct table table = TABLE("line", "{line}", { "line", VALUE_TEXT });

	report_single(report, &table, "No set has a name yet; 'help let' explains names.");
}

static struct error *let_run(struct analysis *analysis, const void *input, struct report *report)
{
	const struct let_arguments *arguments = input;

	if (arguments->name)
		return name_members(analysis, arguments, report);
	if (named_sets_name(analysis_named_sets(analysis), 0))
		write_named(analysis, report);
	else
		write_nothing_named(report);
	return NULL;
}

const struct command command_let = {
	.name = "let",
	.summary = "Name the members of a set, or list such names",
	.words = "[NAME = SET [KIND]]",
	.example = "let big = used --min-size 64K   # now 'big' is a set, too\n"
		   "let lost = leaked minus unreferenced\n"
		   "let top = leaked --sort-by bytes --limit 10   # the largest\n"
		   "let                             # which names there are",
	.description =
		"The set is evaluated at once; the name then stands for these members wherever a set is allowed: 'summarize big', 'count used minus big'. All switches that narrow and extend are allowed; '--limit' keeps only the first ones. The output is the number of members.\n"
		"A name is a letter, then letters, digits, - and _. It can be redefined, also in terms of itself: 'let big = big minus derived'. Only sets of allocations can have names; names last until heapcore ends.",
	.word = WORD_NAMING,
	.options = &contents_options[SELECTION_OPTIONS],
	.parse = let_parse,
	.hears_kept = true,
	.arguments_size = sizeof(struct let_arguments),
	.release = let_release,
	.run = let_run,
};
