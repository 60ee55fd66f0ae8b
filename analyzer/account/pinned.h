/*
 * Finds allocations that pin free memory: the used ones on pages that are otherwise free.
 *
 * The free bytes of a page are divided evenly among the allocations that are in use on it, so what
 * all pin together is what is pinned, each byte once. What is on pages that only allocations of one
 * kind keep is counted as theirs alone: so much would be whole free pages if just they were gone.
 */
#pragma once

#include "analyzer/base/table.h"
#include "analyzer/heap/fragments.h"
#include "analyzer/kinds/kind_key.h"

/* Allocations of one kind. */
struct pinning {
	kind_key kind;
	uint64_t count, bytes; /* of those that pin something */
	uint64_t pinned;       /* free bytes: their share */
	uint64_t alone;	       /* free bytes on pages that they alone keep */
	allocation_id example; /* the first that was counted */
};

/* Released by table_release(). */
struct pinnings {
	HASH_TABLE(struct pinning); /* most pinned first */
};

/* Counts what pins; see pinned_begin(). */
struct pin_count {
	const struct analysis *analysis;
	struct pinnings *pinnings;
	struct bitmap counted; /* allocations that are */
};

/* Begin to count, and build what that needs; pinnings are empty. Release it by pinned_deinit(). */
struct error *pinned_begin(struct analysis *analysis, struct pinnings *pinnings,
			   struct pin_count *ret);
void pinned_deinit(struct pin_count *count);
DEFINE_DEINIT(pinned_deinit, struct pin_count)

/*
 * Count the bytes that the used allocations, at least one, pin together; if only these pin them,
 * also as alone.
 */
struct error *pinned_add(struct pin_count *count, const allocation_id *ids, size_t id_count,
			 uint64_t free, bool only_these);

/* Most pinned first, once all is counted. */
void pinned_sort(struct pinnings *pinnings);

/*
 * Find out how free memory lies (STAGE_HEAP), and unless ret_pinnings is NULL what pins it; of all
 * arenas, or of the one.
 */
struct error *pinned_find(struct analysis *analysis, const arena_number *only_arena,
			  struct pinnings *ret_pinnings, struct fragments **ret_fragments);

/* All pinned bytes, and how many are used on those pages (STAGE_HEAP). */
struct error *pinned_total(struct analysis *analysis, uint64_t *ret_bytes, uint64_t *ret_pinners);
