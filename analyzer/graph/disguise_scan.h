/*
 * Looks for addresses in disguise in bytes: the ways to decode a word.
 *
 * Each thread has a scanner of its own. What it finds it keeps with its place in the order of all,
 * which does not depend on who looked when.
 */
#pragma once

#include "analyzer/base/array.h"
#include "analyzer/graph/disguise.h"
#include "analyzer/graph/offset_pointers.h"
#include "analyzer/graph/roots.h"
#include "analyzer/heap/address_filter.h"
#include "analyzer/image/view.h"

/* An address in disguise: that of a wanted one, and nothing speaks against. */
struct found_disguise {
	uint64_t range; /* in which it stands, in the order of these */
	uint64_t piece; /* of that */
	struct disguised disguised;
};

/*
 * The lowest and highest end of wanted allocations, by distance behind a multiple of 16: malloc's
 * large blocks are elsewhere than the others.
 */
struct wanted_ends {
	uint64_t first[16], last[16];
};

/* Upper bits of the addresses that are wanted: a boxed pointer has the number of one. */
enum { BOXED_BITS = 39, MOST_UPPERS = 4 };

struct wanted_uppers {
	uint64_t list[MOST_UPPERS];
	size_t count;
};

struct disguise_scanner {
	const struct disguises_input *input;
	const struct address_filter *filter; /* of what is wanted */
	const struct bitmap *wanted;
	const struct wanted_ends *ends;
	const struct wanted_uppers *uppers;
	struct offset_pointers offsets;
	struct view view;
	const struct root_range *root; /* NULL: what is looked at is no root */
	size_t root_number;	       /* its own, or their count */
	const struct bitmap *only;     /* allocations; NULL: all that is shown */
	ARRAY(struct found_disguise) list;
	size_t limit;
	struct error *error;
};

void disguise_scanner_init(struct disguise_scanner *scanner, const struct disguises_input *input,
			   const struct address_filter *filter, const struct bitmap *wanted,
			   const struct wanted_ends *ends, const struct wanted_uppers *uppers);
void disguise_scanner_deinit(struct disguise_scanner *scanner);

/*
 * Look at each word of the bytes, which stand at place, a multiple of 8. Where there is no root,
 * they are allocations, and what lies between them.
 */
struct error *disguise_scan(struct disguise_scanner *scanner, const uint8_t *bytes, size_t size,
			    uint64_t place);

/* Add what another found. */
struct error *disguise_scanner_join(struct disguise_scanner *scanner,
				    const struct disguise_scanner *other);

/* Put what was found into its order. */
void disguise_scanner_sort(struct disguise_scanner *scanner);

static inline const struct found_disguise *disguise_found(const struct disguise_scanner *scanner,
							  size_t number)
{
	return scanner->list.items + number;
}
