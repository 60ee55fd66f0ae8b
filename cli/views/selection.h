/*
 * The words and switches of the commands that take a set.
 */
#pragma once

#include "analyzer/query/annotate.h"
#include "analyzer/query/query.h"
#include "cli/command.h"

/* Zeroed, as a command's arguments are; those of commands may embed it. */
struct selection {
	struct set_query query;
	bool is_address; /* describe and explain take one instead of a set */
	uint64_t address;
	bool ascii;
	uint64_t show_up_to; /* bytes of contents */
	bool has_show_up_to;
	bool all;	     /* do not shorten */
	bool sizes;	     /* a line for each size, of what summarize counts */
	const char *columns; /* that list shows, by their names; NULL: its own */
	struct annotation_rules annotations;
};

/*
 * The switches of commands that show contents. From ANNOTATION_OPTIONS on, they are those of
 * commands that show members one by one; from SELECTION_OPTIONS on, those of all commands that take
 * a set: to narrow, order and limit it. sizes_options are for those that count kinds.
 */
enum { ANNOTATION_OPTIONS = 4, SELECTION_OPTIONS = 6 };
extern const struct argp_option contents_options[], sizes_options[];

/* Common fields of commands whose arguments are a struct selection. */
#define TAKES_SELECTION \
	.word = WORD_SET, .arguments_size = sizeof(struct selection), .release = selection_release

/* A command's parse(): arguments are a struct selection. */
struct error *selection_parse(int key, const char *value, void *arguments);

/*
 * The end of the arguments of commands that take allocations alone: those used, if no set is named.
 */
struct error *selection_end_of_allocations(struct selection *selection);

/* Its release(). */
void selection_release(void *arguments);

/* See struct command. A set that has an order of its own keeps it. */
bool selection_shorten(void *arguments, uint64_t count);

/* Like selection_parse(), for commands that accept an address or a set. */
struct error *selection_or_address_parse(int key, const char *value, void *arguments);
