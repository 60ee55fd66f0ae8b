/*
 * An allocation's label, which is the same in each run and build.
 *
 * A class, a pattern, an identity: never an address. An allocation without any of these is an
 * "unrecognized allocation".
 */
#pragma once

#include "analyzer/analysis/analysis.h"

#define UNRECOGNIZED "unrecognized allocation"
#define CONVERSION   "__gconv_step" /* libc's; see label.c */

struct label {
	const char *text;   /* a class, a symbol, or UNRECOGNIZED */
	const char *full;   /* the same as the compiler wrote it, or NULL */
	const char *module; /* the file that the class is of, or NULL */
	bool is_pattern;    /* a % belongs in front of the text */
};

/*
 * Needs STAGE_CLASSES; the patterns are those to be asked. All text lives as long as the analysis.
 */
struct label label_of(const struct analysis *analysis, const struct patterns *patterns,
		      allocation_id id);

/* "%LongString", "app::Session"; to be freed, NULL if memory is short. */
char *label_name(struct label label);

/* The words of an allocation that starts_find() reads. */
enum { MOST_START_WORDS = 512 };

/*
 * The allocations to whose start an unrecognized source refers, in the order of its words. Memory
 * that was not written since malloc() returned it still holds old links of malloc's lists, and
 * these lead into the middle of the blocks that are there now. A program mostly refers to starts.
 */
size_t starts_find(const struct analysis *analysis, allocation_id source,
		   allocation_id ret[static MOST_START_WORDS]);
