#include "analyzer/kinds/reach.h"

#include "analyzer/base/array.h"
#include "analyzer/base/parallel.h"

#include <string.h>

enum {
	TOGETHER = 64, /* groups, a bit of a mask for each */
	FEWEST_STEPS = 1 << 27,
};

/* The members by place are those of components, each next to each other. */
struct reach {
	const struct reach_input *input;
	const struct components *components;
	ARRAY(uint32_t) groups; /* by place */
	ARRAY(uint32_t) begins; /* by component: its first place */
	ARRAY(uint64_t) sizes;	/* by component */
	struct memory *masks;	/* uint64_t by component, one for each thread */
	uint64_t *bytes;	/* by group */
};

static void reach_deinit(struct reach *reach)
{
	arrays_release(&reach->groups, &reach->begins, &reach->sizes);
	free(reach->bytes);
}
DEFINE_DEINIT(reach_deinit, struct reach)

static struct error *reserve(struct reach *reach)
{
	size_t members = component_member_count(reach->components);
	size_t count = component_count(reach->components) + (size_t)1;

	TRY(array_resize(&reach->groups, members + 1));
	TRY(array_resize(&reach->begins, count));
	TRY(array_resize(&reach->sizes, count));
	reach->bytes = calloc(reach->input->group_count + TOGETHER, sizeof(*reach->bytes));
	return reach->bytes ? NULL : &error_no_memory;
}

/* Put what each chunk needs where it is read from one end to the other. */
static struct error *lay_out(struct reach *reach)
{
	const struct components *components = reach->components;
	size_t count = component_member_count(components);
	uint32_t *groups = reach->groups.items, *begins = reach->begins.items;
	uint64_t *sizes = reach->sizes.items;

	begins[component_count(components)] = (uint32_t)count;
	for (size_t end = count, begin; end > 0; end = begin) {
		uint32_t number = component_before(components, end, &begin);

		begins[number] = (uint32_t)begin;
		for (size_t i = begin; i < end; i++) {
			allocation_id id = component_member(components, i);

			groups[i] = reach->input->groups[id];
			sizes[number] += allocation_size(reach->input->index, id);
		}
	}
	return progress_check(reach->input->progress, count);
}

/* The bits of the groups from first on that the members at places are of. */
static uint64_t own_mask(const struct reach *reach, uint32_t first, uint32_t begin, uint32_t end)
{
	const uint32_t *groups = reach->groups.items;
	uint64_t mask = 0;

	for (uint32_t i = begin; i < end; i++)
		if (groups[i] - first < TOGETHER)
			mask |= UINT64_C(1) << (groups[i] - first);
	return mask;
}

static void hand_on(const struct reach *reach, size_t place, uint64_t mask, uint64_t *masks)
{
	struct edges edges =
		graph_outgoing(reach->input->graph, component_member(reach->components, place));

	for (size_t i = 0; i < edges.count; i++)
		if (bitmap_get(reach->input->members, edges.targets[i]))
			masks[component_of(reach->components, edges.targets[i])] |= mask;
}

static struct error *go_over(void *data, size_t chunk, unsigned int thread)
{
	const struct reach *reach = data;
	const uint64_t *sizes = reach->sizes.items;
	const uint32_t *begins = reach->begins.items;
	uint64_t *masks = reach->masks[thread].bytes;
	uint32_t first = (uint32_t)chunk * TOGETHER;

	memset(masks, 0, reach->masks[thread].size);
	for (uint32_t i = component_count(reach->components); i-- > 0;) {
		uint32_t begin = begins[i], end = begins[i + 1];
		uint64_t mask = masks[i] | own_mask(reach, first, begin, end);

		for (uint64_t bits = mask; bits; bits &= bits - 1)
			reach->bytes[first + (unsigned)__builtin_ctzll(bits)] += sizes[i];
		for (uint32_t place = begin; mask && place < end; place++)
			hand_on(reach, place, mask, masks);
	}
	return progress_check(reach->input->progress, component_member_count(reach->components));
}

/* Go over the graph once for each 64 groups. */
static struct error *go_over_all(struct reach *reach)
{
	size_t chunks = (reach->input->group_count + TOGETHER - 1) / TOGETHER;
	unsigned int threads = parallel_threads_for(reach->input->progress);
	struct error *error = NULL;

	if (threads > chunks)
		threads = chunks ? (unsigned int)chunks : 1;
	reach->masks = calloc(threads, sizeof(*reach->masks));
	TRY_MEMORY(reach->masks);
	progress_begin(reach->input->progress, "finding reachable types",
		       (chunks + 1) * component_member_count(reach->components));
	for (unsigned int i = 0; !error && i < threads; i++) {
		reach->masks[i].account = reach->input->account;
		error = memory_resize(&reach->masks[i],
				      (component_count(reach->components) + (size_t)1) *
					      sizeof(uint64_t));
	}
	if (!error)
		error = lay_out(reach);
	if (!error)
		error = parallel_for(chunks, threads, go_over, reach);
	for (unsigned int i = 0; i < threads; i++)
		memory_release(&reach->masks[i]);
	free(reach->masks);
	return error;
}

size_t reach_most_groups(const struct reach_input *input, uint64_t bytes)
{
	uint64_t steps = input->members->count + graph_edge_count(input->graph) + 1;
	uint64_t chunks = (bytes / 2 > FEWEST_STEPS ? bytes / 2 : FEWEST_STEPS) / steps + 1;

	return input->group_count / TOGETHER < chunks ? input->group_count
						      : (size_t)chunks * TOGETHER;
}

struct error *reach_by_group(const struct reach_input *input, uint64_t *ret_bytes)
{
	_cleanup_(components_destroy) struct components *components = NULL;
	_cleanup_(reach_deinit) struct reach reach = {
		.input = input,
	};

	arrays_use(input->account, &reach.groups, &reach.begins, &reach.sizes);
	TRY(components_create(input->graph, input->members, input->account, input->progress,
			      &components));
	reach.components = components;
	TRY(reserve(&reach));
	TRY(go_over_all(&reach));
	if (input->group_count > 0)
		memcpy(ret_bytes, reach.bytes, input->group_count * sizeof(*ret_bytes));
	return NULL;
}

struct error *reach_of(const struct reach_input *input, allocation_id id, uint64_t *ret_bytes)
{
	_cleanup_(bitmap_deinit) struct bitmap from = { 0 }, reached = { 0 };
	uint64_t bytes = 0;

	TRY(bitmap_init(&from, input->members->count, input->account));
	TRY(bitmap_init(&reached, input->members->count, input->account));
	bitmap_set(&from, id);
	TRY(graph_mark_within(input->graph, input->members, &from, &reached, input->account,
			      input->progress));
	bitmap_for_each(member, &reached)
		bytes += allocation_size(input->index, (allocation_id)member);
	*ret_bytes = bytes;
	return NULL;
}
