#include "analyzer/base/text.h"
#include "cli/views/rows.h"

#include <inttypes.h>

struct dump_arguments {
	struct selection selection; /* of which only ascii counts */
	uint64_t address, size;
	size_t words;
};

static const struct argp_option options[] = {
	{ "ascii", 'a', NULL, 0, "Show characters, too", 0 },
	{ "show-ascii", 'a', NULL, OPTION_HIDDEN, NULL, 0 },
	{ 0 },
};

enum { USUAL_SIZE = 64 };

static struct error *take_word(struct dump_arguments *arguments, const char *word)
{
	switch (arguments->words++) {
	case 0:
		return parse_address(word, &arguments->address);
	case 1:
		return parse_size(word, &arguments->size);
	default:
		return error_create(ERROR_USAGE,
				    "unexpected word '%s' after an address and a length", word);
	}
}

static struct error *dump_parse(int key, const char *value, void *output)
{
	struct dump_arguments *arguments = output;

	if (key == 'a') {
		arguments->selection.ascii = true;
		return NULL;
	}
	if (key != ARGP_KEY_END)
		return take_word(arguments, value);
	if (arguments->words == 0)
		return error_create(ERROR_USAGE, "'dump' needs an address");
	if (arguments->words == 1)
		arguments->size = USUAL_SIZE;
	if (arguments->size > UINT64_MAX - arguments->address)
		return error_create(ERROR_USAGE,
				    "0x%" PRIx64 " bytes from 0x%" PRIx64
				    " on reach past the last address",
				    arguments->size, arguments->address);
	return NULL;
}

static struct error *dump_run(struct analysis *analysis, const void *input, struct report *report)
{
	static const struct table table =
		TABLE("memory", "{contents}", { "address", VALUE_ADDRESS }, { "size", VALUE_BYTES },
		      { "contents", VALUE_MEMORY });
	const struct dump_arguments *arguments = input;
	struct memory_view view =
		rows_view(analysis, arguments->address, arguments->size, &arguments->selection);

	view.origin = 0;
	report_single(report, &table, arguments->address, arguments->size, &view);
	return NULL;
}

const struct command command_dump = {
	.name = "dump",
	.summary = "Show memory at any address",
	.words = "ADDRESS [LENGTH]",
	.example = "dump 7ffd1c0a2000 100 --ascii\n"
		   "x 55d0c0ffee10   # 64 bytes",
	.description =
		"Without a length, 64 bytes are shown. Memory is shown as words, 32 bytes to a line, after the address of the line.",
	.word = WORD_ADDRESS,
	.options = options,
	.parse = dump_parse,
	.arguments_size = sizeof(struct dump_arguments),
	.run = dump_run,
};
