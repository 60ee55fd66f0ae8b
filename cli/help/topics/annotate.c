#include "analyzer/query/annotate.h"
#include "cli/help/topic.h"

static void write_annotators(struct document *document)
{
	document_heading(document, LEVEL_PART, "Annotators");
	for (size_t i = 0; annotator_name(i); i++)
		document_entry(document, annotator_name(i), annotator_summary(i));
}

const struct topic topic_annotate = {
	.name = "annotate",
	.summary = "what parts of an allocation are, told behind it",
	.text = "'--annotate WHAT[@OFFSET].ANNOTATOR' has 'list', 'show', 'describe' and 'explain' tell of parts of each allocation, with the offsets where they begin and end. WHAT is a kind ('help kinds'), a state of an extension ('help extend'), or * for all allocations; the annotator, too, may be *. With an offset, only what begins there is shown. The switch may be repeated.",
	.example = "list used app::Session --annotate *.* --limit 1\n"
		   "list used --annotate app::Session.SSOString --limit 5\n"
		   "list used app::Session --extend ->%MapOrSetNode=>M --annotate M.* --limit 5",
	.write = write_annotators,
};
