/*
 * Leak roots by kind: bytes and number of all that each kind owns.
 *
 * Where only its size is known of a root, its first words tell it from others of that size: a word
 * that is a pointer in one and a number in another is of two structures. What has words of all
 * sorts, as buffers have, is one kind.
 */
#pragma once

#include "analyzer/kinds/summary.h"

/* Some roots of a kind. */
struct root_samples {
	allocation_id first;
	struct kind_samples some;
	bool is_unlike; /* there are others of that size */
};

struct leak_root_kinds {
	struct tally_table tallies;	    /* of kind keys, and kind_unlike() */
	ARRAY(struct root_samples) samples; /* by the tally's number */
};

void leak_root_kinds_deinit(struct leak_root_kinds *kinds);
DEFINE_DEINIT(leak_root_kinds_deinit, struct leak_root_kinds)

/* Count the leak roots among the members (STAGE_LEAKS); ret is all zeros. */
struct error *leak_root_kinds_count(struct analysis *analysis, const struct bitmap *members,
				    struct leak_root_kinds *ret);

/*
 * The difference between roots of a kind and others of that size, as nameless_shape(); "": none is
 * needed.
 */
void leak_root_shape(const struct analysis *analysis, const struct root_samples *samples,
		     bool no_content, char ret[static SHAPE_TEXT_SIZE]);
