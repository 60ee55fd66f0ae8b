#include "analyzer/base/text.h"
#include "cli/views/matches.h"

#include <ctype.h>
#include <string.h>

struct findbytes_arguments {
	struct matches_switches switches;
	uint8_t *bytes; /* owned */
	size_t size;
};

enum { KEY_TEXT = 't' };

static const struct argp_option options[] = {
	{ "text", KEY_TEXT, "TEXT", 0, "Look for these characters", 0 },
	MATCHES_OPTIONS,
	{ 0 },
};

static struct error *add_bytes(struct findbytes_arguments *arguments, const void *bytes,
			       size_t size)
{
	uint8_t *longer = realloc(arguments->bytes, arguments->size + size + 1);

	if (!longer)
		return &error_no_memory;
	memcpy(longer + arguments->size, bytes, size);
	arguments->bytes = longer;
	arguments->size += size;
	return NULL;
}

static unsigned int digit_value(char digit)
{
	return isdigit((unsigned char)digit)
		       ? (unsigned int)(digit - '0')
		       : (unsigned int)(tolower((unsigned char)digit) - 'a') + 10;
}

/* "dead" and "de ad" alike. */
static struct error *add_hexadecimal(struct findbytes_arguments *arguments, const char *word)
{
	const char *at = word;
	struct error *error = NULL;

	if (at[0] == '0' && tolower((unsigned char)at[1]) == 'x')
		at += 2;
	while (!error && *at) {
		uint8_t byte;

		if (isspace((unsigned char)*at)) {
			at++;
			continue;
		}
		if (!isxdigit((unsigned char)at[0]) || !isxdigit((unsigned char)at[1]))
			return error_not(
				word,
				"bytes in hexadecimal, two digits each; --text looks for characters");
		byte = (uint8_t)(digit_value(at[0]) << 4 | digit_value(at[1]));
		error = add_bytes(arguments, &byte, 1);
		at += 2;
	}
	return error;
}

/* Quotes within quotes, which hide the outer ones: '"text"'. */
static bool is_quoted(const char *word)
{
	size_t length = strlen(word);

	return length >= 2 && (*word == '"' || *word == '\'') && word[length - 1] == *word;
}

static struct error *findbytes_parse(int key, const char *value, void *output)
{
	struct findbytes_arguments *arguments = output;
	struct error *error;

	if (matches_take(&arguments->switches, key, value, &error))
		return error;
	if (key == KEY_TEXT)
		return add_bytes(arguments, value, strlen(value));
	if (key == ARGP_KEY_END)
		return arguments->size > 0
			       ? NULL
			       : error_create(ERROR_USAGE,
					      "'findbytes' takes bytes in hexadecimal, or --text");
	if (is_quoted(value))
		return add_bytes(arguments, value + 1, strlen(value) - 2);
	return add_hexadecimal(arguments, value);
}

static void findbytes_release(void *output)
{
	struct findbytes_arguments *arguments = output;

	free(arguments->bytes);
}

static struct error *findbytes_run(struct analysis *analysis, const void *input,
				   struct report *report)
{
	const struct findbytes_arguments *arguments = input;
	struct search search = { .kind = SEARCH_BYTES,
				 .bytes = arguments->bytes,
				 .size = arguments->size };

	return matches_write(analysis, search, &arguments->switches, report);
}

const struct command command_findbytes = {
	.name = "findbytes",
	.summary = "Find a sequence of bytes in all memory",
	.words = "BYTES...",
	.example = "findbytes --text password --skip stacks",
	.description =
		"Bytes are written as pairs of hexadecimal digits, with or without blanks between them: 'findbytes de ad be ef' and 'findbytes deadbeef' are the same. They may stand at any address, in all memory whose contents are known: in the core, or in the files that were mapped. Each match is shown with what it is in.",
	.word = WORD_NUMBER,
	.options = options,
	.parse = findbytes_parse,
	.arguments_size = sizeof(struct findbytes_arguments),
	.release = findbytes_release,
	.needs = STAGE_HEAP,
	.tells_content = true,
	.run = findbytes_run,
};
