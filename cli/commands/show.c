#include "cli/views/listing.h"

static struct error *show_run(struct analysis *analysis, const void *arguments,
			      struct report *report)
{
	return listing_write(analysis, arguments, true, report);
}

const struct command command_show = {
	.name = "show",
	.summary = "List a set with the contents of each member",
	.words = "SET [KIND]",
	.example = "show leaked --limit 3 --ascii\n"
		   "show allocation 55d0c0ffee10\n"
		   "show stacks --show-up-to 80 --limit 1",
	.description = "Contents are 8-byte words, four to a line, behind the offset of the line.",
	.word = WORD_SET,
	.options = contents_options,
	.parse = selection_parse,
	.arguments_size = sizeof(struct selection),
	.release = selection_release,
	.run = show_run,
};
