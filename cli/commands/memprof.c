/*
 * The command memprof: what MemProf, a profiler within programs of Crystal, prints of its process,
 * of a dump and in MemProf's formats. Scripts read these: their first line says how many follow.
 */
#include "analyzer/base/list.h"
#include "analyzer/base/sort.h"
#include "analyzer/base/text.h"
#include "analyzer/gate/callers.h"
#include "analyzer/gate/leak_stacks.h"
#include "analyzer/kinds/holders.h"
#include "analyzer/kinds/kind_key.h"
#include "analyzer/kinds/makers.h"
#include "analyzer/kinds/reach.h"
#include "analyzer/kinds/types.h"
#include "analyzer/query/set.h"
#include "cli/command.h"

#include <assert.h>
#include <string.h>

struct memprof_arguments {
	const struct memprof_question *question; /* the first word */
	bool has_operand;
	const char *type;	  /* of graph; borrowed */
	uint64_t address;	  /* of size */
	uint64_t levels, objects; /* of graph; 0: no limit */
	uint64_t least;		  /* bytes of a line of allocations */
	bool pretty;
	bool has_levels, has_objects, has_least; /* they were given */
};

/* A subcommand of memprof. */
struct memprof_question {
	const char *word;
	const char *operand; /* operand of the subcommand, or NULL */
	struct error *(*run)(struct analysis *analysis, const struct memprof_arguments *arguments,
			     struct report *report);
	bool takes_address, takes_limits, takes_layout; /* the operand; groups of switches */
};

enum { NOTE_SIZE = 160 };

/* The line in front of so many others. */
static void write_line_count(struct report *report, uint64_t lines)
{
	static const struct table table = TABLE("lines", "{lines}", { "lines", VALUE_NUMBER });

	report_single(report, &table, lines);
}

static struct error *memprof_counts(struct analysis *analysis,
				    const struct memprof_arguments *arguments,
				    struct report *report)
{
	static const struct table table =
		TABLE("type", "{count}\t{type}", { "count", VALUE_NUMBER }, { "type", VALUE_TEXT });
	_cleanup_(types_deinit) struct types types = { 0 };

	TRY(types_find(analysis, TYPES_OBJECTS, &types));
	write_line_count(report, types.count);
	report_begin_table(report, &table);
	for (size_t i = 0; i < types.count; i++)
		report_row(report, types.list[i].count, types.list[i].name);
	report_end_table(report);
	return NULL;
}

static struct reach_input make_input(struct analysis *analysis, const struct types *types)
{
	return (struct reach_input){
		.graph = analysis_graph(analysis),
		.index = analysis_index(analysis),
		.members = &types->live,
		.groups = types->groups.items,
		.group_count = types->count,
		.account = analysis_account(analysis),
		.progress = analysis_progress(analysis),
	};
}

/* A type, and what its objects reach. */
struct reaching {
	const char *name;
	uint64_t bytes;
};

DEFINE_COMPARE(compare_reaching, struct reaching, DESCENDING(bytes), ALPHABETICAL(name))

static void write_reaching(const struct reaching *list, size_t count, struct report *report)
{
	/* Bytes are a count: decimal, as scripts expect it. */
	static const struct table table =
		TABLE("type", "{bytes}\t{type}", { "bytes", VALUE_NUMBER }, { "type", VALUE_TEXT });

	write_line_count(report, count);
	report_begin_table(report, &table);
	for (size_t i = 0; i < count; i++)
		report_row(report, list[i].bytes, list[i].name);
	report_end_table(report);
}

/* If there are too many types, leave out those with the fewest objects. */
static void limit_types(struct analysis *analysis, struct reach_input *input)
{
	size_t most = reach_most_groups(input, analysis_image(analysis)->size);
	char text[NOTE_SIZE];

	if (most == input->group_count)
		return;
	snprintf(
		text, sizeof(text),
		"there are %zu types; only the %zu with the most objects are shown, because all would take too long",
		input->group_count, most);
	input->group_count = most;
	analysis_note(analysis, text);
}

static struct error *memprof_sizes(struct analysis *analysis,
				   const struct memprof_arguments *arguments, struct report *report)
{
	_cleanup_(types_deinit) struct types types = { 0 };
	_cleanup_(free) struct reaching *list = NULL;
	_cleanup_(free) uint64_t *bytes = NULL;
	struct reach_input input = { 0 };

	TRY(types_find(analysis, TYPES_OBJECTS, &types));
	list = calloc(types.count + 1, sizeof(*list));
	bytes = calloc(types.count + 1, sizeof(*bytes));
	TRY_MEMORY(list && bytes);
	input = make_input(analysis, &types);
	limit_types(analysis, &input);
	TRY(reach_by_group(&input, bytes));
	for (size_t i = 0; i < input.group_count; i++)
		list[i] = (struct reaching){ types.list[i].name, bytes[i] };
	SORT(list, input.group_count, compare_reaching);
	write_reaching(list, input.group_count, report);
	return NULL;
}

static struct error *memprof_size(struct analysis *analysis,
				  const struct memprof_arguments *arguments, struct report *report)
{
	static const struct table table = TABLE("size", "{bytes}", { "bytes", VALUE_NUMBER });
	const struct allocation_index *index = analysis_index(analysis);
	const struct reach_input input = {
		.graph = analysis_graph(analysis),
		.index = index,
		.members = allocation_used(index),
		.account = analysis_account(analysis),
		.progress = analysis_progress(analysis),
	};
	uint64_t bytes;
	allocation_id id;

	TRY(set_find_allocation(analysis, arguments->address, &id));
	if (!bitmap_get(input.members, id))
		return error_create(ERROR_USAGE, "the allocation at 0x%jx is free",
				    (uintmax_t)allocation_start(index, id));
	TRY(reach_of(&input, id, &bytes));
	report_single(report, &table, bytes);
	return NULL;
}

enum { OFFSET_SIZE = 40 };

/* Writes the graph as a flow chart for mermaid. */
struct chart {
	struct analysis *analysis;
	const struct types *types;
	struct report *report;
	char **names;		       /* of the types, quoted; owned */
	char unknown[CLASS_NAME_SIZE]; /* the name of what has no type */
	char offset[OFFSET_SIZE];      /* the field of the row being written */
};

/* A text within quotes, which mermaid has a code for. NULL: memory is short. */
static char *quote(const char *text)
{
	static const char code[] = "#quot;";
	char *quoted = calloc(strlen(text) + 1, sizeof(code)), *end = quoted;

	if (!quoted)
		return NULL;
	for (; *text; text++)
		if (*text == '"')
			end = stpcpy(end, code);
		else
			*end++ = *text;
	return quoted;
}

static struct error *quote_names(struct chart *chart)
{
	const struct types *types = chart->types;

	class_number_name(0, chart->unknown);
	chart->names = calloc(types->count + 1, sizeof(*chart->names));
	TRY_MEMORY(chart->names);
	for (size_t i = 0; i < types->count; i++) {
		chart->names[i] = quote(types->list[i].name);
		TRY_MEMORY(chart->names[i]);
	}
	return NULL;
}

static void chart_deinit(struct chart *chart)
{
	for (size_t i = 0; chart->names && chart->names[i]; i++)
		free(chart->names[i]);
	free(chart->names);
}
DEFINE_DEINIT(chart_deinit, struct chart)

/* The column of what the allocation is. */
static void write_type(struct chart *chart, allocation_id id)
{
	uint32_t type = types_of(chart->types, id);

	report_add(chart->report, type == NO_GROUP ? chart->unknown : chart->names[type]);
}

static void write_graph_head(struct report *report)
{
	static const struct table table = TABLE("graph", "{graph}", { "graph", VALUE_TEXT });

	report_single(report, &table, "graph LR");
}

static void write_objects(struct chart *chart, const allocation_id *objects, size_t count)
{
	static const struct table table =
		TABLE("object", "  0x{address}{[}\"0x{address} {type}\"{]}",
		      { "address", VALUE_ADDRESS }, { "type", VALUE_TEXT });
	const struct allocation_index *index = analysis_index(chart->analysis);

	report_begin_table(chart->report, &table);
	for (size_t i = 0; i < count; i++) {
		report_add(chart->report, allocation_start(index, objects[i]));
		write_type(chart, objects[i]);
		report_end_row(chart->report);
	}
	report_end_table(chart->report);
}

/* The column of the field that a reference is in. */
static void write_field(struct chart *chart, const struct holding *holding)
{
	const char *name = runtimes_field_name(analysis_runtimes(chart->analysis), holding->from,
					       holding->offset);

	if (!name)
		snprintf(chart->offset, sizeof(chart->offset), "(field %ju)",
			 (uintmax_t)holding->offset);
	report_add(chart->report, name ? name : chart->offset);
}

static bool write_holding(void *data, const struct holding *holding)
{
	struct chart *chart = data;
	struct report *report = chart->report;
	const struct allocation_index *index = analysis_index(chart->analysis);

	report_add(report, allocation_start(index, holding->from));
	write_type(chart, holding->from);
	write_field(chart, holding);
	report_row(report, holding->level, allocation_start(index, holding->to));
	return !report_broken(report);
}

static struct error *write_holders(struct chart *chart, uint64_t levels,
				   const allocation_id *objects, size_t count)
{
	static const struct table table =
		TABLE("reference",
		      "  0x{from}{[}\"0x{from} {from type}\"{]} --@{field},{level}--> 0x{to}",
		      { "from", VALUE_ADDRESS }, { "from type", VALUE_TEXT },
		      { "field", VALUE_TEXT }, { "level", VALUE_NUMBER }, { "to", VALUE_ADDRESS });
	struct error *error;

	report_begin_table(chart->report, &table);
	error = holders_visit(&(struct holders_input){
		.analysis = chart->analysis,
		.live = &chart->types->live,
		.targets = objects,
		.target_count = count,
		.levels = levels,
		.visit = write_holding,
		.data = chart,
	});
	report_end_table(chart->report);
	return error;
}

/* The first objects of the type, by address. */
static struct error *take_objects(const struct types *types, uint32_t type, uint64_t limit,
				  struct memory *ret, size_t *ret_count)
{
	uint64_t most = types->list[type].count;
	size_t count = 0;

	if (limit && limit < most)
		most = limit;
	TRY(memory_resize(ret, most * sizeof(allocation_id)));
	bitmap_for_each(id, &types->live) {
		if (count == most)
			break;
		if (types_of(types, (allocation_id)id) == type)
			((allocation_id *)ret->bytes)[count++] = (allocation_id)id;
	}
	*ret_count = count;
	return NULL;
}

static struct error *memprof_graph(struct analysis *analysis,
				   const struct memprof_arguments *arguments, struct report *report)
{
	_cleanup_(types_deinit) struct types types = { 0 };
	_cleanup_(memory_release) struct memory objects = { .account = analysis_account(analysis) };
	_cleanup_(chart_deinit) struct chart chart = { .analysis = analysis,
						       .types = &types,
						       .report = report };
	uint32_t type = 0;
	size_t count = 0;

	TRY(types_find(analysis, TYPES_ALL, &types));
	TRY(types_find_name(&types, arguments->type, &type));
	TRY(analysis_need(analysis, STAGE_INCOMING));
	TRY(analysis_need(analysis, STAGE_OWNERS));
	TRY(take_objects(&types, type, arguments->objects, &objects, &count));
	TRY(quote_names(&chart));
	write_graph_head(report);
	write_objects(&chart, objects.bytes, count);
	return write_holders(&chart, arguments->levels, objects.bytes, count);
}

static void write_lines(const struct maker_list *lines, struct report *report)
{
	/* Bytes are a count: decimal, as scripts expect it. */
	static const struct table table = TABLE(
		"allocations", "{count}\t{bytes}\t{type}[\t{detail}]", { "count", VALUE_NUMBER },
		{ "bytes", VALUE_NUMBER }, { "type", VALUE_TEXT }, { "detail", VALUE_TEXT });

	write_line_count(report, lines->count);
	report_begin_table(report, &table);
	list_for_each(line, lines->list, lines->count) {
		report_row(report, line->count, line->bytes, line->type, line->detail);
	}
	report_end_table(report);
}

static void write_pretty_head(struct report *report)
{
	static const struct table table = TABLE("heading", "{line}", { "line", VALUE_TEXT });

	report_begin_table(report, &table);
	report_row(report, "| Allocations | Total size | Context |");
	report_row(report, "|------------:|-----------:|---------|");
	report_end_table(report);
}

/* Align the number to the widest one by blanks. */
static void write_blanks(struct report *report, size_t widest, uint64_t number)
{
	static const char blanks[] = "                                ";
	char buffer[NUMBER_SIZE];
	size_t count = widest - format_grouped(number, buffer);

	static_assert(sizeof(blanks) > NUMBER_SIZE, "no number is as wide");
	report_add(report, blanks + sizeof(blanks) - 1 - count);
}

static void write_pretty(const struct maker_list *lines, struct report *report)
{
	static const struct table table = TABLE(
		"allocations",
		"| {count indent}{count,} | {bytes indent}{bytes,} | `{type}`[<br>`{detail}`] |",
		{ "count indent", VALUE_TEXT }, { "count", VALUE_NUMBER },
		{ "bytes indent", VALUE_TEXT }, { "bytes", VALUE_BYTES }, { "type", VALUE_TEXT },
		{ "detail", VALUE_TEXT });
	size_t counts = 0, sizes = 0;
	char buffer[NUMBER_SIZE];

	for (size_t i = 0; i < lines->count; i++) {
		size_t count = format_grouped(lines->list[i].count, buffer);
		size_t size = format_grouped(lines->list[i].bytes, buffer);

		counts = count > counts ? count : counts;
		sizes = size > sizes ? size : sizes;
	}
	write_pretty_head(report);
	report_begin_table(report, &table);
	list_for_each(line, lines->list, lines->count) {
		write_blanks(report, counts, line->count);
		report_add(report, line->count);
		write_blanks(report, sizes, line->bytes);
		report_row(report, line->bytes, line->type, line->detail);
	}
	report_end_table(report);
}

/* Calls of a line that MemProf shows. */
enum { USUAL_CALLS = 5 };

static uint64_t find_calls(void *data, uint64_t address)
{
	return callers_of(data, address);
}

static char *name_calls(void *data, uint64_t stack)
{
	struct backtrace calls = { 0 };
	struct error *error = callers_calls(data, stack, &calls);
	char *text = error ? strdup("") : leak_calls_text(&calls, USUAL_CALLS);

	error_destroy(error);
	free(calls.frames);
	return text;
}

static struct error *memprof_allocations(struct analysis *analysis,
					 const struct memprof_arguments *arguments,
					 struct report *report)
{
	_cleanup_(made_list_deinit) struct maker_list lines = { 0 };
	_cleanup_(callers_deinit) struct callers callers = { 0 };
	const struct maker_calls calls = { find_calls, name_calls, &callers };
	struct error *error;

	TRY(callers_find(analysis, &callers));
	error = made_list_find(analysis, callers_know_blocks(&callers) ? &calls : NULL,
			       arguments->least, &lines);
	if (!error && arguments->pretty)
		write_pretty(&lines, report);
	else if (!error)
		write_lines(&lines, report);
	return error;
}

/* The limits that MemProf has for a graph. */
enum { USUAL_LEVELS = 5, USUAL_OBJECTS = 10 };

static const struct memprof_question questions[] = {
	{ "counts", NULL, memprof_counts },
	{ "sizes", NULL, memprof_sizes },
	{ "graph", "a type, as 'memprof counts' lists them", memprof_graph, .takes_limits = true },
	{ "size", "the address of an allocation", memprof_size, .takes_address = true },
	{ "allocations", NULL, memprof_allocations, .takes_layout = true },
};

enum { QUESTIONS = COUNT_OF(questions) };

static const struct argp_option options[] = {
	{ "levels", KEEP_GIVEN(COUNT, struct memprof_arguments, levels, has_levels), "N", 0,
	  "For 'graph': follow references over N levels, 0 for all; 5 by default", 0 },
	{ "objects", KEEP_GIVEN(COUNT, struct memprof_arguments, objects, has_objects), "N", 0,
	  "For 'graph': begin with N objects, 0 for all; 10 by default", 0 },
	{ "pretty", KEEP(FLAG, struct memprof_arguments, pretty), NULL, 0,
	  "For 'allocations': write a Markdown table", 0 },
	{ "min-bytes", KEEP_GIVEN(COUNT, struct memprof_arguments, least, has_least), "N", 0,
	  "For 'allocations': leave out lines of less than N bytes", 0 },
	{ 0 },
};

static const char *question_word(const void *data, size_t number)
{
	return number < QUESTIONS ? questions[number].word : NULL;
}

static struct error *take_question(struct memprof_arguments *arguments, const char *word)
{
	for (size_t i = 0; i < QUESTIONS; i++) {
		if (strcmp(questions[i].word, word) != 0)
			continue;
		arguments->question = &questions[i];
		return NULL;
	}
	return error_unknown("question to memprof", word, nearest_word(word, question_word, NULL));
}

static struct error *take_word(struct memprof_arguments *arguments, const char *word)
{
	const struct memprof_question *question = arguments->question;

	if (!question)
		return take_question(arguments, word);
	if (!question->operand || arguments->has_operand)
		return error_create(ERROR_USAGE, "unexpected word '%s' after 'memprof %s'", word,
				    question->word);
	arguments->has_operand = true;
	if (question->takes_address)
		return parse_address(word, &arguments->address);
	arguments->type = word;
	return NULL;
}

/* Reject switches of other subcommands. */
static struct error *check_switches(const struct memprof_arguments *arguments)
{
	const struct memprof_question *question = arguments->question;
	const char *wanted = NULL;

	if ((arguments->has_levels || arguments->has_objects) && !question->takes_limits)
		wanted = "'--levels' and '--objects' are for 'memprof graph'";
	if ((arguments->pretty || arguments->has_least) && !question->takes_layout)
		wanted = "'--pretty' and '--min-bytes' are for 'memprof allocations'";
	return wanted ? error_create(ERROR_USAGE, "%s", wanted) : NULL;
}

static struct error *check(struct memprof_arguments *arguments)
{
	const struct memprof_question *question = arguments->question;

	if (!question)
		return error_create(
			ERROR_USAGE,
			"'memprof' needs what to show: counts, sizes, graph, size or allocations");
	if (question->operand && !arguments->has_operand)
		return error_create(ERROR_USAGE, "'memprof %s' takes %s", question->word,
				    question->operand);
	return check_switches(arguments);
}

static struct error *memprof_parse(int key, const char *value, void *output)
{
	return key == ARGP_KEY_END ? check(output) : take_word(output, value);
}

static struct error *memprof_run(struct analysis *analysis, const void *input,
				 struct report *report)
{
	struct memprof_arguments arguments = *(const struct memprof_arguments *)input;

	if (!arguments.has_levels)
		arguments.levels = USUAL_LEVELS;
	if (!arguments.has_objects)
		arguments.objects = USUAL_OBJECTS;
	return arguments.question->run(analysis, &arguments, report);
}

const struct command command_memprof = {
	.name = "memprof",
	.summary = "Show objects by type in the formats of Crystal's MemProf",
	.words = "counts | sizes | graph TYPE | size ADDRESS | allocations",
	.example = "memprof counts\n"
		   "memprof sizes\n"
		   "memprof graph app::Session --levels 2 --objects 1\n"
		   "memprof size 55d0c0ffee10\n"
		   "memprof allocations --pretty --min-bytes 1024",
	.description =
		"Prints from a core what PerfTools::MemProf prints within a Crystal program, at no cost for that program; tools that read its output can read this. The lines of 'counts', 'sizes' and 'allocations' come after their number, with tabs between columns. All sizes are decimal and include the collector's rounding to 16 bytes.\n"
		"'counts' shows the number of live objects of each type: what is in use and not garbage, as after GC.collect.\n"
		"'sizes' shows the bytes of the objects of each type, with everything that they refer to, directly or indirectly. Shared objects count once for each type that refers to them. With thousands of types in a large heap, those with the fewest objects are left out, and a note says so. 'size' shows the same for one allocation.\n"
		"'graph' shows what holds the objects of a type, for https://mermaid.live to draw: first the objects, then each reference with its field and its level, which is 0 for references to these objects. Fields have names where debug information has them, otherwise offsets.\n"
		"'allocations' shows counts and bytes of everything live. Of a core with noted stacks, as by 'run --stacks=always', 'soak --stacks' or tracemalloc, each line has a type and the calls that allocated it, the innermost first. In others the type has the place in the source if the program was compiled with GC_DEBUG; for what has no type, the size. For a class of Crystal, the functions that make its objects are shown, as read from the program's code, if there are three or fewer: 'in one of: load() at app.cr:12'.\n"
		"In a program of Crystal, 'counts' and 'sizes' list classes, strings among them; one whose name is not known is shown as '(class 12)'. In other programs, they list the groups of 'summarize': classes, patterns and identities, but not what has only a size.",
	.word = WORD_CHOICE,
	.choices = "counts|sizes|graph|size|allocations",
	.options = options,
	.parse = memprof_parse,
	.arguments_size = sizeof(struct memprof_arguments),
	.needs = STAGE_REACHABILITY,
	.run = memprof_run,
};
