#include "analyzer/query/likely_held.h"

#include <stdlib.h>

struct likely_held {
	const struct allocation_index *index;
	struct disguises disguises; /* by target */
};

static int compare(const void *a, const void *b)
{
	const struct disguised *left = a, *right = b;

	return left->target < right->target ? -1 : left->target > right->target;
}

static struct error *find(struct analysis *analysis, struct likely_held *held)
{
	const struct disguises_input input = {
		.image = analysis_image(analysis),
		.index = analysis_index(analysis),
		.roots = analysis_roots(analysis),
		.graph = analysis_graph(analysis),
		.incoming = analysis_incoming(analysis),
		.in_use = analysis_anchored(analysis),
		.wanted = analysis_leaked(analysis),
		.disguises = DISGUISED_POINTERS,
		.account = analysis_account(analysis),
		.progress = analysis_progress(analysis),
	};

	return disguises_find(&input, &held->disguises);
}

struct error *likely_held_create(struct analysis *analysis,
				 struct likely_held **ret)
{
	struct error *error = analysis_need(analysis, STAGE_REACHABILITY);
	struct likely_held *held;

	if (!error)
		error = analysis_need(analysis, STAGE_INCOMING);
	if (error)
		return error;
	held = calloc(1, sizeof(*held));
	if (!held)
		return &error_no_memory;
	held->index = analysis_index(analysis);
	error = find(analysis, held);
	if (error) {
		free(held);
		return error;
	}
	if (held->disguises.count > 0)
		qsort(held->disguises.list.bytes, held->disguises.count,
		      sizeof(struct disguised), compare);
	*ret = held;
	return NULL;
}

void likely_held_destroy(struct likely_held *held)
{
	disguises_deinit(&held->disguises);
	free(held);
}

uint64_t likely_held_odds(const struct likely_held *held, allocation_id id)
{
	/* Each word is decoded in so many ways, packed ones at each byte. */
	enum { WAYS = 12 };
	uint64_t tries = WAYS * (held->disguises.words + 1), values = 1;

	/* Numbers have as many bits as the address, or more. */
	for (uint64_t rest = allocation_start(held->index, id); rest;
	     rest >>= 1)
		values <<= 1;
	return values / tries;
}

const struct disguised *likely_held_find(const struct likely_held *held,
					 allocation_id id)
{
	const struct disguised key = { .target = id };

	if (held->disguises.count == 0 ||
	    likely_held_odds(held, id) < LEAST_ODDS)
		return NULL;
	return bsearch(&key, held->disguises.list.bytes, held->disguises.count,
		       sizeof(key), compare);
}
