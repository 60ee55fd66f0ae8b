/*
 * Allocations counted by kind.
 *
 * A line counts what has one key; a group, lines that are one thing to a reader: the signatures of
 * a class, a pattern or nothing known in several sizes. Lines of a group follow each other.
 */
#ifndef ANALYZER_KINDS_SUMMARY_H
#define ANALYZER_KINDS_SUMMARY_H

#include "analyzer/kinds/kind_key.h"
#include "analyzer/kinds/tally.h"

struct kind_line {
	struct tally tally; /* by kind_key; owned: what they retain, if asked for */
	const char *name;   /* borrowed; NULL: none */
	allocation_id example;
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
};

struct kind_summary_input {
	struct analysis *analysis;
	const struct bitmap *members;
	int (*order)(const void *a, const void *b); /* of tallies, for lines and groups */
	bool by_address;			    /* order compares keys */
	bool retained;				    /* needs STAGE_RETAINED */
	bool full_names;			    /* as the compiler wrote them */
};

/* Build what is needed, and count; ret is all zeros. */
struct error *kind_summary_find(const struct kind_summary_input *input, struct kind_summary *ret);
void kind_summary_deinit(struct kind_summary *summary);
DEFINE_DEINIT(kind_summary_deinit, struct kind_summary)

/*
 * Count the leak roots among the members by kind (STAGE_LEAKS), with bytes and number of all that
 * each owns, into ret, which is initialised.
 */
struct error *leak_roots_count(struct analysis *analysis, const struct bitmap *members,
			       struct tally_table *ret);

/* The name of a key, where full in the compiler's own form; NULL: it has none. */
const char *kind_name_in_form(const struct analysis *analysis, kind_key key, bool full);

#endif
