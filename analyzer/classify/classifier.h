/*
 * The contract of a classifier, which knows one kind of allocation by shape.
 */
#ifndef ANALYZER_CLASSIFY_CLASSIFIER_H
#define ANALYZER_CLASSIFY_CLASSIFIER_H

#include "analyzer/classify/patterns.h"

struct classifier {
	const char *name; /* as typed behind %, "LongString" */
	const char *summary;
};

extern const struct classifier *const classifiers[]; /* NULL at the end */

#endif
