#include "analyzer/gate/shape.h"

#include "analyzer/gate/label.h"

#include <stdlib.h>

/* The allocations near the root, breadth first, and which lead back to it. */
struct shape {
	const struct shape_context *context;
	allocation_id ids[MOST_SHAPE_NODES];
	bool in_ring[MOST_SHAPE_NODES];
	size_t count;
};

static const size_t NOT_THERE = SIZE_MAX;

static size_t find(const struct shape *shape, allocation_id id)
{
	for (size_t i = 0; i < shape->count; i++)
		if (shape->ids[i] == id)
			return i;
	return NOT_THERE;
}

static struct edges edges_of(const struct shape *shape, size_t number)
{
	return graph_outgoing(analysis_graph(shape->context->analysis),
			      shape->ids[number]);
}

static void add_targets(struct shape *shape, size_t number)
{
	struct edges edges = edges_of(shape, number);

	for (size_t i = 0; i < edges.count; i++) {
		if (shape->count == MOST_SHAPE_NODES)
			return;
		if (bitmap_get(shape->context->leaked, edges.targets[i]) &&
		    find(shape, edges.targets[i]) == NOT_THERE)
			shape->ids[shape->count++] = edges.targets[i];
	}
}

static bool leads_into_ring(const struct shape *shape, size_t number)
{
	struct edges edges = edges_of(shape, number);

	for (size_t i = 0; i < edges.count; i++) {
		size_t target = find(shape, edges.targets[i]);

		if (target != NOT_THERE && shape->in_ring[target])
			return true;
	}
	return false;
}

/*
 * Nothing outside of the root's component leads to it. So what leads to the
 * root is in its component.
 */
static void find_ring(struct shape *shape)
{
	bool found = true;

	shape->in_ring[0] = true;
	while (found) {
		found = false;
		for (size_t i = shape->count; i-- > 1;) {
			if (shape->in_ring[i] || !leads_into_ring(shape, i))
				continue;
			shape->in_ring[i] = true;
			found = true;
		}
	}
}

static int compare(const void *a, const void *b)
{
	const uint64_t *left = a, *right = b;

	return (*left > *right) - (*left < *right);
}

/* Each of the hashes once, whatever their order. */
static uint64_t add_set(uint64_t hash, uint64_t *hashes, size_t count)
{
	qsort(hashes, count, sizeof(*hashes), compare);
	for (size_t i = 0; i < count; i++)
		if (i == 0 || hashes[i] != hashes[i - 1])
			hash = hash_add(hash, hashes[i]);
	return hash_add(hash, 0);
}

static uint64_t hash_shape(const struct shape *shape)
{
	const struct shape_context *context = shape->context;
	const struct allocation_index *index =
		analysis_index(context->analysis);
	uint64_t hashes[2][MOST_SHAPE_NODES];
	size_t counts[2] = { 0 };

	for (size_t i = 0; i < shape->count; i++) {
		allocation_id id = shape->ids[i];
		struct label label =
			label_of(context->analysis, context->patterns, id);
		bool in_ring = shape->in_ring[i];

		hashes[in_ring][counts[in_ring]++] =
			label_hash(label, allocation_size(index, id));
	}
	return add_set(add_set(0, hashes[true], counts[true]), hashes[false],
		       counts[false]);
}

uint64_t shape_fingerprint(const struct shape_context *context,
			   allocation_id root)
{
	struct shape shape = { .context = context,
			       .ids = { root },
			       .count = 1 };

	for (size_t i = 0; i < shape.count; i++)
		add_targets(&shape, i);
	find_ring(&shape);
	return hash_shape(&shape);
}
