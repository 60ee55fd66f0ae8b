#include "cli/prompt/lexer.h"

#include "analyzer/base/list.h"
#include "analyzer/base/macros.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static const char BLANKS[] = " \t\r\n\v\f";

static bool is_blank(char character)
{
	return character && strchr(BLANKS, character);
}

static bool is_quote(char character)
{
	return character == '"' || character == '\'';
}

static struct error *add_word(struct line *line, char *word)
{
	struct error *error = LIST_APPEND(line->words, line->count, word);

	if (error)
		free(word);
	return error;
}

/* The end of the quoted piece that begins at quote, or NULL. */
static const char *end_of_quotes(const char *quote)
{
	return strchr(quote + 1, *quote);
}

/* Read the word at *text, which has one; *text ends up behind it. */
static struct error *read_word(const char **text, char **ret)
{
	_cleanup_(free) char *word = malloc(strlen(*text) + 1);
	const char *at = *text;
	size_t length = 0;

	TRY_MEMORY(word);
	while (*at && *at != '|' && !is_blank(*at)) {
		const char *end;

		if (!is_quote(*at)) {
			word[length++] = *at++;
			continue;
		}
		end = end_of_quotes(at);
		if (!end)
			return error_create(ERROR_USAGE, "the quote in %.40s is not closed", at);
		memcpy(word + length, at + 1, (size_t)(end - at - 1));
		length += (size_t)(end - at - 1);
		at = end + 1;
	}
	word[length] = '\0';
	*text = at;
	*ret = take(word);
	return NULL;
}

/* text begins with `>`: nothing but a file's name may follow. */
static struct error *read_file_target(const char *text, struct line *line)
{
	line->destination = text[1] == '>' ? TO_APPEND : TO_FILE;
	text += line->destination == TO_APPEND ? 2 : 1;
	text += strspn(text, BLANKS);
	if (!*text || *text == '#' || *text == '|')
		return error_create(ERROR_USAGE, "the name of a file is missing behind '>'");
	TRY(read_word(&text, &line->target));
	text += strspn(text, BLANKS);
	if (*text && *text != '#')
		return error_create(
			ERROR_USAGE,
			"'%.40s' follows the file of '>', which must be the last on the line",
			text);
	return NULL;
}

/* text begins with `|`: the rest belongs to the shell, quotes and all. */
static struct error *read_shell_target(const char *text, struct line *line)
{
	size_t length;

	text++;
	text += strspn(text, BLANKS);
	length = strlen(text);
	while (length > 0 && is_blank(text[length - 1]))
		length--;
	if (!length)
		return error_create(ERROR_USAGE, "a shell command is missing behind '|'");
	line->destination = TO_SHELL;
	line->target = strndup(text, length);
	return line->target ? NULL : &error_no_memory;
}

static struct error *read_words(const char **text, struct line *line)
{
	for (;;) {
		char *word = NULL;

		*text += strspn(*text, BLANKS);
		if (!**text || strchr("#|>", **text))
			return NULL;
		TRY(read_word(text, &word));
		TRY(add_word(line, word));
	}
}

/* ---- SQL, whose quotes and signs are its own */

static bool begins_with_word(const char *text, const char *word)
{
	size_t length = strlen(word);

	return strncasecmp(text, word, length) == 0 && (!text[length] || is_blank(text[length]));
}

/*
 * The start of a statement in a line of the command `sql`; NULL if there is none, or it is quoted.
 */
static const char *find_statement(const char *text)
{
	static const char *const beginnings[] = { "SELECT", "WITH", "VALUES", "EXPLAIN" };

	text += strspn(text, BLANKS);
	if (!begins_with_word(text, "sql"))
		return NULL;
	while (*text && !strchr("#|>\"'", *text)) {
		for (size_t i = 0; i < COUNT_OF(beginnings); i++)
			if (begins_with_word(text, beginnings[i]))
				return text;
		text += strcspn(text, BLANKS);
		text += strspn(text, BLANKS);
	}
	return NULL;
}

/* True if a statement ends here: at a semicolon that is the last, or before a switch. */
static bool ends_statement(const char *text)
{
	if (*text == ';')
		return strchr("|>#", text[1 + strspn(text + 1, BLANKS)]);
	return is_blank(*text) && text[1] == '-' && text[2] == '-' &&
	       islower((unsigned char)text[3]);
}

static struct error *read_statement(const char **text, struct line *line)
{
	const char *at = *text;
	char *word;

	while (*at && !ends_statement(at)) {
		const char *end = is_quote(*at) ? end_of_quotes(at) : at;

		if (!end)
			return error_create(ERROR_USAGE, "the quote in %.40s is not closed", at);
		at = end + 1;
	}
	word = strndup(*text, (size_t)(at - *text));
	*text = at + (*at == ';');
	return word ? add_word(line, word) : &error_no_memory;
}

/* Read a line such as `sql --format csv SELECT ... WHERE name = 'x'; > file`. */
static struct error *read_sql(const char **text, const char *statement, struct line *line)
{
	_cleanup_(free) char *before = strndup(*text, (size_t)(statement - *text));
	const char *words = before;

	TRY_MEMORY(before);
	TRY(read_words(&words, line));
	*text = statement;
	TRY(read_statement(text, line));
	return read_words(text, line);
}

struct error *line_split(const char *text, struct line *ret)
{
	_cleanup_(line_deinit) struct line line = { 0 };
	const char *statement = find_statement(text);
	struct error *error =
		statement ? read_sql(&text, statement, &line) : read_words(&text, &line);

	if (!error && *text == '>')
		error = read_file_target(text, &line);
	else if (!error && *text == '|')
		error = read_shell_target(text, &line);
	if (!error && line.target && !line.count)
		error = error_create(ERROR_USAGE, "there is no command in front of '%c'", *text);
	if (error)
		return error;
	*ret = take(line);
	return NULL;
}

void line_deinit(struct line *line)
{
	for (size_t i = 0; i < line->count; i++)
		free(line->words[i]);
	free(line->words);
	free(line->target);
	*line = (struct line){ 0 };
}

/* True if text has a comment, which is ignored to its end. */
static bool has_comment(const char *text)
{
	bool begins = true; /* a word could begin here */

	for (; *text; text++) {
		const char *end;

		if (*text == '#' && begins)
			return true;
		begins = is_blank(*text);
		if (!is_quote(*text))
			continue;
		end = end_of_quotes(text);
		if (!end)
			return false;
		text = end;
	}
	return false;
}

bool line_continues(const char *text)
{
	size_t length = strlen(text);

	return length > 0 && text[length - 1] == '\\' && !has_comment(text);
}
