#include "analyzer/graph/dominator_levels.h"

enum {
	ROOT = 0,
	FIRST_NUMBERS = 1 << 14, /* their vertices fit a processor's cache */
	MOST_TURNS = 16,
	FEW_CHANGES = 1024, /* one in so many edges */
	MOST_STEPS = 3,	    /* for each vertex and edge */
	PROGRESS_STEP = 1 << 16,
	AHEAD = 8,
};

/* A reference that is not of the search's tree, or that of the tree to such a target. */
struct level_edge {
	uint32_t source, target;
};

/* In place of a number. */
static const uint32_t NONE = 0, NOT_USED = UINT32_MAX;

struct search {
	const struct dominators_input *input;
	struct dominator_levels *levels;
	ARRAY(struct level_edge) edges;
	uint32_t searched; /* numbers whose references were followed */
	uint32_t earlier;  /* the last number of earlier ranks */
	allocation_id first_root;
	uint64_t steps;
};

static void search_deinit(struct search *search)
{
	array_release(&search->edges);
}
DEFINE_DEINIT(search_deinit, struct search)

void dominator_levels_deinit(struct dominator_levels *levels)
{
	array_release(&levels->numbers);
	memory_release(&levels->vertices);
}

static struct level_vertex *vertices(const struct search *search)
{
	return search->levels->vertices.bytes;
}

static void enter(struct search *search, allocation_id id, uint32_t parent)
{
	uint32_t number = ++search->levels->count;

	search->levels->numbers.items[id] = number;
	vertices(search)[number] = (struct level_vertex){ .dominator = parent, .id = id };
}

/* Have memory fetched that the search needs some numbers later. */
static void fetch_ahead(const struct search *search, uint32_t number)
{
	const struct graph *graph = search->input->graph;
	const struct level_vertex *next = vertices(search) + number;
	uint32_t left = search->levels->count - number;

	if (left >= 3 * AHEAD && next[3 * AHEAD].id < search->first_root)
		graph_fetch_offset(graph, next[3 * AHEAD].id);
	if (left >= 2 * AHEAD && next[2 * AHEAD].id < search->first_root)
		graph_fetch_row(graph, next[2 * AHEAD].id);
	if (left >= AHEAD && next[AHEAD].id < search->first_root) {
		struct edges edges = graph_outgoing(graph, next[AHEAD].id);

		for (size_t i = 0; i < edges.count && i < 4; i++)
			__builtin_prefetch(&search->levels->numbers.items[edges.targets[i]]);
	}
}

static struct error *follow(struct search *search, uint32_t number)
{
	allocation_id id = vertices(search)[number].id;
	struct edges edges = dominator_edges(search->input, search->first_root, id);

	for (size_t i = 0; i < edges.count; i++) {
		allocation_id target = edges.targets[i];
		uint32_t known = search->levels->numbers.items[target];

		if (dominator_is_void(search->input, search->first_root, id, target))
			continue;
		if (known == NONE)
			enter(search, target, number);
		else if (known > search->earlier && known != NOT_USED)
			TRY(array_append(&search->edges, (struct level_edge){ number, known }));
	}
	return NULL;
}

static struct error *follow_all(struct search *search)
{
	while (search->searched < search->levels->count) {
		uint32_t number = ++search->searched;

		fetch_ahead(search, number);
		if (number % PROGRESS_STEP == 0)
			TRY(progress_check(search->input->progress, PROGRESS_STEP));
		TRY(follow(search, number));
	}
	return NULL;
}

static struct error *number_roots(struct search *search)
{
	const struct dominator_roots *roots = &search->input->roots;

	for (size_t i = 0; i < roots->count; i++) {
		if (i > 0 && roots->ranks[i] != roots->ranks[i - 1]) {
			TRY(follow_all(search));
			search->earlier = search->levels->count;
		}
		enter(search, search->first_root + (allocation_id)i, ROOT);
	}
	TRY(follow_all(search));
	search->earlier = search->levels->count;
	return NULL;
}

/*
 * Number the entries of the rank, and what they lead to. Incomplete: something of the rank is used
 * to which none leads.
 */
static struct error *number_rank(struct search *search, enum dominator_rank rank,
				 bool *ret_complete)
{
	const struct dominators_input *input = search->input;

	bitmap_for_each(id, input->entries)
		if (search->levels->numbers.items[id] == NONE &&
		    dominator_is_of_rank(input, (allocation_id)id, rank))
			enter(search, (allocation_id)id, ROOT);
	TRY(follow_all(search));
	search->earlier = search->levels->count;
	*ret_complete = true;
	for (size_t id = 0; id < search->first_root && *ret_complete; id++)
		*ret_complete = search->levels->numbers.items[id] != NONE ||
				!dominator_is_of_rank(input, (allocation_id)id, rank);
	return NULL;
}

/* The virtual root alone dominates entries, also those that the search met as targets. */
static void free_entries(struct search *search)
{
	bitmap_for_each(id, search->input->entries)
		vertices(search)[search->levels->numbers.items[id]].dominator = ROOT;
}

static struct error *number_all(struct search *search, bool *ret_complete)
{
	*ret_complete = true;
	TRY(number_roots(search));
	for (enum dominator_rank rank = 0; rank < RANKS && *ret_complete; rank++)
		TRY(number_rank(search, rank, ret_complete));
	if (*ret_complete)
		free_entries(search);
	return NULL;
}

/* The reference from its parent counts where a vertex has others, as the parent's dominators
 * change. */
static struct error *add_tree_edges(struct search *search)
{
	_cleanup_(bitmap_deinit) struct bitmap targets = { 0 };

	TRY(bitmap_init(&targets, (size_t)search->levels->count + 1, search->input->account));
	array_for_each(edge, &search->edges)
		bitmap_set(&targets, edge->target);
	bitmap_for_each(number, &targets)
		TRY(array_append(&search->edges,
				 (struct level_edge){ vertices(search)[number].dominator,
						      (uint32_t)number }));
	return NULL;
}

static void set_tops(struct level_vertex *all, uint32_t count)
{
	for (uint32_t i = 0; i <= count; i++)
		all[i].top = i <= FIRST_NUMBERS ? i : all[all[i].dominator].top;
}

/*
 * Have the target dominated by the nearest that dominates the source, too; returns whether that is
 * another one. Where one of both is among the first numbers, the way up begins there.
 */
static inline bool relax(struct search *search, struct level_vertex *all, struct level_edge edge)
{
	uint32_t before = all[edge.target].dominator, below = edge.source, above = before;

	if (above == ROOT)
		return false;
	if (above <= FIRST_NUMBERS || all[below].top != all[above].top) {
		below = all[below].top;
		above = all[above].top;
	}
	for (; below != above; search->steps++)
		if (below > above)
			below = all[below].dominator;
		else
			above = all[above].dominator;
	if (above >= before)
		return false;
	all[edge.target].dominator = above;
	return true;
}

static inline void fetch_edges(const struct level_vertex *all, const struct level_edge *edge,
			       ptrdiff_t step)
{
	__builtin_prefetch(&all[edge[3 * step].target]);
	__builtin_prefetch(&all[edge[3 * step].source]);
	__builtin_prefetch(&all[all[edge[2 * step].target].dominator]);
	__builtin_prefetch(&all[all[edge[2 * step].source].dominator]);
}

/* Relax all edges, in that direction; returns how many dominators changed. */
static size_t take_turn(struct search *search, bool backwards)
{
	struct level_vertex *all = vertices(search);
	const struct level_edge *edges = search->edges.items;
	size_t count = search->edges.count, changes = 0;

	set_tops(all, search->levels->count);
	for (size_t i = 0; i < count; i++) {
		const struct level_edge *edge = edges + (backwards ? count - 1 - i : i);

		if (i + 3 * AHEAD < count)
			fetch_edges(all, edge, backwards ? -AHEAD : AHEAD);
		changes += relax(search, all, *edge);
	}
	return changes;
}

/* False: it takes too long, as a turn changes nearly as much as the one in its direction before. */
static bool find_dominators(struct search *search)
{
	uint64_t most = MOST_STEPS * ((uint64_t)search->levels->count + search->edges.count);
	size_t few = search->edges.count / FEW_CHANGES, changes[MOST_TURNS];

	for (size_t turn = 0; turn < MOST_TURNS && search->steps <= most; turn++) {
		changes[turn] = take_turn(search, turn % 2 == 1);
		if (changes[turn] == 0)
			return true;
		if (turn >= 2 && changes[turn] > few && changes[turn] > changes[turn - 2] / 4)
			return false;
	}
	return false;
}

/* True if the heap is large and a quarter of some references lead further than a part of it. */
static bool leads_far(const struct dominators_input *input)
{
	enum { LEAST = 1 << 20, SAMPLED = 4096, PARTS = 64 };
	size_t all = allocation_count(input->index), seen = 0, far = 0;

	if (all < LEAST)
		return input->leads_far;
	for (size_t id = 0; id < all; id += all / SAMPLED) {
		struct edges edges = graph_outgoing(input->graph, (allocation_id)id);

		for (size_t i = 0; i < edges.count && i < 4; i++) {
			size_t target = edges.targets[i];
			size_t distance = target > id ? target - id : id - target;

			seen++;
			far += distance > all / PARTS;
		}
	}
	return far > seen / 4;
}

static void mark_not_used(const struct search *search, uint32_t number)
{
	const struct bitmap *used = allocation_used(search->input->index);

	for (size_t id = bitmap_next_clear(used, 0); id < used->count;
	     id = bitmap_next_clear(used, id + 1))
		search->levels->numbers.items[id] = number;
}

struct error *dominator_levels_find(const struct dominators_input *input,
				    struct dominator_levels *ret, bool *ret_found)
{
	const struct bitmap *used = allocation_used(input->index);
	_cleanup_(search_deinit) struct search search = {
		.input = input,
		.levels = ret,
		.edges.memory.account = input->account,
		.first_root = (allocation_id)used->count,
	};
	size_t count = bitmap_weight(used) + input->roots.count;

	*ret_found = false;
	if (!leads_far(input))
		return NULL;
	ret->numbers.memory.account = ret->vertices.account = input->account;
	TRY(array_resize(&ret->numbers, used->count + input->roots.count));
	TRY(memory_resize(&ret->vertices, (count + 1) * sizeof(struct level_vertex)));
	mark_not_used(&search, NOT_USED);
	TRY(number_all(&search, ret_found));
	if (*ret_found)
		TRY(add_tree_edges(&search));
	*ret_found = *ret_found && find_dominators(&search);
	mark_not_used(&search, NONE);
	return NULL;
}
