#include "analyzer/kinds/object_census.h"
#include "cli/views/rows.h"

struct objects_arguments {
	struct selection selection;
	bool retained;
};

enum { KEY_RETAINED = 256, KEY_TOP };

static const struct argp_option own_options[] = {
	{ "retained", KEY_RETAINED, NULL, 0, "Also show what the objects of each class retain", 0 },
	{ "top", KEY_TOP, "COUNT", 0, "Show the first COUNT classes, as --limit does", 0 },
	{ 0 },
};

static struct error *check(struct objects_arguments *arguments)
{
	TRY(selection_end_of_allocations(&arguments->selection));
	if (arguments->selection.query.sort == SORT_ADDRESS)
		return error_create(ERROR_USAGE, "classes of objects have no order by address");
	return NULL;
}

static struct error *objects_parse(int key, const char *value, void *output)
{
	struct objects_arguments *arguments = output;

	switch (key) {
	case KEY_RETAINED:
		arguments->retained = true;
		return NULL;
	case KEY_TOP:
		return query_take_limit(&arguments->selection.query, value);
	case ARGP_KEY_END:
		return check(arguments);
	default:
		return selection_parse(key, value, &arguments->selection);
	}
}

static void objects_release(void *output)
{
	struct objects_arguments *arguments = output;

	selection_release(&arguments->selection);
}

static bool objects_shorten(void *output, uint64_t count)
{
	struct objects_arguments *arguments = output;

	if (arguments->selection.query.limit || arguments->selection.all)
		return false;
	arguments->selection.query.limit = count;
	return true;
}

static void write_groups(const struct object_census *census, uint64_t limit, bool retained,
			 struct report *report)
{
	static const struct table table =
		TABLE("class", NULL, { "objects", VALUE_COUNT }, { "bytes", VALUE_BYTES },
		      { "with blocks", VALUE_BYTES }, { "share", VALUE_SHARE },
		      { "retained", VALUE_BYTES }, { "class", VALUE_TEXT });
	uint64_t whole = census->total.bytes + census->total.block_bytes;
	char number[CLASS_NAME_SIZE];

	report_begin_table(report, &table);
	for (size_t i = 0; i < census->groups.count && (!limit || i < limit); i++) {
		const struct object_group *group = &census->groups.items[i];
		uint64_t bytes = group->bytes + group->block_bytes;

		class_number_name(kind_signature(group->key), number);
		report_row(report, group->count, group->bytes, bytes, rows_share(bytes, whole),
			   VALUE_IF(retained, group->retained), group->name ? group->name : number);
	}
	report_end_table(report);
	rows_left_out(report, "classes", census->groups.count, limit);
}

static void write_total(const struct object_census *census, struct report *report)
{
	static const struct table table = TABLE(
		"total objects",
		"{objects} {objects|object|objects} of {classes} {classes|class|classes} {objects|uses|use} {bytes,} bytes, {with blocks,} with their blocks.",
		{ "objects", VALUE_COUNT }, { "classes", VALUE_COUNT }, { "bytes", VALUE_BYTES },
		{ "blocks", VALUE_COUNT }, { "with blocks", VALUE_BYTES });
	const struct object_group *total = &census->total;

	report_single(report, &table, total->count, census->groups.count, total->bytes,
		      total->blocks, total->bytes + total->block_bytes);
}

/*
 * Zero rows look like an answer, so say why there may be none. Reasons for wrong answers were
 * reported already.
 */
static void note_none(struct analysis *analysis, const struct object_census *census)
{
	const struct runtimes *runtimes = analysis_runtimes(analysis);
	char text[64];

	if (census->groups.count > 0 || runtimes_have_objects(runtimes) ||
	    findings_incomplete(analysis_findings(analysis)))
		return;
	if (runtime_count(runtimes) == 0)
		analysis_note(analysis, "this process has no objects of a known language");
	for (size_t i = 0; i < runtime_count(runtimes); i++) {
		snprintf(text, sizeof(text), "no objects of %s were found",
			 runtime_at(runtimes, i)->name);
		analysis_note(analysis, text);
	}
}

static struct error *objects_run(struct analysis *analysis, const void *input,
				 struct report *report)
{
	const struct objects_arguments *arguments = input;
	const struct set_query *query = &arguments->selection.query;
	_cleanup_(members_deinit) struct members members = { 0 };
	_cleanup_(object_census_deinit) struct object_census census = { 0 };
	struct object_census_input census_input = {
		.analysis = analysis,
		.members = &members.set,
		.order = query->sort == SORT_COUNT	? OBJECTS_BY_COUNT
			 : query->sort == SORT_RETAINED ? OBJECTS_BY_RETAINED
							: OBJECTS_BY_BYTES,
		.retained = arguments->retained || query->sort == SORT_RETAINED,
	};
	struct set_query unordered = *query;

	unordered.any_order = true;
	TRY(query_select(analysis, &unordered, &members));
	TRY(object_census_take(&census_input, &census));
	note_none(analysis, &census);
	write_groups(&census, query->limit, census_input.retained, report);
	write_total(&census, report);
	return NULL;
}

const struct command command_objects = {
	.name = "objects",
	.summary = "Count the objects of a language's runtime by class",
	.words = "[SET [KIND]]",
	.example = "objects\n"
		   "objects --top 10 --retained\n"
		   "objects leaked --sort-by count",
	.description =
		"For programs whose language has objects that name their class. The set is 'used' by default. 'bytes' are those of the objects themselves. 'with blocks' adds what each leads to over anything but objects, such as the table of a dict or the items of a list; what several objects lead to is counted once, with the nearest. Classes with the most bytes come first. Objects in static memory are not counted.",
	.word = WORD_SET,
	.own_options = own_options,
	.options = &contents_options[SELECTION_OPTIONS],
	.parse = objects_parse,
	.shorten = objects_shorten,
	.sums_up = true,
	.release = objects_release,
	.arguments_size = sizeof(struct objects_arguments),
	.needs = STAGE_HEAP,
	.run = objects_run,
};
