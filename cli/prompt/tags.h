/* Tags of every row: `--tag NAME=VALUE`, or `--tag NAME` for a value read from the core. */
#pragma once

#include "analyzer/analysis/analysis.h"
#include "analyzer/report/report.h"

#include <argp.h>

/* The values of --tag; borrowed. */
struct tag_words {
	const char *list[MOST_TAGS];
	size_t count;
};

/* Add one while options are parsed; what cannot be one is wrong usage. */
error_t tag_words_add(struct tag_words *words, struct argp_state *state, const char *value);

/* The tags of a core. It must stay where it is. */
struct tags {
	struct report_tags report;
	char names[MOST_TAGS][COLUMN_NAME_SIZE];
	char build_id[129];
};

/* core is what reports call it. analysis may be NULL: its values are absent. */
struct error *tags_find(const struct tag_words *words, struct analysis *analysis, const char *core,
			struct tags *ret);
