/*
 * The pass over all memory that can own something: the used allocations and
 * the roots. Every word that points into a used allocation is shown to the
 * classifiers that care for such.
 */
#ifndef ANALYZER_CLASSIFY_SCAN_H
#define ANALYZER_CLASSIFY_SCAN_H

#include "analyzer/classify/crystal/instances.h"
#include "analyzer/classify/reader.h"
#include "analyzer/graph/roots.h"

struct scan_input {
	const struct image *image;
	const struct program *program;
	const struct allocation_index *index;
	const struct roots *roots;
	struct crystal *crystal;   /* NULL: another language */
	const struct bitmap *only; /* look at these alone; NULL: at all */
	struct memory_account *account;
	struct progress *progress;
	unsigned int cxx;  /* enum cxx_library; 0: only classifiers of C */
	uint8_t *patterns; /* to be filled in, by allocation */
	uint64_t *owners; /* if not NULL, these instead, patterns being known */
};

struct error *scan_memory(const struct scan_input *input);

#endif
