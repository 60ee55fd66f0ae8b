/*
 * Commands that search all memory whose contents are known, and list what matches.
 */
#include "analyzer/base/text.h"
#include "analyzer/query/ranges.h"
#include "cli/views/rows.h"

#include <ctype.h>
#include <string.h>

struct find_arguments {
	unsigned int skipped; /* enum skipped_place */
	uint64_t limit;	      /* 0: none */
	bool given;
	struct search search;
	uint8_t *bytes; /* of the search; owned */
};

enum { KEY_LIMIT = 'n', KEY_SKIP = 'k', KEY_TEXT = 't' };

static const struct argp_option find32_options[] = {
	{ "limit", KEY_LIMIT, "COUNT", 0, "Show at most that many", 0 },
	{ "skip", KEY_SKIP, "used|free|allocations|stacks", 0,
	  "Skip matches there; may be repeated", 0 },
	{ 0 },
};

static const struct argp_option findbytes_options[] = {
	{ "text", KEY_TEXT, "TEXT", 0, "Look for these characters", 0 },
	{ "limit", KEY_LIMIT, "COUNT", 0, "Show at most that many", 0 },
	{ "skip", KEY_SKIP, "used|free|allocations|stacks", 0,
	  "Skip matches there; may be repeated", 0 },
	{ 0 },
};

static struct error *take_limit(struct find_arguments *arguments, const char *value)
{
	TRY(parse_count(value, &arguments->limit));
	if (arguments->limit == 0)
		return error_create(ERROR_USAGE, "a limit of 0 leaves nothing to show");
	return NULL;
}

static struct error *find_run(struct analysis *analysis, const void *input, struct report *report)
{
	const struct find_arguments *arguments = input;
	_cleanup_(ranges_deinit) struct ranges ranges = { 0 };

	TRY(analysis_need(analysis, range_kind_matches.needs));
	TRY(references_find(analysis, arguments->search, arguments->skipped, &ranges));
	rows_ranges(report, analysis, &range_kind_matches, &ranges, arguments->limit);
	return NULL;
}

static struct error *take_word(struct find_arguments *arguments, const char *word)
{
	struct search *search = &arguments->search;
	struct error *error;

	if (arguments->given)
		return error_create(ERROR_USAGE,
				    "unexpected word '%s': find32 searches for one at a time",
				    word);
	if (!is_address(word))
		return error_not(word, "a word in hexadecimal");
	*search = (struct search){ .kind = SEARCH_WORDS_32, .span = 1 };
	error = parse_address(word, &search->first);
	if (!error && search->first > UINT32_MAX)
		return error_create(
			ERROR_USAGE,
			"'%s' has more than 32 bits; see 'help pointers' for words of 64", word);
	arguments->given = true;
	return error;
}

static struct error *find32_parse(int key, const char *value, void *output)
{
	struct find_arguments *arguments = output;

	switch (key) {
	case KEY_LIMIT:
		return take_limit(arguments, value);
	case KEY_SKIP:
		return skipped_parse(value, &arguments->skipped);
	case ARGP_KEY_END:
		return arguments->given
			       ? NULL
			       : error_create(ERROR_USAGE,
					      "'find32' takes a word of 32 bits, in hexadecimal");
	default:
		return take_word(arguments, value);
	}
}

static struct error *add_bytes(struct find_arguments *arguments, const void *bytes, size_t size)
{
	struct search *search = &arguments->search;
	uint8_t *longer = realloc(arguments->bytes, search->size + size + 1);

	TRY_MEMORY(longer);
	memcpy(longer + search->size, bytes, size);
	arguments->bytes = longer;
	*search = (struct search){
		.kind = SEARCH_BYTES,
		.bytes = longer,
		.size = search->size + size,
	};
	return NULL;
}

/* "dead" and "de ad" alike. */
static struct error *add_hexadecimal(struct find_arguments *arguments, const char *word)
{
	const char *at = word;
	struct error *error = NULL;

	if (at[0] == '0' && tolower((unsigned char)at[1]) == 'x')
		at += 2;
	while (!error && *at) {
		char digits[3] = "";
		uint8_t byte;

		if (isspace((unsigned char)*at)) {
			at++;
			continue;
		}
		if (!isxdigit((unsigned char)at[0]) || !isxdigit((unsigned char)at[1]))
			return error_not(
				word,
				"bytes in hexadecimal, two digits each; --text searches for characters");
		byte = (uint8_t)strtoul(memcpy(digits, at, 2), NULL, 16);
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
	struct find_arguments *arguments = output;

	switch (key) {
	case KEY_LIMIT:
		return take_limit(arguments, value);
	case KEY_SKIP:
		return skipped_parse(value, &arguments->skipped);
	case KEY_TEXT:
		return add_bytes(arguments, value, strlen(value));
	case ARGP_KEY_END:
		if (arguments->search.size > 0)
			return NULL;
		return error_create(ERROR_USAGE,
				    "'findbytes' takes bytes in hexadecimal, or --text");
	default:
		if (is_quoted(value))
			return add_bytes(arguments, value + 1, strlen(value) - 2);
		return add_hexadecimal(arguments, value);
	}
}

static void find_release(void *arguments)
{
	free(((struct find_arguments *)arguments)->bytes);
}

const struct command command_findbytes = {
	.name = "findbytes",
	.summary = "Find a sequence of bytes in all memory",
	.words = "BYTES...",
	.example = "findbytes --text password --skip stacks",
	.description =
		"Write bytes as pairs of hexadecimal digits, with or without blanks between them: 'findbytes de ad be ef' and 'findbytes deadbeef' are the same. All memory with known contents is searched, at every address: the core, and the files that were mapped. Each match is shown with what contains it.",
	.word = WORD_NUMBER,
	.options = findbytes_options,
	.parse = findbytes_parse,
	.arguments_size = sizeof(struct find_arguments),
	.release = find_release,
	.needs = STAGE_HEAP,
	.tells_content = true,
	.run = find_run,
};

const struct command command_find32 = {
	.name = "find32",
	.summary = "Find a word of 32 bits in all memory",
	.words = "WORD",
	.example = "find32 cafe --skip free --limit 20",
	.description =
		"The word is hexadecimal. All memory with known contents is searched, at multiples of 4: the core, and the files that were mapped. Each match is shown with what contains it. For words of 64 bits, see 'help pointers'.",
	.word = WORD_NUMBER,
	.options = find32_options,
	.parse = find32_parse,
	.arguments_size = sizeof(struct find_arguments),
	.needs = STAGE_HEAP,
	.tells_content = true,
	.run = find_run,
};
