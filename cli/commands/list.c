#include "cli/views/listing.h"

static struct error *list_run(struct analysis *analysis, const void *arguments,
			      struct report *report)
{
	return listing_write(analysis, arguments, false, report);
}

const struct command command_list = {
	.name = "list",
	.summary = "List a set, each member with its size and signature",
	.words = "SET [KIND]",
	.example = "list used --sort-by bytes --limit 10   # the largest\n"
		   "list leaked app::Session\n"
		   "list incoming 55d0c0ffee10   # what refers to it\n"
		   "list threads",
	.description = "The last line is that of 'count'.",
	.word = WORD_SET,
	.options = &contents_options[ANNOTATION_OPTIONS],
	.parse = selection_parse,
	.arguments_size = sizeof(struct selection),
	.release = selection_release,
	.run = list_run,
};
