/*
 * The first anchors of each allocation, for when those of many are asked for: one go over the roots
 * finds them all.
 *
 * It costs 4 bytes for an allocation, where one of its neighbours has an anchor, and 48 for each of
 * the first anchors.
 */
#pragma once

#include "analyzer/graph/roots.h"

/* The number of anchors kept for each allocation and kind of root. */
enum { KEPT_ANCHORS = 4 };

struct anchors;

/* For so many allocations. */
struct error *anchors_create(const struct roots *roots, size_t count,
			     struct memory_account *account, struct anchors **ret);
void anchors_destroy(struct anchors *anchors);
DEFINE_CLEANUP(anchors_destroy, struct anchors *)

/*
 * Put the first anchors of that kind, or of all with ROOT_KINDS, in order of kind and address into
 * ret. Returns how many there are, which may be more.
 */
uint64_t anchors_find(const struct anchors *anchors, allocation_id target, enum root_kind kind,
		      struct anchor ret[static KEPT_ANCHORS]);
