/*
 * What help has to say beside commands and sets.
 *
 * Each file of topics/ defines one struct topic; the build collects them.
 */
#ifndef CLI_HELP_TOPIC_H
#define CLI_HELP_TOPIC_H

#include "cli/help/document.h"

struct topic {
	const char *name;
	const char *summary; /* a noun phrase */
	const char *text;    /* see cli/help/document.h */
	const char *example; /* commands that run, one a line; or NULL */

	/* Write, behind the text, what tables of the program hold; or NULL. */
	void (*write)(struct document *document);
};

extern const struct topic *const topics[]; /* NULL at the end */

#endif
