#include "analyzer/classify/hierarchy.h"

#include "analyzer/base/budget.h"
#include "analyzer/base/keep.h"
#include "analyzer/base/list.h"
#include "analyzer/base/sort.h"
#include "analyzer/classify/label.h"

enum {
	SAMPLES = 1024,
	LEAST_LINKS = 8, /* samples that have a link */
	PAIRS = 2,
	STEPS = 1 << 16, /* of walks, beside those for each allocation */
};

/* Links that lead from one to another and back. */
enum direction { UP, DOWN };

struct pair {
	size_t words[2]; /* by direction */
};

/* An allocation with links, or a part of one. */
struct piece {
	uint64_t address, parent; /* 0: it is above all */
};

DEFINE_COMPARE(compare_pieces, struct piece, ASCENDING(address))
DEFINE_COMPARE(compare_links, struct nesting_link, ASCENDING(parent), ASCENDING(child))

/* A labelled allocation, and which of its words each word leads to and back by, as bits. */
struct sample {
	uint64_t words[EARLY_WORDS];
	uint8_t back[EARLY_WORDS];
};

struct search {
	const struct allocation_index *index;
	const struct bitmap *anchored;
	struct hierarchy *hierarchy;
	struct view view;
	uint64_t width; /* of a word */
	ARRAY(struct sample) samples;
	struct pair pairs[PAIRS];
	size_t votes[PAIRS]; /* allocations above all that have a link down by that pair alone */
	struct pair child, sibling;
	ARRAY(struct piece) pieces;
	ARRAY(allocation_id) open;
	struct budget steps;
};

static uint64_t read_word(struct search *search, uint64_t address, size_t word)
{
	uint64_t found;

	return view_word(&search->view, address + word * search->width, &found) ? found : 0;
}

/* The used allocation that holds the address, or NO_ALLOCATION. */
static allocation_id find_used(const struct search *search, uint64_t address)
{
	allocation_id id = allocation_find(search->index, address);

	return id != NO_ALLOCATION && bitmap_get(allocation_used(search->index), id)
		       ? id
		       : NO_ALLOCATION;
}

static struct error *add_sample(struct search *search, allocation_id id, size_t label)
{
	uint64_t start = allocation_start(search->index, id);
	struct sample sample = { 0 };
	struct memory_range range = { start, start + allocation_size(search->index, id) };
	size_t count = early_words_read(&search->view, range, sample.words);
	_cleanup_(free) char *text =
		label < count ? label_text(search->view.image, sample.words[label]) : NULL;

	for (size_t i = 0; text && i < count; i++) {
		if (find_used(search, sample.words[i]) == NO_ALLOCATION)
			continue;
		for (size_t j = 0; j < count; j++)
			if (read_word(search, sample.words[i], j) == start)
				sample.back[i] |= (uint8_t)(1 << j);
	}
	return text ? array_append(&search->samples, sample) : NULL;
}

static struct error *add_samples(struct search *search, size_t label)
{
	size_t count = allocation_count(search->index);

	for (size_t i = 0; i < MIN(count, SAMPLES); i++) {
		allocation_id id = (allocation_id)(i * count / MIN(count, SAMPLES));

		if (bitmap_get(allocation_used(search->index), id))
			TRY(add_sample(search, id, label));
	}
	return NULL;
}

/* True if one of the words, wherever it is not 0, leads to where the other one leads back. */
static bool leads_back(const struct search *search, size_t word, size_t other)
{
	size_t links = 0;

	array_for_each(sample, &search->samples) {
		if (sample->words[word] && !(sample->back[word] >> other & 1))
			return false;
		links += sample->words[word] != 0;
	}
	return links >= LEAST_LINKS;
}

static bool find_pairs(struct search *search)
{
	size_t count = 0;

	for (size_t i = 0; i < EARLY_WORDS; i++)
		for (size_t j = i + 1; j < EARLY_WORDS; j++)
			if (leads_back(search, i, j) && leads_back(search, j, i)) {
				if (count == PAIRS)
					return false;
				search->pairs[count++] = (struct pair){ { i, j } };
			}
	return count == PAIRS;
}

/* True if no sample has both words. */
static bool exclude_each_other(const struct search *search, size_t word, size_t other)
{
	array_for_each(sample, &search->samples)
		if (sample->words[word] && sample->words[other])
			return false;
	return true;
}

/* Tell which words of both pairs lead upwards: no allocation has both. */
static bool find_directions(struct search *search)
{
	const struct pair first = search->pairs[0], second = search->pairs[1];
	size_t found = 0;

	for (size_t i = 0; i < 2; i++)
		for (size_t j = 0; j < 2; j++) {
			if (!exclude_each_other(search, first.words[i], second.words[j]))
				continue;
			search->pairs[0] = (struct pair){ { first.words[i], first.words[!i] } };
			search->pairs[1] = (struct pair){ { second.words[j], second.words[!j] } };
			found++;
		}
	return found == 1;
}

/* True if nothing is above what is at the address. */
static bool is_above_all(struct search *search, uint64_t address)
{
	return !read_word(search, address, search->pairs[0].words[UP]) &&
	       !read_word(search, address, search->pairs[1].words[UP]);
}

/* Add what is above all. */
static struct error *add_top(struct search *search, allocation_id id)
{
	uint64_t start = allocation_start(search->index, id);
	uint64_t down[PAIRS];
	bool is_top = false;

	if (!is_above_all(search, start))
		return NULL;
	for (size_t i = 0; i < PAIRS; i++)
		down[i] = read_word(search, start, search->pairs[i].words[DOWN]);
	for (size_t i = 0; i < PAIRS; i++)
		if (down[i] && !down[!i] &&
		    read_word(search, down[i], search->pairs[i].words[UP]) == start) {
			search->votes[i]++;
			is_top = true;
		}
	return is_top ? array_append(&search->pieces, (struct piece){ start, 0 }) : NULL;
}

static struct error *find_tops(struct search *search)
{
	bitmap_for_each(id, search->anchored)
		if (allocation_size(search->index, (allocation_id)id) >= EARLY_BYTES)
			TRY(add_top(search, (allocation_id)id));
	return NULL;
}

static struct error *add_children(struct search *search, uint64_t address)
{
	uint64_t child = read_word(search, address, search->child.words[DOWN]), before = address;
	size_t up = search->child.words[UP];

	while (child && budget_take(&search->steps) && read_word(search, child, up) == before) {
		TRY(array_append(&search->pieces, (struct piece){ child, address }));
		before = child;
		up = search->sibling.words[UP];
		child = read_word(search, child, search->sibling.words[DOWN]);
	}
	return NULL;
}

static struct error *find_pieces(struct search *search)
{
	size_t child = search->votes[1] > search->votes[0];

	search->child = search->pairs[child];
	search->sibling = search->pairs[!child];
	for (size_t i = 0; i < search->pieces.count; i++)
		TRY(add_children(search, search->pieces.items[i].address));
	array_sort(&search->pieces, compare_pieces);
	return NULL;
}

/* An allocation belongs to what has the first piece in it. */
static struct error *link_allocations(struct search *search)
{
	allocation_id last = NO_ALLOCATION;

	array_for_each(piece, &search->pieces) {
		struct nesting_link link = { find_used(search, piece->parent),
					     find_used(search, piece->address) };

		if (link.child == last || link.child == NO_ALLOCATION ||
		    !bitmap_get(search->anchored, link.child))
			continue;
		last = link.child;
		if (link.parent != link.child && link.parent != NO_ALLOCATION &&
		    bitmap_get(search->anchored, link.parent))
			TRY(array_append(&search->hierarchy->links, link));
	}
	array_sort(&search->hierarchy->links, compare_links);
	return NULL;
}

/* Visit what belongs to the allocation. */
static struct error *reach(struct search *search, allocation_id parent)
{
	struct hierarchy *hierarchy = search->hierarchy;
	const struct nesting_link *links = hierarchy->links.items;
	size_t end = LIST_ABOVE(links, hierarchy->links.count, parent, parent), i = end;

	for (; i > 0 && links[i - 1].parent == parent; i--) {
		bitmap_set(&hierarchy->nested, links[i - 1].child);
		TRY(array_append(&search->open, links[i - 1].child));
	}
	hierarchy->most_children = MAX(hierarchy->most_children, end - i);
	return NULL;
}

/* Leave out what is not below anything that is above all: cycles. */
static struct error *keep_reached(struct search *search)
{
	struct hierarchy *hierarchy = search->hierarchy;

	array_for_each(piece, &search->pieces)
		if (!piece->parent)
			TRY(reach(search, find_used(search, piece->address)));
	while (search->open.count > 0)
		TRY(reach(search, search->open.items[--search->open.count]));
	array_keep(&hierarchy->links, link, last, bitmap_get(&hierarchy->nested, link->child));
	return NULL;
}

static struct error *find_links(struct search *search)
{
	TRY(bitmap_init(&search->hierarchy->nested, search->anchored->count,
			search->pieces.memory.account));
	TRY(find_tops(search));
	TRY(find_pieces(search));
	TRY(link_allocations(search));
	return keep_reached(search);
}

struct error *hierarchy_find(const struct image *image, const struct program *program,
			     const struct allocation_index *index, const struct bitmap *anchored,
			     struct memory_account *account, struct hierarchy *ret)
{
	const struct module_bounds bounds = module_bounds_find(program);
	struct search search = {
		.index = index,
		.anchored = anchored,
		.hierarchy = ret,
		.view = { image },
		.width = image_word_size(image),
		.steps = { STEPS + allocation_count(index) },
	};
	struct error *error;
	size_t label;

	TRY(label_word_find(image, index, &bounds, &label));
	arrays_use(account, &ret->links, &search.samples, &search.pieces, &search.open);
	error = label < EARLY_WORDS ? add_samples(&search, label) : NULL;
	if (!error && find_pairs(&search) && find_directions(&search))
		error = find_links(&search);
	arrays_release(&search.samples, &search.pieces, &search.open);
	return error;
}

void hierarchy_deinit(struct hierarchy *hierarchy)
{
	array_release(&hierarchy->links);
	bitmap_deinit(&hierarchy->nested);
}

/* Working storage of hierarchy_graph(). */
struct rewriting {
	const struct hierarchy *hierarchy;
	size_t next; /* link */
};

static size_t rewrite_row(void *data, allocation_id source, allocation_id *targets, size_t count)
{
	struct rewriting *rewriting = data;
	const struct hierarchy *hierarchy = rewriting->hierarchy;
	const struct nesting_link *links = hierarchy->links.items;
	size_t left = 0;

	for (size_t i = 0; i < count; i++)
		if (!bitmap_get(&hierarchy->nested, targets[i]))
			targets[left++] = targets[i];
	while (rewriting->next < hierarchy->links.count && links[rewriting->next].parent < source)
		rewriting->next++;
	for (; rewriting->next < hierarchy->links.count && links[rewriting->next].parent == source;
	     rewriting->next++)
		targets[left++] = links[rewriting->next].child;
	return left;
}

struct error *hierarchy_graph(const struct hierarchy *hierarchy, const struct graph *graph,
			      struct memory_account *account, struct progress *progress,
			      struct graph **ret)
{
	struct rewriting rewriting = { hierarchy, 0 };

	return graph_narrow(graph, hierarchy->most_children, rewrite_row, &rewriting, account,
			    progress, ret);
}
