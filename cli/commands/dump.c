#include "cli/views/rows.h"

#include <inttypes.h>

struct dump_arguments {
	struct selection selection; /* of which only ascii counts */
	uint64_t address, size;
	bool has_size;
};

static const struct argp_option options[] = {
	{ "ascii", KEEP(FLAG, struct dump_arguments, selection.ascii), NULL, 0,
	  "Show characters, too", 0 },
	{ "show-ascii", KEEP(FLAG, struct dump_arguments, selection.ascii), NULL, OPTION_HIDDEN,
	  NULL, 0 },
	{ 0 },
};

static const int keep_words[] = { KEEP(ADDRESS, struct dump_arguments, address),
				  KEEP_GIVEN(SIZE, struct dump_arguments, size, has_size), 0 };

enum { USUAL_SIZE = 64 };

static struct error *dump_run(struct analysis *analysis, const void *input, struct report *report)
{
	static const struct table table =
		TABLE("memory", "{contents}", { "address", VALUE_ADDRESS }, { "size", VALUE_BYTES },
		      { "contents", VALUE_MEMORY });
	const struct dump_arguments *arguments = input;
	uint64_t size = arguments->has_size ? arguments->size : USUAL_SIZE;
	struct memory_view view;

	if (size > UINT64_MAX - arguments->address)
		return error_create(ERROR_USAGE,
				    "0x%" PRIx64 " bytes from 0x%" PRIx64
				    " on reach past the last address",
				    size, arguments->address);
	view = rows_view(analysis, arguments->address, size, &arguments->selection);
	view.origin = 0;
	report_single(report, &table, arguments->address, size, &view);
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
	.keep_words = keep_words,
	.arguments_size = sizeof(struct dump_arguments),
	.run = dump_run,
};
