#include "cli/prompt/switches.h"

#include "analyzer/base/text.h"

#include <ctype.h>
#include <limits.h>
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

static struct error *keep_value(int keep, const char *value, void *ret)
{
	switch (keep >> KIND_SHIFT & ((KEPT >> KIND_SHIFT) - 1)) {
	case KEEP_COUNT:
		return parse_count(value, ret);
	case KEEP_SIZE:
		return parse_size(value, ret);
	case KEEP_ADDRESS:
		return parse_address(value, ret);
	case KEEP_TEXT:
		*(const char **)ret = value;
		return NULL;
	default:
		*(bool *)ret = true;
		return NULL;
	}
}

bool switch_keep(const struct argp_option *options, int key, const char *value, void *arguments,
		 struct error **ret_error)
{
	char *field = arguments;
	int given;

	for (; key > 0 && key <= CHAR_MAX && options && !is_end(options); options++)
		if (options->key == key)
			key = options->flags >> LETTER_SHIFT;
	if (!(key & KEPT))
		return false;
	field += key & ((1 << GIVEN_SHIFT) - 1);
	given = key >> GIVEN_SHIFT & ((1 << (KIND_SHIFT - GIVEN_SHIFT)) - 1);
	if (given)
		*(bool *)(field + given) = true;
	*ret_error = keep_value(key, value, field);
	return true;
}

error_t switch_refuse(struct argp_state *state, struct error *error)
{
	argp_error(state, "%s", error_message(error));
	error_destroy(error);
	return EINVAL;
}

static struct error *take_value(struct parser *parser, int key, const char *value)
{
	const struct command *command = parser->command;
	struct error *error = NULL;

	if (switch_keep(NULL, key, value, parser->arguments, &error) &&
	    (error || !command->hears_kept))
		return error;
	return command->parse(key, value, parser->arguments);
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
	return take_value(parser, option->key, NULL);
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
	return take_value(parser, option->key, value);
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

static struct error *take_word(struct parser *parser)
{
	const struct command *command = parser->command;
	const char *word = *parser->words++;
	char buffer[NUMBER_SIZE];

	if (!parser->only_words && strcmp(word, "--") == 0) {
		parser->only_words = true;
		return NULL;
	}
	if (is_switch(parser, word))
		return take_switch(parser, word);
	if (!command->parse)
		return error_create(ERROR_USAGE, "'%s' cannot be combined with '%s'", command->name,
				    word);
	if (parser->common->chap && command->word == WORD_ADDRESS && parser->taken++ > 0)
		word = spell_hexadecimal(word, buffer);
	return command->parse(ARGP_KEY_ARG, word, parser->arguments);
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
	};

	while (parser.words != parser.end)
		TRY(take_word(&parser));
	if (!command->parse)
		return NULL;
	return command->parse(ARGP_KEY_END, NULL, arguments);
}
