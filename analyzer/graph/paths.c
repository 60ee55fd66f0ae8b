#include "analyzer/graph/paths.h"

#include <assert.h>

/* An allocation that was reached, and from which one, by its place below. */
struct reached {
	allocation_id id;
	uint32_t next; /* towards the target */
};

/* All that were reached, the nearest to the target first. */
struct search {
	struct reached *reached;
	size_t count;
	struct memory memory;
	struct bitmap seen;
};

void path_deinit(struct path *path)
{
	free(path->ids);
	*path = (struct path){ 0 };
}

static void search_deinit(struct search *search)
{
	memory_release(&search->memory);
	bitmap_deinit(&search->seen);
}
DEFINE_DEINIT(search_deinit, struct search)

static struct error *reach(struct search *search, allocation_id id, size_t next)
{
	struct error *error;

	if (bitmap_get(&search->seen, id))
		return NULL;
	error = memory_reserve(&search->memory, (search->count + 1) * sizeof(struct reached));
	if (error)
		return error;
	bitmap_set(&search->seen, id);
	search->reached = search->memory.bytes;
	search->reached[search->count++] = (struct reached){ id, (uint32_t)next };
	return NULL;
}

/* The way from the place in the search to the target, which is at 0. */
static struct error *trace(const struct search *search, size_t place, struct path *ret)
{
	size_t count = 1, i = 0;
	allocation_id *ids;

	for (size_t at = place; at != 0; at = search->reached[at].next)
		count++;
	ids = calloc(count, sizeof(*ids));
	if (!ids)
		return &error_no_memory;
	for (size_t at = place; i < count; at = search->reached[at].next)
		ids[i++] = search->reached[at].id;
	*ret = (struct path){ ids, count, 0, search->count };
	return NULL;
}

static struct error *run(struct search *search, const struct graph *incoming,
			 const struct bitmap *sources, struct progress *progress, struct path *ret)
{
	for (size_t place = 0; place < search->count; place++) {
		allocation_id id = search->reached[place].id;
		struct edges edges = graph_outgoing(incoming, id);
		struct error *error = NULL;

		if (bitmap_get(sources, id))
			return trace(search, place, ret);
		if (atomic_load_explicit(&progress->interrupted, memory_order_relaxed))
			return error_create(ERROR_INTERRUPTED, "interrupted");
		for (size_t i = 0; !error && i < edges.count; i++)
			error = reach(search, edges.targets[i], place);
		if (error)
			return error;
	}
	*ret = (struct path){ .reached = search->count };
	return NULL;
}

struct error *path_find(const struct graph *incoming, const struct bitmap *sources,
			allocation_id target, struct memory_account *account,
			struct progress *progress, struct path *ret)
{
	_cleanup_(search_deinit) struct search search = {
		.memory = { .account = account },
	};
	struct error *error = bitmap_init(&search.seen, sources->count, account);

	if (!error)
		error = reach(&search, target, 0);
	if (!error)
		error = run(&search, incoming, sources, progress, ret);
	return error;
}

struct distances {
	struct memory steps; /* uint32_t by id: 1 for a source; 0: no way */
	/* By id, allocation_id: on the way to it, the PATH_END-th, plus 1; 0: not known yet. */
	struct memory heads;
};

/* Those that are reached, the nearest first. */
struct queue {
	struct memory ids; /* allocation_id */
	size_t count;
};

static struct error *enqueue(struct queue *queue, allocation_id id)
{
	struct error *error = memory_reserve(&queue->ids, (queue->count + 1) * sizeof(id));

	if (!error)
		((allocation_id *)queue->ids.bytes)[queue->count++] = id;
	return error;
}

/* Let the rows of those that come soon be fetched in the meantime. */
static void fetch_ahead(const struct graph *graph, const struct queue *queue, size_t place)
{
	enum { STEP = 8 };
	const allocation_id *ids = queue->ids.bytes;

	if (place + 2 * STEP < queue->count)
		graph_fetch_offset(graph, ids[place + 2 * STEP]);
	if (place + STEP < queue->count)
		graph_fetch_row(graph, ids[place + STEP]);
}

static struct error *spread(struct distances *distances, const struct graph *graph,
			    struct queue *queue, struct progress *progress)
{
	enum { PROGRESS_STEP = 1 << 16 };
	uint32_t *steps = distances->steps.bytes;

	for (size_t place = 0; place < queue->count; place++) {
		allocation_id id = ((allocation_id *)queue->ids.bytes)[place];
		struct edges edges = graph_outgoing(graph, id);
		struct error *error = NULL;

		fetch_ahead(graph, queue, place);
		for (size_t i = 0; !error && i < edges.count; i++) {
			if (steps[edges.targets[i]])
				continue;
			steps[edges.targets[i]] = steps[id] + 1;
			error = enqueue(queue, edges.targets[i]);
		}
		if (!error && place % PROGRESS_STEP == 0 && !progress_step(progress, PROGRESS_STEP))
			error = error_create(ERROR_INTERRUPTED, "interrupted");
		if (error)
			return error;
	}
	return NULL;
}

static struct error *find_distances(struct distances *distances, const struct graph *graph,
				    const struct bitmap *sources, struct queue *queue,
				    struct progress *progress)
{
	struct error *error = memory_resize(&distances->steps, sources->count * sizeof(uint32_t));

	if (error)
		return error;
	bitmap_for_each(id, sources) {
		((uint32_t *)distances->steps.bytes)[id] = 1;
		error = enqueue(queue, (allocation_id)id);
		if (error)
			return error;
	}
	return spread(distances, graph, queue, progress);
}

struct error *distances_create(const struct graph *graph, const struct bitmap *sources,
			       struct memory_account *account, struct progress *progress,
			       struct distances **ret)
{
	_cleanup_(distances_destroy) struct distances *distances = calloc(1, sizeof(*distances));
	struct queue queue = { .ids.account = account };
	struct error *error;

	if (!distances)
		return &error_no_memory;
	distances->steps.account = account;
	distances->heads.account = account;
	progress_begin(progress, "finding the shortest ways", sources->count);
	error = find_distances(distances, graph, sources, &queue, progress);
	memory_release(&queue.ids);
	if (error)
		return error;
	*ret = take(distances);
	return NULL;
}

void distances_destroy(struct distances *distances)
{
	memory_release(&distances->steps);
	memory_release(&distances->heads);
	free(distances);
}

static uint32_t steps_to(const struct distances *distances, allocation_id id)
{
	return ((const uint32_t *)distances->steps.bytes)[id];
}

/* What refers to the allocation and is one step nearer to the sources. */
static allocation_id find_nearer(const struct distances *distances, const struct graph *incoming,
				 allocation_id id)
{
	struct edges edges = graph_outgoing(incoming, id);
	uint32_t step = steps_to(distances, id) - 1;
	size_t i = 0;

	while (i < edges.count && steps_to(distances, edges.targets[i]) != step)
		i++;
	assert(i < edges.count);
	return edges.targets[i];
}

/* On the way to the allocation, the one that is PATH_END steps away. */
static struct error *find_head(struct distances *distances, const struct graph *incoming,
			       allocation_id id, allocation_id *ret)
{
	struct error *error = memory_resize(&distances->heads, distances->steps.size);
	allocation_id *heads = distances->heads.bytes;
	allocation_id at = id;

	if (error)
		return error;
	while (!heads[at] && steps_to(distances, at) > PATH_END)
		at = find_nearer(distances, incoming, at);
	*ret = heads[at] ? heads[at] - 1 : at;
	/* Later searches along this path are spared the work. */
	for (at = id; !heads[at] && steps_to(distances, at) > PATH_END;
	     at = find_nearer(distances, incoming, at))
		heads[at] = *ret + 1;
	return NULL;
}

/* Put count of the way to an allocation, which is the last, into ids. */
static allocation_id trace_back(const struct distances *distances, const struct graph *incoming,
				allocation_id id, allocation_id *ids, size_t count)
{
	for (size_t i = count; i > 0; i--) {
		ids[i - 1] = id;
		if (steps_to(distances, id) > 1)
			id = find_nearer(distances, incoming, id);
	}
	return id;
}

struct error *distances_path(struct distances *distances, const struct graph *incoming,
			     allocation_id target, struct path *ret)
{
	size_t count = steps_to(distances, target);
	_cleanup_(path_deinit) struct path path = { .count = count };
	struct error *error = NULL;
	allocation_id head;

	*ret = (struct path){ 0 };
	if (count == 0)
		return NULL;
	if (count > 2 * PATH_END)
		path.count = 2 * PATH_END;
	path.gap = count - path.count;
	path.ids = calloc(path.count, sizeof(*path.ids));
	if (!path.ids)
		return &error_no_memory;
	if (!path.gap) {
		trace_back(distances, incoming, target, path.ids, count);
	} else {
		head = trace_back(distances, incoming, target, path.ids + PATH_END, PATH_END);
		error = find_head(distances, incoming, head, &head);
		if (!error)
			trace_back(distances, incoming, head, path.ids, PATH_END);
	}
	if (error)
		return error;
	*ret = path;
	path.ids = NULL;
	return NULL;
}
