/*
 * What an allocation with a pattern is, in words: which pattern, what it is part of, and where that
 * is.
 */
#ifndef CLI_VIEWS_PATTERN_TEXT_H
#define CLI_VIEWS_PATTERN_TEXT_H

#include "analyzer/analysis/analysis.h"

/* Both NULL: the allocation has no pattern. */
struct pattern_text {
	const char *name; /* "LongString" */
	char *part;	  /* "the text of the std::string at 0x55d0c0ffee10, ..." */
};

/* Builds what is needed. */
struct error *pattern_text_init(struct pattern_text *text, struct analysis *analysis,
				allocation_id id);
void pattern_text_deinit(struct pattern_text *text);
DEFINE_DEINIT(pattern_text_deinit, struct pattern_text)

#endif
