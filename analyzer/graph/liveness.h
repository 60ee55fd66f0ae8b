/*
 * The state of used allocations that no root reaches, if a garbage collector may have a heap beside
 * malloc's.
 *
 *	garbage    the collector will free it
 *	held       garbage leads to it: once that is freed, nobody can free it
 *	           but a finalizer that runs before
 *	leaked     nobody can free it any more
 *
 * Each is in one of the three. What no collector frees, blocks of malloc() and uncollectable
 * objects alike, is never garbage; it is held or leaked. Collectable objects are garbage, unless an
 * uncollectable one leads to them over memory that the collector scans: to it they are in use, and
 * end with what keeps them. Of what both garbage and a leaked allocation lead to it is not
 * certain that it is lost, so it is held. Therefore only leaked allocations refer to leaked ones.
 *
 * Objects that count their references are garbage, too, unless one was lost (counts.h), or a block
 * that is no part of any object leads to them. What lost ones lead to is kept by them, and so
 *leaked for certain, also what garbage leads to besides.
 *
 * Without a collector all of it is leaked, and there are no further bitmaps.
 */
#pragma once

#include "analyzer/graph/counts.h"
#include "analyzer/graph/graph.h"

struct liveness {
	struct bitmap leaked;
	struct bitmap garbage, held; /* no words: there are none */
	struct bitmap all;	     /* of the three; no words: all are leaked */
};

/*
 * anchored: the used allocations to which a root leads. counts, which may be NULL: of objects among
 * the others.
 */
struct error *liveness_init(struct liveness *liveness, const struct graph *graph,
			    const struct allocation_index *index, const struct bitmap *anchored,
			    const struct counts *counts, struct memory_account *account,
			    struct progress *progress);
void liveness_deinit(struct liveness *liveness);
DEFINE_DEINIT(liveness_deinit, struct liveness)

struct error *liveness_save(const struct liveness *liveness, struct side_writer *writer);

/* It is an error if they are not those of what is used, but not anchored. */
struct error *liveness_load(struct side_file *file, const struct bitmap *used,
			    const struct bitmap *anchored, struct liveness *ret);
