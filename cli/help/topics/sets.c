#include "cli/help/manual.h"

static void write_sets(struct document *document)
{
	document_heading(document, LEVEL_PART, "Sets of allocations");
	manual_write_sets(document, true);
	document_heading(document, LEVEL_PART, "Sets of other memory");
	manual_write_sets(document, false);
}

const struct topic topic_sets = {
	.name = "sets",
	.summary = "what can be asked about, how to combine it and name it",
	.text = "A set is a word, with addresses behind it where it takes some: 'used', 'incoming 55d0c0ffee10'. Behind a set of allocations may stand one word that narrows it to a kind ('help kinds'), as in 'used app::Session'.\n"
		"Sets of allocations are combined with 'and', 'or' and 'minus', one after the other from left to right:\n"
		"    used app::Session and leaked minus unreferenced\n"
		"    '----------- first --------'                  |\n"
		"    '-------------------- then -------------------'\n"
		"Switches narrow what comes of that, wherever they stand ('help switches'), and extend it ('help extend').\n"
		"'let NAME = SET' gives the members a name for later.",
	.example = "count used minus leaked\n"
		   "list leaked and threadonlyanchored or leakroots --limit 3\n"
		   "let big = used --min-size 1K\n"
		   "summarize big minus leaked   # 'let' made big a set",
	.write = write_sets,
};
