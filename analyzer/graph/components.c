#include "analyzer/graph/components.h"

#include "analyzer/base/array.h"

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
	uint32_t count;		   /* components */
	uint32_t vertices;	   /* members */
	ARRAY(uint32_t) before;	   /* vertices before each 64 ids */
	ARRAY(allocation_id) ids;  /* by vertex */
	ARRAY(uint32_t) component; /* by vertex */
	ARRAY(uint32_t) order;	   /* vertices by completed component */
};

/* State that is only needed during the search. */
struct finder {
	struct components *found;
	struct progress *progress;
	ARRAY(uint32_t) visit; /* by vertex: visit number, from 1 */
	ARRAY(uint32_t) stack; /* vertices of open components */
	ARRAY(struct frame) frames;
	uint32_t visits;
};

static uint32_t vertex_of(const struct components *components, allocation_id id)
{
	uint64_t word = components->members->words[id / 64];

	return components->before.items[id / 64] +
	       bits_count(word & ((UINT64_C(1) << (id % 64)) - 1));
}

static struct error *reserve_vertices(struct components *components)
{
	size_t count = components->vertices + (size_t)1;

	TRY(array_resize(&components->ids, count));
	TRY(array_resize(&components->component, count));
	return array_reserve(&components->order, count);
}

static struct error *number_vertices(struct components *components)
{
	size_t words = bitmap_word_count(components->members);
	uint32_t count = 0;

	TRY(array_resize(&components->before, words + 1));
	for (size_t i = 0; i < words; i++) {
		components->before.items[i] = count;
		count += bits_count(components->members->words[i]);
	}
	components->vertices = count;
	TRY(reserve_vertices(components));
	count = 0;
	bitmap_for_each(id, components->members)
		components->ids.items[count++] = (allocation_id)id;
	return NULL;
}

static struct error *enter(struct finder *finder, uint32_t vertex)
{
	enum { PROGRESS_STEP = 1 << 14 };

	TRY(array_append(&finder->frames, (struct frame){ vertex, 0 }));
	/* component[] holds the lowest visit number reachable, until done. */
	finder->visit.items[vertex] = ++finder->visits;
	finder->found->component.items[vertex] = finder->visits;
	/* Here, as the first one may lead to all others. */
	return finder->visits % PROGRESS_STEP == 1 ? progress_check(finder->progress, PROGRESS_STEP)
						   : NULL;
}

/* The vertex is of the component that is being completed. */
static void close_vertex(struct finder *finder, uint32_t vertex)
{
	struct components *found = finder->found;

	found->component.items[vertex] = found->count;
	found->order.items[found->order.count++] = vertex;
	finder->visit.items[vertex] = CLOSED;
}

/* The vertex and those above it on the stack are a component of their own. */
static void complete(struct finder *finder, uint32_t vertex)
{
	const uint32_t *visit = finder->visit.items;
	uint32_t lowest = visit[vertex];

	while (finder->stack.count > 0) {
		uint32_t top = finder->stack.items[finder->stack.count - 1];

		if (visit[top] < lowest)
			break;
		finder->stack.count--;
		close_vertex(finder, top);
	}
	close_vertex(finder, vertex);
	finder->found->count++;
}

static struct error *leave(struct finder *finder, uint32_t vertex)
{
	uint32_t *lowest = finder->found->component.items;
	const struct frame *frames = finder->frames.items;

	finder->frames.count--;
	if (lowest[vertex] == finder->visit.items[vertex]) {
		complete(finder, vertex);
		return NULL;
	}
	TRY(array_append(&finder->stack, vertex));
	/* The vertex is not the root of its component, so it has a caller. */
	vertex = frames[finder->frames.count - 1].vertex;
	if (lowest[frames[finder->frames.count].vertex] < lowest[vertex])
		lowest[vertex] = lowest[frames[finder->frames.count].vertex];
	return NULL;
}

/* Look at the next edge of the vertex visited last. */
static struct error *advance(struct finder *finder)
{
	const struct components *found = finder->found;
	struct frame *frames = finder->frames.items;
	struct frame *frame = &frames[finder->frames.count - 1];
	uint32_t *lowest = found->component.items;
	const uint32_t *visit = finder->visit.items;
	uint32_t vertex = frame->vertex;
	struct edges edges = graph_outgoing(found->graph, found->ids.items[vertex]);

	while (frame->edge < edges.count) {
		allocation_id id = edges.targets[frame->edge++];
		uint32_t target;

		if (!bitmap_get(found->members, id))
			continue;
		target = vertex_of(found, id);
		if (visit[target] == UNVISITED)
			return enter(finder, target);
		/* An edge to an open component closes a cycle. */
		if (visit[target] != CLOSED && lowest[target] < lowest[vertex])
			lowest[vertex] = lowest[target];
	}
	return leave(finder, vertex);
}

static struct error *find_components(struct finder *finder)
{
	for (uint32_t i = 0; i < finder->found->vertices; i++) {
		if (finder->visit.items[i] == UNVISITED)
			TRY(enter(finder, i));
		while (finder->frames.count > 0)
			TRY(advance(finder));
	}
	return NULL;
}

static void finder_deinit(struct finder *finder)
{
	arrays_release(&finder->visit, &finder->stack, &finder->frames);
}
DEFINE_DEINIT(finder_deinit, struct finder)

static struct error *fill(struct components *components, struct memory_account *account,
			  struct progress *progress)
{
	_cleanup_(finder_deinit) struct finder finder = { .found = components,
							  .progress = progress,
							  .visit.memory.account = account,
							  .stack.memory.account = account,
							  .frames.memory.account = account };

	TRY(number_vertices(components));
	TRY(array_resize(&finder.visit, components->vertices + (size_t)1));
	progress_begin(progress, "finding cycles", components->vertices);
	return find_components(&finder);
}

struct error *components_create(const struct graph *graph, const struct bitmap *members,
				struct memory_account *account, struct progress *progress,
				struct components **ret)
{
	_cleanup_(components_destroy) struct components *components =
		calloc(1, sizeof(*components));

	TRY_MEMORY(components);
	components->graph = graph;
	components->members = members;
	arrays_use(account, &components->before, &components->ids, &components->component,
		   &components->order);
	TRY(fill(components, account, progress));
	*ret = take(components);
	return NULL;
}

void components_destroy(struct components *components)
{
	arrays_release(&components->before, &components->ids, &components->component,
		       &components->order);
	free(components);
}

uint32_t component_count(const struct components *components)
{
	return components->count;
}

uint32_t component_of(const struct components *components, allocation_id id)
{
	return components->component.items[vertex_of(components, id)];
}

size_t component_member_count(const struct components *components)
{
	return components->vertices;
}

allocation_id component_member(const struct components *components, size_t place)
{
	return components->ids.items[components->order.items[place]];
}

uint32_t component_before(const struct components *components, size_t end, size_t *ret_begin)
{
	const uint32_t *order = components->order.items;
	const uint32_t *component = components->component.items;
	uint32_t number = component[order[end - 1]];
	size_t begin = end;

	while (begin > 0 && component[order[begin - 1]] == number)
		begin--;
	*ret_begin = begin;
	return number;
}
