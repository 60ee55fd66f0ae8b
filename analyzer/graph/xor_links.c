#include "analyzer/graph/xor_links.h"

#include "analyzer/base/budget.h"
#include "analyzer/base/parallel.h"
#include "analyzer/graph/graph_parts.h"
#include "analyzer/heap/work_chunks.h"
#include "analyzer/image/view.h"

enum {
	WORD = 8,
	MOST_LINKS = 16,    /* words of a node that may be the link */
	MOST_REFERRERS = 4, /* that may be the node before */
	LEAST_LINKS = 2,    /* of a list */
};

struct xor_finder {
	const struct disguises_input *input;
	const struct address_filter *filter;
	const struct graph *incoming; /* NULL until it is needed */
	struct error *(*found)(void *data, uint64_t place, allocation_id target);
	void *data;
	struct view view;
	size_t hint;
	bool has_pair;
	struct budget budget; /* of links */
};

/* Two neighbours in a list, and the offset of their links. */
struct pair {
	uint64_t before, node, offset;
};

static bool are_alike(uint64_t size, uint64_t other)
{
	return size - other + XOR_SIZE_STEP <= 2 * XOR_SIZE_STEP;
}

/* The node behind the pair, NO_ALLOCATION if there is none. */
static allocation_id find_next(struct xor_finder *finder, const struct pair *pair, uint64_t size)
{
	const struct allocation_index *index = finder->input->index;
	allocation_id id;
	uint64_t link;

	/* Of 0, the nodes before and behind would be the same. */
	if (!view_word(&finder->view, pair->node + pair->offset, &link) || link == 0)
		return NO_ALLOCATION;
	id = allocation_find(index, link ^ pair->before);
	if (id == NO_ALLOCATION || !bitmap_get(allocation_used(index), id) ||
	    allocation_start(index, id) != (link ^ pair->before) ||
	    !are_alike(allocation_size(index, id), size))
		return NO_ALLOCATION;
	return id;
}

static bool is_end(struct xor_finder *finder, const struct pair *pair)
{
	uint64_t link;

	return view_word(&finder->view, pair->node + pair->offset, &link) && link == pair->before;
}

static void advance(const struct xor_finder *finder, struct pair *pair, allocation_id next)
{
	pair->before = pair->node;
	pair->node = allocation_start(finder->input->index, next);
}

/*
 * Whether the list goes on from the pair up to an end. Each pair has but one before it, so who goes
 * in a circle comes by where it began.
 */
static bool is_list(struct xor_finder *finder, struct pair pair, uint64_t size)
{
	const struct pair first = pair;

	for (size_t links = 0; budget_take(&finder->budget); links++) {
		allocation_id next;

		if (is_end(finder, &pair))
			return links >= LEAST_LINKS;
		next = find_next(finder, &pair, size);
		if (next == NO_ALLOCATION)
			return false;
		advance(finder, &pair, next);
		if (pair.before == first.before && pair.node == first.node)
			return false;
	}
	return false;
}

static struct error *keep_list(struct xor_finder *finder, struct pair pair, uint64_t size)
{
	while (!is_end(finder, &pair)) {
		allocation_id next = find_next(finder, &pair, size);

		if (next == NO_ALLOCATION)
			return NULL;
		if (bitmap_get(finder->input->wanted, next))
			TRY(finder->found(finder->data, pair.node + pair.offset, next));
		advance(finder, &pair, next);
	}
	return NULL;
}

/* The first node's link is the address of the second. */
static bool is_first(struct xor_finder *finder, const struct pair *pair)
{
	uint64_t link;

	return view_word(&finder->view, pair->before + pair->offset, &link) && link == pair->node;
}

/* Whether the pair begins a list, and its link is that to a wanted one. */
static bool is_wanted(struct xor_finder *finder, const struct pair *pair, uint64_t link,
		      uint64_t size)
{
	allocation_id next;

	if (!address_filter_may_have(finder->filter, link ^ pair->before) ||
	    !is_first(finder, pair))
		return false;
	next = find_next(finder, pair, size);
	return next != NO_ALLOCATION && bitmap_get(finder->input->wanted, next);
}

/* The node in use, and the one before, which refers to it. */
typedef struct error *(*pair_visitor)(struct xor_finder *finder, struct pair pair, uint64_t size);

/* Show each pair whose link is that to a wanted one. */
static struct error *visit_behind(struct xor_finder *finder, uint64_t before,
				  struct memory_range node, pair_visitor visit)
{
	struct pair pair = { before, node.start, 0 };
	uint64_t size = node.end - node.start, link;

	for (size_t i = 0; i < MOST_LINKS; i++, pair.offset += WORD) {
		if (pair.offset + WORD > size)
			break;
		if (view_word(&finder->view, node.start + pair.offset, &link) &&
		    is_wanted(finder, &pair, link, size))
			TRY(visit(finder, pair, size));
	}
	return NULL;
}

static struct error *visit_pairs(struct xor_finder *finder, allocation_id id, pair_visitor visit)
{
	const struct disguises_input *input = finder->input;
	struct edges referrers = graph_outgoing(finder->incoming, id);
	struct memory_range node = allocation_range_near(input->index, id, &finder->hint);

	for (size_t i = 0; i < referrers.count && i < MOST_REFERRERS; i++) {
		allocation_id before = referrers.targets[i];
		struct memory_range range;

		if (!bitmap_get(input->in_use, before))
			continue;
		range = allocation_range_near(input->index, before, &finder->hint);
		if (are_alike(range.end - range.start, node.end - node.start))
			TRY(visit_behind(finder, range.start, node, visit));
	}
	return NULL;
}

static struct error *follow_pair(struct xor_finder *finder, struct pair pair, uint64_t size)
{
	return is_list(finder, pair, size) ? keep_list(finder, pair, size) : NULL;
}

/* Whether a list may begin here: most end after a link or two. */
static struct error *note_pair(struct xor_finder *finder, struct pair pair, uint64_t size)
{
	enum { FEW = 8 };
	struct xor_finder trial = *finder;

	trial.budget.left = FEW + 1;
	if (is_list(&trial, pair, size) || budget_is_spent(&trial.budget))
		finder->has_pair = true;
	return NULL;
}

/* Only nodes of about the size of a wanted one can be before it. */
static void note_sizes(struct xor_nodes *nodes, const struct disguises_input *input)
{
	size_t hint = 0;

	bitmap_for_each(id, input->wanted) {
		struct memory_range range =
			allocation_range_near(input->index, (allocation_id)id, &hint);
		uint64_t size = range.end - range.start;
		size_t class = size / XOR_SIZE_STEP;

		if (size >= XOR_MOST_SIZE)
			continue;
		nodes->sizes[class] = nodes->sizes[class + 1] = true;
		if (class > 0)
			nodes->sizes[class - 1] = true;
	}
}

enum { MOST_UPPERS = 64 };

/* The upper bits of all blocks; more than there is room for: not known. */
static size_t find_uppers(const struct allocation_index *index, uint64_t *ret)
{
	size_t count = 0;

	for (size_t i = 0; i < heap_region_count(index); i++) {
		const struct heap_region *region = heap_region(index, i);
		uint64_t upper = region->start >> XOR_UPPER;

		if (count > 0 && upper <= ret[count - 1])
			upper = ret[count - 1] + 1;
		for (; upper <= region->end >> XOR_UPPER; upper++) {
			if (count == MOST_UPPERS)
				return MOST_UPPERS + 1;
			ret[count++] = upper;
		}
	}
	return count;
}

/* The XOR of two addresses has but few values in its upper bits. */
static void note_uppers(struct xor_nodes *nodes, const struct allocation_index *index)
{
	enum { MOST = 1 << 16 };
	uint64_t uppers[MOST_UPPERS];
	size_t count = find_uppers(index, uppers);

	if (count > MOST_UPPERS) {
		memset(nodes->uppers, 0xff, sizeof(nodes->uppers));
		return;
	}
	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j < count; j++) {
			uint64_t upper = (uppers[i] ^ uppers[j]) % MOST;

			nodes->uppers[upper / 64] |= UINT64_C(1) << upper % 64;
		}
}

/* All starts of a region have the same lowest bits. */
static void note_lowest(struct xor_nodes *nodes, const struct allocation_index *index)
{
	nodes->no_bits = (1 << USUAL_SHIFT) - 1;
	for (size_t i = 0; i < heap_region_count(index); i++) {
		const struct heap_region *region = heap_region(index, i);

		nodes->no_bits &= (1U << region->shift) - 1;
		nodes->no_bits &= ~(region->start ^ heap_region(index, 0)->start);
	}
}

void xor_nodes_init(struct xor_nodes *nodes, const struct disguises_input *input)
{
	*nodes = (struct xor_nodes){ .sizes = { false } };
	note_sizes(nodes, input);
	note_uppers(nodes, input->index);
	note_lowest(nodes, input->index);
}

/* Whether the word may be the XOR of two addresses; it cannot be foretold: so there is no branch.
 */
static inline uint64_t may_be_link(const struct xor_nodes *nodes, uint64_t word)
{
	const uint64_t NO_ADDRESS = UINT64_MAX << (XOR_UPPER + 16);
	uint64_t upper = word >> XOR_UPPER & UINT16_MAX;

	return (nodes->uppers[upper / 64] >> upper % 64) & (word != 0) &
	       ((word & (nodes->no_bits | NO_ADDRESS)) == 0);
}

bool xor_nodes_may_be(const struct xor_nodes *nodes, const uint8_t *bytes, uint64_t size)
{
	uint64_t found = 0;

	if (size >= XOR_MOST_SIZE || !nodes->sizes[size / XOR_SIZE_STEP])
		return false;
	for (size_t i = 0; i < MOST_LINKS && WORD * (i + 1) <= size; i++) {
		uint64_t word;

		memcpy(&word, bytes + WORD * i, sizeof(word));
		found |= may_be_link(nodes, word);
	}
	return found & 1;
}

/* Both are alike to the first node of the list. */
enum { MOST_DIFFERENCE = 2 };

/* Whether a used allocation of about that size begins at the address. */
static bool is_node(const struct allocation_index *index, uint64_t address, uint64_t size)
{
	allocation_id id = allocation_find(index, address);
	uint64_t steps = MOST_DIFFERENCE * XOR_SIZE_STEP;

	return id != NO_ALLOCATION && allocation_start(index, id) == address &&
	       bitmap_get(allocation_used(index), id) &&
	       allocation_size(index, id) - size + steps <= 2 * steps;
}

static struct error *add_suspect(struct xor_suspects *suspects, const struct xor_suspect *suspect)
{
	size_t size = suspect->size / XOR_SIZE_STEP;

	for (size_t i = size < MOST_DIFFERENCE ? 0 : size - MOST_DIFFERENCE;
	     i <= size + MOST_DIFFERENCE && i < sizeof(suspects->offsets) / sizeof(uint16_t); i++)
		suspects->offsets[i] |= (uint16_t)(1U << suspect->offset / WORD);
	return array_append(&suspects->list, *suspect);
}

/* A link is that of a node with another behind it, or the address of the node before the last. */
static struct error *add_suspects_of(struct xor_suspects *suspects, struct memory_range range)
{
	struct view view = { suspects->input->image };
	struct xor_suspect suspect = { .start = range.start, .size = range.end - range.start };

	for (size_t i = 0; i < MOST_LINKS; i++) {
		suspect.offset = WORD * i;
		if (suspect.offset + WORD > suspect.size)
			break;
		if (view_word(&view, range.start + suspect.offset, &suspect.link) &&
		    (may_be_link(&suspects->links, suspect.link) ||
		     is_node(suspects->input->index, suspect.link, suspect.size)))
			TRY(add_suspect(suspects, &suspect));
	}
	return NULL;
}

struct error *xor_suspects_init(struct xor_suspects *suspects, const struct disguises_input *input)
{
	size_t hint = 0;

	*suspects = (struct xor_suspects){ .input = input, .list.memory.account = input->account };
	xor_nodes_init(&suspects->links, input);
	bitmap_for_each(id, input->wanted) {
		TRY(add_suspects_of(suspects,
				    allocation_range_near(input->index, (allocation_id)id, &hint)));
	}
	return NULL;
}

void xor_suspects_deinit(struct xor_suspects *suspects)
{
	array_release(&suspects->list);
}

/*
 * Whether the node, whose link that is, has another before it, and the suspect others behind it, up
 * to an end, or some of them.
 */
static bool may_lead_on(const struct xor_suspects *suspects, struct view *view, uint64_t node,
			uint64_t link, const struct xor_suspect *suspect)
{
	enum { FEW = 8 };
	const struct allocation_index *index = suspects->input->index;
	uint64_t before = node, at = suspect->start, behind = suspect->link;

	if (!is_node(index, link ^ at, suspect->size))
		return false;
	for (size_t i = 0; i < FEW && behind != before; i++) {
		uint64_t next = behind ^ before;

		if (behind == 0 || !is_node(index, next, suspect->size) ||
		    !view_word(view, next + suspect->offset, &behind))
			return false;
		before = at;
		at = next;
	}
	return true;
}

bool xor_suspects_may_follow(const struct xor_suspects *suspects, struct view *view,
			     struct memory_range node)
{
	size_t size = (node.end - node.start) / XOR_SIZE_STEP;
	unsigned int offsets =
		size < sizeof(suspects->offsets) / sizeof(uint16_t) ? suspects->offsets[size] : 0;

	for (; offsets; offsets &= offsets - 1) {
		size_t offset = WORD * (size_t)__builtin_ctz(offsets);
		uint64_t link;

		if (!view_word(view, node.start + offset, &link) ||
		    !may_be_link(&suspects->links, link))
			continue;
		for (size_t i = 0; i < suspects->list.count; i++)
			if (suspects->list.items[i].offset == offset &&
			    may_lead_on(suspects, view, node.start, link, &suspects->list.items[i]))
				return true;
	}
	return false;
}

/* Drop nodes with no link to a wanted one: it takes no incoming references to find these. */
struct sifting {
	struct xor_finder finder;
	const struct bitmap *nodes;
	struct bitmap *kept;
};

/* Whether a list may lead from the one before to the node. */
static bool may_lead(struct xor_finder *finder, allocation_id before, allocation_id id)
{
	const struct allocation_index *index = finder->input->index;
	struct memory_range node = allocation_range_near(index, id, &finder->hint);
	struct memory_range range = allocation_range_near(index, before, &finder->hint);

	finder->has_pair = false;
	if (are_alike(range.end - range.start, node.end - node.start))
		visit_behind(finder, range.start, node, note_pair);
	return finder->has_pair;
}

static struct error *sift_share(void *data, size_t share, unsigned int thread)
{
	enum { MOST_ROW = XOR_MOST_SIZE / WORD + 2 };
	struct sifting *sifting = data;
	struct xor_finder finder = sifting->finder;
	const struct disguises_input *input = finder.input;
	size_t begin = share << SHARE_BITS, end = begin + SHARE;

	for (size_t id = begin; id < end && id < input->in_use->count; id++) {
		struct edges row = graph_row(input->graph, (allocation_id)id);

		/* A larger one is no node. */
		for (size_t i = 0; i < row.count && row.count <= MOST_ROW; i++) {
			allocation_id next = row.targets[i];

			if (bitmap_get(sifting->nodes, next) && bitmap_get(input->in_use, id) &&
			    may_lead(&finder, (allocation_id)id, next))
				bitmap_set_atomic(sifting->kept, next);
		}
	}
	return progress_check(input->progress, SHARE);
}

static struct error *sift(const struct xor_finder *finder, struct bitmap *nodes)
{
	_cleanup_(bitmap_deinit) struct bitmap kept = { 0 };
	struct sifting sifting = { *finder, nodes, &kept };

	TRY(bitmap_init(&kept, nodes->count, finder->input->account));
	TRY(parallel_for((nodes->count + SHARE - 1) >> SHARE_BITS,
			 parallel_threads_for(finder->input->progress), sift_share, &sifting));
	bitmap_and(nodes, &kept);
	return NULL;
}

static struct error *follow_all(struct xor_finder *finder, const struct bitmap *nodes)
{
	uint64_t told = 0;

	bitmap_for_each(id, nodes) {
		TRY(progress_check_at(finder->input->progress, id, &told));
		TRY(visit_pairs(finder, (allocation_id)id, follow_pair));
	}
	return NULL;
}

struct error *xor_links_find(const struct disguises_input *input, struct bitmap *nodes,
			     const struct address_filter *filter,
			     struct error *(*found)(void *data, uint64_t place,
						    allocation_id target),
			     void *data)
{
	enum { FOLLOWED = 4 /* links for each allocation, on average */ };
	struct xor_finder finder = {
		.input = input,
		.filter = filter,
		.incoming = input->incoming,
		.found = found,
		.data = data,
		.view = { input->image },
		.budget = { FOLLOWED * (uint64_t)input->in_use->count },
	};
	_cleanup_(graph_destroy) struct graph *turned = NULL;

	TRY(sift(&finder, nodes));
	if (bitmap_weight(nodes) == 0)
		return NULL;
	if (!finder.incoming) {
		TRY(graph_transpose_to(input->graph, allocation_used(input->index), nodes,
				       input->account, input->progress, &turned));
		finder.incoming = turned;
	}
	return follow_all(&finder, nodes);
}
