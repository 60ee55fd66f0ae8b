/*
 * The anchors of what the kernel holds for the program (analyzer/image/kernel_notes.h), and of what
 * threads at work inside of malloc do.
 */
#ifndef ANALYZER_GRAPH_HELD_ANCHORS_H
#define ANALYZER_GRAPH_HELD_ANCHORS_H

#include "analyzer/graph/roots.h"

struct held_anchors {
	const struct image *image;
	const struct program *program;
	const struct allocation_index *index;
	const struct bitmap *all; /* that was found to be held */
	struct memory_account *account;
};

/* Call visit for each anchor until it returns false. */
void held_anchors_visit(const struct held_anchors *held,
			bool (*visit)(void *data, const struct anchor *anchor), void *data);

/* The same of blocks that malloc has in hand. */
void malloc_anchors_visit(const struct allocation_index *index,
			  bool (*visit)(void *data, const struct anchor *anchor), void *data);

#endif
