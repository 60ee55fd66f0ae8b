/*
 * What marking is made of, with one thread and with several.
 */
#ifndef ANALYZER_GRAPH_MARK_PARTS_H
#define ANALYZER_GRAPH_MARK_PARTS_H

#include "analyzer/graph/graph.h"

/* Allocations that are reached, and whose edges were not followed yet. */
struct pending {
	struct memory memory; /* allocation_id */
	size_t count;
};

/* Make room for so many more. */
static inline struct error *pending_room(struct pending *pending, size_t more)
{
	size_t size = (pending->count + more) * sizeof(allocation_id);

	if (size <= pending->memory.size)
		return NULL;
	return memory_reserve(&pending->memory, size);
}

static inline struct error *pending_push(struct pending *pending, allocation_id id)
{
	struct error *error = pending_room(pending, 1);

	if (!error)
		((allocation_id *)pending->memory.bytes)[pending->count++] = id;
	return error;
}

/*
 * Allocations on their way from being pending to being followed. Each step of one round fetches
 * what the next needs, while others are at other steps: where its row is, then the row.
 */
enum { IN_FLIGHT = 16 };

struct flight {
	allocation_id ids[IN_FLIGHT]; /* or NO_ALLOCATION */
	size_t head, count;
};

static inline void flight_init(struct flight *flight)
{
	*flight = (struct flight){ .head = 0 };
	for (size_t i = 0; i < IN_FLIGHT; i++)
		flight->ids[i] = NO_ALLOCATION;
}

/*
 * Mark all that those in from lead to, by so many threads. What is in reached already counts as
 * followed.
 */
struct error *graph_mark_jointly(const struct graph *graph, const struct bitmap *from,
				 struct bitmap *reached, unsigned int threads,
				 struct memory_account *account, struct progress *progress);

#endif
