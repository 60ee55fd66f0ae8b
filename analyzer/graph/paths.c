#include "analyzer/graph/paths.h"

#include "analyzer/base/array.h"

#include <assert.h>

struct level {
	size_t begin, end; /* of its ids */
};

/* The allocations that one side of the search has reached, by level: level 0 is its start. */
struct side {
	const struct graph *graph;
	ARRAY(allocation_id) ids; /* those of a level are adjacent */
	ARRAY(struct level) levels;
	struct bitmap seen;
};

/* Both sides, which meet half way. */
struct search {
	struct side back;  /* from the target */
	struct side forth; /* from the sources; has no level until it is expanded */
	const struct bitmap *sources;
	struct bitmap level; /* one level at a time, when the way is read off */
	const struct progress *progress;
};

void path_deinit(struct path *path)
{
	free(path->ids);
	*path = (struct path){ 0 };
}

static void side_deinit(struct side *side)
{
	arrays_release(&side->ids, &side->levels);
	bitmap_deinit(&side->seen);
}
DEFINE_DEINIT(side_deinit, struct side)

static void search_deinit(struct search *search)
{
	side_deinit(&search->back);
	side_deinit(&search->forth);
	bitmap_deinit(&search->level);
}
DEFINE_DEINIT(search_deinit, struct search)

static struct level *side_level(const struct side *side, size_t number)
{
	return side->levels.items + number;
}

static struct error *begin_level(struct side *side)
{
	return array_append(&side->levels, (struct level){ side->ids.count, side->ids.count });
}

/* The allocation is of the last level. */
static struct error *reach(struct side *side, allocation_id id)
{
	TRY(array_append(&side->ids, id));
	bitmap_set(&side->seen, id);
	side_level(side, side->levels.count - 1)->end = side->ids.count;
	return NULL;
}

/* Prefetch the rows of allocations that are needed soon. */
static void fetch_ahead(const struct graph *graph, const allocation_id *ids, size_t place,
			size_t count)
{
	enum { STEP = 8 };

	if (place + 2 * STEP < count)
		graph_fetch_offset(graph, ids[place + 2 * STEP]);
	if (place + STEP < count)
		graph_fetch_row(graph, ids[place + STEP]);
}

/* Reach all that is one step further away. */
static struct error *expand(struct side *side, const struct progress *progress)
{
	struct level last = *side_level(side, side->levels.count - 1);

	TRY(begin_level(side));
	for (size_t place = last.begin; place < last.end; place++) {
		struct edges edges = graph_outgoing(side->graph, side->ids.items[place]);

		fetch_ahead(side->graph, side->ids.items, place, last.end);
		for (size_t i = 0; i < edges.count; i++)
			if (!bitmap_get(&side->seen, edges.targets[i]))
				TRY(reach(side, edges.targets[i]));
		TRY(progress_glance(progress));
	}
	return NULL;
}

static struct error *start_at_sources(struct search *search)
{
	TRY(begin_level(&search->forth));
	bitmap_for_each(id, search->sources)
		TRY(reach(&search->forth, (allocation_id)id));
	return NULL;
}

static const struct bitmap *seen_forth(const struct search *search)
{
	return search->forth.levels.count ? &search->forth.seen : search->sources;
}

static bool meets(const struct side *side, const struct bitmap *other)
{
	struct level last = *side_level(side, side->levels.count - 1);

	for (size_t i = last.begin; i < last.end; i++)
		if (bitmap_get(other, side->ids.items[i]))
			return true;
	return false;
}

/*
 * Expand whichever side has reached less, until they meet. What both have reached is then in the
 * last level of each: else they would have met before. False: there is no way.
 */
static struct error *run(struct search *search, bool *ret_found)
{
	struct side *back = &search->back, *forth = &search->forth;
	size_t source_count = bitmap_weight(search->sources);

	*ret_found = meets(back, search->sources);
	while (!*ret_found) {
		bool is_back =
			back->ids.count <= (forth->levels.count ? forth->ids.count : source_count);
		struct side *side = is_back ? back : forth;
		size_t before;

		if (!is_back && forth->levels.count == 0)
			TRY(start_at_sources(search));
		before = side->ids.count;
		TRY(expand(side, search->progress));
		if (side->ids.count == before)
			break;
		*ret_found = meets(side, is_back ? seen_forth(search) : &back->seen);
	}
	return NULL;
}

/* Put the level's allocations into the bitmap, or take them out again. */
static void set_level(struct search *search, const struct side *side, size_t number, bool is_in)
{
	struct level level = *side_level(side, number);

	for (size_t i = level.begin; i < level.end; i++) {
		if (is_in)
			bitmap_set(&search->level, side->ids.items[i]);
		else
			bitmap_clear(&search->level, side->ids.items[i]);
	}
}

/* The first that refers to the allocation and is in the set, or NO_ALLOCATION. */
static allocation_id find_referrer(const struct graph *incoming, allocation_id id,
				   const struct bitmap *set)
{
	struct edges edges = graph_outgoing(incoming, id);

	for (size_t i = 0; i < edges.count; i++)
		if (bitmap_get(set, edges.targets[i]))
			return edges.targets[i];
	return NO_ALLOCATION;
}

/* From the target's levels, keep allocations on a shortest path. */
static void keep_ways(struct search *search)
{
	struct side *back = &search->back;
	allocation_id *ids = back->ids.items;

	for (size_t i = back->levels.count; i > 0; i--) {
		struct level *level = side_level(back, i - 1);
		size_t kept = level->begin;

		if (i < back->levels.count)
			set_level(search, back, i, true);
		for (size_t at = level->begin; at < level->end; at++) {
			bool is_kept = i < back->levels.count
					       ? find_referrer(back->graph, ids[at],
							       &search->level) != NO_ALLOCATION
					       : bitmap_get(seen_forth(search), ids[at]);

			ids[kept] = ids[at];
			kept += is_kept;
		}
		if (i < back->levels.count)
			set_level(search, back, i, false);
		level->end = kept;
	}
}

/* On the way back from an allocation, the next one: of that level. */
static allocation_id step_back(struct search *search, allocation_id id, const struct side *side,
			       size_t level)
{
	allocation_id next;

	if (side == &search->forth && level == 0)
		return find_referrer(search->back.graph, id, search->sources);
	set_level(search, side, level, true);
	next = find_referrer(search->back.graph, id, &search->level);
	set_level(search, side, level, false);
	return next;
}

static struct error *trace(struct search *search, struct path *ret)
{
	const struct side *back = &search->back, *forth = &search->forth;
	size_t steps = forth->levels.count ? forth->levels.count - 1 : 0;
	size_t count = back->levels.count + steps, place = count - 1;
	allocation_id *ids = calloc(count, sizeof(*ids));

	TRY_MEMORY(ids);
	keep_ways(search);
	ids[place] = back->ids.items[0];
	for (size_t level = 1; level < back->levels.count; level++, place--)
		ids[place - 1] = step_back(search, ids[place], back, level);
	for (; steps > 0; steps--, place--)
		ids[place - 1] = step_back(search, ids[place], forth, steps - 1);
	*ret = (struct path){ .ids = ids, .count = count };
	return NULL;
}

static struct error *find(struct search *search, allocation_id target,
			  struct memory_account *account, struct path *ret)
{
	struct bitmap *const bitmaps[] = { &search->back.seen, &search->forth.seen,
					   &search->level };
	bool found = false;

	for (size_t i = 0; i < COUNT_OF(bitmaps); i++)
		TRY(bitmap_init(bitmaps[i], search->sources->count, account));
	TRY(begin_level(&search->back));
	TRY(reach(&search->back, target));
	TRY(run(search, &found));
	if (found)
		TRY(trace(search, ret));
	ret->reached = search->back.ids.count + search->forth.ids.count;
	return NULL;
}

struct error *path_find(const struct graph *graph, const struct graph *incoming,
			const struct bitmap *sources, allocation_id target,
			struct memory_account *account, struct progress *progress, struct path *ret)
{
	_cleanup_(search_deinit) struct search search = {
		.back = { .graph = incoming,
			  .ids.memory.account = account,
			  .levels.memory.account = account },
		.forth = { .graph = graph,
			   .ids.memory.account = account,
			   .levels.memory.account = account },
		.sources = sources,
		.progress = progress,
	};

	*ret = (struct path){ 0 };
	return find(&search, target, account, ret);
}

struct distances {
	ARRAY(uint32_t) steps; /* by id: 1 for a source; 0: no way */
	/* By id, allocation_id: on the way to it, the PATH_END-th, plus 1; 0: not known yet. */
	ARRAY(allocation_id) heads;
};

static struct error *spread(struct distances *distances, const struct graph *graph,
			    struct side *queue, struct progress *progress)
{
	enum { PROGRESS_STEP = 1 << 16 };
	uint32_t *steps = distances->steps.items;

	for (size_t place = 0; place < queue->ids.count; place++) {
		allocation_id id = queue->ids.items[place];
		struct edges edges = graph_outgoing(graph, id);

		fetch_ahead(graph, queue->ids.items, place, queue->ids.count);
		for (size_t i = 0; i < edges.count; i++) {
			if (steps[edges.targets[i]])
				continue;
			steps[edges.targets[i]] = steps[id] + 1;
			TRY(array_append(&queue->ids, edges.targets[i]));
		}
		if (place % PROGRESS_STEP == 0)
			TRY(progress_check(progress, PROGRESS_STEP));
	}
	return NULL;
}

static struct error *find_distances(struct distances *distances, const struct graph *graph,
				    const struct bitmap *sources, struct side *queue,
				    struct progress *progress)
{
	TRY(array_resize(&distances->steps, sources->count));
	bitmap_for_each(id, sources) {
		distances->steps.items[id] = 1;
		TRY(array_append(&queue->ids, (allocation_id)id));
	}
	return spread(distances, graph, queue, progress);
}

struct error *distances_create(const struct graph *graph, const struct bitmap *sources,
			       struct memory_account *account, struct progress *progress,
			       struct distances **ret)
{
	_cleanup_(distances_destroy) struct distances *distances = calloc(1, sizeof(*distances));
	_cleanup_(side_deinit) struct side queue = { .ids.memory.account = account };

	TRY_MEMORY(distances);
	arrays_use(account, &distances->steps, &distances->heads);
	progress_begin(progress, "finding shortest paths", sources->count);
	TRY(find_distances(distances, graph, sources, &queue, progress));
	*ret = take(distances);
	return NULL;
}

void distances_destroy(struct distances *distances)
{
	arrays_release(&distances->steps, &distances->heads);
	free(distances);
}

static uint32_t steps_to(const struct distances *distances, allocation_id id)
{
	return distances->steps.items[id];
}

/* A referrer of the allocation that is one step nearer to the sources. */
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
	allocation_id *heads, at = id;

	TRY(array_resize(&distances->heads, distances->steps.count));
	heads = distances->heads.items;
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
	allocation_id head;

	*ret = (struct path){ 0 };
	if (count == 0)
		return NULL;
	if (count > 2 * PATH_END)
		path.count = 2 * PATH_END;
	path.gap = count - path.count;
	path.ids = calloc(path.count, sizeof(*path.ids));
	TRY_MEMORY(path.ids);
	if (!path.gap) {
		trace_back(distances, incoming, target, path.ids, count);
	} else {
		head = trace_back(distances, incoming, target, path.ids + PATH_END, PATH_END);
		TRY(find_head(distances, incoming, head, &head));
		trace_back(distances, incoming, head, path.ids, PATH_END);
	}
	*ret = take_struct(path);
	return NULL;
}
