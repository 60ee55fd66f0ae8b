/*
 * The pass over all memory that can own something: the used allocations and the roots. Every word
 * that points into a used allocation is shown to the classifiers that match its offset.
 */
#pragma once

#include "analyzer/classify/kept_words.h"
#include "analyzer/graph/roots.h"
#include "analyzer/runtimes/runtimes.h"

struct few_claims;
struct reader;

/* All is borrowed. */
struct scan_input {
	const struct image *image;
	const struct program *program;
	const struct allocation_index *index;
	const struct roots *roots;
	const struct runtimes *runtimes; /* NULL: no objects are known */
	const struct bitmap *only; /* allocations to which no others refer: find these alone */
	struct kept_words *kept;   /* to which to add the first words of only; or NULL */
	struct memory_account *account;
	struct progress *progress;
	bool numbered;	  /* find only patterns that have numbers: see struct pattern_numbers */
	unsigned int cxx; /* enum cxx_library; patterns_create() finds it */
};

/* The result of a pass, by allocation. */
enum scan_aim {
	SCAN_PATTERNS,
	SCAN_OWNERS,	  /* patterns are known */
	SCAN_BOTH,	  /* all that one pass can find: */
	SCAN_LATE_OWNERS, /* then those of classifiers with owners_later */
};

struct scan_task {
	enum scan_aim aim;
	const struct bitmap *sources; /* scan these; NULL: the roots and all that count */
	const struct few_claims *few; /* NULL: claims go to patterns and owners */
	uint8_t *patterns;	      /* by allocation; zero where not known */
	uint64_t *owners;	      /* the same; NULL: not asked for */
	const struct ranks *places;   /* both by the number here instead; or NULL */
};

/*
 * True if claims for an allocation come only from itself, its referrers, and those of
 * scan_leads_on().
 */
bool scan_is_local(const struct scan_input *input);

/* True if referrers to the allocation may claim its targets. */
bool scan_leads_on(const struct scan_input *input, struct reader *reader, allocation_id id);

struct error *scan_memory(const struct scan_input *input, const struct scan_task *task);
