#include "analyzer/query/annotate.h"

#include "analyzer/base/list.h"
#include "analyzer/base/macros.h"
#include "analyzer/base/text.h"
#include "analyzer/classify/cxx.h"
#include "analyzer/query/place.h"

#include <string.h>

/* A place in an allocation, and the words from there on. */
struct annotated_place {
	struct analysis *analysis;
	struct reader *reader;
	uint64_t address;
	uint64_t words[STRING_WORDS];
	size_t count; /* of words, at least 1 */
};

struct annotator {
	const char *name;
	const char *summary;
	/* Returns how many bytes it has something to tell of, which it writes to out; 0: none. */
	uint64_t (*tell)(const struct annotated_place *place, struct writer *out);
	bool tells_content; /* writes contents of memory */
};

static void put(struct writer *out, const char *text)
{
	writer_bytes(out, text, strlen(text));
}

/* The first characters of a text. */
static void write_text(const struct annotated_place *place, uint64_t address, uint64_t length,
		       struct writer *out)
{
	enum { SHOWN = 64 };
	char text[SHOWN];
	bool cut = length > SHOWN;

	if (cut)
		length = SHOWN;
	if (!image_read(place->reader->image, address, text, length))
		return;
	put(out, ", \"");
	writer_bytes(out, text, strnlen(text, length));
	put(out, cut ? "\"..." : "\"");
}

static uint64_t tell_string(const struct annotated_place *place, bool is_short, struct writer *out)
{
	struct cxx_string string;

	if (!cxx_string_read(place->reader, place->address, place->words, place->count, &string) ||
	    (string.kind == STRING_SHORT) != is_short)
		return 0;
	put(out, "length ");
	writer_decimal(out, string.length);
	if (!is_short) {
		put(out, ", capacity ");
		writer_decimal(out, string.capacity);
		put(out, ", text at ");
		writer_hexadecimal(out, string.text);
	}
	write_text(place, string.text, string.length, out);
	return string.size;
}

static uint64_t tell_short_string(const struct annotated_place *place, struct writer *out)
{
	return tell_string(place, true, out);
}

static uint64_t tell_long_string(const struct annotated_place *place, struct writer *out)
{
	return tell_string(place, false, out);
}

static uint64_t tell_module(const struct annotated_place *place, struct writer *out)
{
	uint64_t address = place->words[0];
	const struct module *module;
	struct debug *debug = analysis_debug(place->analysis);
	struct symbol symbol;

	if (!reader_in_module(place->reader, address))
		return 0;
	module = program_find_module(place->reader->program, address);
	writer_hexadecimal(out, address);
	put(out, ", at offset ");
	writer_hexadecimal(out, address - module->start);
	put(out, " of ");
	put(out, module_name(module));
	if (!debug_symbol(debug, address, &symbol))
		return place->reader->word;
	put(out, ", ");
	put(out, symbol.name);
	if (address > symbol.start) {
		put(out, "+0x");
		writer_hexadecimal(out, address - symbol.start);
	}
	return place->reader->word;
}

static uint64_t tell_allocation(const struct annotated_place *place, struct writer *out)
{
	struct reader *reader = place->reader;
	uint64_t address = place->words[0], start;
	allocation_id id;
	const char *name;

	if (!heap_bounds_hold(&reader->bounds, address))
		return 0;
	id = allocation_find(reader->index, address);
	if (id == NO_ALLOCATION)
		return 0;
	start = allocation_start(reader->index, id);
	name = allocation_name(place->analysis, id);
	writer_hexadecimal(out, address);
	put(out, ", at offset ");
	writer_hexadecimal(out, address - start);
	put(out, bitmap_get(reader->used, id) ? " of the used allocation at "
					      : " of the free allocation at ");
	writer_hexadecimal(out, start);
	put(out, " of size ");
	writer_hexadecimal(out, allocation_size(reader->index, id));
	if (name) {
		put(out, " (");
		put(out, name);
		put(out, ")");
	}
	return place->reader->word;
}

static const struct annotator annotators[] = {
	{ "SSOString", "a std::string with its text in itself", tell_short_string, true },
	{ "LongString", "a std::string with its text elsewhere", tell_long_string, true },
	{ "ModuleAddress", "an address in the program or a library, and what is there",
	  tell_module },
	{ "AllocationAddress", "an address in an allocation, and in which", tell_allocation },
};

/* The number-th, or NULL at the end. */
static const struct annotator *annotator_at(size_t number)
{
	return number < COUNT_OF(annotators) ? &annotators[number] : NULL;
}

const char *annotator_name(size_t number)
{
	const struct annotator *annotator = annotator_at(number);

	return annotator ? annotator->name : NULL;
}

const char *annotator_summary(size_t number)
{
	const struct annotator *annotator = annotator_at(number);

	return annotator ? annotator->summary : NULL;
}

void annotation_rules_deinit(struct annotation_rules *rules)
{
	for (size_t i = 0; i < rules->count; i++)
		free(rules->list[i].what);
	free(rules->list);
	*rules = (struct annotation_rules){ 0 };
}

static const char *name_at(const void *data, size_t number)
{
	return annotator_name(number);
}

static struct error *unknown_annotator(const char *word)
{
	const char *nearest = nearest_word(word, name_at, NULL);
	_cleanup_(free) char *known = NULL;
	size_t size;
	FILE *out;

	if (nearest)
		return error_unknown("annotator", word, nearest);
	out = open_memstream(&known, &size);
	TRY_MEMORY(out);
	for (size_t i = 0; annotator_name(i); i++)
		fprintf(out, "%s%s", i ? ", " : "an annotator: *, ", annotator_name(i));
	if (fclose(out) != 0)
		return &error_no_memory;
	return error_not(word, known);
}

static struct error *find_annotator(const char *word, const struct annotator **ret)
{
	const struct annotator *annotator;

	*ret = NULL;
	if (strcmp(word, "*") == 0)
		return NULL;
	for (size_t i = 0; (annotator = annotator_at(i)) != NULL; i++) {
		if (strcasecmp(annotator->name, word) == 0) {
			*ret = annotator;
			return NULL;
		}
	}
	return unknown_annotator(word);
}

/* Take the offset off the end of what, which is modified. */
static struct error *take_offset(struct annotation_rule *rule)
{
	char *at = strrchr(rule->what, '@');

	if (!at)
		return NULL;
	*at = '\0';
	rule->has_offset = true;
	return parse_address(at + 1, &rule->offset);
}

static struct error *parse_rule(const char *word, struct annotation_rule *rule)
{
	const char *dot = strrchr(word, '.');
	struct kind kind;

	if (!dot || dot == word)
		return error_not(word, "an annotation: WHAT.ANNOTATOR or WHAT@OFFSET.ANNOTATOR");
	rule->what = strndup(word, (size_t)(dot - word));
	TRY_MEMORY(rule->what);
	TRY(take_offset(rule));
	TRY(find_annotator(dot + 1, &rule->annotator));
	if (strcmp(rule->what, "*") == 0)
		*rule->what = '\0';
	return kind_parse(rule->what, &kind);
}

struct error *annotation_rules_take(struct annotation_rules *rules, const char *word)
{
	struct annotation_rule rule = { 0 };
	struct error *error = parse_rule(word, &rule);

	if (!error)
		error = LIST_APPEND(rules->list, rules->count, rule);
	if (error)
		free(rule.what);
	return error;
}

/* Tests whether a rule applies to an allocation. */
struct rule_test {
	struct kind_test kind;
	uint16_t state; /* in which it must have been reached; or BASE_STATE */
	bool applies;	/* to the current allocation */
};

static struct error *prepare(struct annotating *annotating, const struct extension_rules *states,
			     bool allow_missing, size_t number)
{
	const struct annotation_rule *rule = &annotating->rules->list[number];
	struct rule_test *test = &annotating->tests[number];
	struct kind kind;

	test->state = states ? extension_state_find(states, rule->what) : BASE_STATE;
	if (test->state != BASE_STATE)
		return NULL;
	TRY(kind_parse(rule->what, &kind));
	return kind_test_init(&test->kind, annotating->analysis, &kind, allow_missing);
}

struct error *annotating_init(struct annotating *annotating, struct analysis *analysis,
			      const struct annotation_rules *rules,
			      const struct extension_rules *states, bool allow_missing)
{
	struct error *error;

	*annotating = (struct annotating){ .analysis = analysis };
	if (rules->count == 0)
		return NULL;
	TRY(analysis_need(analysis, STAGE_CLASSES));
	annotating->tests = calloc(rules->count, sizeof(*annotating->tests));
	TRY_MEMORY(annotating->tests);
	annotating->rules = rules;
	error = writer_init(&annotating->text, NULL);
	reader_init(&annotating->reader, analysis_image(analysis), analysis_program(analysis),
		    analysis_index(analysis));
	annotating->reader.cxx = cxx_find(analysis_image(analysis), analysis_program(analysis));
	for (size_t i = 0; !error && i < rules->count; i++)
		error = prepare(annotating, states, allow_missing, i);
	return error;
}

void annotating_deinit(struct annotating *annotating)
{
	for (size_t i = 0; annotating->tests && i < annotating->rules->count; i++)
		kind_test_deinit(&annotating->tests[i].kind);
	free(annotating->tests);
	if (annotating->rules)
		writer_deinit(&annotating->text);
	*annotating = (struct annotating){ 0 };
}

/* Find out which rules apply to the allocation; returns whether any does. */
static struct error *judge(struct annotating *annotating, allocation_id id, bool *ret_any)
{
	const struct members *members = annotating->members;

	*ret_any = false;
	list_for_each(test, annotating->tests, annotating->rules->count) {
		if (test->state != BASE_STATE)
			test->applies = members && members_state(members, id) == test->state;
		else
			TRY(kind_test_judge(&test->kind, id, &test->applies));
		*ret_any |= test->applies;
	}
	return NULL;
}

static bool wants(const struct annotating *annotating, const struct annotator *annotator,
		  uint64_t offset)
{
	for (size_t i = 0; i < annotating->rules->count; i++) {
		const struct annotation_rule *rule = &annotating->rules->list[i];

		if (annotating->tests[i].applies &&
		    (!rule->annotator || rule->annotator == annotator) &&
		    (!rule->has_offset || rule->offset == offset))
			return true;
	}
	return false;
}

/* Ask the annotators in turn; returns the bytes that the first with an answer is about. */
static uint64_t annotate_place(struct annotating *annotating, const struct annotated_place *place,
			       uint64_t offset, struct annotation *ret)
{
	struct writer *text = &annotating->text;
	const struct annotator *annotator;

	for (size_t i = 0; (annotator = annotator_at(i)); i++) {
		uint64_t size = 0;

		text->used = 0;
		if (wants(annotating, annotator, offset))
			size = annotator->tell(place, text);
		if (size == 0)
			continue;
		writer_put(text, '\0');
		*ret = (struct annotation){ offset, offset + size, annotator->name, text->buffer,
					    annotator->tells_content };
		return size;
	}
	return 0;
}

struct error *annotate(struct annotating *annotating, allocation_id id,
		       bool (*found)(void *data, const struct annotation *annotation), void *data)
{
	struct reader *reader = &annotating->reader;
	struct annotated_place place = { annotating->analysis, reader };
	uint64_t start, size, known;
	struct progress *progress = analysis_progress(annotating->analysis);
	const unsigned int word = reader->word;
	const uint8_t *bytes;
	bool any;

	if (!annotating->rules)
		return NULL;
	TRY(judge(annotating, id, &any));
	if (!any)
		return NULL;
	start = allocation_start(reader->index, id);
	size = allocation_size(reader->index, id);
	bytes = reader_bytes(reader, start, &known);
	if (!bytes)
		return NULL;
	size = MIN(size, known);
	for (uint64_t offset = 0; size - offset >= word;) {
		struct annotation annotation;
		uint64_t covered;

		TRY(progress_glance(progress));
		place.address = start + offset;
		place.count = (size - offset) / word;
		place.count = MIN(place.count, STRING_WORDS);
		for (size_t i = 0; i < place.count; i++)
			place.words[i] = load_word(bytes + offset + i * word, word);
		covered = annotate_place(annotating, &place, offset, &annotation);
		if (annotating->text.failed)
			return &error_no_memory;
		if (covered && !found(data, &annotation))
			return NULL;
		offset += covered ? covered : word;
	}
	return NULL;
}
