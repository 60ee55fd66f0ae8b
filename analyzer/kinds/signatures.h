/*
 * The signatures that allocations bear, and those of a class among them.
 */
#pragma once

#include "analyzer/analysis/analysis.h"
#include "analyzer/kinds/tally.h"

/*
 * Build STAGE_SIGNATURES if those members are so many that it pays to read the signatures of all.
 */
struct error *signatures_need(struct analysis *analysis, const struct bitmap *members);

/*
 * Count the used allocations and their bytes by signature into ret, the most frequent first. To be
 * deinitialised, even after an error.
 */
struct error *signatures_count(struct analysis *analysis, struct tally_table *ret);

/* Selects the signatures of a class by name, or of one derived from it. */
struct class_filter {
	struct classes *classes; /* borrowed */
	char *name;		 /* in the form of short_name() */
	struct tally_table judged;
};

/* The name may be spelled in full or short. */
struct error *class_filter_init(struct class_filter *filter, struct analysis *analysis,
				const char *name);
void class_filter_deinit(struct class_filter *filter);
DEFINE_DEINIT(class_filter_deinit, struct class_filter)

/* Each signature is judged once; 0 is of no class. */
struct error *class_filter_judge(struct class_filter *filter, uint64_t signature, bool *ret_taken);

/* Complain if no allocation is of that class, naming the nearest one that some allocation is of. */
struct error *class_filter_check(struct class_filter *filter, struct analysis *analysis);

/*
 * If the name is the end of exactly one class's name, as Order of __main__.Order, use that one, and
 * note it. *ret: that is so. Several such classes are an error.
 */
struct error *class_filter_complete(struct class_filter *filter, struct analysis *analysis,
				    bool *ret);
