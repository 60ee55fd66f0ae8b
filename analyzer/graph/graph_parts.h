/* The implementation of struct graph, for the files that build one. */
#pragma once

#include "analyzer/base/array.h"
#include "analyzer/graph/graph.h"
#include "analyzer/heap/work_chunks.h"

/*
 * Rows are kept by shares of allocations. Most shares are what one thread scans in one go: their
 * rows follow each other in the thread's array, so that nothing has to be joined or copied when all
 * are done. Shares that are cut are in an array of their own.
 *
 * Of each allocation there is a word. In a plain share this is where in the share its row begins;
 * it ends where the next one does. In a compact one it is the target if that is the only one, which
 * then is nowhere else, or where the row is and how long: most allocations refer to one other, or
 * to none.
 *
 *	compact | 0 | target: 31                   |
 *		| 1 | length: 11 | begin: 20       |
 */
struct share {
	const allocation_id *targets; /* NULL if it has none */
	uint32_t count;		      /* edges */
	bool is_compact;
	unsigned int array; /* that targets is in */
	size_t begin;	    /* where there */
};

enum { ROW_BEGIN_BITS = 20, ROW_LENGTH_BITS = 11 };

static const uint32_t ROW_APART = UINT32_C(1) << 31;

struct graph {
	struct memory_account *account;
	size_t count; /* allocations */
	struct share *shares;
	size_t share_count;
	ARRAY(uint32_t) words; /* by id: see struct share */
	ARRAY(allocation_id) * arrays;
	unsigned int array_count;
	uint64_t edge_count;
};

/* A graph to be given rows and their edges, in so many arrays. */
struct error *graph_create_empty(size_t count, unsigned int arrays, struct memory_account *account,
				 struct graph **ret);

/* Like graph_create_empty(), with room for the words of rows. */
struct error *graph_create_rows(size_t count, unsigned int arrays, struct memory_account *account,
				struct graph **ret);

/* Make the lengths of a share's rows into their beginnings: it is plain. */
struct error *graph_lay_out_share(struct graph *graph, size_t number);

/*
 * Make the share compact: the words of its rows are their lengths, and from has its edges, of which
 * there are count, and room for ROW_ROOM more, as has to. *ret is how many are left in to. False:
 * it must be plain.
 */
enum { ROW_ROOM = 4 };

bool graph_compact_share(struct graph *graph, size_t number, const allocation_id *from,
			 size_t count, allocation_id *to, size_t *ret);

/* Now that the arrays no longer move, and have so many edges, let the shares point into them. */
struct error *graph_place_shares(struct graph *graph, const size_t *counts);

/* See graph_outgoing(). */
static inline struct edges graph_row(const struct graph *graph, allocation_id id)
{
	const struct share *share = &graph->shares[id >> SHARE_BITS];
	const uint32_t *words = graph->words.items;
	uint32_t word = words[id], end = share->count;

	if (share->is_compact) {
		/* The form is unpredictable, so avoid a branch. */
		uint32_t apart = word >> 31;
		uint32_t length = (word & ~ROW_APART) >> ROW_BEGIN_BITS;
		uint32_t begin = word & ((1 << ROW_BEGIN_BITS) - 1);
		uintptr_t here = (uintptr_t)(words + id);
		uintptr_t there = (uintptr_t)(share->targets + begin);
		uintptr_t place = here ^ ((here ^ there) & -(uintptr_t)apart);

		return (struct edges){ (const allocation_id *)place,
				       (length & -apart) | (apart ^ 1) };
	}
	if ((id + 1) % SHARE != 0 && id + 1 < graph->count)
		end = words[id + 1];
	return (struct edges){ share->targets + word, end - word };
}
