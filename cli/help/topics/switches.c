#include "cli/prompt/switches.h"
#include "cli/help/manual.h"
#include "cli/views/selection.h"

static void write_switches(struct document *document)
{
	manual_write_switches(document, contents_options);
	manual_write_switches(document, common_options);
}

const struct topic topic_switches = {
	.name = "switches",
	.summary = "what narrows, orders, extends and shows a set, all of it",
	.text = "Commands that take a set take these switches, before or behind it. A switch is written '--NAME VALUE' or '--NAME=VALUE'. Users of chap may go on to write '/NAME VALUE', in small or capital letters and without the dashes within the name: '/minSize 400' is '--min-size 400'. A switch without a value is '/NAME true' there.\n"
		"Sizes, offsets and addresses are hexadecimal, with or without 0x; a size with a unit is decimal: 64K, 10M, 2G. Counts are decimal.\n"
		"They are applied in this order, however they are typed: sizes, counts of references, the sample, the extension; then the order and the limit.",
	.example = "list used --min-size 1K --max-size 1M --limit 5\n"
		   "list used /minsize 400 /maxsize 100000 /limit 5   # the same",
	.write = write_switches,
};
