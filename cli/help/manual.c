#include "cli/help/manual.h"

#include "analyzer/base/text.h"
#include "cli/prompt/switches.h"
#include "cli/views/selection.h"

#include <ctype.h>
#include <string.h>

enum group { GROUP_SETS, GROUP_PLACES, GROUP_SESSION };

static enum group group_of(const struct command *command)
{
	if (command->word == WORD_SET || command->word == WORD_NAMING)
		return GROUP_SETS;
	return command_needs_core(command) ? GROUP_PLACES : GROUP_SESSION;
}

const struct topic *topic_find(const char *name)
{
	const struct topic *const *topic = topics;

	while (*topic && strcmp((*topic)->name, name) != 0)
		topic++;
	return *topic;
}

static void write_group(struct document *document, enum group group)
{
	static const char *const titles[] = {
		[GROUP_SETS] = "Verbs that take a set, as in 'count used'",
		[GROUP_PLACES] = "To look at memory and the process",
		[GROUP_SESSION] = "To work with heapcore",
	};

	document_heading(document, LEVEL_PART, titles[group]);
	for (size_t i = 0; commands[i]; i++)
		if (group_of(commands[i]) == group)
			document_entry(document, commands[i]->name, commands[i]->summary);
}

/* A noun phrase as a sentence; NULL if memory is short. */
static char *sentence(const char *phrase)
{
	return format_text("%c%s.", toupper((unsigned char)phrase[0]), phrase + 1);
}

static void write_sentence(struct document *document, const char *phrase)
{
	_cleanup_(free) char *text = sentence(phrase);

	if (text)
		document_text(document, text);
}

static void write_examples(struct document *document, const char *lines)
{
	if (!lines)
		return;
	document_heading(document, LEVEL_PART, strchr(lines, '\n') ? "Examples" : "Example");
	document_examples(document, lines);
}

/* "NAME WORDS MORE", as far as they are there. */
static char *join(const char *name, const char *words, const char *more)
{
	return format_text("%s%s%s%s", name, words ? " " : "", words ? words : "", more);
}

void manual_write_switch(struct document *document, const struct argp_option *option)
{
	_cleanup_(free) char *usage = format_text("--%s%s%s", option->name, option->arg ? " " : "",
						  option->arg ? option->arg : "");
	if (!usage)
		return;
	document_entry(document, usage, option->doc ? option->doc : "");
}

void manual_write_switches(struct document *document, const struct argp_option *options)
{
	const struct argp_option *option = options;

	for (; option->name || option->doc; option++) {
		if (!option->name)
			document_heading(document, LEVEL_PART, option->doc);
		else if (switch_is_shown(option))
			manual_write_switch(document, option);
	}
}

/* True if the switches are those of all sets, except some that the command adds. */
static bool are_shared(const struct argp_option *options)
{
	return options == contents_options || options == &contents_options[ANNOTATION_OPTIONS] ||
	       options == &contents_options[SELECTION_OPTIONS];
}

static void write_shared(struct document *document, const struct argp_option *options)
{
	document_text(
		document,
		options == contents_options ? "Accepts all set switches; see Switches."
		: options == &contents_options[ANNOTATION_OPTIONS]
			? "Accepts the set switches, except those that show contents; see Switches."
			: "Accepts the set switches, except those that show contents and annotations; see Switches.");
}

static void write_options(struct document *document, const struct command *command,
			  bool with_shared)
{
	const struct argp_option *options = command->options;

	if (command->own_options) {
		document_heading(document, LEVEL_PART, "Switches");
		manual_write_switches(document, command->own_options);
	}
	if (options && are_shared(options) && !with_shared) {
		write_shared(document, options);
	} else if (options) {
		if (options->name)
			document_heading(document, LEVEL_PART, "Switches");
		manual_write_switches(document, options);
	}
	if (!with_shared || !command_needs_core(command))
		return;
	manual_write_switches(document, common_options);
	document_text(
		document,
		"A switch may also be written --NAME=VALUE, or /NAME VALUE without dashes in the name; one without a value is '/NAME true' then.");
}

void manual_write_command(struct document *document, const struct command *command,
			  bool with_shared)
{
	_cleanup_(free) char *usage =
		join(command->name, command->words,
		     command->options || command_needs_core(command) ? " [SWITCHES]" : "");

	if (!usage)
		return;
	document_heading(document, LEVEL_ITEM, usage);
	write_sentence(document, command->summary);
	if (command->description)
		document_text(document, command->description);
	if (command->words && strncmp(command->words, "ADDRESS", strlen("ADDRESS")) == 0)
		document_text(document,
			      "ADDRESS is hexadecimal, or a variable: see 'help addresses'.");
	write_options(document, command, with_shared);
	write_examples(document, command->example);
}

void manual_write_set(struct document *document, const struct set *set)
{
	_cleanup_(free) char *usage = join("the set", set->name, "");
	_cleanup_(free) char *whole = usage ? join(usage, set->arguments, "") : NULL;

	if (!whole)
		return;
	document_heading(document, LEVEL_ITEM, whole);
	write_sentence(document, set->summary);
	if (set->description)
		document_text(document, set->description);
	if (set->arguments)
		document_text(
			document,
			"Addresses and offsets are hexadecimal, with or without 0x. An address may be a variable: see 'help addresses'.");
	write_examples(document, set->example);
}

/* An entry says it all, in the room of a paragraph. */
static char *set_text(const struct document *document, const struct set *set)
{
	_cleanup_(free) char *text = NULL;
	int length = strcspn(set->example ? set->example : "", "\n");

	if (document->report)
		return strdup(set->summary);
	text = sentence(set->summary);
	if (!text)
		return NULL;
	return format_text("%s%s%s%s%.*s%s", text, set->description ? " " : "",
			   set->description ? set->description : "", length ? " As in '" : "",
			   length, length ? set->example : "", length ? "'." : "");
}

static void write_set_entry(struct document *document, const struct set *set)
{
	_cleanup_(free) char *usage = join(set->name, set->arguments, "");
	_cleanup_(free) char *text = set_text(document, set);

	if (usage && text)
		document_entry(document, usage, text);
}

void manual_write_sets(struct document *document, bool of_allocations)
{
	for (size_t i = 0; set_at(i); i++)
		if (!set_at(i)->ranges == of_allocations)
			write_set_entry(document, set_at(i));
}

/* Write the most useful sets; `help sets` lists all. */
static void write_first_sets(struct document *document)
{
	static const char *const names[] = { "used", "leaked", "leakroots", "free", "incoming" };

	document_heading(document, LEVEL_PART, "The most useful sets ('help sets' lists all)");
	for (size_t i = 0; i < COUNT_OF(names); i++)
		write_set_entry(document, set_find(names[i]));
}

void manual_write_start(struct document *document)
{
	document->term_width = 15;
	document_heading(document, LEVEL_PART, "Begin with");
	document_examples(document, "info                  # who holds the memory and what leaked\n"
				    "explain ADDRESS       # what holds it, or how it was lost\n"
				    "summarize leakroots   # what leaked, by kind");
	write_group(document, GROUP_SETS);
	write_first_sets(document);
	write_group(document, GROUP_PLACES);
	write_group(document, GROUP_SESSION);
	document_heading(document, LEVEL_PART, "To read more, 'help' with");
	for (size_t i = 0; topics[i]; i++)
		document_entry(document, topics[i]->name, topics[i]->summary);
	document_text(
		document,
		"'help WORD' explains any of these words, a set ('help leaked') or a switch ('help --min-size').");
}

static void write_title(struct document *document, const struct topic *topic)
{
	_cleanup_(free) char *title = format_text("%s: %s", topic->name, topic->summary);

	if (title)
		document_text(document, title);
}

void manual_write_topic(struct document *document, const struct topic *topic)
{
	if (document->report)
		write_title(document, topic);
	else
		write_sentence(document, topic->summary);
	document_text(document, topic->text);
	if (topic->write)
		topic->write(document);
	write_examples(document, topic->example);
}
