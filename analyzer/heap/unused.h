/*
 * Words that hold nothing, though they are addresses in allocations: room that a container does not
 * use, weak references, what the kernel is about to overwrite.
 */
#pragma once

#include "analyzer/base/array.h"
#include "analyzer/base/bitmap.h"
#include "analyzer/base/budget.h"
#include "analyzer/heap/index.h"
#include "analyzer/image/view.h"

struct unused {
	const struct allocation_index *index; /* borrowed */
	struct view view;
	ARRAY(struct memory_range) ranges; /* by address, once sealed; they do not overlap */
	struct bitmap sources;		   /* allocations with such words */
	bool is_in_heap;
	struct budget budget; /* of ranges: in a damaged dump, tables share their entries */
};

/* Nothing is unused. The budget is of ranges. Without an image, contents are not looked at. */
struct error *unused_init(struct unused *unused, const struct image *image,
			  const struct allocation_index *index, uint64_t budget,
			  struct memory_account *account);
void unused_deinit(struct unused *unused);

/*
 * The words in [start, end) hold nothing, but for one that is only in part in it. Few words, none
 * of which may be an address in the heap, are not kept.
 */
struct error *unused_add(struct unused *unused, uint64_t start, uint64_t end);

/*
 * Add the rest of an allocation from start on, behind its used bytes. The word in which these end
 * is no address either: text that overwrote the lower bytes of an old address may look like one.
 */
struct error *unused_add_rest(struct unused *unused, uint64_t start, uint64_t used);

/* Call this once all are added, and before unused_has(). */
void unused_seal(struct unused *unused);

/* True if any are in allocations. */
bool unused_is_in_heap(const struct unused *unused);

/* True if the word at place, in the allocation source or outside of all, is unused. */
bool unused_has(const struct unused *unused, allocation_id source, uint64_t place);
