#include "analyzer/kinds/object_census.h"

#include "analyzer/kinds/retained.h"

#include <string.h>

struct counting {
	const struct object_census_input *input;
	struct object_finder finder;
	struct object_census *census;
	ARRAY(uint32_t) numbers;      /* by allocation: of the group, or NO_GROUP */
	ARRAY(allocation_id) reached; /* blocks, nearest first */
};

static void counting_deinit(struct counting *counting)
{
	array_release(&counting->numbers);
	array_release(&counting->reached);
}
DEFINE_DEINIT(counting_deinit, struct counting)

void object_census_deinit(struct object_census *census)
{
	table_release(&census->groups);
}

static bool has_plain_runtime(const struct runtimes *runtimes)
{
	for (size_t i = 0; i < runtime_count(runtimes); i++)
		if (!runtime_at(runtimes, i)->find_objects)
			return true;
	return false;
}

struct error *object_finder_begin(struct analysis *analysis, struct object_finder *ret)
{
	TRY(analysis_need(analysis, STAGE_CLASSES));
	TRY(analysis_need(analysis, STAGE_GRAPH));
	TRY(analysis_need(analysis, STAGE_OWNERS));
	*ret = (struct object_finder){
		.analysis = analysis,
		.patterns = analysis_patterns(analysis),
		.has_plain = has_plain_runtime(analysis_runtimes(analysis)),
	};
	return NULL;
}

kind_key object_class_key(const struct object_finder *finder, allocation_id id)
{
	const struct runtimes *runtimes = analysis_runtimes(finder->analysis);
	uint64_t number = runtimes_have_objects(runtimes) ? runtimes_class_of(runtimes, id) : 0;
	pattern_number pattern;

	if (number)
		return kind_make(BY_SIGNATURE, number);
	if (!finder->has_plain)
		return KIND_UNKNOWN;
	pattern = patterns_of(finder->patterns, id);
	return pattern_is_object(pattern) && !patterns_owner(finder->patterns, id)
		       ? kind_of_pattern(pattern)
		       : KIND_UNKNOWN;
}

/* The number of the group that the key has. */
static struct error *find_group(struct counting *counting, kind_key key, uint32_t *ret)
{
	struct object_census *census = counting->census;
	const struct object_group *found =
		table_find(&census->groups, key, group, group->key == key);
	struct object_group group = { .key = key };

	if (found) {
		*ret = (uint32_t)(found - census->groups.items);
		return NULL;
	}
	if (!counting->input->key_of)
		group.name = kind_name(counting->input->analysis, key).text;
	*ret = (uint32_t)census->groups.count;
	return table_append(&census->groups, key, group);
}

static struct error *count_objects(struct counting *counting)
{
	struct analysis *analysis = counting->input->analysis;
	const struct allocation_index *index = analysis_index(analysis);
	struct progress *progress = analysis_progress(analysis);
	size_t hint = 0;
	uint64_t passed = 0;

	progress_begin(progress, "counting objects", allocation_count(index));
	TRY(array_resize(&counting->numbers, allocation_count(index)));
	memset(counting->numbers.items, 0xff, allocation_count(index) * sizeof(uint32_t));
	bitmap_for_each(i, counting->input->members) {
		allocation_id id = (allocation_id)i;
		kind_key key = object_class_key(&counting->finder, id);
		struct object_group *group;
		struct memory_range range;

		TRY(progress_check_at(progress, i, &passed));
		if (key == KIND_UNKNOWN)
			continue;
		if (counting->input->key_of)
			key = counting->input->key_of(counting->input->data, id);
		TRY(find_group(counting, key, &counting->numbers.items[id]));
		group = &counting->census->groups.items[counting->numbers.items[id]];
		range = allocation_range_near(index, id, &hint);
		group->count++;
		group->bytes += range.end - range.start;
	}
	return NULL;
}

static struct error *add_retained(struct counting *counting)
{
	struct object_census *census = counting->census;
	_cleanup_(free) uint64_t *bytes = calloc(census->groups.count + 1, sizeof(*bytes));

	if (!bytes)
		return &error_no_memory;
	TRY(retained_by_group(analysis_dominators(counting->input->analysis),
			      counting->numbers.items, NULL, census->groups.count, bytes));
	for (size_t i = 0; i < census->groups.count; i++)
		census->groups.items[i].retained = bytes[i];
	return NULL;
}

/* Count the allocation for the group, unless it is an object or counted already. */
static struct error *count_block(struct counting *counting, allocation_id id, uint32_t number)
{
	const struct allocation_index *index = analysis_index(counting->input->analysis);
	struct object_group *group = &counting->census->groups.items[number];

	if (counting->numbers.items[id] != NO_GROUP || !bitmap_get(allocation_used(index), id) ||
	    object_class_key(&counting->finder, id) != KIND_UNKNOWN)
		return NULL;
	counting->numbers.items[id] = number;
	group->blocks++;
	group->block_bytes += allocation_size(index, id);
	return array_append(&counting->reached, id);
}

/* What a pattern says the owner of is surer than who refers to it, perhaps by a stale word. */
static struct error *count_owned(struct counting *counting)
{
	const struct allocation_index *index = analysis_index(counting->input->analysis);

	bitmap_for_each(i, allocation_used(index)) {
		allocation_id id = (allocation_id)i, owner;
		uint64_t address = patterns_owner(counting->finder.patterns, id);

		owner = address ? allocation_find(index, address) : NO_ALLOCATION;
		if (owner != NO_ALLOCATION &&
		    object_class_key(&counting->finder, owner) != KIND_UNKNOWN &&
		    counting->numbers.items[owner] != NO_GROUP)
			TRY(count_block(counting, id, counting->numbers.items[owner]));
	}
	return NULL;
}

/* Count the blocks that the object, or block of one, refers to. */
static struct error *reach_from(struct counting *counting, allocation_id id)
{
	struct edges edges = graph_outgoing(analysis_graph(counting->input->analysis), id);
	uint32_t number = counting->numbers.items[id];

	for (size_t i = 0; i < edges.count; i++)
		TRY(count_block(counting, edges.targets[i], number));
	return NULL;
}

static struct error *count_blocks(struct counting *counting)
{
	struct progress *progress = analysis_progress(counting->input->analysis);
	uint64_t passed = 0;

	progress_begin(progress, "finding what objects are made of", counting->numbers.count);
	TRY(count_owned(counting));
	bitmap_for_each(id, counting->input->members) {
		TRY(progress_check_at(progress, id, &passed));
		if (object_class_key(&counting->finder, (allocation_id)id) != KIND_UNKNOWN)
			TRY(reach_from(counting, (allocation_id)id));
	}
	for (size_t i = 0; i < counting->reached.count; i++)
		TRY(reach_from(counting, counting->reached.items[i]));
	return NULL;
}

static int compare_numbers(uint64_t number, uint64_t other)
{
	return number == other ? 0 : number > other ? -1 : 1;
}

static int compare_groups(const void *a, const void *b, void *data)
{
	const struct object_census_input *input = data;
	const struct object_group *left = a, *right = b;
	int difference = 0;

	if (input->order == OBJECTS_BY_COUNT)
		difference = compare_numbers(left->count, right->count);
	else if (input->order == OBJECTS_BY_RETAINED)
		difference = compare_numbers(left->retained, right->retained);
	if (!difference)
		difference = compare_numbers(left->bytes + left->block_bytes,
					     right->bytes + right->block_bytes);
	if (!difference)
		difference = strcmp(left->name ? left->name : "", right->name ? right->name : "");
	return difference ? difference : compare_numbers(left->key, right->key);
}

static void finish(struct counting *counting)
{
	struct object_census *census = counting->census;
	struct object_group *total = &census->total;

	array_for_each(group, &census->groups) {
		total->count += group->count;
		total->bytes += group->bytes;
		total->blocks += group->blocks;
		total->block_bytes += group->block_bytes;
	}
	if (census->groups.count)
		qsort_r(census->groups.items, census->groups.count, sizeof(*census->groups.items),
			compare_groups, (void *)counting->input);
}

struct error *object_census_take(const struct object_census_input *input, struct object_census *ret)
{
	struct memory_account *account = analysis_account(input->analysis);
	_cleanup_(object_census_deinit) struct object_census census = {
		.groups.memory.account = account,
	};
	_cleanup_(counting_deinit) struct counting counting = {
		.input = input,
		.census = &census,
		.numbers.memory.account = account,
		.reached.memory.account = account,
	};

	TRY(object_finder_begin(input->analysis, &counting.finder));
	if (input->retained)
		TRY(analysis_need(input->analysis, STAGE_DOMINATORS));
	TRY(count_objects(&counting));
	if (input->retained)
		TRY(add_retained(&counting));
	TRY(count_blocks(&counting));
	finish(&counting);
	*ret = take_struct(census);
	return NULL;
}
