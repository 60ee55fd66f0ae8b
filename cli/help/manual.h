/*
 * The text about commands, sets and topics, for `help`, the manual page and docs/commands.md, from
 * the same structs.
 */
#pragma once

#include "analyzer/query/set.h"
#include "cli/command.h"
#include "cli/help/document.h"

/* A page of help that is about no command or set. Each is defined as topic_NAME in topics.c. */
struct topic {
	const char *name;
	const char *summary; /* a noun phrase */
	const char *text;    /* see cli/help/document.h */
	const char *example; /* commands that run, one a line; or NULL */

	/* Write, behind the text, what tables of the program hold; or NULL. */
	void (*write)(struct document *document);
};

extern const struct topic *const topics[]; /* NULL at the end */

/* Write what to type first, and the names of all pages of help. */
void manual_write_start(struct document *document);

/*
 * A command. The switches that many commands share are described here, or, in the whole manual, by
 * the topic `switches`.
 */
void manual_write_command(struct document *document, const struct command *command,
			  bool with_shared);
void manual_write_set(struct document *document, const struct set *set);
void manual_write_topic(struct document *document, const struct topic *topic);

/* Entries for all sets: of allocations, or of other memory. */
void manual_write_sets(struct document *document, bool of_allocations);

/* Entries for the options, below headings if there are some. */
void manual_write_switches(struct document *document, const struct argp_option *options);
void manual_write_switch(struct document *document, const struct argp_option *option);

/* The whole manual, as "man" or "markdown". */
struct error *manual_write(const char *form, FILE *out);

/* The topic of that name, or NULL. */
const struct topic *topic_find(const char *name);
