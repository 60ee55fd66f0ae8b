#include "analyzer/base/text.h"
#include "cli/views/matches.h"

struct find32_arguments {
	struct matches_switches switches;
	bool given;
	uint64_t word;
};

static const struct argp_option options[] = {
	MATCHES_OPTIONS,
	{ 0 },
};

static struct error *take_word(struct find32_arguments *arguments, const char *word)
{
	struct error *error;

	if (arguments->given)
		return error_create(ERROR_USAGE,
				    "'%s' is one word too many: find32 looks for one at a time",
				    word);
	if (!is_address(word))
		return error_not(word, "a word in hexadecimal");
	error = parse_address(word, &arguments->word);
	if (error)
		return error;
	if (arguments->word > UINT32_MAX)
		return error_create(
			ERROR_USAGE,
			"'%s' has more than 32 bits; see 'help pointers' for words of 64", word);
	arguments->given = true;
	return NULL;
}

static struct error *find32_parse(int key, const char *value, void *output)
{
	struct find32_arguments *arguments = output;
	struct error *error;

	if (matches_take(&arguments->switches, key, value, &error))
		return error;
	if (key != ARGP_KEY_END)
		return take_word(arguments, value);
	return arguments->given ? NULL
				: error_create(ERROR_USAGE,
					       "'find32' takes a word of 32 bits, in hexadecimal");
}

static struct error *find32_run(struct analysis *analysis, const void *input, struct report *report)
{
	const struct find32_arguments *arguments = input;
	struct search search = { .kind = SEARCH_WORDS_32, .first = arguments->word, .span = 1 };

	return matches_write(analysis, search, &arguments->switches, report);
}

const struct command command_find32 = {
	.name = "find32",
	.summary = "Find a word of 32 bits in all memory",
	.words = "WORD",
	.example = "find32 cafe --skip free --limit 20",
	.description =
		"The word is hexadecimal, and looked for at addresses that are multiples of 4, in all memory whose contents are known: in the core, or in the files that were mapped. Each match is shown with what it is in. For words of 64 bits, see 'help pointers'.",
	.word = WORD_NUMBER,
	.options = options,
	.parse = find32_parse,
	.arguments_size = sizeof(struct find32_arguments),
	.needs = STAGE_HEAP,
	.tells_content = true,
	.run = find32_run,
};
