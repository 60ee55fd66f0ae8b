/*
 * A word that stands for the address of an allocation without being it; see
 * disguises.h.
 */
#ifndef ANALYZER_GRAPH_DISGUISE_H
#define ANALYZER_GRAPH_DISGUISE_H

#include "analyzer/heap/index.h"

enum disguise {
	DISGUISE_PYTHON_INT,
	DISGUISE_RUBY_INTEGER,
	DISGUISES,
};

/* "Python int" */
const char *disguise_name(enum disguise disguise);

/* As it is kept in side files, too. */
struct disguised {
	uint64_t place;
	allocation_id target;
	uint32_t disguise;
};

#endif
