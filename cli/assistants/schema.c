#include "cli/assistants/schema.h"

#include "analyzer/base/list.h"
#include "analyzer/base/text.h"
#include "analyzer/sql/sql.h"
#include "cli/prompt/switches.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

/* ---- what a command takes */

enum { MOST_WORDS = 8, WORD_SIZE = 16 };

/* One of a command's words, as "[OLD...]". */
struct word {
	char name[WORD_SIZE]; /* in lower case */
	bool required, repeated;
};

struct words {
	struct word list[MOST_WORDS];
	size_t count;
};

static struct word *find_word(struct words *words, const char *name)
{
	list_for_each(word, words->list, words->count)
		if (strcmp(word->name, name) == 0)
			return word;
	return NULL;
}

/* "OLD [OLD...]" is one, and required. */
static void add_word(struct words *words, const char *name, size_t length, size_t depth)
{
	struct word word = { .required = depth == 0,
			     .repeated = strncmp(name + length, "...", 3) == 0 };
	struct word *other;

	for (size_t i = 0; i < length && i < WORD_SIZE - 1; i++)
		word.name[i] = (char)tolower((unsigned char)name[i]);
	other = find_word(words, word.name);
	if (other)
		other->repeated |= word.repeated;
	else if (words->count < MOST_WORDS)
		words->list[words->count++] = word;
}

static struct words words_of(const struct command *command)
{
	static const char CAPITALS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	const char *text = command->words ? command->words : "";
	struct words words = { .count = 0 };
	bool is_choice = strchr(text, '|');
	size_t depth = is_choice;

	while (*text) {
		size_t length = strspn(text, CAPITALS);

		if (length > 0)
			add_word(&words, text, length, depth);
		depth += *text == '[';
		depth -= *text == ']';
		text += length ? length : 1;
	}
	return words;
}

static bool is_offered(const struct argp_option *option)
{
	return switch_is_shown(option) && !switch_reaches_out(option);
}

static bool is_limit(const struct argp_option *option)
{
	return strcmp(option->name, "limit") == 0;
}

/* The number-th switch, NULL at the end. 'limit' is not among them: all tools have it. */
static const struct argp_option *switch_at(const struct command *command, size_t number)
{
	const struct argp_option *tables[] = { command->own_options, command->options };

	for (size_t i = 0; i < COUNT_OF(tables); i++) {
		const struct argp_option *option = tables[i];

		for (; option && (option->name || option->doc); option++)
			if (option->name && is_offered(option) && !is_limit(option) &&
			    number-- == 0)
				return option;
	}
	return NULL;
}

static const struct argp_option *find_switch(const struct command *command, const char *name)
{
	const struct argp_option *option;

	for (size_t i = 0; (option = switch_at(command, i)) != NULL; i++)
		if (strcmp(option->name, name) == 0)
			return option;
	return NULL;
}

static bool has_limit(const struct command *command)
{
	const struct argp_option *option = switch_find(command, "--limit");

	return option && is_limit(option);
}

/* ---- as a schema */

static const char *describe_word(const char *name)
{
	static const struct {
		const char *name, *text;
	} texts[] = {
		{ "set",
		  "A set of allocations or of other memory, as used, leaked, leakroots, free, threads, incoming ADDRESS, used minus leaked; 'help' of the word 'sets' lists all" },
		{ "kind", "Only those of that class, type, %Pattern or signature" },
		{ "address",
		  "Hexadecimal, as 0x55d0c0ffee10; or a variable of the program, as shop.customers" },
		{ "query",
		  "In SQLite's SQL. '.tables' lists the tables, '.schema NAME' the columns of one" },
		{ "old", "Older cores, the oldest first" },
		{ "thread", "The number of a thread" },
		{ "word",
		  "A command, a set, a switch as --extend, a %Pattern, or a topic, as sets" },
	};

	for (size_t i = 0; i < COUNT_OF(texts); i++)
		if (strcmp(texts[i].name, name) == 0)
			return texts[i].text;
	return "";
}

static json_t *schema_of_word(const struct word *word)
{
	const char *text = describe_word(word->name);

	if (word->repeated)
		return json_pack("{s:s, s:{s:s}, s:s}", "type", "array", "items", "type", "string",
				 "description", text);
	return json_pack("{s:s, s:s}", "type", "string", "description", text);
}

/* "count|bytes": words to choose from. */
static bool is_choice(const char *argument)
{
	return strchr(argument, '|') && !argument[strspn(argument, "abcdefghijklmnopqrstuvwxyz|")];
}

static json_t *list_choices(const char *argument)
{
	json_t *list = json_array();

	while (*argument) {
		size_t length = strcspn(argument, "|");

		json_array_append_new(list, json_stringn(argument, length));
		argument += length + (argument[length] == '|');
	}
	return list;
}

static json_t *schema_of_switch(const struct argp_option *option)
{
	_cleanup_(free) char *text = NULL;

	if (!option->arg)
		return json_pack("{s:s, s:s}", "type", "boolean", "description", option->doc);
	if (strcmp(option->arg, "COUNT") == 0)
		return json_pack("{s:s, s:i, s:s}", "type", "integer", "minimum", 0, "description",
				 option->doc);
	if (is_choice(option->arg))
		return json_pack("{s:s, s:o, s:s}", "type", "string", "enum",
				 list_choices(option->arg), "description", option->doc);
	text = format_text("%s: %s", option->arg, option->doc);
	return json_pack("{s:s, s:s?}", "type", "string", "description", text);
}

json_t *schema_of_limit(void)
{
	return json_pack("{s:s, s:i, s:i, s:s}", "type", "integer", "minimum", 1, "maximum",
			 (int)MOST_ROWS, "description",
			 "At most that many rows of a table; 100 by default");
}

json_t *schema_of_as(void)
{
	return json_pack("{s:s, s:[s, s], s:s}", "type", "string", "enum", "text", "rows",
			 "description",
			 "Have only the text, or only the rows as data; both by default");
}

json_t *schema_object(json_t *properties, json_t *required)
{
	return json_pack("{s:s, s:o, s:o, s:b}", "type", "object", "properties", properties,
			 "required", required, "additionalProperties", 0);
}

json_t *schema_of_command(const struct command *command)
{
	json_t *properties = json_object(), *required = json_array();
	const struct argp_option *option;
	struct words words;

	if (!command) {
		json_object_set_new(
			properties, "core",
			json_pack(
				"{s:s, s:s}", "type", "string", "description",
				"The file of the core; without it, the cores that may be opened are listed"));
		return schema_object(properties, required);
	}
	words = words_of(command);
	list_for_each(word, words.list, words.count) {
		json_object_set_new(properties, word->name, schema_of_word(word));
		if (word->required)
			json_array_append_new(required, json_string(word->name));
	}
	for (size_t i = 0; (option = switch_at(command, i)) != NULL; i++)
		json_object_set_new(properties, option->name, schema_of_switch(option));
	json_object_set_new(properties, "limit", schema_of_limit());
	json_object_set_new(properties, "as", schema_of_as());
	return schema_object(properties, required);
}

/* A query is right at once only if its tables are known: "allocation(id, address, ...)". */
static char *describe_sql(const struct command *command)
{
	_cleanup_(free) char *tables = sql_signatures();

	return tables ? format_text("%s. %s\n%s", command->summary, tables, command->description)
		      : NULL;
}

char *schema_description(const struct command *command)
{
	if (!command)
		return strdup(
			"Open a core, in place of the one that is open, and show what is in it. Other tools are about the core that is open.");
	if (strcmp(command->name, "sql") == 0)
		return describe_sql(command);
	return command->description ? format_text("%s. %s", command->summary, command->description)
				    : format_text("%s.", command->summary);
}

/* ---- as words */

static struct error *append(struct line *line, const char *text)
{
	char *word = strdup(text);
	struct error *error = word ? LIST_APPEND(line->words, line->count, word) : &error_no_memory;

	if (error)
		free(word);
	return error;
}

struct error *schema_wrong_type(const char *name, const char *what)
{
	return error_create(ERROR_USAGE, "'%s' must be %s", name, what);
}

bool schema_is_given(const json_t *value)
{
	return value && !json_is_null(value) &&
	       !(json_is_string(value) && !*json_string_value(value));
}

/* A string, or the number in decimal, into buffer. */
static const char *text_of(const json_t *value, char buffer[static NUMBER_SIZE])
{
	if (json_is_string(value))
		return json_string_value(value);
	if (!json_is_integer(value) || json_integer_value(value) < 0)
		return NULL;
	buffer[format_decimal((uint64_t)json_integer_value(value), buffer)] = '\0';
	return buffer;
}

static struct error *append_switch(struct line *line, const struct argp_option *option,
				   const json_t *value, const struct folders *folders)
{
	char buffer[NUMBER_SIZE];
	const char *text = text_of(value, buffer);
	_cleanup_(free) char *word = format_text("--%s", option->name), *path = NULL;

	TRY_MEMORY(word);
	if (!option->arg && !json_is_boolean(value))
		return schema_wrong_type(option->name, "true or false");
	if (option->arg && !text)
		return schema_wrong_type(option->name, "a string or a number");
	if (!option->arg && !json_is_true(value))
		return NULL;
	TRY(append(line, word));
	if (option->arg && strcmp(option->arg, "OLD") == 0)
		TRY(folders_find(folders, "core", text, &path));
	return option->arg ? append(line, path ? path : text) : NULL;
}

/* Split text into words; refuse redirections and pipes, such as `> file` and `| program`. */
static struct error *append_split(struct line *line, const char *text)
{
	_cleanup_(line_deinit) struct line split = { 0 };

	TRY(line_split(text, &split));
	if (split.destination != TO_OUTPUT || split.target)
		return error_create(ERROR_USAGE, "'set' takes words only, and no redirection");
	for (size_t i = 0; i < split.count; i++) {
		if (strncmp(split.words[i], "--", 2) == 0)
			return error_create(
				ERROR_USAGE,
				"'%s' does not belong into 'set': a switch is a property of its own",
				split.words[i]);
		TRY(append(line, split.words[i]));
	}
	return NULL;
}

static struct error *append_word(struct line *line, const struct command *command,
				 const struct word *word, const json_t *value,
				 const struct folders *folders)
{
	char buffer[NUMBER_SIZE];
	const char *text = text_of(value, buffer);
	_cleanup_(free) char *path = NULL;

	if (!text)
		return schema_wrong_type(word->name, "a string");
	if (strcmp(word->name, "set") == 0)
		return append_split(line, text);
	if (command->word != WORD_FILE)
		return append(line, text);
	TRY(folders_find(folders, "core", text, &path));
	return append(line, path);
}

static struct error *append_words(struct line *line, const struct command *command,
				  const struct word *word, const json_t *value,
				  const struct folders *folders)
{
	const json_t *each;
	size_t i;

	if (!word->repeated || !json_is_array(value))
		return append_word(line, command, word, value, folders);
	json_array_foreach(value, i, each) TRY(append_word(line, command, word, each, folders));
	return NULL;
}

static struct error *append_switches(struct line *line, const struct command *command,
				     struct words *words, const json_t *arguments,
				     const struct folders *folders)
{
	const struct argp_option *option;
	const json_t *value;
	const char *name;

	json_object_foreach((json_t *)arguments, name, value)
	{
		if (find_word(words, name) || strcmp(name, "limit") == 0 ||
		    strcmp(name, "as") == 0 || !schema_is_given(value))
			continue;
		option = find_switch(command, name);
		if (!option)
			return error_unknown("property", name, NULL);
		TRY(append_switch(line, option, value, folders));
	}
	return NULL;
}

struct error *schema_read_limit(const json_t *value, uint64_t *ret)
{
	json_int_t limit = json_integer_value(value);

	if (!schema_is_given(value))
		return NULL;
	if (!json_is_integer(value) || limit < 1 || limit > MOST_ROWS)
		return error_create(ERROR_USAGE, "'limit' must be a number from 1 to %d",
				    MOST_ROWS);
	*ret = (uint64_t)limit;
	return NULL;
}

/* Others shorten themselves, by their session's limit. */
static struct error *append_limit(struct line *line, const struct command *command,
				  const json_t *value, uint64_t limit)
{
	char number[NUMBER_SIZE];

	if (!schema_is_given(value) || command->shorten || !has_limit(command))
		return NULL;
	number[format_decimal(limit, number)] = '\0';
	TRY(append(line, "--limit"));
	return append(line, number);
}

/* Treat the words from first on as operands, even those that look like switches. */
static struct error *end_switches(struct line *line, const struct command *command, size_t first)
{
	bool looks_like_one = false;
	char *word;

	for (size_t i = first; i < line->count; i++)
		looks_like_one |= strchr("-/", line->words[i][0]) != NULL;
	if (!looks_like_one || command->word == WORD_COMMAND)
		return NULL;
	TRY(append(line, "--"));
	word = line->words[line->count - 1];
	memmove(&line->words[first + 1], &line->words[first],
		(line->count - 1 - first) * sizeof(*line->words));
	line->words[first] = word;
	return NULL;
}

struct error *schema_read(const struct command *command, const json_t *arguments,
			  const struct folders *folders, struct line *ret, uint64_t *ret_rows)
{
	_cleanup_(line_deinit) struct line line = { 0 };
	const json_t *limit = json_object_get(arguments, "limit");
	struct words words = words_of(command);
	size_t switches;

	*ret_rows = command_needs_core(command) ? USUAL_ROWS : MOST_ROWS;
	TRY(append(&line, command->name));
	TRY(schema_read_limit(limit, ret_rows));
	TRY(append_switches(&line, command, &words, arguments, folders));
	TRY(append_limit(&line, command, limit, *ret_rows));
	switches = line.count;
	list_for_each(word, words.list, words.count) {
		const json_t *value = json_object_get(arguments, word->name);

		if (schema_is_given(value))
			TRY(append_words(&line, command, word, value, folders));
		else if (word->required)
			return error_create(ERROR_USAGE, "'%s' is missing", word->name);
	}
	TRY(end_switches(&line, command, switches));
	*ret = take_struct(line);
	return NULL;
}
