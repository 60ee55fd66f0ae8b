#include "analyzer/graph/components.h"

/*
 * Components are found by Tarjan's algorithm in Pearce's form, which needs one number for each
 * vertex, without recursion.
 */
struct frame {
	uint32_t vertex;
	uint32_t edge; /* the next to look at */
};

enum { UNVISITED = 0 };

static const uint32_t CLOSED = UINT32_MAX;

struct components {
	const struct graph *graph;
	const struct bitmap *members;
	uint32_t count;		 /* components */
	uint32_t vertices;	 /* members */
	struct memory before;	 /* uint32_t: vertices before each 64 ids */
	struct memory ids;	 /* allocation_id by vertex */
	struct memory component; /* uint32_t by vertex */
	struct memory order;	 /* uint32_t: vertices by completed component */
};

/* What is only needed while they are found. */
struct finder {
	struct components *found;
	struct progress *progress;
	struct memory visit; /* uint32_t by vertex: visit number, from 1 */
	struct memory stack; /* uint32_t: vertices of open components */
	struct memory frames;
	size_t order_count, stack_count, frame_count;
	uint32_t visits;
};

static uint32_t *u32(const struct memory *memory)
{
	return memory->bytes;
}

static uint32_t vertex_of(const struct components *components, allocation_id id)
{
	uint64_t word = components->members->words[id / 64];

	return u32(&components->before)[id / 64] +
	       bits_count(word & ((UINT64_C(1) << (id % 64)) - 1));
}

static struct error *reserve_vertices(struct components *components)
{
	struct memory *const arrays[] = { &components->ids, &components->component,
					  &components->order };
	size_t size = (components->vertices + (size_t)1) * sizeof(uint32_t);
	struct error *error = NULL;

	for (size_t i = 0; !error && i < sizeof(arrays) / sizeof(*arrays); i++)
		error = memory_resize(arrays[i], size);
	return error;
}

static struct error *number_vertices(struct components *components)
{
	size_t words = bitmap_word_count(components->members);
	struct error *error = memory_resize(&components->before, (words + 1) * sizeof(uint32_t));
	uint32_t count = 0;

	if (error)
		return error;
	for (size_t i = 0; i < words; i++) {
		u32(&components->before)[i] = count;
		count += bits_count(components->members->words[i]);
	}
	components->vertices = count;
	error = reserve_vertices(components);
	if (error)
		return error;
	count = 0;
	bitmap_for_each(id, components->members)
		u32(&components->ids)[count++] = (allocation_id)id;
	return NULL;
}

static struct error *enter(struct finder *finder, uint32_t vertex)
{
	enum { PROGRESS_STEP = 1 << 14 };
	struct frame *frames;
	struct error *error =
		memory_reserve(&finder->frames, (finder->frame_count + 1) * sizeof(*frames));

	if (error)
		return error;
	frames = finder->frames.bytes;
	frames[finder->frame_count++] = (struct frame){ vertex, 0 };
	/* component[] holds the lowest visit number reachable, until done. */
	u32(&finder->visit)[vertex] = ++finder->visits;
	u32(&finder->found->component)[vertex] = finder->visits;
	/* Here, as the first one may lead to all others. */
	if (finder->visits % PROGRESS_STEP == 1 && !progress_step(finder->progress, PROGRESS_STEP))
		return error_create(ERROR_INTERRUPTED, "interrupted");
	return NULL;
}

/* The vertex is of the component that is being completed. */
static void close_vertex(struct finder *finder, uint32_t vertex)
{
	struct components *found = finder->found;

	u32(&found->component)[vertex] = found->count;
	u32(&found->order)[finder->order_count++] = vertex;
	u32(&finder->visit)[vertex] = CLOSED;
}

/* The vertex and those above it on the stack are a component of their own. */
static void complete(struct finder *finder, uint32_t vertex)
{
	const uint32_t *visit = u32(&finder->visit);
	uint32_t lowest = visit[vertex];

	while (finder->stack_count > 0) {
		uint32_t top = u32(&finder->stack)[finder->stack_count - 1];

		if (visit[top] < lowest)
			break;
		finder->stack_count--;
		close_vertex(finder, top);
	}
	close_vertex(finder, vertex);
	finder->found->count++;
}

static struct error *leave(struct finder *finder, uint32_t vertex)
{
	uint32_t *lowest = u32(&finder->found->component);
	const struct frame *frames = finder->frames.bytes;
	struct error *error = NULL;

	finder->frame_count--;
	if (lowest[vertex] == u32(&finder->visit)[vertex]) {
		complete(finder, vertex);
		return NULL;
	}
	error = memory_reserve(&finder->stack, (finder->stack_count + 1) * sizeof(uint32_t));
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
	const struct components *found = finder->found;
	struct frame *frames = finder->frames.bytes;
	struct frame *frame = &frames[finder->frame_count - 1];
	uint32_t *lowest = u32(&found->component);
	const uint32_t *visit = u32(&finder->visit);
	uint32_t vertex = frame->vertex;
	struct edges edges = graph_outgoing(found->graph, u32(&found->ids)[vertex]);

	while (frame->edge < edges.count) {
		allocation_id id = edges.targets[frame->edge++];
		uint32_t target;

		if (!bitmap_get(found->members, id))
			continue;
		target = vertex_of(found, id);
		if (visit[target] == UNVISITED)
			return enter(finder, target);
		/* To an open component: part of a ring. */
		if (visit[target] != CLOSED && lowest[target] < lowest[vertex])
			lowest[vertex] = lowest[target];
	}
	return leave(finder, vertex);
}

static struct error *find_components(struct finder *finder)
{
	for (uint32_t i = 0; i < finder->found->vertices; i++) {
		struct error *error = NULL;

		if (u32(&finder->visit)[i] == UNVISITED)
			error = enter(finder, i);
		while (!error && finder->frame_count > 0)
			error = advance(finder);
		if (error)
			return error;
	}
	return NULL;
}

static struct error *fill(struct components *components, struct memory_account *account,
			  struct progress *progress)
{
	_cleanup_(memory_release) struct memory visit = { .account = account };
	struct finder finder = { .found = components,
				 .progress = progress,
				 .stack.account = account,
				 .frames.account = account };
	struct error *error = number_vertices(components);

	if (!error)
		error = memory_resize(&visit,
				      (components->vertices + (size_t)1) * sizeof(uint32_t));
	if (error)
		return error;
	progress_begin(progress, "finding what leads to each other", components->vertices);
	finder.visit = visit;
	error = find_components(&finder);
	memory_release(&finder.stack);
	memory_release(&finder.frames);
	return error;
}

struct error *components_create(const struct graph *graph, const struct bitmap *members,
				struct memory_account *account, struct progress *progress,
				struct components **ret)
{
	_cleanup_(components_destroy) struct components *components =
		calloc(1, sizeof(*components));
	struct error *error;

	if (!components)
		return &error_no_memory;
	components->graph = graph;
	components->members = members;
	components->before.account = account;
	components->ids.account = account;
	components->component.account = account;
	components->order.account = account;
	error = fill(components, account, progress);
	if (error)
		return error;
	*ret = take(components);
	return NULL;
}

void components_destroy(struct components *components)
{
	memory_release(&components->before);
	memory_release(&components->ids);
	memory_release(&components->component);
	memory_release(&components->order);
	free(components);
}

uint32_t component_count(const struct components *components)
{
	return components->count;
}

uint32_t component_of(const struct components *components, allocation_id id)
{
	return u32(&components->component)[vertex_of(components, id)];
}

size_t component_member_count(const struct components *components)
{
	return components->vertices;
}

allocation_id component_member(const struct components *components, size_t place)
{
	return u32(&components->ids)[u32(&components->order)[place]];
}

uint32_t component_before(const struct components *components, size_t end, size_t *ret_begin)
{
	const uint32_t *order = u32(&components->order);
	const uint32_t *component = u32(&components->component);
	uint32_t number = component[order[end - 1]];
	size_t begin = end;

	while (begin > 0 && component[order[begin - 1]] == number)
		begin--;
	*ret_begin = begin;
	return number;
}
