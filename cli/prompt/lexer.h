/*
 * A line of the command language, taken apart.
 *
 *	count used "app::Map<int, int>" --min-size 4K > out   # for later
 *
 * Words are split at blanks; quotes of either kind group, anywhere in a word, and hide what else is
 * special: `#` where a word would begin comments out the rest, `>` and `>>` there send the output
 * to a file, and `|` anywhere gives the rest of the line to the shell. So `->` and `=>` within a
 * word are nothing special. A `\` at the end of a line continues it.
 */
#pragma once

#include "analyzer/base/error.h"

#include <stdbool.h>
#include <stddef.h>

enum destination {
	TO_OUTPUT, /* wherever output goes otherwise */
	TO_FILE,   /* `> target` */
	TO_APPEND, /* `>> target` */
	TO_SHELL,  /* `| target` */
};

struct line {
	char **words;
	size_t count;
	enum destination destination;
	char *target; /* a file's name or a shell command; NULL: neither */
};

/*
 * Take text apart. A line without words is fine, and has no destination. A statement of SQL behind
 * `sql` is one word, with its quotes, up to the end of the line or a last semicolon.
 */
struct error *line_split(const char *text, struct line *ret);
void line_deinit(struct line *line);
DEFINE_DEINIT(line_deinit, struct line)

/*
 * True if the line continues in the next one. The caller replaces its last character, `\`, by a
 * blank and the next line.
 */
bool line_continues(const char *text);
