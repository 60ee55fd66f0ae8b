#include "cli/views/memprof.h"

#include "analyzer/base/text.h"

#include <string.h>

/* As many as MemProf shows of a graph. */
enum { USUAL_LEVELS = 5, USUAL_OBJECTS = 10 };

static const struct memprof_question questions[] = {
	{ "counts", NULL, memprof_counts },
	{ "sizes", NULL, memprof_sizes },
	{ "graph", "a type, as 'memprof counts' lists them", memprof_graph },
	{ "size", "the address of an allocation", memprof_size },
	{ "allocations", NULL, memprof_allocations },
};

enum { QUESTIONS = sizeof(questions) / sizeof(*questions) };

static const struct argp_option options[] = {
	{ "levels", 'L', "N", 0,
	  "Of 'graph': follow references over N levels, 0 for all; 5 otherwise", 0 },
	{ "objects", 'O', "N", 0, "Of 'graph': begin with N objects, 0 for all; 10 otherwise", 0 },
	{ "pretty", 'P', NULL, 0, "Of 'allocations': write a Markdown table", 0 },
	{ "min-bytes", 'b', "N", 0,
	  "Of 'allocations': leave out lines of less than N bytes, in decimal", 0 },
	{ 0 },
};

static const struct switch_place places[] = {
	PLACE_GIVEN('L', PLACE_COUNT, struct memprof_arguments, levels, has_levels),
	PLACE_GIVEN('O', PLACE_COUNT, struct memprof_arguments, objects, has_objects),
	PLACE('P', PLACE_FLAG, struct memprof_arguments, pretty),
	PLACE_GIVEN('b', PLACE_COUNT, struct memprof_arguments, least, has_least),
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
		return error_create(ERROR_USAGE, "'%s' is one word too many behind 'memprof %s'",
				    word, question->word);
	arguments->has_operand = true;
	if (question->run == memprof_size)
		return parse_address(word, &arguments->address);
	arguments->type = word;
	return NULL;
}

/* That a switch is of another question. */
static struct error *check_switches(const struct memprof_arguments *arguments)
{
	const struct memprof_question *question = arguments->question;
	const char *wanted = NULL;

	if ((arguments->has_levels || arguments->has_objects) && question->run != memprof_graph)
		wanted = "'--levels' and '--objects' are for 'memprof graph'";
	if ((arguments->pretty || arguments->has_least) && question->run != memprof_allocations)
		wanted = "'--pretty' and '--min-bytes' are for 'memprof allocations'";
	return wanted ? error_create(ERROR_USAGE, "%s", wanted) : NULL;
}

static struct error *check(struct memprof_arguments *arguments)
{
	const struct memprof_question *question = arguments->question;

	if (!question)
		return error_create(
			ERROR_USAGE,
			"'memprof' takes what to show: counts, sizes, graph, size or allocations");
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
		"What PerfTools::MemProf prints within a program of Crystal, of a core and at no cost for the program, so that what reads its output reads this. In front of the lines of 'counts', 'sizes' and 'allocations' stands how many there are, and a tab is between their columns. All sizes are decimal, and are those of the memory that was handed out: a collector rounds them up to 16 bytes.\n"
		"'counts' shows how many live objects there are of each type. Live is all that is in use and no garbage, as it is behind GC.collect.\n"
		"'sizes' shows the bytes that the objects of each type take together with all that they refer to, directly or not. What several of them refer to is counted once for the type, and again for each other type that leads to it. If there are thousands of types in a large heap, those with the fewest objects are left out, and a note says so. 'size' shows the same of one allocation.\n"
		"'graph' shows what holds the objects of a type, for https://mermaid.live to draw: first the objects, then each reference with the field that it is in and its level, which is 0 for references to these objects. Fields have names where debug information tells them, else offsets.\n"
		"'allocations' shows counts and bytes of all that is live. A core does not tell which calls allocated it, so the type stands there instead, and behind it the place in the source where the program was compiled with GC_DEBUG; of what has no type, the size.\n"
		"In a program of Crystal, 'counts' and 'sizes' list classes, strings among them; one whose name is not known is shown as '(class 12)'. In other programs, they list what 'summarize' tells apart: classes, patterns and identities, but not what has only a size.",
	.word = WORD_CHOICE,
	.choices = "counts|sizes|graph|size|allocations",
	.options = options,
	.places = places,
	.parse = memprof_parse,
	.arguments_size = sizeof(struct memprof_arguments),
	.needs = STAGE_REACHABILITY,
	.run = memprof_run,
};
