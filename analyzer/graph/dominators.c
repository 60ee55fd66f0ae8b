#include "analyzer/graph/dominators.h"

#include "analyzer/base/array.h"

#include <assert.h>

/*
 * The algorithm is that of Lengauer and Tarjan, in its simple form, whose time grows with the
 * references and the logarithm of the allocations, whatever the heap looks like.
 *
 * Allocations are numbered from 1 on in the order of a depth-first search; 0 is the virtual root
 * that refers to all entries. The semidominator of a vertex is the lowest one from which a way
 * leads to it over none but higher ones. Going down from the highest number, what was looked at
 * forms a forest, in which the least semidominator on the way up is asked for, and the ways are
 * shortened as they are gone. A vertex whose semidominator is not its parent waits on the list of
 * that semidominator until the forest has grown up to it.
 *
 * An edge to a higher number counts when it is found. Those to lower numbers, which may come from
 * anywhere in the forest, wait on a list of their target.
 *
 * What refers to nothing and is referred to by one only, as most texts and buffers, hangs on that
 * one, and leads nowhere: it is left out of the search, and gets its number behind all others.
 */
struct vertex {
	uint32_t ancestor; /* at first, the parent in the search */
	/*
	 * While it is searched for: the next edge to follow. Until it is looked at: the first that
	 * waits for it, or 0. Then the vertex with the least semi from here to the ancestor.
	 */
	uint32_t label;
	/*
	 * While it is open: the open one before it. Then the lowest that refers to it, and once it
	 * is looked at, the semidominator. At the end: how many it dominates.
	 */
	uint32_t semi;
	/* At first, the last of its late edges, or 0. While it waits: the next on the list, or 0.
	 */
	uint32_t dominator;
};

/* An edge to a lower number. */
struct late_edge {
	uint32_t source;
	uint32_t next; /* of the same target, or 0 */
};

/* An edge to what has a number already: it waits until memory has what it needs. */
struct known_edge {
	uint32_t source;
	allocation_id target;
	bool may_repeat;
};

enum { ROOT = 0, PROGRESS_STEP = 1 << 16, BLOCK = 64, AHEAD = 16, KNOWN_EDGES = 32 };

static const uint32_t NOT_USED = UINT32_MAX, SEVERAL = UINT32_MAX;

/* What is of a later rank holds nothing of an earlier one. */
enum rank { RANK_ANCHORED, RANK_GARBAGE, RANK_LEAKED, RANKS };

struct finder {
	const struct dominators_input *input;
	ARRAY(uint32_t) numbers;      /* by id, of those in closed and of used ones in left_out */
	ARRAY(allocation_id) ids;     /* by number */
	struct bitmap left_out;	      /* and what is not used */
	struct bitmap closed;	      /* the same, and what has its number from the search */
	struct memory vertices;	      /* by number */
	ARRAY(struct late_edge) late; /* the first is none */
	uint32_t open;		      /* the last that has more edges to follow, or 0 */
	uint32_t count;		      /* of numbers given, 0 not counted */
	uint32_t searched;	      /* as many as are not left out */
	uint32_t earlier;	      /* the last number of earlier ranks */
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
	ARRAY(uint32_t) positions; /* by id, or NOT_USED; empty until they are needed */
	const struct allocation_index *index;
	struct memory memory; /* of what follows, by position */
	const struct place *places;
	const uint64_t *sums; /* bytes in front of each block, and of the end */
	const uint32_t *rest; /* and from there to each position, unless the block has 4 GB */
};

static struct vertex *vertices(const struct finder *finder)
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

/* By id, the one that refers to it, and 1 added; SEVERAL; or 0. */
static struct error *count_sources(struct finder *finder)
{
	const struct graph *graph = finder->input->graph;
	uint32_t *sources = finder->numbers.items;

	bitmap_for_each(id, allocation_used(finder->input->index)) {
		struct edges edges = graph_outgoing(graph, (allocation_id)id);
		uint32_t source = (uint32_t)id + 1;

		if (id + AHEAD < finder->numbers.count)
			fetch_targets(finder, (allocation_id)(id + AHEAD));
		for (size_t i = 0; i < edges.count; i++) {
			uint32_t *seen = &sources[edges.targets[i]];

			*seen = *seen == 0 || *seen == source ? source : SEVERAL;
		}
		TRY(step(finder, id));
	}
	return NULL;
}

/* Whether the allocation may be left out if it leads nowhere, as source is what refers to it. */
static bool hangs_on_one(const struct finder *finder, allocation_id id, uint32_t source)
{
	return source != 0 && source != SEVERAL && !bitmap_get(finder->input->entries, id);
}

/* Give it the highest number that is left. What dominates it is an id until others have numbers. */
static void leave_out(struct finder *finder, allocation_id id)
{
	uint32_t number = finder->searched--;

	vertices(finder)[number].dominator = finder->numbers.items[id] - 1;
	finder->ids.items[number] = id;
	finder->numbers.items[id] = number;
	bitmap_set(&finder->left_out, id);
}

/* Those of one source in order of address. */
static void leave_out_ends(struct finder *finder)
{
	for (size_t id = finder->numbers.count; id-- > 0;)
		if (hangs_on_one(finder, (allocation_id)id, finder->numbers.items[id]) &&
		    !bitmap_get(&finder->left_out, id) &&
		    graph_outgoing(finder->input->graph, (allocation_id)id).count == 0)
			leave_out(finder, (allocation_id)id);
}

static struct error *finder_init(struct finder *finder)
{
	const struct bitmap *used = allocation_used(finder->input->index);
	size_t count = bitmap_weight(used);

	TRY(array_resize(&finder->numbers, used->count));
	TRY(array_resize(&finder->ids, count + 1));
	TRY(memory_resize(&finder->vertices, (count + 1) * sizeof(struct vertex)));
	TRY(array_append(&finder->late, (struct late_edge){ 0 }));
	TRY(count_sources(finder));
	finder->searched = (uint32_t)count;
	TRY(bitmap_init(&finder->left_out, used->count, finder->input->account));
	bitmap_fill(&finder->left_out);
	bitmap_minus(&finder->left_out, used);
	leave_out_ends(finder);
	TRY(bitmap_init(&finder->closed, used->count, finder->input->account));
	bitmap_copy(&finder->closed, &finder->left_out);
	return NULL;
}

static void finder_deinit(struct finder *finder)
{
	array_release(&finder->numbers);
	array_release(&finder->ids);
	array_release(&finder->late);
	memory_release(&finder->vertices);
	bitmap_deinit(&finder->left_out);
	bitmap_deinit(&finder->closed);
}
DEFINE_DEINIT(finder_deinit, struct finder)

static uint32_t enter(struct finder *finder, allocation_id id, uint32_t parent)
{
	uint32_t number = ++finder->count;

	finder->numbers.items[id] = number;
	bitmap_set(&finder->closed, id);
	finder->ids.items[number] = id;
	vertices(finder)[number] = (struct vertex){ .ancestor = parent, .semi = parent };
	return number;
}

/* What is needed to go on from the first of the edges. */
static void fetch_rows(const struct finder *finder, struct edges edges)
{
	for (size_t i = 0; i < edges.count && i < FETCHED; i++)
		graph_fetch_offset(finder->input->graph, edges.targets[i]);
}

static struct error *add_late(struct finder *finder, uint32_t source, struct vertex *target,
			      bool may_repeat)
{
	uint32_t number = (uint32_t)finder->late.count, last = target->dominator;

	if (may_repeat && last && finder->late.items[last].source == source)
		return NULL;
	if (number == UINT32_MAX)
		return error_create(ERROR_NOT_SUPPORTED,
				    "more than 4,294,967,295 references among allocations");
	target->dominator = number;
	return array_append(&finder->late, (struct late_edge){ source, last });
}

/* An edge between two that have numbers. Nothing of a later rank holds what is of an earlier one.
 */
static struct error *add_edge(struct finder *finder, uint32_t source, uint32_t number,
			      bool may_repeat)
{
	struct vertex *target = &vertices(finder)[number];

	if (number <= finder->earlier || target->ancestor == ROOT)
		return NULL;
	if (number < source)
		return add_late(finder, source, target, may_repeat);
	if (target->semi > source)
		target->semi = source;
	return NULL;
}

static struct error *add_first_known(struct finder *finder)
{
	struct known_edge *edge = &finder->known[finder->first_known++ % KNOWN_EDGES];

	finder->known_count--;
	return add_edge(finder, edge->source, finder->numbers.items[edge->target],
			edge->may_repeat);
}

/* Where its target stands in the tree matters to no edge that is followed: it can wait. */
static struct error *add_known(struct finder *finder, struct known_edge edge)
{
	size_t place = finder->first_known + finder->known_count;

	__builtin_prefetch(&finder->numbers.items[edge.target]);
	finder->known[place % KNOWN_EDGES] = edge;
	if (++finder->known_count < KNOWN_EDGES)
		return NULL;
	edge = finder->known[(place - KNOWN_EDGES / 2) % KNOWN_EDGES];
	__builtin_prefetch(&vertices(finder)[finder->numbers.items[edge.target]]);
	return add_first_known(finder);
}

/* Find the place of the next edge, from *place on, to what has no number yet. */
static struct error *skip_closed(struct finder *finder, uint32_t source, struct edges edges,
				 size_t *place)
{
	enum { SHORT = 16 }; /* Only long rows may repeat much. */

	for (; *place < edges.count && bitmap_get(&finder->closed, edges.targets[*place]);
	     ++*place) {
		struct known_edge edge = { source, edges.targets[*place], edges.count > SHORT };

		if (!bitmap_get(&finder->left_out, edge.target))
			TRY(add_known(finder, edge));
	}
	return NULL;
}

/*
 * Find the next that the vertex refers to and that has no number yet, or NO_ALLOCATION. It stays
 * open, to come back to, only if there is another one.
 */
static struct error *find_next(struct finder *finder, uint32_t number, allocation_id *ret)
{
	struct edges edges = graph_outgoing(finder->input->graph, finder->ids.items[number]);
	struct vertex *vertex = &vertices(finder)[number];
	size_t place = vertex->label;

	if (place == 0)
		fetch_rows(finder, edges);
	TRY(skip_closed(finder, number, edges, &place));
	*ret = place < edges.count ? edges.targets[place++] : NO_ALLOCATION;
	TRY(skip_closed(finder, number, edges, &place));
	vertex->label = 0;
	if (place < edges.count) {
		vertex->label = (uint32_t)place;
		vertex->semi = finder->open;
		finder->open = number;
	}
	return NULL;
}

/* Number all that the entry leads to. */
static struct error *number_from(struct finder *finder, allocation_id entry)
{
	uint32_t at = enter(finder, entry, ROOT);

	while (at != ROOT) {
		allocation_id next;

		TRY(find_next(finder, at, &next));
		if (next != NO_ALLOCATION) {
			at = enter(finder, next, at);
			TRY(step(finder, at));
			continue;
		}
		at = finder->open;
		finder->open = vertices(finder)[at].semi;
		vertices(finder)[at].semi = vertices(finder)[at].ancestor;
	}
	while (finder->known_count)
		TRY(add_first_known(finder));
	return NULL;
}

static bool is_of_rank(const struct dominators_input *input, allocation_id id, enum rank rank)
{
	switch (rank) {
	case RANK_ANCHORED:
		return bitmap_get(input->anchored, id);
	case RANK_GARBAGE:
		return !bitmap_get(input->leaked, id);
	default:
		return true;
	}
}

static struct error *number_rank(struct finder *finder, enum rank rank, const struct bitmap *from)
{
	_cleanup_(bitmap_deinit) struct bitmap left = { 0 };

	TRY(bitmap_init_minus(&left, from, &finder->closed, finder->input->account));
	bitmap_for_each(id, &left) {
		if (bitmap_get(&finder->closed, id) ||
		    !is_of_rank(finder->input, (allocation_id)id, rank))
			continue;
		TRY(number_from(finder, (allocation_id)id));
	}
	return NULL;
}

/* Earlier ranks first, as they refer to nothing of later ones. */
static struct error *number_all(struct finder *finder)
{
	const struct dominators_input *input = finder->input;

	for (enum rank rank = 0; rank < RANKS; rank++) {
		TRY(number_rank(finder, rank, input->entries));
		TRY(number_rank(finder, rank, allocation_used(input->index)));
		finder->earlier = finder->count;
	}
	return NULL;
}

/*
 * The vertex with the least semidominator from number up to where the forest ends, below first. On
 * the way up the ancestors are turned to lead back; on the way back down they are made to lead to
 * the end.
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
		if (all[least].semi < all[vertex->label].semi)
			vertex->label = least;
		else
			least = vertex->label;
	}
	return least;
}

static uint32_t find_semidominator(const struct finder *finder, uint32_t number)
{
	struct vertex *all = vertices(finder);
	uint32_t semi = all[number].semi, late = all[number].dominator;

	for (; late && semi != ROOT; late = finder->late.items[late].next) {
		uint32_t source = finder->late.items[late].source;
		uint32_t least = all[find_least(all, source, number + 1)].semi;

		if (least < semi)
			semi = least;
	}
	return semi;
}

/* The forest now reaches number: those that wait for its parent can be told. */
static void tell_waiting(struct vertex *all, uint32_t number)
{
	uint32_t parent = all[number].ancestor;
	uint32_t waiting = parent == ROOT ? ROOT : all[parent].label;

	while (waiting != ROOT) {
		uint32_t next = all[waiting].dominator;
		uint32_t least = find_least(all, waiting, number);

		/* If it is another, they have the same dominator. */
		all[waiting].dominator = all[least].semi < parent ? least : parent;
		waiting = next;
	}
	if (parent != ROOT)
		all[parent].label = ROOT;
}

/* A vertex that does not wait has its semidominator for a dominator. */
static void look_at(const struct finder *finder, uint32_t number)
{
	const struct bitmap *entries = finder->input->entries;
	struct vertex *all = vertices(finder), *vertex = &all[number];
	uint32_t semi = ROOT;

	if (!bitmap_get(entries, finder->ids.items[number]))
		semi = find_semidominator(finder, number);
	vertex->semi = vertex->dominator = semi;
	vertex->label = number;
	if (semi != ROOT && semi != vertex->ancestor) {
		vertex->dominator = all[semi].label;
		all[semi].label = number;
	}
	tell_waiting(all, number);
}

/* Let what is needed to look at lower numbers be fetched in the meantime. */
static void fetch_ahead(const struct finder *finder, uint32_t number)
{
	enum { STEP = 6 };
	const struct vertex *all = vertices(finder);
	const struct late_edge *late = finder->late.items;

	if (number <= 2 * STEP)
		return;
	__builtin_prefetch(
		&finder->input->entries->words[finder->ids.items[number - 2 * STEP] / 64]);
	__builtin_prefetch(&late[all[number - 2 * STEP].dominator]);
	__builtin_prefetch(&all[late[all[number - STEP].dominator].source]);
	__builtin_prefetch(&all[all[all[number - STEP].ancestor].label]);
}

static struct error *find_dominators(struct finder *finder)
{
	struct vertex *all = vertices(finder);

	for (uint32_t number = finder->count; number > 0; number--) {
		TRY(step(finder, number));
		fetch_ahead(finder, number);
		look_at(finder, number);
	}
	array_release(&finder->late);
	for (uint32_t number = 1; number <= finder->count; number++)
		if (all[number].dominator != all[number].semi)
			all[number].dominator = all[all[number].dominator].dominator;
	return NULL;
}

/* Let those left out hang on what refers to them. */
static void add_left_out(struct finder *finder)
{
	struct vertex *all = vertices(finder);
	size_t end = finder->ids.count;

	for (finder->count++; finder->count < end; finder->count++)
		all[finder->count].dominator = finder->numbers.items[all[finder->count].dominator];
	finder->count--;
}

/* How many each dominates into semi, and its position into label. */
static void place_vertices(struct finder *finder)
{
	struct vertex *all = vertices(finder);
	uint32_t next = 0;

	for (uint32_t number = 0; number <= finder->count; number++)
		all[number].semi = 1;
	for (uint32_t number = finder->count; number > 0; number--)
		all[all[number].dominator].semi += all[number].semi;
	/* ancestor: where the next that hangs on it goes. */
	all[ROOT].ancestor = next;
	for (uint32_t number = 1; number <= finder->count; number++) {
		struct vertex *above = &all[all[number].dominator];

		all[number].label = above->ancestor;
		all[number].ancestor = above->ancestor + 1;
		above->ancestor += all[number].semi;
	}
}

/*
 * By position, the id goes into ancestor and the end into dominator; all else of a vertex is done
 * with.
 */
static void move_to_positions(struct finder *finder)
{
	struct vertex *all = vertices(finder);

	for (uint32_t number = 1; number <= finder->count; number++) {
		uint32_t position = all[number].label;

		all[position].ancestor = finder->ids.items[number];
		all[position].dominator = position + all[number].semi;
	}
	array_release(&finder->ids);
}

/* The places move together to the front of the memory, and the sums go behind them. */
static struct error *lay_out(struct finder *finder, struct dominators *dominators)
{
	const struct vertex *all = vertices(finder);
	struct place *places = finder->vertices.bytes;
	size_t count = finder->count, blocks = count / BLOCK + 2;
	uint64_t *sums, sum = 0;
	uint32_t *rest;

	for (size_t i = 0; i < count; i++)
		places[i] = (struct place){ all[i].ancestor, all[i].dominator };
	TRY(memory_resize(&finder->vertices, count * sizeof(*places) + blocks * sizeof(*sums) +
						     (count + 1) * sizeof(*rest)));
	places = finder->vertices.bytes;
	sums = (uint64_t *)(places + count);
	rest = (uint32_t *)(sums + blocks);
	for (size_t i = 0; i <= count; i++) {
		if (i % BLOCK == 0)
			sums[i / BLOCK] = sum;
		rest[i] = (uint32_t)(sum - sums[i / BLOCK]);
		if (i + AHEAD < count)
			allocation_fetch_size(finder->input->index, places[i + AHEAD].id);
		if (i < count)
			sum += allocation_size(finder->input->index, places[i].id);
	}
	sums[count / BLOCK + 1] = sum;
	*dominators = (struct dominators){
		.count = count,
		.index = finder->input->index,
		.memory = finder->vertices,
		.places = places,
		.sums = sums,
		.rest = rest,
	};
	dominators->positions.memory.account = finder->input->account;
	finder->vertices = (struct memory){ 0 };
	return NULL;
}

static struct error *find_tree(const struct dominators_input *input, struct dominators *dominators)
{
	_cleanup_(finder_deinit) struct finder finder = {
		.input = input,
		.numbers.memory.account = input->account,
		.ids.memory.account = input->account,
		.late.memory.account = input->account,
		.vertices.account = input->account,
	};

	TRY(finder_init(&finder));
	TRY(number_all(&finder));
	bitmap_deinit(&finder.left_out);
	bitmap_deinit(&finder.closed);
	TRY(find_dominators(&finder));
	add_left_out(&finder);
	array_release(&finder.numbers);
	place_vertices(&finder);
	move_to_positions(&finder);
	return lay_out(&finder, dominators);
}

struct error *dominators_create(const struct dominators_input *input, struct dominators **ret)
{
	_cleanup_(dominators_destroy) struct dominators *dominators =
		calloc(1, sizeof(*dominators));

	if (!dominators)
		return &error_no_memory;
	progress_begin(input->progress, "finding who alone holds what",
		       2 * bitmap_weight(allocation_used(input->index)));
	TRY(find_tree(input, dominators));
	*ret = take(dominators);
	return NULL;
}

void dominators_destroy(struct dominators *dominators)
{
	array_release(&dominators->positions);
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

	if (dominators->sums[block + 1] - sum <= UINT32_MAX)
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
