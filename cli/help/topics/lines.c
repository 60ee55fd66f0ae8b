#include "cli/help/topic.h"

const struct topic topic_lines = {
	.name = "lines",
	.summary = "how a line is read, and where its output goes",
	.text = "A line is a command and its words, with blanks between. Quotes of either kind group words with blanks; '#' begins a comment; a backslash at the end continues the line in the next. Addresses, sizes and offsets are hexadecimal, with or without 0x, counts decimal; 64K and 10M are sizes, too.\n"
		"At the end, '> FILE' sends the output to a file, '>> FILE' appends it, and '| SHELL COMMAND' gives it to the shell. 'redirect on' makes a file of each output. '--format FORMAT' behind a command that looks at a core has it write csv, tsv, markdown, json or ndjson instead of text.\n"
		"'#' also begins the comments in examples. Addresses in examples are made up: take yours from 'list' or 'enumerate'.\n"
		"Ctrl-C ends a command, not heapcore. Tab completes words. Scripts are run by 'source FILE', by 'heapcore -f FILE CORE', or come in on standard input; what goes wrong in one is reported "
		"with its line, and the rest still runs.",
	.example = "list used --limit 100 | head -4\n"
		   "list used --limit 3 --format csv\n"
		   "enumerate leaked > leaked.txt\n"
		   "count used \"std::logic_error\" "
		   "--allow-missing-signatures   # none",
};
