/*
 * The pass over all memory that can own something: the used allocations and the roots. Every word
 * that points into a used allocation is shown to the classifiers that care for such.
 */
#ifndef ANALYZER_CLASSIFY_SCAN_H
#define ANALYZER_CLASSIFY_SCAN_H

#include "analyzer/classify/kept_words.h"
#include "analyzer/classify/reader.h"
#include "analyzer/graph/roots.h"
#include "analyzer/runtimes/runtimes.h"

/* What a pass fills in, by allocation. */
enum scan_aim {
	SCAN_PATTERNS,
	SCAN_OWNERS,	  /* patterns are known */
	SCAN_BOTH,	  /* all that can be told in one pass: */
	SCAN_LATE_OWNERS, /* then those of classifiers with owners_later */
};

struct scan_input {
	const struct image *image;
	const struct program *program;
	const struct allocation_index *index;
	const struct roots *roots;
	const struct runtimes *runtimes; /* NULL: no objects are known */
	const struct bitmap *only;	 /* look at these alone; NULL: at all */
	const struct bitmap *sources;	 /* NULL: the roots and these alone */
	const struct few_claims *few;	 /* NULL: claims go to patterns and owners */
	struct kept_words *kept;	 /* of only, to be read; or NULL */
	struct memory_account *account;
	struct progress *progress;
	unsigned int cxx;  /* enum cxx_library; 0: only classifiers of C */
	uint8_t *patterns; /* by allocation; zero where not known */
	uint64_t *owners;  /* the same; NULL: not asked for */
};

/* Whether all that may claim an allocation is it, or refers to it, or is what scan_leads_on() has.
 */
bool scan_is_local(const struct scan_input *input);

/* Whether what refers to the allocation may claim what this refers to. */
bool scan_leads_on(const struct scan_input *input, struct reader *reader, allocation_id id);

struct error *scan_memory(const struct scan_input *input, enum scan_aim aim);

#endif
