/*
 * What annotators tell of a part of an allocation, as annotate.h has it.
 */
#ifndef ANALYZER_QUERY_ANNOTATORS_H
#define ANALYZER_QUERY_ANNOTATORS_H

#include "analyzer/analysis/analysis.h"
#include "analyzer/classify/cxx.h"
#include "analyzer/report/writer.h"

/* A place in an allocation, and the words from there on. */
struct annotated_place {
	struct analysis *analysis;
	struct reader *reader;
	uint64_t address;
	uint64_t words[STRING_WORDS];
	size_t count; /* of words, at least 1 */
};

struct annotator {
	const char *name;
	const char *summary;
	/* Returns how many bytes it has something to tell of, which it writes to out; 0: none. */
	uint64_t (*tell)(const struct annotated_place *place, struct writer *out);
	bool tells_content; /* what it writes quotes memory */
};

/* The number-th annotator, or NULL at the end. */
const struct annotator *annotator_at(size_t number);

#endif
