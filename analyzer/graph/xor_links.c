#include "analyzer/graph/xor_links.h"

#include "analyzer/image/view.h"

enum {
	MOST_SIZE = 1 << 12, /* of a node */
	MOST_LINKS = 16,     /* words of a node that may be the link */
	MOST_REFERRERS = 4,  /* that may be the node before */
	SIZE_STEP = 16,	     /* malloc may give as much more than to others */
};

struct xor_finder {
	const struct disguises_input *input;
	struct error *(*found)(void *data, uint64_t place,
			       allocation_id target);
	void *data;
	struct view view;
	uint64_t patience; /* links that may be followed yet */
	bool sizes[MOST_SIZE / SIZE_STEP + 1]; /* of wanted ones */
};

/* Two neighbours in a list, and the offset of their links. */
struct pair {
	uint64_t before, node, offset;
};

static uint64_t size_of(const struct xor_finder *finder, allocation_id id)
{
	return allocation_size(finder->input->index, id);
}

static bool are_alike(uint64_t size, uint64_t other)
{
	return size - other + SIZE_STEP <= 2 * SIZE_STEP;
}

/* The node behind the pair, NO_ALLOCATION if there is none. */
static allocation_id find_next(struct xor_finder *finder,
			       const struct pair *pair, uint64_t size)
{
	const struct allocation_index *index = finder->input->index;
	allocation_id id;
	uint64_t link;

	if (!view_word(&finder->view, pair->node + pair->offset, &link))
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

	return view_word(&finder->view, pair->node + pair->offset, &link) &&
	       link == pair->before;
}

static void advance(const struct xor_finder *finder, struct pair *pair,
		    allocation_id next)
{
	pair->before = pair->node;
	pair->node = allocation_start(finder->input->index, next);
}

/* Whether the list goes on from the pair up to an end. */
static bool is_list(struct xor_finder *finder, struct pair pair, uint64_t size)
{
	while (finder->patience > 0) {
		allocation_id next;

		if (is_end(finder, &pair))
			return true;
		next = find_next(finder, &pair, size);
		if (next == NO_ALLOCATION)
			return false;
		advance(finder, &pair, next);
		finder->patience--;
	}
	return false;
}

static struct error *keep_list(struct xor_finder *finder, struct pair pair,
			       uint64_t size)
{
	struct error *error = NULL;

	while (!error && !is_end(finder, &pair)) {
		allocation_id next = find_next(finder, &pair, size);

		if (next == NO_ALLOCATION)
			return NULL;
		if (bitmap_get(finder->input->wanted, next))
			error = finder->found(finder->data,
					      pair.node + pair.offset, next);
		advance(finder, &pair, next);
	}
	return error;
}

/* The node is in use, and so is the one before, which refers to it. */
static struct error *look_behind(struct xor_finder *finder, uint64_t before,
				 uint64_t node, uint64_t size)
{
	struct pair pair = { before, node, 0 };
	struct error *error = NULL;

	for (size_t i = 0; i < MOST_LINKS && !error; i++, pair.offset += 8) {
		allocation_id next;

		if (pair.offset + 8 > size)
			break;
		next = find_next(finder, &pair, size);
		if (next != NO_ALLOCATION &&
		    bitmap_get(finder->input->wanted, next) &&
		    is_list(finder, pair, size))
			error = keep_list(finder, pair, size);
	}
	return error;
}

static struct error *look_at(struct xor_finder *finder, allocation_id id)
{
	const struct disguises_input *input = finder->input;
	uint64_t size = size_of(finder, id);
	struct edges referrers;
	struct error *error = NULL;

	if (size >= MOST_SIZE || !finder->sizes[size / SIZE_STEP])
		return NULL;
	referrers = graph_outgoing(input->incoming, id);
	for (size_t i = 0; i < referrers.count && i < MOST_REFERRERS && !error;
	     i++) {
		allocation_id before = referrers.targets[i];

		if (bitmap_get(input->in_use, before) &&
		    are_alike(size_of(finder, before), size))
			error = look_behind(
				finder, allocation_start(input->index, before),
				allocation_start(input->index, id), size);
	}
	return error;
}

/* Only nodes of about the size of a wanted one can be before it. */
static void note_sizes(struct xor_finder *finder)
{
	bitmap_for_each(id, finder->input->wanted) {
		uint64_t size = size_of(finder, (allocation_id)id);
		size_t class = size / SIZE_STEP;

		if (size >= MOST_SIZE)
			continue;
		finder->sizes[class] = finder->sizes[class + 1] = true;
		if (class > 0)
			finder->sizes[class - 1] = true;
	}
}

struct error *xor_links_find(const struct disguises_input *input,
			     struct error *(*found)(void *data, uint64_t place,
						    allocation_id target),
			     void *data)
{
	enum { FOLLOWED = 4 /* links for each allocation, on average */ };
	struct xor_finder finder = {
		.input = input,
		.found = found,
		.data = data,
		.view = { input->image },
		.patience = FOLLOWED * (uint64_t)input->in_use->count,
	};
	uint64_t told = 0;
	struct error *error = NULL;

	note_sizes(&finder);
	bitmap_for_each(id, input->in_use) {
		if (!error && !progress_pass(input->progress, id, &told))
			error = error_create(ERROR_INTERRUPTED, "interrupted");
		if (!error)
			error = look_at(&finder, (allocation_id)id);
		if (error)
			return error;
	}
	return NULL;
}
