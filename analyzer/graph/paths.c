#include "analyzer/graph/paths.h"

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
	error = memory_reserve(&search->memory,
			       (search->count + 1) * sizeof(struct reached));
	if (error)
		return error;
	bitmap_set(&search->seen, id);
	search->reached = search->memory.bytes;
	search->reached[search->count++] =
		(struct reached){ id, (uint32_t)next };
	return NULL;
}

/* The way from the place in the search to the target, which is at 0. */
static struct error *trace(const struct search *search, size_t place,
			   struct path *ret)
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
	*ret = (struct path){ ids, count };
	return NULL;
}

static struct error *run(struct search *search, const struct graph *incoming,
			 const struct bitmap *sources,
			 struct progress *progress, struct path *ret)
{
	for (size_t place = 0; place < search->count; place++) {
		allocation_id id = search->reached[place].id;
		struct edges edges = graph_outgoing(incoming, id);
		struct error *error = NULL;

		if (bitmap_get(sources, id))
			return trace(search, place, ret);
		if (atomic_load_explicit(&progress->interrupted,
					 memory_order_relaxed))
			return error_create(ERROR_INTERRUPTED, "interrupted");
		for (size_t i = 0; !error && i < edges.count; i++)
			error = reach(search, edges.targets[i], place);
		if (error)
			return error;
	}
	*ret = (struct path){ 0 };
	return NULL;
}

struct error *path_find(const struct graph *incoming,
			const struct bitmap *sources, allocation_id target,
			struct memory_account *account,
			struct progress *progress, struct path *ret)
{
	_cleanup_(search_deinit) struct search search = {
		.memory = { .account = account },
	};
	struct error *error =
		bitmap_init(&search.seen, sources->count, account);

	if (!error)
		error = reach(&search, target, 0);
	if (!error)
		error = run(&search, incoming, sources, progress, ret);
	return error;
}
