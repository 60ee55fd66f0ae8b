#include "cli/prompt/completion.h"

#include "analyzer/base/text.h"
#include "analyzer/query/query.h"
#include "cli/help/manual.h"
#include "cli/prompt/execute.h"
#include "cli/prompt/lexer.h"
#include "cli/prompt/switches.h"
#include "cli/views/selection.h"

#include <string.h>

#include <readline/readline.h>

/* What fits; readline asks for one after the other. */
static struct {
	char **list; /* owned */
	size_t count;
	size_t next;
} matches;

/* readline hands over words alone: the named sets to offer; or NULL. */
static const struct named_sets *named_sets;

void completion_use(const struct named_sets *sets)
{
	named_sets = sets;
}

/* Add the candidate before + name + behind, if the word may become it. */
static void offer(const char *word, const char *before, const char *name, size_t length)
{
	char **list = realloc(matches.list, (matches.count + 1) * sizeof(*list));
	char *candidate;

	if (!list)
		return;
	matches.list = list;
	if (asprintf(&candidate, "%s%.*s", before, (int)length, name) < 0)
		return;
	if (strncasecmp(candidate, word, strlen(word)) == 0)
		list[matches.count++] = candidate;
	else
		free(candidate);
}

static void offer_name(const char *word, const char *name)
{
	offer(word, "", name, strlen(name));
}

static void offer_commands(const char *word)
{
	for (size_t i = 0; commands[i]; i++)
		offer_name(word, commands[i]->name);
}

/* Behind what stands in front of it in the same word. */
static void offer_sets_behind(const char *word, const char *before)
{
	const char *name;

	for (size_t i = 0; set_at(i); i++)
		offer(word, before, set_at(i)->name, strlen(set_at(i)->name));
	for (size_t i = 0; named_sets; i++) {
		name = named_sets_name(named_sets, i);
		if (!name)
			return;
		if (!set_find(name))
			offer(word, before, name, strlen(name));
	}
}

static void offer_sets(const char *word)
{
	offer_sets_behind(word, "");
}

static void offer_operators(const char *word)
{
	for (size_t i = 0; query_operator_name(i); i++)
		offer_name(word, query_operator_name(i));
}

static void offer_topics(const char *word)
{
	for (size_t i = 0; topics[i]; i++)
		offer_name(word, topics[i]->name);
}

static void offer_formats(const char *word, const char *before)
{
	for (size_t i = 0; report_formats[i]; i++)
		offer(word, before, report_formats[i]->name, strlen(report_formats[i]->name));
}

/* The pattern that the last % in the word begins, as in A->%Lo. */
static void offer_patterns(const char *word)
{
	size_t length = (size_t)(strrchr(word, '%') + 1 - word);
	_cleanup_(free) char *before = strndup(word, length);

	for (size_t i = 0; before && pattern_name_at(i); i++)
		offer(word, before, pattern_name_at(i), strlen(pattern_name_at(i)));
}

static void offer_options(const char *word, const struct argp_option *option)
{
	char slashed[SLASHED_SIZE];

	for (; option && (option->name || option->doc); option++) {
		if (!option->name || !switch_is_shown(option))
			continue;
		switch_spell_slashed(option->name, slashed);
		if (word[0] == '/')
			offer_name(word, slashed);
		else
			offer(word, "--", option->name, strlen(option->name));
	}
}

static void offer_switches(const char *word, const struct command *command)
{
	offer_options(word, command->options);
	if (command_needs_core(command))
		offer_options(word, common_options);
	if (command->word == WORD_COMMAND)
		offer_options(word, contents_options);
}

/* An option's values are listed in its value's name, such as "on|off". */
static void offer_values(const char *word, const char *before, const char *values)
{
	if (values && strcmp(values, "FORMAT") == 0)
		offer_formats(word, before);
	if (!values || !strchr(values, '|'))
		return;
	for (;;) {
		size_t length = strcspn(values, "|");

		offer(word, before, values, length);
		if (!values[length])
			return;
		values += length + 1;
	}
}

/* The value of a switch that is a word of its own. */
static void offer_separate_value(const char *word, const char *name,
				 const struct argp_option *option)
{
	if (!option->arg && name[0] == '/')
		offer_values(word, "", "true|false");
	else
		offer_values(word, "", option->arg);
}

/* `--name=` and its value. */
static void offer_joined_value(const char *word, const struct command *command)
{
	const struct argp_option *option = switch_find(command, word);
	_cleanup_(free) char *before = NULL;

	if (option)
		before = strndup(word, strcspn(word, "=") + 1);
	if (before)
		offer_values(word, before, option->arg);
}

/* The words of a set, up to the last one, which is being typed. */
static void offer_set_words(const char *word, const char *const *words, size_t count)
{
	const struct set *set = NULL;
	size_t arguments = 0; /* of the set, that are still to come */

	for (size_t i = 0; i < count; i++) {
		if (arguments > 0) {
			arguments--;
		} else if (query_is_operator(words[i])) {
			set = NULL;
		} else if (!set) {
			set = set_find(words[i]);
			set = set ? set : &set_named;
			arguments = set_argument_count(set);
		}
	}
	if (!set)
		offer_sets(word);
	else if (arguments == 0 && !set->ranges)
		offer_operators(word);
}

/* `let NAME = SET`, whose words may touch the =. */
static void offer_naming_words(const char *word, const char **words, size_t count)
{
	_cleanup_(free) char *before = NULL;
	size_t i = 0;

	while (i < count && !strchr(words[i], '='))
		i++;
	if (i < count) {
		words[i] = strchr(words[i], '=') + 1;
		i += !words[i][0];
		offer_set_words(word, words + i, count - i);
	} else if (strchr(word, '=')) {
		before = strndup(word, strcspn(word, "=") + 1);
		if (before)
			offer_sets_behind(word, before);
	}
}

/* Whether the word is one of values, which are as "on|off". */
static bool is_value(const char *word, const char *values)
{
	size_t length = strlen(word);

	while (values) {
		size_t next = strcspn(values, "|");

		if (next == length && strncmp(values, word, length) == 0)
			return true;
		values = values[next] ? values + next + 1 : NULL;
	}
	return false;
}

/* The words of a set, behind one of the choices of a command or none. */
static void offer_chosen_set(const char *word, const char *choices, const char *const *words,
			     size_t count)
{
	size_t first = count > 0 && is_value(words[0], choices);

	if (count == 0)
		offer_values(word, "", choices);
	offer_set_words(word, words + first, count - first);
}

/* The last word of a command, with those before it that are no switches. */
static void offer_words(const char *word, const struct command *command, const char **words,
			size_t count)
{
	switch (command->word) {
	case WORD_SET:
		offer_chosen_set(word, command->choices, words, count);
		return;
	case WORD_NAMING:
		offer_naming_words(word, words, count);
		return;
	case WORD_COMMAND:
		if (count == 0) {
			offer_commands(word);
			offer_topics(word);
		}
		if (count <= 1)
			offer_sets(word);
		return;
	case WORD_SWITCH:
		if (count == 0)
			offer_values(word, "", "on|off");
		return;
	case WORD_CHOICE:
		if (count == 0)
			offer_values(word, "", command->choices);
		return;
	default:
		return;
	}
}

/*
 * Leave the words before the last one that are no switches in ret_words. Returns the switch that
 * takes the last one as its value, or NULL.
 */
static const char *pass_switches(const struct command *command, const struct line *line,
				 const char **ret_words, size_t *ret_count)
{
	size_t last = line->count - 1, i = 1;

	*ret_count = 0;
	while (i < last) {
		size_t places = switch_places(command, line->words[i]);

		if (i + places > last)
			return line->words[i];
		if (places == 0)
			ret_words[(*ret_count)++] = line->words[i++];
		i += places;
	}
	return NULL;
}

/*
 * Offer what the last word of a command may become; the words before it are complete. False if it
 * is a file's name.
 */
static bool offer_last(const char *word, const struct command *command, const struct line *line)
{
	_cleanup_(free) const char **words = calloc(line->count, sizeof(*words));
	const char *name;
	size_t count;

	if (!words)
		return true;
	name = pass_switches(command, line, words, &count);
	if (strchr(word, '%'))
		offer_patterns(word);
	else if (name)
		offer_separate_value(word, name, switch_find(command, name));
	else if (strncmp(word, "--", 2) == 0 && strchr(word, '='))
		offer_joined_value(word, command);
	else if (word[0] == '-' || (word[0] == '/' && command->word != WORD_FILE))
		offer_switches(word, command);
	else if (command->word == WORD_FILE)
		return false;
	else
		offer_words(word, command, words, count);
	return true;
}

/*
 * Take apart the line up to the word, with something in the word's place, so that it is the last
 * one. A quote may be open in front of it.
 */
static bool split_before(int start, struct line *ret)
{
	static const char *const places[] = { "x", "x\"", "x'" };

	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		_cleanup_(free) char *text = NULL;
		struct error *error;

		text = format_text("%.*s%s", start, rl_line_buffer, places[i]);
		if (!text)
			return false;
		error = line_split(text, ret);
		if (!error)
			return true;
		error_destroy(error);
	}
	return false;
}

static char *next_match(const char *word, int state)
{
	if (state == 0)
		matches.next = 0;
	if (matches.next == matches.count)
		return NULL;
	return strdup(matches.list[matches.next++]);
}

static void forget_matches(void)
{
	for (size_t i = 0; i < matches.count; i++)
		free(matches.list[i]);
	free(matches.list);
	matches.list = NULL;
	matches.count = 0;
}

/* Offer what the last word of the line may become; false if it is a file's name. */
static bool offer_last_of(const char *word, const struct line *line)
{
	const struct command *command;

	if (line->count == 1) {
		offer_commands(word);
		return true;
	}
	command = command_find(line->words[0]);
	return !command || offer_last(word, command, line);
}

char **complete_word(const char *word, int start, int end)
{
	_cleanup_(line_deinit) struct line line = { 0 };
	char **completed;

	/* Files are what readline offers by itself. */
	rl_attempted_completion_over = 1;
	if (!split_before(start, &line) || line.count == 0)
		return NULL;
	if (line.target || !offer_last_of(word, &line))
		rl_attempted_completion_over = 0;
	completed = rl_completion_matches(word, next_match);
	forget_matches();
	return completed;
}

static void write_matches(FILE *out)
{
	for (size_t i = 0; i < matches.count; i++)
		fprintf(out, "%s\n", matches.list[i]);
	forget_matches();
}

void completion_write(const struct line *line, FILE *out)
{
	offer_last_of(line->words[line->count - 1], line);
	write_matches(out);
}

void completion_write_options(const char *word, const struct argp_option *options, FILE *out)
{
	offer_options(word, options);
	write_matches(out);
}

void completion_write_values(const char *word, const char *before, const char *values, FILE *out)
{
	offer_values(word, before, values);
	write_matches(out);
}
