/*
 * What the commands are and how they are used, told from their structs.
 */
#include "analyzer/base/text.h"
#include "analyzer/query/set.h"
#include "cli/execute.h"
#include "cli/switches.h"

#include <stdarg.h>
#include <string.h>

enum {
	MAXIMUM_WORDS = 2, /* a command and a set */
	LINE_WIDTH = 78,
	NAME_WIDTH = 26, /* of what an entry of a list explains */
	COMMAND_WIDTH = 13,
};

struct help_arguments {
	const char *words[MAXIMUM_WORDS];
	size_t count;
};

static struct error *help_parse(int key, const char *value, void *output)
{
	struct help_arguments *arguments = output;

	if (key == ARGP_KEY_END)
		return NULL;
	if (arguments->count == MAXIMUM_WORDS)
		return error_create(ERROR_USAGE,
				    "'help' explains a command and a set, not "
				    "'%s' too",
				    value);
	arguments->words[arguments->count++] = value;
	return NULL;
}

static void write_line(struct report *report, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void write_line(struct report *report, const char *format, ...)
{
	_cleanup_(free) char *text = NULL;
	va_list arguments;

	va_start(arguments, format);
	if (vasprintf(&text, format, arguments) < 0)
		text = NULL;
	va_end(arguments);
	report_text(report, text ? text : "");
	report_end_row(report);
}

/* How many bytes of text go on a line of that width. */
static size_t fitting(const char *text, size_t width)
{
	size_t line = strcspn(text, "\n");
	size_t length = width;

	if (line <= width)
		return line;
	while (length > 0 && text[length] != ' ')
		length--;
	return length > 0 ? length : width;
}

/* Fill lines with text; the first begins with name, all are indented alike. */
static void write_filled(struct report *report, const char *name, size_t indent,
			 const char *text)
{
	do {
		size_t length = fitting(text, LINE_WIDTH - indent);

		write_line(report, "%-*s%.*s", (int)indent, name, (int)length,
			   text);
		name = "";
		text += length;
		text += *text == '\n' ? 1 : strspn(text, " ");
	} while (*text);
}

/* An entry of a list; width is that of names. */
static void write_entry(struct report *report, const char *name, size_t width,
			const char *text)
{
	_cleanup_(free) char *indented = NULL;

	if (asprintf(&indented, "  %s ", name) < 0) {
		indented = NULL;
		return;
	}
	if (strlen(indented) > width) {
		write_line(report, "%s", indented);
		indented[0] = '\0';
	}
	write_filled(report, indented, width, text);
}

enum group { GROUP_SETS, GROUP_PLACES, GROUP_SESSION, GROUPS };

static enum group group_of(const struct command *command)
{
	if (command->word == WORD_SET)
		return GROUP_SETS;
	return command->needs_analysis ? GROUP_PLACES : GROUP_SESSION;
}

static void write_commands(struct report *report)
{
	static const char *const titles[] = {
		[GROUP_SETS] = "To ask about a set ('help sets' lists them):",
		[GROUP_PLACES] = "To look at a place in memory:",
		[GROUP_SESSION] = "To work with heapcore:",
	};

	for (enum group group = 0; group < GROUPS; group++) {
		write_line(report, "%s", titles[group]);
		for (size_t i = 0; commands[i]; i++)
			if (group_of(commands[i]) == group)
				write_entry(report, commands[i]->name,
					    COMMAND_WIDTH,
					    commands[i]->summary);
		write_line(report, "%s", "");
	}
	write_filled(report, "", 0,
		     "'help COMMAND' explains one. Any output can go to a file "
		     "with '> FILE', or to the shell with '| COMMAND', as in "
		     "'list leaked | less'. Addresses and sizes are "
		     "hexadecimal; 64K and 10M are sizes, too.");
}

static void write_set_entry(struct report *report, const struct set *set)
{
	_cleanup_(free) char *usage = NULL;

	if (asprintf(&usage, "%s%s%s", set->name, set->arguments ? " " : "",
		     set->arguments ? set->arguments : "") < 0) {
		usage = NULL;
		return;
	}
	write_entry(report, usage, NAME_WIDTH, set->summary);
}

static void write_sets(struct report *report, bool of_allocations)
{
	for (size_t i = 0; set_at(i); i++)
		if (!set_at(i)->ranges == of_allocations)
			write_set_entry(report, set_at(i));
}

static void write_all_sets(struct report *report)
{
	write_line(report, "Sets of allocations:");
	write_sets(report, true);
	write_line(report, "%s", "");
	write_line(report, "Sets of other memory:");
	write_sets(report, false);
}

/* `--show-up-to N` and, since it can be so written, `/showupto N`. */
static void write_switch(struct report *report,
			 const struct argp_option *option)
{
	_cleanup_(free) char *usage = NULL;

	if (asprintf(&usage, "--%s%s%s", option->name, option->arg ? " " : "",
		     option->arg ? option->arg : "") < 0) {
		usage = NULL;
		return;
	}
	write_entry(report, usage, NAME_WIDTH, option->doc ? option->doc : "");
}

static void write_switches(struct report *report,
			   const struct argp_option *option)
{
	if (!option)
		return;
	write_line(report, "%s", "");
	write_line(report, "Switches:");
	for (; option->name || option->doc; option++)
		if (switch_is_shown(option))
			write_switch(report, option);
	write_line(report, "%s", "");
	write_filled(report, "", 0,
		     "They may also be written --NAME=VALUE, or /NAME VALUE "
		     "without dashes in the name; a switch without a value "
		     "is /NAME true then.");
}

static void write_command(struct report *report, const struct command *command)
{
	write_line(report, "%s%s%s%s", command->name, command->words ? " " : "",
		   command->words ? command->words : "",
		   command->options ? " [SWITCHES]" : "");
	write_filled(report, "", 4, command->summary);
	if (command->description) {
		write_line(report, "%s", "");
		write_filled(report, "", 0, command->description);
	}
	write_switches(report, command->options);
	if (command->example) {
		write_line(report, "%s", "");
		write_line(report, "Example: %s", command->example);
	}
}

static const char *known_word(const void *data, size_t number)
{
	for (size_t i = 0; commands[i]; i++)
		if (number-- == 0)
			return commands[i]->name;
	for (size_t i = 0; set_at(i); i++)
		if (number-- == 0)
			return set_at(i)->name;
	return number == 0 ? "sets" : NULL;
}

static const struct set *find_set(const char *name)
{
	for (size_t i = 0; set_at(i); i++)
		if (strcmp(set_at(i)->name, name) == 0)
			return set_at(i);
	return NULL;
}

static bool is_known(const char *word)
{
	const char *known;

	for (size_t i = 0; (known = known_word(NULL, i)); i++)
		if (strcmp(word, known) == 0)
			return true;
	return false;
}

static void explain_word(struct report *report, const char *word)
{
	const struct command *command = command_find(word);
	const struct set *set = find_set(word);

	if (command)
		write_command(report, command);
	if (set)
		write_set_entry(report, set);
	if (strcmp(word, "sets") == 0)
		write_all_sets(report);
}

static struct error *check_words(const struct help_arguments *arguments)
{
	for (size_t i = 0; i < arguments->count; i++) {
		const char *word = arguments->words[i];

		if (!is_known(word))
			return error_unknown(
				"command or set", word,
				nearest_word(word, known_word, NULL));
	}
	return NULL;
}

static struct error *help_control(struct session *session, const void *input,
				  struct report *report)
{
	static const struct column columns[] = { { "line", VALUE_TEXT } };
	static const struct table table = {
		.name = "line",
		.columns = columns,
		.column_count = 1,
		.sentence = "{line}",
	};
	const struct help_arguments *arguments = input;
	struct error *error = check_words(arguments);

	if (error)
		return error;
	report_begin_table(report, &table);
	if (!arguments->count)
		write_commands(report);
	for (size_t i = 0; i < arguments->count; i++) {
		if (i > 0)
			write_line(report, "%s", "");
		explain_word(report, arguments->words[i]);
	}
	report_end_table(report);
	return NULL;
}

const struct command command_help = {
	.name = "help",
	.summary = "List the commands, or explain one, or a set, or all sets",
	.words = "[COMMAND|SET|sets]",
	.example = "help summarize",
	.word = WORD_COMMAND,
	.parse = help_parse,
	.arguments_size = sizeof(struct help_arguments),
	.control = help_control,
};
