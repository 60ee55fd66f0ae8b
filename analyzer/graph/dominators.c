#include "analyzer/graph/dominators.h"

#include "analyzer/base/array.h"
#include "analyzer/base/sort.h"
#include "analyzer/graph/dominator_levels.h"

#include <assert.h>

/*
 * The algorithm is that of Lengauer and Tarjan up to the semidominators, and from there on that of
 * Georgiadis (semi-NCA): its time grows with the references and the logarithm of the allocations,
 * whatever the heap looks like. In large heaps whose references lead far it waits for memory:
 * there, dominator_levels.h is tried first.
 *
 * Roots and allocations are numbered from 1 on in the order of a depth-first search; 0 is the
 * virtual root that refers to all roots and entries. Until then, a root has the id behind those of
 * the allocations and of the roots before it. The semidominator of a vertex is the lowest one from
 * which a way leads to it over none but higher ones. Going down from the highest number, what was
 * looked at forms a forest, in which the least semidominator on the way up is asked for, and the
 * ways are shortened as they are gone. Then, going up from the lowest number, the dominator of a
 * vertex is the first on the way from its parent over dominators that is no higher than its
 * semidominator. Each has a jump to one further up, so that such a way takes few steps.
 *
 * What refers to nothing and is referred to by one only, as most texts and buffers, hangs on that
 * one, and leads nowhere: it is left out of the search, and gets its number behind all others.
 *
 * To save memory, the depth-first search keeps only numbers, the parent of each, and the edges that
 * are not of its tree: of those to a parent, as in a list with both directions, a bit. Then the
 * graph is not needed any more, and each parent grows to a vertex.
 */
struct vertex {
	/* At first, the parent in the search. At the end, the jump over dominators. */
	uint32_t ancestor;
	/*
	 * Until it is looked at: the last of its late edges, or 0. Then the least semi from here
	 * to the ancestor. At the end, how many dominate it.
	 */
	uint32_t label;
	/*
	 * The lowest that refers to it, but for late edges; once it is looked at, the
	 * semidominator. At the end: how many it dominates.
	 */
	uint32_t semi;
	uint32_t dominator; /* until it is found, the parent */
};

/* An edge that is not of the search's tree. One to a lower number is late. */
struct cross_edge {
	uint32_t source;
	uint32_t target; /* later, of a late one: the next of the same target, or 0 */
};

/* An edge to what has a number already: it waits until memory has what it needs. */
struct known_edge {
	uint32_t source;
	allocation_id target;
};

/* A vertex, and which of its edges is the next to follow. */
struct open_vertex {
	uint32_t number;
	allocation_id id;
	uint32_t place;
};

enum { ROOT = 0, PROGRESS_STEP = 1 << 16, BLOCK = 16, AHEAD = 16, KNOWN_EDGES = 32, RECENT = 1024 };

static const uint32_t NOT_USED = UINT32_MAX, SEVERAL = UINT32_MAX;

struct finder {
	const struct dominators_input *input;
	ARRAY(uint32_t) numbers;	  /* by id; of what is left out, 1 and what refers to it */
	struct bitmap left_out;		  /* and what is not used */
	struct bitmap closed;		  /* the same, and what has its number from the search */
	struct bitmap returning;	  /* by number: what refers to its parent */
	struct memory vertices;		  /* by number; until all have one, only their parents */
	ARRAY(struct cross_edge) cross;	  /* the first is none */
	struct cross_edge recent[RECENT]; /* by target: large arrays repeat themselves */
	ARRAY(struct open_vertex) open; /* vertices on the current path with more edges to follow */
	uint32_t count;			/* of numbers given, 0 not counted */
	uint32_t earlier;		/* the last number of earlier ranks */
	uint32_t from_roots;		/* the last number that one root after the other gave */
	allocation_id first_root;	/* the id of the first root */
	struct known_edge known[KNOWN_EDGES];
	size_t first_known, known_count; /* their places, modulo KNOWN_EDGES */
};

/* An allocation in the row, and the position behind what it dominates. */
struct place {
	allocation_id id;
	uint32_t end;
};

struct dominators {
	size_t count;
	size_t in_order; /* positions: of the roots that lead there first */
	ARRAY(struct positions) roots;
	ARRAY(uint32_t) positions; /* by id, or NOT_USED; empty until they are needed */
	const struct allocation_index *index;
	struct memory memory; /* of what follows, by position */
	const struct place *places;
	const uint64_t *sums; /* bytes in front of each block, and of the end */
	const uint16_t *rest; /* and from there to each position, unless the block has 64 KB */
};

static struct vertex *vertices(const struct finder *finder)
{
	return finder->vertices.bytes;
}

static uint32_t *parents(const struct finder *finder)
{
	return finder->vertices.bytes;
}

static struct error *step(const struct finder *finder, size_t chunk)
{
	return chunk % PROGRESS_STEP == 0 ? progress_check(finder->input->progress, PROGRESS_STEP)
					  : NULL;
}

enum { FETCHED = 4 };

static void fetch_targets(const struct finder *finder, allocation_id id)
{
	struct edges edges = graph_outgoing(finder->input->graph, id);

	for (size_t i = 0; i < edges.count && i < FETCHED; i++)
		__builtin_prefetch(&finder->numbers.items[edges.targets[i]]);
}

static void count_source(struct finder *finder, allocation_id id)
{
	struct edges edges = dominator_edges(finder->input, finder->first_root, id);
	uint32_t source = id + 1;

	for (size_t i = 0; i < edges.count; i++) {
		uint32_t *seen = &finder->numbers.items[edges.targets[i]];

		if (dominator_is_void(finder->input, finder->first_root, id, edges.targets[i]))
			continue;
		*seen = *seen == 0 || *seen == source ? source : SEVERAL;
	}
}

/* By id, the one that refers to it, and 1 added; SEVERAL; or 0. */
static struct error *count_sources(struct finder *finder)
{
	bitmap_for_each(id, allocation_used(finder->input->index)) {
		if (id + AHEAD < finder->first_root)
			fetch_targets(finder, (allocation_id)(id + AHEAD));
		count_source(finder, (allocation_id)id);
		TRY(step(finder, id));
	}
	for (size_t i = 0; i < finder->input->roots.count; i++)
		count_source(finder, finder->first_root + (allocation_id)i);
	return NULL;
}

/*
 * True if the allocation, whose referrer is source, may be left out of the tree if it has no
 * targets.
 */
static bool hangs_on_one(const struct finder *finder, allocation_id id, uint32_t source)
{
	return source != 0 && source != SEVERAL && !bitmap_get(finder->input->entries, id);
}

static struct error *find_left_out(struct finder *finder)
{
	const struct bitmap *used = allocation_used(finder->input->index);

	TRY(bitmap_init(&finder->left_out, used->count, finder->input->account));
	bitmap_fill(&finder->left_out);
	bitmap_minus(&finder->left_out, used);
	for (size_t id = 0; id < used->count; id++)
		if (!bitmap_get(used, id))
			finder->numbers.items[id] = ROOT;
		else if (hangs_on_one(finder, (allocation_id)id, finder->numbers.items[id]) &&
			 graph_outgoing(finder->input->graph, (allocation_id)id).count == 0)
			bitmap_set(&finder->left_out, id);
	return NULL;
}

static struct error *finder_init(struct finder *finder)
{
	const struct bitmap *used = allocation_used(finder->input->index);
	size_t count = used->count, roots = finder->input->roots.count, searched;

	finder->first_root = (allocation_id)count;
	TRY(array_resize(&finder->numbers, count + roots));
	TRY(count_sources(finder));
	TRY(find_left_out(finder));
	TRY(bitmap_init(&finder->closed, count, finder->input->account));
	bitmap_copy(&finder->closed, &finder->left_out);
	searched = count + roots - bitmap_weight(&finder->left_out);
	TRY(bitmap_init(&finder->returning, searched + 1, finder->input->account));
	TRY(memory_resize(&finder->vertices, (searched + 1) * sizeof(*parents(finder))));
	return array_append(&finder->cross, (struct cross_edge){ 0 });
}

static void finder_deinit(struct finder *finder)
{
	arrays_release(&finder->numbers, &finder->cross, &finder->open);
	memory_release(&finder->vertices);
	bitmap_deinit(&finder->left_out);
	bitmap_deinit(&finder->closed);
	bitmap_deinit(&finder->returning);
}
DEFINE_DEINIT(finder_deinit, struct finder)

/* Returns its number. */
static uint32_t enter(struct finder *finder, allocation_id id, uint32_t parent)
{
	uint32_t number = ++finder->count;

	finder->numbers.items[id] = number;
	if (id < finder->first_root)
		bitmap_set(&finder->closed, id);
	parents(finder)[number] = parent;
	return number;
}

/* Prefetch what the first edges need. */
static void fetch_rows(const struct finder *finder, struct edges edges)
{
	for (size_t i = 0; i < edges.count && i < FETCHED; i++)
		graph_fetch_offset(finder->input->graph, edges.targets[i]);
}

/* An edge between two that have numbers. Nothing of a later rank holds what is of an earlier one.
 */
static struct error *add_cross(struct finder *finder, uint32_t source, uint32_t target)
{
	struct cross_edge *recent = &finder->recent[target % RECENT];

	if (target <= finder->earlier || (target > source && parents(finder)[target] == source) ||
	    (recent->source == source && recent->target == target))
		return NULL;
	if (target == parents(finder)[source]) {
		bitmap_set(&finder->returning, source);
		return NULL;
	}
	if (finder->cross.count > UINT32_MAX)
		return error_create(ERROR_NOT_SUPPORTED,
				    "more than 4,294,967,295 references among allocations");
	*recent = (struct cross_edge){ source, target };
	return array_append(&finder->cross, *recent);
}

static struct error *add_first_known(struct finder *finder)
{
	struct known_edge *edge = &finder->known[finder->first_known++ % KNOWN_EDGES];

	finder->known_count--;
	if (bitmap_get(&finder->left_out, edge->target))
		return NULL;
	return add_cross(finder, edge->source, finder->numbers.items[edge->target]);
}

/* Queue an edge to a known vertex: no edge that is followed depends on its position in the tree. */
static struct error *add_known(struct finder *finder, struct known_edge edge)
{
	size_t place = finder->first_known + finder->known_count;
	uint32_t number;

	__builtin_prefetch(&finder->numbers.items[edge.target]);
	__builtin_prefetch(&finder->left_out.words[edge.target / 64]);
	finder->known[place % KNOWN_EDGES] = edge;
	if (++finder->known_count < KNOWN_EDGES)
		return NULL;
	edge = finder->known[(place - KNOWN_EDGES / 2) % KNOWN_EDGES];
	number = finder->numbers.items[edge.target];
	if (number > edge.source)
		__builtin_prefetch(&parents(finder)[number]);
	return add_first_known(finder);
}

/* Find the place of the next edge, from vertex->place on, to what has no number yet. */
static struct error *skip_closed(struct finder *finder, struct open_vertex *vertex,
				 struct edges edges)
{
	for (; vertex->place < edges.count; vertex->place++) {
		allocation_id target = edges.targets[vertex->place];

		if (dominator_is_void(finder->input, finder->first_root, vertex->id, target))
			continue;
		if (!bitmap_get(&finder->closed, target))
			break;
		TRY(add_known(finder, (struct known_edge){ vertex->number, target }));
	}
	return NULL;
}

/*
 * Find the next that the vertex refers to and that has no number yet, or NO_ALLOCATION. It stays
 * open, to come back to, only if there is another one.
 */
static struct error *find_next(struct finder *finder, struct open_vertex vertex, allocation_id *ret)
{
	struct edges edges = dominator_edges(finder->input, finder->first_root, vertex.id);

	if (vertex.place == 0)
		fetch_rows(finder, edges);
	TRY(skip_closed(finder, &vertex, edges));
	*ret = NO_ALLOCATION;
	if (vertex.place == edges.count)
		return NULL;
	*ret = edges.targets[vertex.place++];
	TRY(skip_closed(finder, &vertex, edges));
	return vertex.place == edges.count ? NULL : array_append(&finder->open, vertex);
}

/* Number all that the entry, or the root, leads to. */
static struct error *number_from(struct finder *finder, allocation_id entry)
{
	struct open_vertex at = { enter(finder, entry, ROOT), entry, 0 };

	for (;;) {
		allocation_id next;

		TRY(find_next(finder, at, &next));
		if (next != NO_ALLOCATION) {
			at = (struct open_vertex){ enter(finder, next, at.number), next, 0 };
			TRY(step(finder, at.number));
		} else if (finder->open.count) {
			at = finder->open.items[--finder->open.count];
		} else {
			break;
		}
	}
	while (finder->known_count)
		TRY(add_first_known(finder));
	return NULL;
}

static struct error *number_rank(struct finder *finder, enum dominator_rank rank,
				 const struct bitmap *from)
{
	_cleanup_(bitmap_deinit) struct bitmap left = { 0 };

	TRY(bitmap_init_minus(&left, from, &finder->closed, finder->input->account));
	bitmap_for_each(id, &left) {
		if (bitmap_get(&finder->closed, id) ||
		    !dominator_is_of_rank(finder->input, (allocation_id)id, rank))
			continue;
		TRY(number_from(finder, (allocation_id)id));
	}
	return NULL;
}

static struct error *number_roots(struct finder *finder)
{
	const struct dominator_roots *roots = &finder->input->roots;

	for (size_t i = 0; i < roots->count; i++) {
		if (i > 0 && roots->ranks[i] != roots->ranks[i - 1])
			finder->earlier = finder->count;
		TRY(number_from(finder, finder->first_root + (allocation_id)i));
	}
	finder->earlier = finder->from_roots = finder->count;
	return NULL;
}

/* Earlier ranks first, as they refer to nothing of later ones. */
static struct error *number_all(struct finder *finder)
{
	const struct dominators_input *input = finder->input;

	TRY(number_roots(finder));
	for (enum dominator_rank rank = 0; rank < RANKS; rank++) {
		TRY(number_rank(finder, rank, input->entries));
		TRY(number_rank(finder, rank, allocation_used(input->index)));
		finder->earlier = finder->count;
	}
	return NULL;
}

/*
 * The least semidominator from number up to where the forest ends, below first. On the way up the
 * ancestors are turned to lead back; on the way back down they are made to lead to the end.
 */
static uint32_t find_least(struct vertex *all, uint32_t number, uint32_t first)
{
	uint32_t at = number, below = ROOT, end, least;

	while (all[at].ancestor >= first) {
		uint32_t above = all[at].ancestor;

		all[at].ancestor = below;
		below = at;
		at = above;
	}
	end = all[at].ancestor;
	least = all[at].label;
	while (below != ROOT) {
		struct vertex *vertex = &all[below];

		below = vertex->ancestor;
		vertex->ancestor = end;
		if (least < vertex->label)
			vertex->label = least;
		else
			least = vertex->label;
	}
	return least;
}

/* Let each parent grow to a vertex, in its place. */
static struct error *make_vertices(struct finder *finder)
{
	TRY(memory_resize(&finder->vertices, ((size_t)finder->count + 1) * sizeof(struct vertex)));
	for (uint32_t number = finder->count; number > 0; number--) {
		uint32_t parent = parents(finder)[number];

		vertices(finder)[number] =
			(struct vertex){ .ancestor = parent, .semi = parent, .dominator = parent };
	}
	vertices(finder)[ROOT] = (struct vertex){ 0 };
	bitmap_for_each(id, finder->input->entries)
		vertices(finder)[finder->numbers.items[id]].semi = ROOT;
	return NULL;
}

/* Tell the targets of the edges that are not of the tree. */
static void link_cross_edges(struct finder *finder)
{
	struct vertex *all = vertices(finder);

	for (size_t i = 1; i < finder->cross.count; i++) {
		struct cross_edge *edge = &finder->cross.items[i];
		struct vertex *target = &all[edge->target];

		if (i + AHEAD < finder->cross.count)
			__builtin_prefetch(&all[edge[AHEAD].target]);
		if (edge->source > edge->target) {
			edge->target = target->label;
			target->label = (uint32_t)i;
		} else if (target->semi > edge->source) {
			target->semi = edge->source;
		}
	}
}

static uint32_t find_semidominator(const struct finder *finder, uint32_t number)
{
	struct vertex *all = vertices(finder);
	uint32_t semi = all[number].semi, late = all[number].label;

	for (; late && semi != ROOT; late = finder->cross.items[late].target) {
		uint32_t least = find_least(all, finder->cross.items[late].source, number + 1);

		if (least < semi)
			semi = least;
	}
	return semi;
}

static void look_at(const struct finder *finder, uint32_t number)
{
	struct vertex *all = vertices(finder), *vertex = &all[number];
	uint32_t semi = find_semidominator(finder, number);

	vertex->semi = vertex->label = semi;
	if (bitmap_get(&finder->returning, number) && semi < all[vertex->ancestor].semi)
		all[vertex->ancestor].semi = semi;
}

/*
 * Let what is needed to look at lower numbers be fetched in the meantime: of their first two late
 * edges, and the way up from these.
 */
static void fetch_ahead(const struct finder *finder, uint32_t number)
{
	enum { STEP = 16, STEPS = 5 };
	const struct vertex *all = vertices(finder);
	const struct cross_edge *cross = finder->cross.items, *edge;

	if (number <= STEPS * STEP)
		return;
	__builtin_prefetch(&cross[all[number - 5 * STEP].label]);
	edge = &cross[all[number - 4 * STEP].label];
	__builtin_prefetch(&all[edge->source]);
	__builtin_prefetch(&cross[edge->target]);
	edge = &cross[all[number - 3 * STEP].label];
	__builtin_prefetch(&all[all[edge->source].ancestor]);
	__builtin_prefetch(&all[cross[edge->target].source]);
	edge = &cross[all[number - 2 * STEP].label];
	__builtin_prefetch(&all[all[all[edge->source].ancestor].ancestor]);
	__builtin_prefetch(&all[all[cross[edge->target].source].ancestor]);
	edge = &cross[cross[all[number - STEP].label].target];
	__builtin_prefetch(&all[all[all[edge->source].ancestor].ancestor]);
}

/* The dominators of lower numbers are known. */
static void find_dominator(struct vertex *all, uint32_t number)
{
	struct vertex *vertex = &all[number];
	uint32_t at = vertex->semi == ROOT ? ROOT : vertex->dominator, jump, further;

	while (at > vertex->semi)
		at = all[at].ancestor > vertex->semi ? all[at].ancestor : all[at].dominator;
	jump = all[at].ancestor;
	further = all[jump].ancestor;
	vertex->dominator = at;
	/* Two jumps of one length are joined: so each way takes logarithmically many. */
	vertex->ancestor = all[at].label - all[jump].label == all[jump].label - all[further].label
				   ? further
				   : at;
	vertex->label = all[at].label + 1;
}

/* At the end, semi is 1. */
static struct error *find_dominators(struct finder *finder)
{
	struct vertex *all = vertices(finder);

	for (uint32_t number = finder->count; number > 0; number--) {
		TRY(step(finder, number));
		fetch_ahead(finder, number);
		look_at(finder, number);
	}
	array_release(&finder->cross);
	for (uint32_t number = 1; number <= finder->count; number++) {
		find_dominator(all, number);
		all[number].semi = 1;
	}
	return NULL;
}

/* Add the vertices left out below their referrers, those of one in order of address. */
static struct error *add_left_out(struct finder *finder)
{
	uint32_t *numbers = finder->numbers.items;
	size_t count =
		bitmap_weight(allocation_used(finder->input->index)) + finder->input->roots.count;

	TRY(memory_resize(&finder->vertices, (count + 1) * sizeof(struct vertex)));
	bitmap_and(&finder->left_out, allocation_used(finder->input->index));
	bitmap_for_each(id, &finder->left_out) {
		uint32_t source = numbers[numbers[id] - 1];

		numbers[id] = ++finder->count;
		vertices(finder)[finder->count] = (struct vertex){ .dominator = source, .semi = 1 };
	}
	return NULL;
}

/* The number of a root; they are given in order. */
static uint32_t root_number(const struct finder *finder, size_t root)
{
	return root < finder->input->roots.count ? finder->numbers.items[finder->first_root + root]
						 : UINT32_MAX;
}

/* How many allocations each dominates into semi, and its position into label: roots have none. */
static void place_vertices(struct finder *finder)
{
	struct vertex *all = vertices(finder);
	size_t root = 0;

	for (size_t i = 0; i < finder->input->roots.count; i++)
		all[root_number(finder, i)].semi = 0;
	for (uint32_t number = finder->count; number > 0; number--)
		all[all[number].dominator].semi += all[number].semi;
	/* ancestor: where the next that hangs on it goes. */
	all[ROOT].ancestor = 0;
	for (uint32_t number = 1; number <= finder->count; number++) {
		struct vertex *above = &all[all[number].dominator];

		bool is_root = number == root_number(finder, root);

		root += is_root;
		all[number].label = above->ancestor;
		all[number].ancestor = above->ancestor + !is_root;
		above->ancestor += all[number].semi;
	}
}

/*
 * How many positions roots lead to: behind them is the first entry, if there is one. Nothing else
 * has a number behind theirs and hangs on the virtual root.
 */
static size_t positions_from_roots(const struct finder *finder)
{
	const struct vertex *behind = &vertices(finder)[finder->from_roots + 1];

	return finder->from_roots < finder->count && behind->dominator == ROOT
		       ? behind->label
		       : finder->count - finder->input->roots.count;
}

static struct error *place_roots(const struct finder *finder, struct dominators *dominators)
{
	dominators->in_order = positions_from_roots(finder);
	dominators->roots.memory.account = finder->input->account;
	TRY(array_resize(&dominators->roots, finder->input->roots.count));
	for (size_t i = 0; i < dominators->roots.count; i++) {
		const struct vertex *vertex = &vertices(finder)[root_number(finder, i)];

		dominators->roots.items[i] =
			(struct positions){ vertex->label, vertex->label + vertex->semi };
	}
	return NULL;
}

/*
 * By position, the id goes into ancestor and the end into dominator; all else of a vertex is done
 * with.
 */
static void move_to_positions(struct finder *finder)
{
	struct vertex *all = vertices(finder);
	const uint32_t *numbers = finder->numbers.items;
	size_t end = finder->first_root;

	for (size_t id = 0; id < end; id++) {
		const struct vertex *vertex = &all[numbers[id]];

		if (id + 2 * AHEAD < end) {
			__builtin_prefetch(&all[numbers[id + 2 * AHEAD]]);
			__builtin_prefetch(&all[all[numbers[id + AHEAD]].label], 1);
		}
		if (numbers[id] == ROOT)
			continue;
		all[vertex->label].ancestor = (uint32_t)id;
		all[vertex->label].dominator = vertex->label + vertex->semi;
	}
	array_release(&finder->numbers);
}

/* The places move together to the front of the memory, and the sums go behind them. */
static struct error *lay_out(struct finder *finder, struct dominators *dominators)
{
	const struct vertex *all = vertices(finder);
	struct place *places = finder->vertices.bytes;
	size_t count = finder->count - finder->input->roots.count, blocks = count / BLOCK + 2;
	uint64_t *sums, sum = 0;
	uint16_t *rest;

	for (size_t i = 0; i < count; i++)
		places[i] = (struct place){ all[i].ancestor, all[i].dominator };
	TRY(memory_resize(&finder->vertices, count * sizeof(*places) + blocks * sizeof(*sums) +
						     (count + 1) * sizeof(*rest)));
	places = finder->vertices.bytes;
	sums = (uint64_t *)(places + count);
	rest = (uint16_t *)(sums + blocks);
	for (size_t i = 0; i <= count; i++) {
		if (i % BLOCK == 0)
			sums[i / BLOCK] = sum;
		rest[i] = (uint16_t)(sum - sums[i / BLOCK]);
		if (i + AHEAD < count)
			allocation_fetch_size(finder->input->index, places[i + AHEAD].id);
		if (i < count)
			sum += allocation_size(finder->input->index, places[i].id);
	}
	sums[count / BLOCK + 1] = sum;
	dominators->count = count;
	dominators->index = finder->input->index;
	dominators->memory = finder->vertices;
	dominators->places = places;
	dominators->sums = sums;
	dominators->rest = rest;
	dominators->positions.memory.account = finder->input->account;
	finder->vertices = (struct memory){ 0 };
	return NULL;
}

static void spend_graph(const struct dominators_input *input)
{
	if (input->spent)
		graph_destroy(take(*input->spent));
}

static struct error *search_depth_first(struct finder *finder)
{
	TRY(finder_init(finder));
	TRY(number_all(finder));
	bitmap_deinit(&finder->closed);
	array_release(&finder->open);
	spend_graph(finder->input);
	TRY(make_vertices(finder));
	link_cross_edges(finder);
	TRY(find_dominators(finder));
	return add_left_out(finder);
}

/* Take over what the search by levels found: each of its vertices grows, in its place. */
static struct error *take_levels(struct finder *finder, struct dominator_levels *levels)
{
	const struct level_vertex *found;

	finder->first_root = (allocation_id)allocation_used(finder->input->index)->count;
	finder->count = levels->count;
	finder->numbers.memory = levels->numbers.memory;
	finder->numbers.count = levels->numbers.count;
	finder->vertices = levels->vertices;
	*levels = (struct dominator_levels){ 0 };
	spend_graph(finder->input);
	TRY(memory_resize(&finder->vertices, ((size_t)finder->count + 1) * sizeof(struct vertex)));
	found = finder->vertices.bytes;
	for (uint32_t number = finder->count; number > 0; number--) {
		uint32_t dominator = found[number].dominator;

		vertices(finder)[number] = (struct vertex){ .dominator = dominator, .semi = 1 };
	}
	vertices(finder)[ROOT] = (struct vertex){ 0 };
	return NULL;
}

static struct error *find_tree(const struct dominators_input *input, struct dominators *dominators)
{
	_cleanup_(dominator_levels_deinit) struct dominator_levels levels = { 0 };
	bool found;
	_cleanup_(finder_deinit) struct finder finder = {
		.input = input,
		.vertices.account = input->account,
	};

	arrays_use(input->account, &finder.numbers, &finder.cross, &finder.open);
	TRY(dominator_levels_find(input, &levels, &found));
	if (!found)
		dominator_levels_deinit(&levels);
	TRY(found ? take_levels(&finder, &levels) : search_depth_first(&finder));
	place_vertices(&finder);
	TRY(place_roots(&finder, dominators));
	move_to_positions(&finder);
	return lay_out(&finder, dominators);
}

struct error *dominators_create(const struct dominators_input *input, struct dominators **ret)
{
	_cleanup_(dominators_destroy) struct dominators *dominators =
		calloc(1, sizeof(*dominators));

	TRY_MEMORY(dominators);
	if (input->roots.count >= SEVERAL - allocation_used(input->index)->count)
		return error_create(ERROR_NOT_SUPPORTED,
				    "more than 4,294,967,295 allocations and roots");
	progress_begin(input->progress, "computing dominators",
		       2 * bitmap_weight(allocation_used(input->index)));
	TRY(find_tree(input, dominators));
	*ret = take(dominators);
	return NULL;
}

void dominators_destroy(struct dominators *dominators)
{
	arrays_release(&dominators->roots, &dominators->positions);
	memory_release(&dominators->memory);
	free(dominators);
}

size_t dominators_count(const struct dominators *dominators)
{
	return dominators->count;
}

allocation_id dominators_at(const struct dominators *dominators, size_t position)
{
	return dominators->places[position].id;
}

size_t dominators_end(const struct dominators *dominators, size_t position)
{
	return dominators->places[position].end;
}

struct positions dominators_root(const struct dominators *dominators, size_t root)
{
	return dominators->roots.items[root];
}

/* The last root that begins at the position or before it, or NO_ROOT. */
static size_t root_before(const struct dominators *dominators, size_t position)
{
	const struct positions *roots = dominators->roots.items;
	size_t end = BISECT(i, 0, dominators->roots.count, roots[i].begin <= position);

	return end > 0 ? end - 1 : NO_ROOT;
}

/* If several roots begin at one position, only the last one holds anything. */
size_t dominators_root_of(const struct dominators *dominators, size_t position)
{
	size_t root = root_before(dominators, position);

	return root != NO_ROOT && position < dominators->roots.items[root].end ? root : NO_ROOT;
}

/*
 * Positions at the top are in order of numbers: what several roots lead to follows what the first
 * of them alone holds.
 */
size_t dominators_first_root(const struct dominators *dominators, size_t position)
{
	return position < dominators->in_order ? root_before(dominators, position) : NO_ROOT;
}

struct error *dominators_find_positions(struct dominators *dominators)
{
	size_t all = allocation_count(dominators->index);

	TRY(array_resize(&dominators->positions, all));
	for (size_t id = 0; id < all; id++)
		dominators->positions.items[id] = NOT_USED;
	for (size_t i = 0; i < dominators->count; i++)
		dominators->positions.items[dominators->places[i].id] = (uint32_t)i;
	return NULL;
}

bool dominators_position(const struct dominators *dominators, allocation_id id, size_t *ret)
{
	uint32_t position = dominators->positions.items[id];

	if (position == NOT_USED)
		return false;
	*ret = position;
	return true;
}

static uint64_t bytes_before(const struct dominators *dominators, size_t position)
{
	size_t block = position / BLOCK;
	uint64_t sum = dominators->sums[block];

	if (dominators->sums[block + 1] - sum <= UINT16_MAX)
		return sum + dominators->rest[position];
	for (size_t i = block * BLOCK; i < position; i++)
		sum += allocation_size(dominators->index, dominators->places[i].id);
	return sum;
}

uint64_t dominators_bytes(const struct dominators *dominators, size_t begin, size_t end)
{
	return bytes_before(dominators, end) - bytes_before(dominators, begin);
}

uint64_t dominators_retained(const struct dominators *dominators, allocation_id id)
{
	size_t position;

	if (!dominators_position(dominators, id, &position))
		return 0;
	return dominators_bytes(dominators, position, dominators_end(dominators, position));
}
