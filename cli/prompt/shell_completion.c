#include "cli/prompt/shell_completion.h"

#include "analyzer/base/cleanup.h"
#include "cli/assistants/mcp.h"
#include "cli/fleet/fleet.h"
#include "cli/live/run.h"
#include "cli/live/slim.h"
#include "cli/live/snap.h"
#include "cli/live/soak.h"
#include "cli/options.h"
#include "cli/prompt/completion.h"
#include "cli/prompt/execute.h"
#include "cli/prompt/lexer.h"
#include "cli/serve/serve.h"
#include "cli/watch/receive.h"
#include "cli/watch/watch.h"

#include <stdlib.h>
#include <string.h>

/* Words that may stand in the place of CORE. */
static const char MODES[] = "run|snap|slim|soak|watch|receive|fleet|serve|mcp|diff|report|help";

static const struct {
	const char *name;
	const struct argp *parser;
} modes[] = {
	{ "run", &run_parser },	    { "snap", &snap_parser },	{ "slim", &slim_parser },
	{ "soak", &soak_parser },   { "watch", &watch_parser }, { "receive", &receive_parser },
	{ "fleet", &fleet_parser }, { "mcp", &mcp_parser },	{ "serve", &serve_parser },
};

static bool is_option(const char *word)
{
	return word[0] == '-' && word[1] != '\0';
}

/* The option that the word is, or begins with: `-f`, `--format`, `--format=json`. */
static const struct argp_option *find_option(const struct argp_option *options, const char *word)
{
	for (; options->name || options->doc; options++) {
		size_t length = options->name ? strlen(options->name) : 0;

		if (word[1] != '-' ? options->key == word[1]
				   : length > 0 && strncmp(word + 2, options->name, length) == 0 &&
					     strchr("=", word[2 + length]))
			return options;
	}
	return NULL;
}

/* True if the option's value is the next word. */
static bool takes_next(const struct argp_option *option, const char *word)
{
	return option && option->arg && (word[1] == '-' ? !strchr(word, '=') : !word[2]);
}

/*
 * The first of the words that is no option, nor an option's value; count if there is none.
 * *ret_option is the option whose value the last word is, or NULL.
 */
static int skip_options(const struct argp_option *options, int count, char **words,
			const struct argp_option **ret_option)
{
	int i = 0;

	*ret_option = NULL;
	while (i < count && is_option(words[i]) && strcmp(words[i], "--") != 0) {
		const struct argp_option *option = find_option(options, words[i]);

		i++;
		if (!takes_next(option, words[i - 1]))
			continue;
		if (i == count)
			*ret_option = option;
		i++;
	}
	return i < count ? i : count;
}

static void complete_option(const char *word, const struct argp_option *options)
{
	const struct argp_option *option = find_option(options, word);
	_cleanup_(free) char *before = strndup(word, strcspn(word, "=") + 1);

	if (before && option && strchr(word, '='))
		completion_write_values(word, before, option->arg, stdout);
	else
		completion_write_options(word, options, stdout);
}

/* The options of a mode end in front of a program's name or a process. */
static void complete_mode(const struct argp *mode, int count, char **words)
{
	const struct argp_option *option;
	int own = skip_options(mode->options, count, words, &option);

	if (option)
		completion_write_values(words[count], "", option->arg, stdout);
	if (option || own < count || !is_option(words[count]))
		return;
	complete_option(words[count], mode->options);
	if (mode == &run_parser || mode == &soak_parser)
		complete_option(words[count], command_find("gate")->options);
}

/* The words before the last one are complete. */
static void complete(int count, char **words)
{
	const struct argp_option *option;
	int core = skip_options(program_options, count, words, &option);
	bool has_process = false;
	struct line line;

	for (int i = 0; i < core; i++)
		has_process |= strcmp(words[i], "-p") == 0 || strncmp(words[i], "--pid", 5) == 0;
	if (option)
		return completion_write_values(words[count], "", option->arg, stdout);
	if (core == count && is_option(words[count]))
		return complete_option(words[count], program_options);
	/* Most of all, files fit here. */
	if (core == count && !has_process)
		return completion_write_values(words[count], "", words[count][0] ? MODES : NULL,
					       stdout);
	for (size_t i = 0; i < COUNT_OF(modes); i++)
		if (strcmp(words[core], modes[i].name) == 0)
			return complete_mode(modes[i].parser, count - core - 1, words + core + 1);
	if (strcmp(words[core], "diff") == 0 || strcmp(words[core], "report") == 0)
		return;
	if (!has_process && !command_stands_alone(words[core]))
		core++;
	line = (struct line){ .words = words + core, .count = (size_t)(count + 1 - core) };
	completion_write(&line, stdout);
}

int complete_main(int count, char **arguments)
{
	if (count > 1)
		complete(count - 2, arguments + 1);
	return 0;
}
