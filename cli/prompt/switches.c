#include "cli/prompt/switches.h"

#include "analyzer/base/list.h"
#include "analyzer/base/text.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>

enum spelling { PLAIN_WORD, SPELLED_DASHES, SPELLED_SLASH, SPELLED_LETTER };

/* The state of the parser: the rest of the words, and the destination of values. */
struct parser {
	const struct command *command;
	char *const *words;
	char *const *end;
	void *arguments;
	struct common_switches *common;
	size_t taken;	 /* words other than switches */
	const int *kept; /* of the command's keep_words, that of the next word; or NULL */
	bool only_words; /* `--` was seen */
};

static enum spelling spelling_of(const char *word)
{
	if (word[0] == '/')
		return SPELLED_SLASH;
	if (word[0] != '-' || !word[1])
		return PLAIN_WORD;
	if (word[1] == '-')
		return SPELLED_DASHES;
	return word[2] ? PLAIN_WORD : SPELLED_LETTER;
}

static bool is_end(const struct argp_option *option)
{
	return !option->name && !option->key && !option->doc && !option->group;
}

bool switch_reaches_out(const struct argp_option *option)
{
	static const char *const names[] = { "self-check", "update-baseline", "ratchet" };

	for (size_t i = 0; i < COUNT_OF(names); i++)
		if (strcmp(option->name, names[i]) == 0)
			return true;
	return option->arg && strstr(option->arg, "FILE");
}

bool switch_is_shown(const struct argp_option *option)
{
	return option->name && !(option->flags & (OPTION_DOC | OPTION_HIDDEN));
}

void switch_spell_slashed(const char *name, char ret[static SLASHED_SIZE])
{
	size_t length = 0;

	ret[length++] = '/';
	for (; *name && length < SLASHED_SIZE - 1; name++)
		if (*name != '-')
			ret[length++] = *name;
	ret[length] = '\0';
}

/* True if name is the option, except for dashes and case, up to its end or a `=`. */
static bool same_name(const char *name, const char *option)
{
	for (;; name++, option++) {
		name += strspn(name, "-");
		option += strspn(option, "-");
		if (!*option)
			return !*name || *name == '=';
		if (tolower((unsigned char)*name) != tolower((unsigned char)*option))
			return false;
	}
}

enum { KEY_FORMAT = 'f', KEY_SUFFIX = 'x', KEY_TABLE = 't' };

const struct argp_option common_options[] = {
	{ NULL, 0, NULL, 0, "Switches of the output", 0 },
	{ "format", KEY_FORMAT, "FORMAT", 0, "Write text, csv, tsv, markdown, json or ndjson", 0 },
	{ "table", KEY_TABLE, "NAME", 0, "Write only the table of that name", 0 },
	{ "redirect-suffix", KEY_SUFFIX, "SUFFIX", 0,
	  "While 'redirect' is on, end the file's name so", 0 },
	{ 0 },
};

static bool is_common(const struct argp_option *option)
{
	return option >= common_options && option < common_options + COUNT_OF(common_options);
}

static const struct argp_option *find_in(const struct argp_option *option, const char *name)
{
	for (; option && !is_end(option); option++)
		if (option->name && !(option->flags & OPTION_DOC) && same_name(name, option->name))
			return option;
	return NULL;
}

const struct argp_option *switch_find(const struct command *command, const char *word)
{
	enum spelling spelling = spelling_of(word);
	const struct argp_option *option;

	if (spelling == PLAIN_WORD)
		return NULL;
	if (spelling == SPELLED_SLASH && strchr(word, '='))
		return NULL;
	word += spelling == SPELLED_DASHES ? 2 : 1;
	option = find_in(command->own_options, word);
	if (!option)
		option = find_in(command->options, word);
	if (!option && command_needs_core(command))
		option = find_in(common_options, word);
	return option;
}

size_t switch_places(const struct command *command, const char *word)
{
	const struct argp_option *option = switch_find(command, word);

	if (!option)
		return 0;
	if (spelling_of(word) == SPELLED_SLASH)
		return 2;
	return option->arg && !strchr(word, '=') ? 2 : 1;
}

/* The number-th switch that help shows, for nearest_word(). */
static const char *shown_name(const void *data, size_t number)
{
	const struct command *command = data;
	const struct argp_option *tables[] = { command->own_options, command->options,
					       command_needs_core(command) ? common_options
									   : NULL };

	for (size_t i = 0; i < COUNT_OF(tables); i++) {
		const struct argp_option *option = tables[i];

		for (; option && !is_end(option); option++)
			if (switch_is_shown(option) && number-- == 0)
				return option->name;
	}
	return NULL;
}

static struct error *unknown_switch(const struct command *command, const char *word)
{
	bool dashes = spelling_of(word) == SPELLED_DASHES;
	const char *name = word + (dashes ? 2 : 1);
	_cleanup_(free) char *bare = strndup(name, strcspn(name, "="));
	const char *nearest;
	char slashed[SLASHED_SIZE];

	TRY_MEMORY(bare);
	nearest = nearest_word(bare, shown_name, command);
	if (!dashes && nearest && name[strlen(bare)] == '=' && same_name(name, nearest))
		return error_create(ERROR_USAGE,
				    "'/%s' takes its value as the next word, without '='", bare);
	if (!nearest)
		return error_create(ERROR_USAGE, "'%s' has no switch '%s'", command->name, word);
	switch_spell_slashed(nearest, slashed);
	return error_create(ERROR_USAGE, "'%s' has no switch '%s'; did you mean '%s%s'?",
			    command->name, word, dashes ? "--" : "", dashes ? nearest : slashed);
}

void word_list_release(void *arguments)
{
	free(((struct word_list *)arguments)->list);
}

static struct error *refuse_choice(const char *word, const char *choices)
{
	const char *last = strrchr(choices, '|');
	_cleanup_(free) char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	TRY_MEMORY(out);
	fputc('\'', out);
	for (; *choices; choices++)
		if (*choices == '|')
			fputs(choices == last ? "' or '" : "', '", out);
		else
			fputc(*choices, out);
	fputc('\'', out);
	fclose(out);
	return error_not(word, text);
}

/* The number of the word among "auto|always|never". */
static struct error *take_choice(const char *word, const char *choices, unsigned int *ret)
{
	const char *choice = choices;
	size_t length = strcspn(choice, "|");

	for (*ret = 0; strlen(word) != length || strncmp(word, choice, length) != 0; ++*ret) {
		if (!choice[length])
			return refuse_choice(word, choices);
		choice += length + 1;
		length = strcspn(choice, "|");
	}
	return NULL;
}

static int kind_of_kept(int keep)
{
	return keep >> KIND_SHIFT & ((KEPT >> KIND_SHIFT) - 1);
}

/* choices are those of KEEP_CHOICE. */
static struct error *keep_value(int keep, const char *choices, const char *value, void *ret)
{
	struct word_list *list = ret;

	assert(value || kind_of_kept(keep) == KEEP_FLAG);
	switch (kind_of_kept(keep)) {
	case KEEP_COUNT:
		return parse_count(value, ret);
	case KEEP_SIZE:
		return parse_size(value, ret);
	case KEEP_ADDRESS:
		return parse_address(value, ret);
	case KEEP_TIME:
		return parse_time(value, ret);
	case KEEP_CHOICE:
		return take_choice(value, choices, ret);
	case KEEP_LIST:
		return LIST_APPEND(list->list, list->count, value);
	case KEEP_TEXT:
		*(const char **)ret = value;
		return NULL;
	default:
		*(bool *)ret = true;
		return NULL;
	}
}

/* Keep the value in the field of the arguments that KEEP() names. */
static struct error *keep_in(void *arguments, int keep, const char *choices, const char *value)
{
	char *field = (char *)arguments + (keep & ((1 << GIVEN_SHIFT) - 1));
	int given = keep >> GIVEN_SHIFT & ((1 << (KIND_SHIFT - GIVEN_SHIFT)) - 1);

	if (given)
		*(bool *)(field + given) = true;
	return keep_value(keep, choices, value, field);
}

/* The KEEP() of the option, or 0. */
static int keep_of(const struct argp_option *option)
{
	int keep = option->key & KEPT ? option->key : option->flags >> LETTER_SHIFT;

	return keep & KEPT ? keep : 0;
}

error_t switch_take(const struct argp_option *options, int key, const char *value,
		    struct argp_state *state)
{
	struct error *error;

	while (!is_end(options) && !(options->key == key && keep_of(options)))
		options++;
	if (is_end(options))
		return ARGP_ERR_UNKNOWN;
	error = keep_in(state->input, keep_of(options), options->arg, value);
	return switch_refuse(state, error ? error_wrap(error, "--%s", options->name) : NULL);
}

error_t switch_refuse(struct argp_state *state, struct error *error)
{
	if (!error)
		return 0;
	argp_error(state, "%s", error_message(error));
	error_destroy(error);
	return EINVAL;
}

static struct error *take_value(struct parser *parser, const struct argp_option *option,
				const char *value)
{
	const struct command *command = parser->command;
	int keep = keep_of(option);

	if (keep)
		TRY(keep_in(parser->arguments, keep, option->arg, value));
	if (keep && !command->hears_kept)
		return NULL;
	return command->parse(option->key, value, parser->arguments);
}

/* The older spelling gives a flag a value, too. */
static struct error *take_flag_value(struct parser *parser, const char *word,
				     const struct argp_option *option, const char *value)
{
	if (strcasecmp(value, "false") == 0)
		return NULL;
	if (strcasecmp(value, "true") != 0)
		return error_create(ERROR_USAGE, "'%s' is 'true' or 'false', not '%s'", word,
				    value);
	return take_value(parser, option, NULL);
}

static struct error *take_common(struct common_switches *common, int key, const char *value)
{
	if (key == KEY_FORMAT)
		common->format = value;
	else if (key == KEY_TABLE)
		common->table = value;
	else
		common->suffix = value;
	return NULL;
}

static struct error *take_switch(struct parser *parser, const char *word)
{
	const struct argp_option *option = switch_find(parser->command, word);
	const char *value = NULL;
	char buffer[NUMBER_SIZE];

	if (!option)
		return unknown_switch(parser->command, word);
	if (spelling_of(word) == SPELLED_DASHES) {
		value = strchr(word, '=');
		value = value ? value + 1 : NULL;
	}
	if (value && !option->arg)
		return error_create(ERROR_USAGE, "'--%s' takes no value", option->name);
	if (!value && switch_places(parser->command, word) == 2) {
		if (parser->words == parser->end)
			return error_create(ERROR_USAGE, "'%s' needs a value (%s)", word,
					    option->arg ? option->arg : "true or false");
		value = *parser->words++;
	}
	if (is_common(option))
		return take_common(parser->common, option->key, value);
	if (value && !option->arg)
		return take_flag_value(parser, word, option, value);
	if (value && strcmp(option->arg, "SIZE") == 0 &&
	    (parser->common->chap || spelling_of(word) == SPELLED_SLASH))
		value = spell_hexadecimal(value, buffer);
	return take_value(parser, option, value);
}

/* A path has the looks of a switch. */
static bool is_switch(const struct parser *parser, const char *word)
{
	/* `help --min-size` asks about a switch. */
	if (parser->only_words || parser->command->word == WORD_COMMAND)
		return false;
	switch (spelling_of(word)) {
	case SPELLED_DASHES:
		return true;
	case SPELLED_SLASH:
		return parser->command->word != WORD_FILE || switch_find(parser->command, word);
	case SPELLED_LETTER:
		return switch_find(parser->command, word);
	default:
		return false;
	}
}

/* Take a word that is no switch. */
static struct error *take_plain(struct parser *parser, const char *word)
{
	const struct command *command = parser->command;
	int keep = parser->kept ? *parser->kept : 0;
	char buffer[NUMBER_SIZE];

	if (command->word == WORD_ADDRESS && parser->taken > 0 && parser->common->chap)
		word = spell_hexadecimal(word, buffer);
	parser->taken++;
	if (keep) {
		parser->kept += kind_of_kept(keep) != KEEP_LIST;
		return keep_in(parser->arguments, keep, command->words, word);
	}
	if (command->parse)
		return command->parse(ARGP_KEY_ARG, word, parser->arguments);
	return error_create(ERROR_USAGE, "unexpected word '%s' after '%s%s%s'", word, command->name,
			    command->words ? " " : "", command->words ? command->words : "");
}

static struct error *take_word(struct parser *parser)
{
	const char *word = *parser->words++;

	if (!parser->only_words && strcmp(word, "--") == 0) {
		parser->only_words = true;
		return NULL;
	}
	if (is_switch(parser, word))
		return take_switch(parser, word);
	return take_plain(parser, word);
}

/* How many words the command must have: those in front of the first that is in brackets. */
static size_t words_needed(const char *words)
{
	size_t needed = 0;

	while (*words && *words != '[') {
		needed++;
		words += strcspn(words, " ");
		words += strspn(words, " ");
	}
	return needed;
}

struct error *switches_parse(const struct command *command, char *const *words, size_t count,
			     void *arguments, struct common_switches *common)
{
	struct parser parser = {
		.common = common,
		.command = command,
		.words = words,
		.end = words + count,
		.arguments = arguments,
		.kept = command->keep_words,
	};

	while (parser.words != parser.end)
		TRY(take_word(&parser));
	if (command->keep_words && parser.taken < words_needed(command->words))
		return error_create(ERROR_USAGE, "'%s' takes %s", command->name, command->words);
	if (!command->parse)
		return NULL;
	return command->parse(ARGP_KEY_END, NULL, arguments);
}
