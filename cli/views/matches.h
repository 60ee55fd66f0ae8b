/*
 * What commands that search the memory have in common: their switches, and how they show what was
 * found.
 */
#ifndef CLI_VIEWS_MATCHES_H
#define CLI_VIEWS_MATCHES_H

#include "analyzer/query/references.h"
#include "cli/command.h"

struct matches_switches {
	unsigned int skipped; /* enum skipped_place */
	uint64_t limit;	      /* 0: none */
};

enum { MATCHES_KEY_LIMIT = 'n', MATCHES_KEY_SKIP = 'k' };

/* Rows of an argp_option table. */
#define MATCHES_OPTIONS                                                          \
	{ "limit", MATCHES_KEY_LIMIT, "COUNT", 0, "Show that many at most", 0 }, \
	{                                                                        \
		"skip", MATCHES_KEY_SKIP, "used|free|allocations|stacks", 0,     \
			"Leave out what stands there; may be repeated", 0        \
	}

/* Take a switch; false if key is none of them. */
bool matches_take(struct matches_switches *switches, int key, const char *value,
		  struct error **ret_error);

/* Search the memory; list the matches, each with what it is in. */
struct error *matches_write(struct analysis *analysis, struct search search,
			    const struct matches_switches *switches, struct report *report);

#endif
