#include "cli/completion.h"

#include "analyzer/query/set.h"
#include "cli/execute.h"
#include "cli/lexer.h"
#include "cli/switches.h"

#include <string.h>

#include <readline/readline.h>

/* What fits; readline asks for one after the other. */
static struct {
	char **list; /* owned */
	size_t count;
	size_t next;
} matches;

/* Add the candidate before + name + behind, if the word may become it. */
static void offer(const char *word, const char *before, const char *name,
		  size_t length)
{
	char **list =
		realloc(matches.list, (matches.count + 1) * sizeof(*list));
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

static void offer_sets(const char *word)
{
	for (size_t i = 0; set_at(i); i++)
		offer_name(word, set_at(i)->name);
}

static void offer_patterns(const char *word)
{
	for (size_t i = 0; pattern_name_at(i); i++)
		offer(word, "%", pattern_name_at(i),
		      strlen(pattern_name_at(i)));
}

static void offer_switches(const char *word, const struct command *command)
{
	const struct argp_option *option = command->options;
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

/* An option's values are told by what its value is called, as "on|off". */
static void offer_values(const char *word, const char *before,
			 const char *values)
{
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

/* The number-th word of a command, not counting its switches. */
static void offer_words(const char *word, const struct command *command,
			size_t number)
{
	switch (command->word) {
	case WORD_SET:
		if (number == 0)
			offer_sets(word);
		else if (word[0] == '%')
			offer_patterns(word);
		return;
	case WORD_COMMAND:
		if (number == 0) {
			offer_commands(word);
			offer_name(word, "sets");
		}
		if (number <= 1)
			offer_sets(word);
		return;
	case WORD_SWITCH:
		if (number == 0)
			offer_values(word, "", "on|off");
		return;
	default:
		return;
	}
}

/*
 * Offer what the last word of a command may become; the words before it are
 * complete. False if it is a file's name.
 */
static bool offer_last(const char *word, const struct command *command,
		       const struct line *line)
{
	size_t last = line->count - 1, number = 0, i = 1;

	while (i < last) {
		size_t places = switch_places(command, line->words[i]);

		if (i + places > last) {
			offer_separate_value(
				word, line->words[i],
				switch_find(command, line->words[i]));
			return true;
		}
		number += places == 0;
		i += places ? places : 1;
	}
	if (strncmp(word, "--", 2) == 0 && strchr(word, '='))
		offer_joined_value(word, command);
	else if (word[0] == '-' ||
		 (word[0] == '/' && command->word != WORD_FILE))
		offer_switches(word, command);
	else if (command->word == WORD_FILE)
		return false;
	else
		offer_words(word, command, number);
	return true;
}

/*
 * Take apart the line up to the word, with something in the word's place, so
 * that it is the last one. A quote may be open in front of it.
 */
static bool split_before(int start, struct line *ret)
{
	static const char *const places[] = { "x", "x\"", "x'" };

	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		_cleanup_(free) char *text = NULL;
		struct error *error;

		if (asprintf(&text, "%.*s%s", start, rl_line_buffer,
			     places[i]) < 0) {
			text = NULL;
			return false;
		}
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

char **complete_word(const char *word, int start, int end)
{
	_cleanup_(line_deinit) struct line line = { 0 };
	const struct command *command;
	char **completed;

	/* Files are what readline offers by itself. */
	rl_attempted_completion_over = 1;
	if (!split_before(start, &line) || line.count == 0)
		return NULL;
	if (line.target) {
		rl_attempted_completion_over = 0;
		return NULL;
	}
	if (line.count == 1) {
		offer_commands(word);
	} else {
		command = command_find(line.words[0]);
		if (command && !offer_last(word, command, &line))
			rl_attempted_completion_over = 0;
	}
	completed = rl_completion_matches(word, next_match);
	forget_matches();
	return completed;
}
