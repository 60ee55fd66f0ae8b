#include "cli/prompt/variable_words.h"

#include "analyzer/base/list.h"
#include "analyzer/base/text.h"
#include "analyzer/program/debug/variables.h"
#include "analyzer/query/query.h"
#include "cli/prompt/switches.h"

#include <inttypes.h>
#include <string.h>

void variable_words_deinit(struct variable_words *words)
{
	list_for_each(word, words->list, words->count)
		free(word->address);
	free(words->list);
	free(words->words);
	*words = (struct variable_words){ 0 };
}

struct variable_context variable_words_context(struct analysis *analysis)
{
	return (struct variable_context){
		.image = analysis_image(analysis),
		.debug = analysis_debug(analysis),
		.types = analysis_type_table(analysis),
	};
}

/* ---- where an address may stand */

/* True if the next word is an address that a set takes. */
static bool fits_in_set(const char *const *words, size_t count)
{
	const struct set *set = NULL;
	size_t next = 0; /* argument of the set */

	for (size_t i = 0; i < count; i++) {
		if (set && next < set_argument_count(set)) {
			next++;
		} else if (query_is_operator(words[i])) {
			set = NULL;
		} else if (!set) {
			set = set_find(words[i]);
			set = set ? set : &set_named;
			next = 0;
		}
	}
	return set && next < set_argument_count(set) && !set_argument_is_offset(set, next);
}

/* "NAME=SET ...", with or without blanks around the =. */
static bool fits_in_naming(const char *const *words, size_t count)
{
	const char *list[2];
	size_t i = 0;

	while (i < count && !strchr(words[i], '='))
		i++;
	if (i == count)
		return false;
	list[0] = strchr(words[i], '=') + 1;
	if (!list[0][0])
		return fits_in_set(words + i + 1, count - i - 1);
	/* The set's name stands in the same word; no set takes more than three. */
	if (i + 1 == count)
		return fits_in_set(list, 1);
	list[1] = words[count - 1];
	return i + 2 == count && fits_in_set(list, 2);
}

/* An address instead of a set. */
static bool takes_address(const struct command *command)
{
	return command->words && strncmp(command->words, "ADDRESS", strlen("ADDRESS")) == 0;
}

bool variable_words_fit(const struct command *command, const char *const *words, size_t count)
{
	bool is_chosen;

	switch (command->word) {
	case WORD_ADDRESS:
		return count == 0;
	case WORD_SET:
		is_chosen = count > 0 && command->choices && !set_find(words[0]);
		return count == 0 ? takes_address(command)
				  : fits_in_set(words + is_chosen, count - is_chosen);
	case WORD_NAMING:
		return fits_in_naming(words, count);
	default:
		return false;
	}
}

/* ---- what a word stands for */

static struct error *find_address(struct variable_word *word)
{
	const struct variable_place *place = &word->place;

	if (place->is_pointer && !place->is_present)
		return error_create(ERROR_USAGE,
				    "'%s', at 0x%" PRIx64
				    ", is not in the core: '&%s' is its place",
				    word->text, place->address, word->text);
	if (place->is_pointer && !place->points_to)
		return error_create(ERROR_USAGE,
				    "'%s', at 0x%" PRIx64 ", is a null pointer: '&%s' is its place",
				    word->text, place->address, word->text);
	word->address =
		format_text("0x%" PRIx64, place->is_pointer ? place->points_to : place->address);
	return word->address ? NULL : &error_no_memory;
}

static const char *variable_name_at(const void *data, size_t number)
{
	const struct type_table *types = data;

	return number < type_variable_count(types) ? type_variables(types)[number].name : NULL;
}

static struct error *no_variable(struct analysis *analysis, const char *name)
{
	const char *nearest;

	TRY(analysis_need(analysis, STAGE_TYPE_TABLE));
	nearest = nearest_word(name, variable_name_at, analysis_type_table(analysis));
	return error_create(ERROR_USAGE, "no global variable '%s'%s%s%s", name,
			    nearest ? "; did you mean '" : "", nearest ? nearest : "",
			    nearest ? "'?" : "");
}

/* Set ret if the symbols have a variable of that name; fail if the word can mean nothing else. */
static struct error *look_up_name(struct analysis *analysis, const char *word, bool *ret)
{
	_cleanup_(free) char *name = NULL;
	const char *first;
	size_t length = 0;
	bool is_plain = false;

	*ret = false;
	first = variable_path_name(word, &length, &is_plain);
	if (!first)
		return NULL;
	name = strndup(first, length);
	TRY_MEMORY(name);
	TRY(analysis_need(analysis, STAGE_DEBUG));
	*ret = debug_may_have_variable(analysis_debug(analysis), name);
	if (!*ret && !is_plain)
		return no_variable(analysis, name);
	if (!*ret)
		return NULL;
	TRY(analysis_need(analysis, STAGE_TYPE_TABLE));
	if (is_plain) {
		struct variable_context context = variable_words_context(analysis);
		struct named_variable variable;

		TRY(variable_find(&context, word, &variable));
		*ret = variable.module;
	}
	return NULL;
}

static bool is_other_word(const struct analysis *analysis, const char *word, bool may_be_set)
{
	return is_address(word) ||
	       (may_be_set && (set_find(word) || query_is_operator(word) ||
			       named_sets_find(analysis_named_sets(analysis), word)));
}

/* True if the word looks like the path of an object, as no plain name does. */
static bool is_path(const char *word)
{
	return *word == '$' || strpbrk(word, ".[{") || strstr(word, "::") || strstr(word, "->");
}

/* The object of a language that the program calls so. */
static struct error *find_object(struct analysis *analysis, const char *path,
				 struct variable_word *ret)
{
	allocation_id id = NO_ALLOCATION;

	if (!is_path(path))
		return NULL;
	TRY(analysis_need(analysis, STAGE_FIBERS));
	if (runtime_count(analysis_runtimes(analysis)) == 0)
		return NULL;
	TRY(analysis_need(analysis, STAGE_OBJECT_PATHS));
	TRY(object_paths_find(analysis_object_paths(analysis), path, analysis_progress(analysis),
			      &id));
	if (id == NO_ALLOCATION && object_paths_count(analysis_object_paths(analysis)) > 0) {
		_cleanup_(free) char *nearest = object_paths_nearest(
			analysis_object_paths(analysis), path, analysis_progress(analysis));

		return error_unknown("variable or object", path, nearest);
	}
	if (id == NO_ALLOCATION)
		return NULL;
	ret->place.address = allocation_start(analysis_index(analysis), id);
	ret->address = format_text("0x%" PRIx64, ret->place.address);
	return ret->address ? NULL : &error_no_memory;
}

static struct error *find_variable(struct analysis *analysis, struct variable_word *ret)
{
	struct variable_context context;
	bool is_variable = false;

	TRY(look_up_name(analysis, ret->text, &is_variable));
	if (!is_variable)
		return NULL;
	context = variable_words_context(analysis);
	TRY(variable_path_find(&context, ret->text, &ret->place));
	return find_address(ret);
}

static struct error *take_word(struct analysis *analysis, char **place, bool is_subject,
			       struct variable_words *ret)
{
	struct variable_word word = { .text = *place, .is_subject = is_subject };
	struct error *error = find_variable(analysis, &word), *other;

	if (!word.address && (!error || error_code(error) == ERROR_USAGE)) {
		other = find_object(analysis, word.text, &word);
		if (other || word.address) {
			error_destroy(error);
			error = other;
		}
	}
	if (error || !word.address)
		return error;
	if (!LIST_GROW(ret->list, ret->count)) {
		free(word.address);
		return &error_no_memory;
	}
	ret->list[ret->count++] = word;
	*place = word.address;
	return NULL;
}

struct error *variable_words_find(struct analysis *analysis, const struct command *command,
				  const struct line *line, struct variable_words *ret)
{
	_cleanup_(free) const char **plain = calloc(line->count + 1, sizeof(*plain));
	size_t count = 0, places;

	ret->words = calloc(line->count + 1, sizeof(*ret->words));
	TRY_MEMORY(plain && ret->words);
	memcpy(ret->words, line->words, line->count * sizeof(*ret->words));
	for (size_t i = 1; analysis && i < line->count; i += places) {
		const char *word = line->words[i];
		bool is_subject = count == 0;

		places = switch_places(command, word);
		if (places || strcmp(word, "--") == 0) {
			places = places ? places : 1;
			continue;
		}
		places = 1;
		if (variable_words_fit(command, plain, count) &&
		    !is_other_word(analysis, word, is_subject && command->word == WORD_SET))
			TRY(take_word(analysis, &ret->words[i], is_subject, ret));
		plain[count++] = word;
	}
	return NULL;
}

/* ---- what is said of it */

/* `&x` is where x is. */
static const char *described(const struct variable_word *word)
{
	return word->text + strspn(word->text, "& ");
}

char *variable_word_text(const struct variable_word *word)
{
	const struct variable_place *place = &word->place;
	char target[48] = "";

	if (!place->module)
		return format_text("%s is at 0x%" PRIx64, described(word), place->address);
	if (place->is_pointer)
		snprintf(target, sizeof(target), ", and points to 0x%" PRIx64, place->points_to);
	return format_text("%s (in %s%s%s) is at 0x%" PRIx64 "%s", described(word),
			   module_name(place->module), place->type ? ", of type " : "",
			   place->type ? place->type : "", place->address, target);
}

void variable_words_report(const struct variable_words *words, struct report *report)
{
	static const struct table table = TABLE(
		"variable",
		"{variable}[ (in {module}[, of type {type}])] is at {address}[, and points to {target}].",
		{ "variable", VALUE_TEXT }, { "module", VALUE_TEXT }, { "type", VALUE_TEXT },
		{ "address", VALUE_ADDRESS }, { "target", VALUE_ADDRESS });

	list_for_each(word, words->list, words->count) {
		const struct variable_place *place = &word->place;

		if (word->is_subject)
			report_single(report, &table, described(word),
				      place->module ? module_name(place->module) : NULL,
				      place->type, place->address,
				      VALUE_IF(place->is_pointer, place->points_to));
	}
}
