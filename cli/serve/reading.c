#include "cli/serve/reading.h"

#include "cli/prompt/execute.h"
#include "cli/prompt/switches.h"

#include <string.h>

const char *older_core_name(const struct word_list *older, size_t number)
{
	const char *slash = strrchr(older->list[number], '/');

	return slash ? slash + 1 : older->list[number];
}

static struct error *refuse(const char *what)
{
	return error_create(ERROR_USAGE, "'%s' is only for the prompt: here, commands only read",
			    what);
}

/* Put the path of that core there. */
static struct error *resolve(char **word, const struct word_list *older)
{
	for (size_t i = 0; i < older->count; i++) {
		char *path;

		if (strcmp(*word, older_core_name(older, i)) != 0)
			continue;
		path = strdup(older->list[i]);
		TRY_MEMORY(path);
		free(*word);
		*word = path;
		return NULL;
	}
	return error_create(ERROR_USAGE, "'%s' is none of the older cores that were given", *word);
}

/* A switch's value may be a core. */
static struct error *check_switch(const struct command *command, char **words, size_t places,
				  const struct word_list *older)
{
	const struct argp_option *option = switch_find(command, words[0]);

	if (option && switch_reaches_out(option))
		return refuse(words[0]);
	if (!option || !option->arg || strcmp(option->arg, "OLD") != 0)
		return NULL;
	return places == 2 ? resolve(&words[1], older)
			   : error_create(ERROR_USAGE, "write the core as a word of its own");
}

static bool is_answered(const struct command *command)
{
	return command_needs_core(command) || command->word == WORD_COMMAND;
}

struct error *reading_check(struct line *line, const struct word_list *older)
{
	const struct command *command = line->count ? command_find(line->words[0]) : NULL;
	bool words_only = false;

	if (line->destination != TO_OUTPUT)
		return error_create(ERROR_USAGE, "output goes to the page only");
	if (!command)
		return line->count ? command_unknown(line->words[0])
				   : error_create(ERROR_USAGE, "there is no command");
	if (!is_answered(command))
		return refuse(command->name);
	for (size_t i = 1, places; i < line->count; i += places) {
		places = words_only ? 0 : switch_places(command, line->words[i]);
		words_only |= strcmp(line->words[i], "--") == 0;
		if (places > line->count - i)
			return NULL; /* the command says what is missing */
		if (places)
			TRY(check_switch(command, &line->words[i], places, older));
		else if (command->word == WORD_FILE && strcmp(line->words[i], "--") != 0)
			TRY(resolve(&line->words[i], older));
		places = places ? places : 1;
	}
	return NULL;
}

bool reading_changes_answers(const struct line *line)
{
	static const char *const names[] = { "let", "diff", "report", "istype", "notype" };
	const struct command *command = command_find(line->words[0]);

	for (size_t i = 0; i < COUNT_OF(names); i++)
		if (strcmp(command->name, names[i]) == 0)
			return true;
	return false;
}
