/*
 * What is counted together, as being of one kind: allocations of a pattern and
 * size, else of a class, else of an identity, else of a size.
 */
#ifndef ANALYZER_QUERY_LIKENESS_H
#define ANALYZER_QUERY_LIKENESS_H

#include "analyzer/analysis.h"

enum likeness_kind {
	LIKE_SIGNATURE,
	LIKE_IDENTITY,
	LIKE_SIZE,
	LIKENESS_KINDS,
};

/* Equal for allocations that are counted together. */
struct likeness {
	enum likeness_kind kind;
	/* A signature; an address and an offset; a pattern, and a size. */
	uint64_t key;
};

/* Build what likeness_of() needs: names, and patterns of all. */
struct error *likeness_need(struct analysis *analysis);

/* That of a used allocation of that size. */
struct likeness likeness_of(const struct analysis *analysis, allocation_id id,
			    uint64_t size);

/* Its parts; each 0 or NULL if it has none. */
struct likeness_name {
	const char *class; /* of the signature, or that of the identity */
	const char *pattern;
	uint64_t signature;
	uint64_t size; /* of each */
};

/* Names live as long as the analysis. */
struct likeness_name likeness_name(const struct analysis *analysis,
				   struct likeness likeness);

#endif
