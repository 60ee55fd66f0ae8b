/*
 * What an allocation is, in a word that is the same in each run and build.
 *
 * A class, a pattern, an identity: never an address. What is known by nothing of that is
 * "unrecognized allocation".
 */
#ifndef ANALYZER_GATE_LABEL_H
#define ANALYZER_GATE_LABEL_H

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

#endif
