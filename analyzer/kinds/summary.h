/*
 * Allocations counted by kind.
 *
 * A line counts what has one key; a group, lines that are one thing to a reader: the signatures of
 * a class, a pattern, blocks of one class's objects or nothing known in several sizes. Lines of a
 * group follow each other.
 */
#pragma once

#include "analyzer/kinds/nameless.h"
#include "analyzer/kinds/object_census.h"
#include "analyzer/kinds/tally.h"

/* Nothing is known but the size, and whose block it is: keys have both. */
enum { BY_OWNER = BY_HOLDER + 1 };

/* Some of a kind, from all over the heap rather than what the libraries allocated first. */
enum { KIND_SAMPLES = 8 };
struct kind_samples {
	allocation_id ids[KIND_SAMPLES];
	size_t count; /* more may have been noted */
};

static inline size_t kind_samples_count(const struct kind_samples *samples)
{
	return samples->count < KIND_SAMPLES ? samples->count : KIND_SAMPLES;
}

/* The one noted last; there is one. */
static inline allocation_id kind_samples_last(const struct kind_samples *samples)
{
	return samples->ids[(samples->count - 1) % KIND_SAMPLES];
}

struct kind_line {
	struct tally tally; /* by kind_key; owned: what they retain, if asked for */
	kind_key plain;	    /* the same without a holder */
	const char *name;   /* borrowed; NULL: none */
	struct kind_samples samples;
	uint64_t size; /* of each allocation, where that is all that it is counted by; else 0 */
};

struct kind_group {
	enum known_by by;
	const char *name;   /* borrowed; NULL: none */
	struct tally total; /* its key: the lowest address, or a place behind all of them */
	size_t first, count;
};

struct kind_summary {
	ARRAY(struct kind_line) lines;
	ARRAY(struct kind_group) groups;
	struct nameless *nameless;   /* of keys BY_HOLDER; NULL: there are none */
	struct object_census owners; /* of keys BY_OWNER */
};

struct kind_summary_input {
	struct analysis *analysis;
	const struct bitmap *members;
	int (*order)(const void *a, const void *b); /* of tallies, for lines and groups */
	bool by_address;			    /* order compares keys */
	bool retained;				    /* needs STAGE_DOMINATORS */
	bool full_names;			    /* as the compiler wrote them */
	bool patterns_alone;			    /* parts of containers are of no type */
};

/* The class of the objects that blocks of such a key belong to. */
const struct object_group *kind_summary_owner(const struct kind_summary *summary, kind_key key);

/* Build what is needed, and count; ret is all zeros. */
struct error *kind_summary_find(const struct kind_summary_input *input, struct kind_summary *ret);
void kind_summary_deinit(struct kind_summary *summary);
DEFINE_DEINIT(kind_summary_deinit, struct kind_summary)

/* The name of a key, where full in the compiler's own form; NULL: it has none. */
const char *kind_name_in_form(const struct analysis *analysis, kind_key key, bool full);
