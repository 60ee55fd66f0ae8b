/* Help on the commands, generated from their structs. */
#include "analyzer/base/text.h"
#include "analyzer/classify/classifier.h"
#include "analyzer/query/query.h"
#include "cli/help/manual.h"
#include "cli/prompt/execute.h"
#include "cli/prompt/switches.h"
#include "cli/views/selection.h"

#include <string.h>

enum { MAXIMUM_WORDS = 2 }; /* a command and a set */

struct help_arguments {
	const char *words[MAXIMUM_WORDS]; /* NULL: not given */
};

static const int keep_words[] = { KEEP(TEXT, struct help_arguments, words[0]),
				  KEEP(TEXT, struct help_arguments, words[1]), 0 };

/* The number-th word that there is help on. */
static const char *known_word(const void *data, size_t number)
{
	const struct argp_option *option;

	for (size_t i = 0; commands[i]; i++)
		if (number-- == 0)
			return commands[i]->name;
	for (size_t i = 0; set_at(i); i++)
		if (number-- == 0)
			return set_at(i)->name;
	for (size_t i = 0; topics[i]; i++)
		if (number-- == 0)
			return topics[i]->name;
	for (option = contents_options; option->name || option->doc; option++)
		if (option->name && number-- == 0)
			return option->name;
	return NULL;
}

/* A switch of any command, with or without what stands in front of it. */
static const struct argp_option *find_switch(const char *word)
{
	_cleanup_(free) char *name = NULL;
	const struct argp_option *option = NULL;

	name = format_text("--%s", word + strspn(word, "-/"));
	if (!name)
		return NULL;
	for (size_t i = 0; !option && commands[i]; i++)
		option = switch_find(commands[i], name);
	return option && switch_is_shown(option) ? option : NULL;
}

/* False: the word is unknown. */
static bool explain_word(struct document *document, const char *word)
{
	const char *bare = word + strspn(word, "-/");
	const struct command *command = command_find(word);
	const struct set *set = set_find(word);
	const struct topic *topic = topic_find(query_is_operator(word) ? "sets" : bare);
	const struct argp_option *option = find_switch(word);

	if (command)
		manual_write_command(document, command, true);
	if (set)
		manual_write_set(document, set);
	if (option && !command && !set) {
		document_heading(document, LEVEL_PART, "The switch");
		manual_write_switch(document, option);
	}
	if (topic)
		manual_write_topic(document, topic);
	return command || set || topic || option;
}

static struct error *explain_pattern(struct document *document, const char *name)
{
	const struct classifier *classifier = NULL;
	struct kind kind;
	struct error *error = kind_parse(name, &kind);

	for (size_t i = 0; !error && classifiers[i]; i++)
		if (strcasecmp(classifiers[i]->name, name + 1) == 0)
			classifier = classifiers[i];
	if (classifier)
		document_entry(document, name, classifier->summary);
	return error;
}

/* Explain a name that `let` defined, if there is a dump. */
static bool explain_named(struct session *session, struct document *document, const char *word)
{
	if (!session->analysis || set_find(word) ||
	    !named_sets_find(analysis_named_sets(session->analysis), word))
		return false;
	document_text(document, "It is a set that you named: 'let' says how many are in it.");
	return true;
}

static struct error *explain(struct session *session, struct document *document, const char *word)
{
	if (word[0] == '%')
		return explain_pattern(document, word);
	if (explain_named(session, document, word))
		return NULL;
	if (explain_word(document, word))
		return NULL;
	return error_unknown("word", word,
			     nearest_word(word + strspn(word, "-/"), known_word, NULL));
}

static struct error *help_control(struct session *session, const void *input, struct report *report)
{
	static const struct table table = TABLE("line", "{line}", { "line", VALUE_TEXT });
	const struct help_arguments *arguments = input;
	struct document document = { .form = &form_terminal, .report = report };

	report_begin_table(report, &table);
	if (!arguments->words[0])
		manual_write_start(&document);
	for (size_t i = 0; i < MAXIMUM_WORDS && arguments->words[i]; i++)
		TRY(explain(session, &document, arguments->words[i]));
	report_end_table(report);
	return NULL;
}

const struct command command_help = {
	.name = "help",
	.summary = "List the commands, or explain a command, a set, a switch or a topic",
	.words = "[WORD [SET]]",
	.example = "help               # where to begin, and all commands\n"
		   "help summarize     # a command, with all its switches\n"
		   "help leaked        # a set\n"
		   "help extend        # how to go on from a set, with "
		   "pictures\n"
		   "help --min-size    # a switch",
	.word = WORD_COMMAND,
	.keep_words = keep_words,
	.arguments_size = sizeof(struct help_arguments),
	.stands_alone = true,
	.control = help_control,
};
