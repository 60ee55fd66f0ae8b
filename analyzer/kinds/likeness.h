/*
 * What is counted together, as being of one kind: allocations of a pattern and size, else of a
 * class, else of an identity, else of a size.
 */
#ifndef ANALYZER_KINDS_LIKENESS_H
#define ANALYZER_KINDS_LIKENESS_H

#include "analyzer/analysis/analysis.h"

enum likeness_kind {
	LIKE_SIGNATURE,
	LIKE_IDENTITY,
	LIKE_SIZE,
	LIKENESS_KINDS,
};

/* Equal for allocations that are counted together. */
struct likeness {
	enum likeness_kind kind;
	/* A signature; or what the functions below tell. */
	uint64_t key;
};

enum { LIKENESS_OFFSET_BITS = 3, LIKENESS_SIZE_BITS = 56 };

/* Of the key of an identity: its address, and its offset in bytes. */
static inline uint64_t likeness_address(uint64_t key)
{
	return key >> LIKENESS_OFFSET_BITS;
}

static inline uint64_t likeness_offset(uint64_t key)
{
	return (key & ((1 << LIKENESS_OFFSET_BITS) - 1)) * sizeof(uint64_t);
}

/* Of the key of a size: the pattern, or NO_PATTERN, and the size in bytes. */
static inline pattern_number likeness_pattern(uint64_t key)
{
	return (pattern_number)(key >> LIKENESS_SIZE_BITS);
}

static inline uint64_t likeness_size(uint64_t key)
{
	return key & ((UINT64_C(1) << LIKENESS_SIZE_BITS) - 1);
}

/* Build what likeness_of() needs: names, and patterns of all. */
struct error *likeness_need(struct analysis *analysis);

/* That of an allocation of that size. Patterns may be of a part of all, or NULL: it has none. */
struct likeness likeness_of(const struct analysis *analysis, const struct patterns *patterns,
			    allocation_id id, uint64_t size);

/* Its parts; each 0 or NULL if it has none. */
struct likeness_name {
	const char *class; /* of the signature, or that of the identity */
	const char *pattern;
	uint64_t signature;
	uint64_t size; /* of each */
};

/* Names live as long as the analysis. */
struct likeness_name likeness_name(const struct analysis *analysis, struct likeness likeness);

#endif
