#include "analyzer/owners/frames.h"

#include "analyzer/base/text.h"

#include <string.h>

struct maker {
	const struct owners *owners;
	enum owner_measure measure;
	size_t most;
	ARRAY(uint64_t) sizes;	  /* of all nodes that have any, the largest first */
	ARRAY(uint32_t) children; /* nodes that are kept, those of a parent together */
	ARRAY(uint32_t) first;	  /* by node, of its children, and behind all of them */
	ARRAY(uint32_t) kept; /* by node: from 1 on, the number of the frame that it gets; or 0 */
	ARRAY(struct owner_frame) others; /* by that number: what is left out below it */
	struct frames *frames;
};

static void maker_deinit(struct maker *maker)
{
	arrays_release(&maker->sizes, &maker->children, &maker->first, &maker->others,
		       &maker->kept);
}
DEFINE_DEINIT(maker_deinit, struct maker)

void frames_deinit(struct frames *frames)
{
	arrays_release(&frames->list, &frames->of_node);
}

const char *frame_kind(const struct frames *frames, size_t number,
		       char buffer[static FRAME_TEXT_SIZE])
{
	const struct owner_frame *frame = &frames->list.items[number];
	char digits[NUMBER_SIZE];

	if (!frame->others)
		return owner_text(&frames->owners->names,
				  frames->owners->nodes.items[frame->node].name);
	snprintf(buffer, FRAME_TEXT_SIZE, "(%s more)", grouped(frame->others, digits));
	return buffer;
}

const char *frame_text(const struct frames *frames, size_t number,
		       char buffer[static FRAME_TEXT_SIZE])
{
	enum { PATH_SIZE = FRAME_TEXT_SIZE / 2 };
	const struct owner_frame *frame = &frames->list.items[number];
	const struct owner_node *node = &frames->owners->nodes.items[frame->node];
	const struct analysis *analysis = frames->owners->names.analysis;
	const char *kind = frame_kind(frames, number, buffer);
	char path[PATH_SIZE];

	if (frame->others || !node->is_one || node->example == NO_ALLOCATION ||
	    strlen(kind) > FRAME_TEXT_SIZE - PATH_SIZE - sizeof("()") ||
	    !object_paths_tell(analysis_object_paths(analysis), node->example, false, path,
			       sizeof(path)))
		return kind;
	snprintf(buffer, FRAME_TEXT_SIZE, "%s (%s)", kind, path);
	return buffer;
}

static uint64_t size_of(const struct maker *maker, size_t node)
{
	return maker->owners->nodes.items[node].total[maker->measure].bytes;
}

/* Free of bytes, yet there: allocations of size 0. */
static bool is_there(const struct maker *maker, size_t node)
{
	return maker->owners->nodes.items[node].total[maker->measure].count > 0;
}

static int compare_sizes(const void *a, const void *b)
{
	const uint64_t *left = a, *right = b;

	return *left > *right ? -1 : *left < *right;
}

static void add_amounts(struct owner_amount *ret, const struct owner_amount *amounts)
{
	for (enum owner_measure measure = 0; measure < MEASURES; measure++) {
		ret[measure].count += amounts[measure].count;
		ret[measure].bytes += amounts[measure].bytes;
	}
}

static void subtract_amounts(struct owner_amount *ret, const struct owner_amount *amounts)
{
	for (enum owner_measure measure = 0; measure < MEASURES; measure++) {
		ret[measure].count -= amounts[measure].count;
		ret[measure].bytes -= amounts[measure].bytes;
	}
}

static struct owner_frame *others_of(const struct maker *maker, size_t node)
{
	return &maker->others.items[maker->kept.items[node]];
}

/* No node is smaller than one below it, and none comes behind one. So a kept one's parent is. */
static struct error *choose(struct maker *maker)
{
	const struct owner_node *nodes = maker->owners->nodes.items;
	size_t count = maker->owners->nodes.count, equal = 0;
	uint64_t least = 0;

	TRY(array_resize(&maker->kept, count));
	TRY(array_resize(&maker->others, 1));
	for (size_t i = 0; i < count; i++)
		if (is_there(maker, i))
			TRY(array_append(&maker->sizes, size_of(maker, i)));
	if (maker->sizes.count > maker->most) {
		array_sort(&maker->sizes, compare_sizes);
		least = maker->sizes.items[maker->most - 1];
		for (size_t i = 0; i < maker->most; i++)
			equal += maker->sizes.items[i] == least;
	} else {
		equal = count;
	}
	for (size_t i = 0; i < count; i++) {
		bool keep = i == 0 || (is_there(maker, i) && maker->kept.items[nodes[i].parent] &&
				       (size_of(maker, i) > least ||
					(size_of(maker, i) == least && equal > 0 && equal--)));
		struct owner_frame *others;

		if (keep) {
			maker->kept.items[i] = (uint32_t)maker->others.count;
			TRY(array_append(&maker->others, (struct owner_frame){ 0 }));
		}
		if (keep || !is_there(maker, i) || !maker->kept.items[nodes[i].parent])
			continue;
		others = others_of(maker, nodes[i].parent);
		others->others++;
		add_amounts(others->own, nodes[i].total);
		add_amounts(others->total, nodes[i].total);
	}
	array_release(&maker->sizes);
	return NULL;
}

/* Sort by parent, the largest first, then by name. */
static int compare_children(const void *a, const void *b, void *data)
{
	const struct maker *maker = data;
	uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
	const struct owner_node *node = &maker->owners->nodes.items[left];
	const struct owner_node *other = &maker->owners->nodes.items[right];

	if (node->parent != other->parent)
		return node->parent < other->parent ? -1 : 1;
	if (size_of(maker, left) != size_of(maker, right))
		return size_of(maker, left) > size_of(maker, right) ? -1 : 1;
	return strcmp(owner_text(&maker->owners->names, node->name),
		      owner_text(&maker->owners->names, other->name));
}

static struct error *sort_children(struct maker *maker)
{
	const struct owner_node *nodes = maker->owners->nodes.items;
	size_t count = maker->owners->nodes.count, next = 0;

	for (uint32_t i = 1; i < count; i++)
		if (maker->kept.items[i])
			TRY(array_append(&maker->children, i));
	if (maker->children.count)
		qsort_r(maker->children.items, maker->children.count, sizeof(uint32_t),
			compare_children, maker);
	TRY(array_resize(&maker->first, count + 1));
	for (size_t i = 0; i <= count; i++) {
		while (next < maker->children.count &&
		       nodes[maker->children.items[next]].parent < i)
			next++;
		maker->first.items[i] = (uint32_t)next;
	}
	return NULL;
}

static struct error *add_frame(struct maker *maker, uint32_t node, uint32_t parent)
{
	const struct owner_node *from = &maker->owners->nodes.items[node];
	struct owner_frame frame = { .parent = parent, .node = node, .depth = from->depth };

	maker->frames->of_node.items[node] = (uint32_t)maker->frames->list.count;
	add_amounts(frame.own, from->total);
	add_amounts(frame.total, from->total);
	return array_append(&maker->frames->list, frame);
}

/* Add the parts left out below a node behind its children. */
static struct error *add_others(struct maker *maker, uint32_t node, uint32_t parent)
{
	struct owner_frame frame = *others_of(maker, node);

	if (!frame.others)
		return NULL;
	others_of(maker, node)->parent = (uint32_t)maker->frames->list.count;
	frame.end = (uint32_t)maker->frames->list.count + 1;
	frame.parent = parent;
	frame.node = node;
	frame.depth = maker->owners->nodes.items[node].depth + 1;
	return array_append(&maker->frames->list, frame);
}

/* Depth-first; path[i] is the frame on level i, and next[i] its next child. */
static struct error *add_all(struct maker *maker)
{
	uint32_t path[MOST_DEPTH + 2], next[MOST_DEPTH + 2];
	size_t depth = 0;

	TRY(add_frame(maker, 0, 0));
	path[0] = 0;
	next[0] = maker->first.items[0];
	for (;;) {
		uint32_t node = maker->frames->list.items[path[depth]].node;

		if (next[depth] < maker->first.items[node + 1]) {
			uint32_t child = maker->children.items[next[depth]++];

			TRY(add_frame(maker, child, path[depth]));
			depth++;
			path[depth] = (uint32_t)maker->frames->list.count - 1;
			next[depth] = maker->first.items[child];
			continue;
		}
		TRY(add_others(maker, node, path[depth]));
		maker->frames->list.items[path[depth]].end = (uint32_t)maker->frames->list.count;
		if (depth == 0)
			return NULL;
		depth--;
	}
}

/* Find the amounts of a node that are in no node below it. */
static void find_own(struct maker *maker)
{
	const struct owner_node *nodes = maker->owners->nodes.items;
	const uint32_t *of_node = maker->frames->of_node.items;

	for (size_t i = 1; i < maker->owners->nodes.count; i++)
		if (maker->kept.items[nodes[i].parent])
			subtract_amounts(maker->frames->list.items[of_node[nodes[i].parent]].own,
					 nodes[i].total);
}

/* Find the frames that stand for nodes without one. */
static void find_frames(struct maker *maker)
{
	const struct owner_node *nodes = maker->owners->nodes.items;
	uint32_t *of_node = maker->frames->of_node.items;

	for (size_t i = 1; i < maker->owners->nodes.count; i++) {
		uint32_t parent = nodes[i].parent;

		if (maker->kept.items[i])
			continue;
		of_node[i] = maker->kept.items[parent] && is_there(maker, i)
				     ? others_of(maker, parent)->parent
				     : of_node[parent];
	}
}

struct error *frames_make(const struct owners *owners, enum owner_measure measure, size_t most,
			  struct memory_account *account, struct frames *ret)
{
	_cleanup_(maker_deinit) struct maker maker = {
		.owners = owners,
		.measure = measure,
		.most = most ? most : 1,
		.frames = ret,
	};

	arrays_use(account, &maker.sizes, &maker.children, &maker.first, &maker.others,
		   &maker.kept);
	ret->owners = owners;
	arrays_use(account, &ret->list, &ret->of_node);
	TRY(array_resize(&ret->of_node, owners->nodes.count));
	TRY(choose(&maker));
	TRY(sort_children(&maker));
	TRY(add_all(&maker));
	find_own(&maker);
	find_frames(&maker);
	return NULL;
}
