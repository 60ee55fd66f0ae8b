#include "analyzer/classify/classifier.h"
#include "cli/help/manual.h"

static void write_patterns(struct document *document)
{
	document_heading(document, LEVEL_PART, "Patterns");
	for (size_t i = 0; classifiers[i]; i++) {
		_cleanup_(free) char *name = NULL;

		if (asprintf(&name, "%%%s", classifiers[i]->name) < 0) {
			name = NULL;
			return;
		}
		document_entry(document, name, classifiers[i]->summary);
	}
}

const struct topic topic_patterns = {
	.name = "patterns",
	.summary = "buffers, nodes and the like that are known by their shape",
	.text = "The text of a long string, the elements of a vector or the node of a map bear no signature: nothing in them says what they are. But what refers to them does: three pointers that agree are a vector, and so what they point to is its body. An allocation that is so recognised has a pattern, and 'describe' tells what it is part of.\n"
		"'%NAME' behind a set asks for those of a pattern, and in a rule of '--extend', too.",
	.example = "summarize used\n"
		   "count used %LongString\n"
		   "describe used %VectorBody --limit 3",
	.write = write_patterns,
};
