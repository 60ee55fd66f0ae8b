#include "analyzer/graph/leaks.h"

#include "analyzer/base/list.h"

#include <assert.h>

/*
 * Components are found by Tarjan's algorithm in Pearce's form, which needs one
 * number for each vertex, without recursion. Vertices are the leaked
 * allocations, numbered densely, as there are few of them as a rule.
 *
 * Components are completed successors first, so going through them backwards
 * meets each before all that it refers to. That is how ownership comes down
 * from the roots: a component belongs to a root if all that refer to it do.
 */
struct frame {
	uint32_t vertex;
	uint32_t edge; /* the next to look at */
};

enum { UNVISITED = 0 };

/* Ownership of a component. */
static const uint32_t UNOWNED = UINT32_MAX, SHARED = UINT32_MAX - 1;

struct finder {
	const struct graph *graph;
	const struct allocation_index *index;
	const struct bitmap *leaked;
	struct progress *progress;
	uint32_t count;		 /* vertices */
	struct memory before;	 /* uint32_t: vertices before each 64 ids */
	struct memory ids;	 /* allocation_id by vertex */
	struct memory visit;	 /* uint32_t by vertex: visit number, from 1 */
	struct memory component; /* uint32_t by vertex */
	struct memory order;	 /* uint32_t: vertices by completed component */
	struct memory stack;	 /* uint32_t: vertices of open components */
	struct memory frames;
	size_t order_count, stack_count, frame_count;
	uint32_t visits, components;
};

struct leaks {
	struct leak_root *roots;
	size_t count;
	uint64_t shared_count, shared_bytes;
};

static uint32_t *u32(const struct memory *memory)
{
	return memory->bytes;
}

/* The vertex of a leaked allocation. */
static uint32_t vertex_of(const struct finder *finder, allocation_id id)
{
	uint64_t word = finder->leaked->words[id / 64];

	return u32(&finder->before)[id / 64] +
	       (uint32_t)__builtin_popcountll(word &
					      ((UINT64_C(1) << (id % 64)) - 1));
}

static struct error *number_vertices(struct finder *finder)
{
	size_t words = bitmap_word_count(finder->leaked);
	struct error *error =
		memory_resize(&finder->before, (words + 1) * sizeof(uint32_t));
	uint32_t count = 0;

	if (error)
		return error;
	for (size_t i = 0; i < words; i++) {
		u32(&finder->before)[i] = count;
		count += (uint32_t)__builtin_popcountll(
			finder->leaked->words[i]);
	}
	finder->count = count;
	error = memory_resize(&finder->ids, (count + 1) * sizeof(uint32_t));
	if (!error)
		error = memory_resize(&finder->visit,
				      (count + 1) * sizeof(uint32_t));
	if (!error)
		error = memory_resize(&finder->component,
				      (count + 1) * sizeof(uint32_t));
	if (!error)
		error = memory_resize(&finder->order,
				      (count + 1) * sizeof(uint32_t));
	if (error)
		return error;
	count = 0;
	bitmap_for_each(id, finder->leaked)
		u32(&finder->ids)[count++] = (allocation_id)id;
	return NULL;
}

static struct error *enter(struct finder *finder, uint32_t vertex)
{
	struct frame *frames;
	struct error *error = memory_reserve(
		&finder->frames, (finder->frame_count + 1) * sizeof(*frames));

	if (error)
		return error;
	frames = finder->frames.bytes;
	frames[finder->frame_count++] = (struct frame){ vertex, 0 };
	/* component[] holds the lowest visit number reachable, until done. */
	u32(&finder->visit)[vertex] = ++finder->visits;
	u32(&finder->component)[vertex] = finder->visits;
	return NULL;
}

/* The vertex and those above it on the stack are a component of their own. */
static void complete(struct finder *finder, uint32_t vertex)
{
	uint32_t *visit = u32(&finder->visit);
	uint32_t lowest = visit[vertex];

	while (finder->stack_count > 0) {
		uint32_t top = u32(&finder->stack)[finder->stack_count - 1];

		if (visit[top] < lowest)
			break;
		finder->stack_count--;
		u32(&finder->component)[top] = finder->components;
		u32(&finder->order)[finder->order_count++] = top;
		visit[top] = UINT32_MAX; /* closed */
	}
	u32(&finder->component)[vertex] = finder->components++;
	u32(&finder->order)[finder->order_count++] = vertex;
	visit[vertex] = UINT32_MAX;
}

static struct error *leave(struct finder *finder, uint32_t vertex)
{
	uint32_t *lowest = u32(&finder->component);
	const struct frame *frames = finder->frames.bytes;
	struct error *error = NULL;

	finder->frame_count--;
	if (lowest[vertex] == u32(&finder->visit)[vertex]) {
		complete(finder, vertex);
		return NULL;
	}
	error = memory_reserve(&finder->stack,
			       (finder->stack_count + 1) * sizeof(uint32_t));
	if (error)
		return error;
	u32(&finder->stack)[finder->stack_count++] = vertex;
	/* Not the root of its component, so there is a caller. */
	vertex = frames[finder->frame_count - 1].vertex;
	if (lowest[frames[finder->frame_count].vertex] < lowest[vertex])
		lowest[vertex] = lowest[frames[finder->frame_count].vertex];
	return NULL;
}

/* Look at the next edge of the vertex visited last. */
static struct error *advance(struct finder *finder)
{
	struct frame *frames = finder->frames.bytes;
	struct frame *frame = &frames[finder->frame_count - 1];
	uint32_t vertex = frame->vertex, target, *visit = u32(&finder->visit);
	struct edges edges =
		graph_outgoing(finder->graph, u32(&finder->ids)[vertex]);

	while (frame->edge < edges.count) {
		allocation_id id = edges.targets[frame->edge++];

		if (!bitmap_get(finder->leaked, id))
			continue;
		target = vertex_of(finder, id);
		if (visit[target] == UNVISITED)
			return enter(finder, target);
		/* To an open component: part of a ring. */
		if (visit[target] != UINT32_MAX &&
		    u32(&finder->component)[target] <
			    u32(&finder->component)[vertex])
			u32(&finder->component)[vertex] =
				u32(&finder->component)[target];
	}
	return leave(finder, vertex);
}

static struct error *find_components(struct finder *finder)
{
	enum { PROGRESS_STEP = 1 << 14 };

	for (uint32_t i = 0; i < finder->count; i++) {
		struct error *error = NULL;

		if (u32(&finder->visit)[i] == UNVISITED)
			error = enter(finder, i);
		while (!error && finder->frame_count > 0)
			error = advance(finder);
		if (!error && i % PROGRESS_STEP == 0 &&
		    !progress_step(finder->progress, PROGRESS_STEP))
			error = error_create(ERROR_INTERRUPTED, "interrupted");
		if (error)
			return error;
	}
	return NULL;
}

/* Note that the owner refers to each component that the vertex refers to. */
static void hand_down(struct finder *finder, uint32_t vertex, uint32_t *owner)
{
	const uint32_t *component = u32(&finder->component);
	uint32_t own = owner[component[vertex]];
	struct edges edges =
		graph_outgoing(finder->graph, u32(&finder->ids)[vertex]);

	for (size_t i = 0; i < edges.count; i++) {
		uint32_t target;

		if (!bitmap_get(finder->leaked, edges.targets[i]))
			continue;
		target = component[vertex_of(finder, edges.targets[i])];
		if (target == component[vertex])
			continue;
		if (owner[target] == UNOWNED)
			owner[target] = own;
		else if (owner[target] != own)
			owner[target] = SHARED;
	}
}

/* The component of vertices order[*end - n .. *end): *ret_begin is its first.
 */
static uint32_t component_begin(const struct finder *finder, size_t end,
				size_t *ret_begin)
{
	const uint32_t *order = u32(&finder->order);
	uint32_t number = u32(&finder->component)[order[end - 1]];
	size_t begin = end;

	while (begin > 0 && u32(&finder->component)[order[begin - 1]] == number)
		begin--;
	*ret_begin = begin;
	return number;
}

static struct error *add_root(struct leaks *leaks, const struct finder *finder,
			      size_t begin, size_t end)
{
	allocation_id lowest = NO_ALLOCATION;

	if (!LIST_GROW(leaks->roots, leaks->count))
		return &error_no_memory;
	for (size_t i = begin; i < end; i++) {
		allocation_id id = u32(&finder->ids)[u32(&finder->order)[i]];

		if (id < lowest)
			lowest = id;
	}
	leaks->roots[leaks->count++] = (struct leak_root){
		.id = lowest,
		.members = (uint32_t)(end - begin),
	};
	return NULL;
}

/* Count the component's allocations for its owner. */
static void add_owned(struct leaks *leaks, const struct finder *finder,
		      uint32_t owner, size_t begin, size_t end)
{
	for (size_t i = begin; i < end; i++) {
		allocation_id id = u32(&finder->ids)[u32(&finder->order)[i]];
		uint64_t size = allocation_size(finder->index, id);

		if (owner == SHARED) {
			leaks->shared_count++;
			leaks->shared_bytes += size;
		} else {
			leaks->roots[owner].owned_count++;
			leaks->roots[owner].owned_bytes += size;
		}
	}
}

static struct error *find_owners(const struct finder *constant,
				 struct leaks *leaks, struct memory *owners)
{
	struct finder *finder = (struct finder *)constant;
	uint32_t *owner;
	struct error *error = memory_resize(owners, (finder->components + 1) *
							    sizeof(uint32_t));

	if (error)
		return error;
	owner = u32(owners);
	for (uint32_t i = 0; i < finder->components; i++)
		owner[i] = UNOWNED;
	for (size_t end = finder->order_count, begin; end > 0; end = begin) {
		uint32_t number = component_begin(finder, end, &begin);

		if (owner[number] == UNOWNED) {
			owner[number] = (uint32_t)leaks->count;
			error = add_root(leaks, finder, begin, end);
			if (error)
				return error;
		}
		add_owned(leaks, finder, owner[number], begin, end);
		for (size_t i = begin; i < end; i++)
			hand_down(finder, u32(&finder->order)[i], owner);
	}
	return NULL;
}

static int compare_roots(const void *a, const void *b)
{
	const struct leak_root *left = a, *right = b;

	return left->id < right->id ? -1 : left->id > right->id;
}

static struct error *find_roots(struct finder *finder,
				struct memory_account *account,
				struct leaks *leaks)
{
	struct memory owners = { .account = account };
	struct error *error = number_vertices(finder);

	progress_begin(finder->progress, "finding leak roots", finder->count);
	if (!error)
		error = find_components(finder);
	if (!error)
		error = find_owners(finder, leaks, &owners);
	memory_release(&owners);
	if (leaks->count > 0)
		qsort(leaks->roots, leaks->count, sizeof(*leaks->roots),
		      compare_roots);
	return error;
}

struct error *leaks_create(const struct graph *graph,
			   const struct allocation_index *index,
			   const struct bitmap *leaked,
			   struct memory_account *account,
			   struct progress *progress, struct leaks **ret)
{
	_cleanup_(leaks_destroy) struct leaks *leaks =
		calloc(1, sizeof(*leaks));
	struct finder finder = {
		.graph = graph,
		.index = index,
		.leaked = leaked,
		.progress = progress,
	};
	struct memory *all[] = {
		&finder.before,	   &finder.ids,	  &finder.visit,
		&finder.component, &finder.order, &finder.stack,
		&finder.frames,
	};
	struct error *error;

	if (!leaks)
		return &error_no_memory;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		all[i]->account = account;
	error = find_roots(&finder, account, leaks);
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		memory_release(all[i]);
	if (error)
		return error;
	*ret = take(leaks);
	return NULL;
}

void leaks_destroy(struct leaks *leaks)
{
	free(leaks->roots);
	free(leaks);
}

size_t leak_root_count(const struct leaks *leaks)
{
	return leaks->count;
}

const struct leak_root *leak_root(const struct leaks *leaks, size_t number)
{
	return &leaks->roots[number];
}

const struct leak_root *leak_root_find(const struct leaks *leaks,
				       allocation_id id)
{
	struct leak_root key = { .id = id };

	if (leaks->count == 0)
		return NULL;
	return bsearch(&key, leaks->roots, leaks->count, sizeof(key),
		       compare_roots);
}

uint64_t leaks_shared_count(const struct leaks *leaks)
{
	return leaks->shared_count;
}

uint64_t leaks_shared_bytes(const struct leaks *leaks)
{
	return leaks->shared_bytes;
}
