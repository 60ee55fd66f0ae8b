#include "analyzer/base/parallel.h"
#include "analyzer/graph/mark_parts.h"

/* Follow all edges from id; what is new becomes pending. */
static struct error *follow(const struct graph *graph, allocation_id id,
			    struct bitmap *reached, struct pending *pending)
{
	struct edges edges = graph_outgoing(graph, id);

	for (size_t i = 0; i < edges.count; i++) {
		struct error *error;

		if (bitmap_get(reached, edges.targets[i]))
			continue;
		bitmap_set(reached, edges.targets[i]);
		error = pending_push(pending, edges.targets[i]);
		if (error)
			return error;
	}
	return NULL;
}

/* Let one more take off; the one that lands is followed. */
static struct error *fly(const struct graph *graph, struct flight *flight,
			 allocation_id id, struct bitmap *reached,
			 struct pending *pending)
{
	size_t middle = (flight->head + IN_FLIGHT / 2) % IN_FLIGHT;
	allocation_id landing = flight->ids[flight->head];

	flight->ids[flight->head] = id;
	flight->head = (flight->head + 1) % IN_FLIGHT;
	if (id != NO_ALLOCATION)
		graph_fetch_offset(graph, id);
	if (flight->ids[middle] != NO_ALLOCATION)
		graph_fetch_row(graph, flight->ids[middle]);
	flight->count += (id != NO_ALLOCATION) - (landing != NO_ALLOCATION);
	if (landing == NO_ALLOCATION)
		return NULL;
	return follow(graph, landing, reached, pending);
}

/* Follow all that is pending, and all that becomes so. */
static struct error *follow_all(const struct graph *graph,
				struct bitmap *reached, struct flight *flight,
				struct pending *pending, size_t keep,
				struct progress *progress)
{
	enum { PROGRESS_STEP = 1 << 16 };

	for (size_t steps = 1; pending->count > 0 || flight->count > keep;
	     steps++) {
		const allocation_id *ids = pending->memory.bytes;
		allocation_id id = pending->count > 0 ? ids[--pending->count]
						      : NO_ALLOCATION;
		struct error *error = fly(graph, flight, id, reached, pending);

		if (error)
			return error;
		if (steps % PROGRESS_STEP == 0 &&
		    !progress_step(progress, PROGRESS_STEP))
			return error_create(ERROR_INTERRUPTED, "interrupted");
	}
	return NULL;
}

static struct error *mark_from(const struct graph *graph,
			       const struct bitmap *from,
			       struct bitmap *reached, struct pending *pending,
			       struct progress *progress)
{
	struct flight flight;

	flight_init(&flight);
	bitmap_for_each(start, from) {
		struct error *error =
			pending_push(pending, (allocation_id)start);

		if (!error)
			error = follow_all(graph, reached, &flight, pending,
					   IN_FLIGHT, progress);
		if (error)
			return error;
	}
	return follow_all(graph, reached, &flight, pending, 0, progress);
}

/*
 * What threads share costs half as much time again, which two or three of them
 * hardly win back; nor do more, below so many allocations for each.
 */
static unsigned int threads_for(const struct bitmap *reached,
				const struct progress *progress)
{
	enum { LEAST = 1 << 13, FEWEST = 4 };
	unsigned int threads = parallel_threads_for(progress);
	size_t most = reached->count / LEAST;

	if (most < threads)
		threads = (unsigned int)most;
	return threads < FEWEST ? 1 : threads;
}

/* What is in reached already counts as followed. */
static struct error *mark(const struct graph *graph, const struct bitmap *from,
			  struct bitmap *reached,
			  struct memory_account *account,
			  struct progress *progress)
{
	unsigned int threads = threads_for(reached, progress);
	struct pending pending = { .memory.account = account };
	struct error *error;

	progress_begin(progress, "finding what is reachable", reached->count);
	if (threads > 1)
		return graph_mark_jointly(graph, from, reached, threads,
					  account, progress);
	error = mark_from(graph, from, reached, &pending, progress);
	memory_release(&pending.memory);
	return error;
}

struct error *graph_mark(const struct graph *graph, const struct bitmap *from,
			 struct bitmap *reached, struct memory_account *account,
			 struct progress *progress)
{
	bitmap_copy(reached, from);
	return mark(graph, from, reached, account, progress);
}

struct error *graph_mark_within(const struct graph *graph,
				const struct bitmap *within,
				const struct bitmap *from,
				struct bitmap *reached,
				struct memory_account *account,
				struct progress *progress)
{
	struct error *error;

	/* What is outside stands for followed, until it is taken out again. */
	bitmap_fill(reached);
	bitmap_minus(reached, within);
	bitmap_or(reached, from);
	error = mark(graph, from, reached, account, progress);
	bitmap_and(reached, within);
	return error;
}
