#include "cli/help/topic.h"

const struct topic topic_kinds = {
	.name = "kinds",
	.summary = "the word behind a set: a class, a signature, a pattern",
	.text = "One word behind a set of allocations takes only those of a kind. It is one of\n"
		"    app::Session    a class; classes derived from it count, too\n"
		"    55bd4cec3ca0    a signature, in hexadecimal\n"
		"    %LongString     a pattern ('help patterns' lists them)\n"
		"    -               whatever has no signature\n"
		"    ?               whatever has neither signature nor "
		"pattern\n"
		"A name with blanks is put in quotes: "
		"'count used \"app::Map<int, int>\"'. The same words stand in rules of '--extend', and in front of counts of references.\n"
		"A class that no allocation is of is taken for a mistake, and the nearest one is named; "
		"'--allow-missing-signatures' makes that 0 allocations.",
	.example = "count used app::Session\n"
		   "list leaked %LongString --limit 3\n"
		   "summarize used ?",
};
