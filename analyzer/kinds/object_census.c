#include "analyzer/kinds/object_census.h"

#include "analyzer/classify/reader.h"
#include "analyzer/graph/embedding.h"
#include "analyzer/graph/references.h"
#include "analyzer/heap/heaps.h"
#include "analyzer/kinds/retained.h"

#include <string.h>

/* Blocks other than members. */
#define OTHER_GROUP (NO_GROUP - 1)

struct counting {
	const struct object_census_input *input;
	struct object_census *census;
	struct bitmap sources;	      /* all objects */
	ARRAY(allocation_id) reached; /* blocks, nearest first */
	struct references references;
};

static void counting_deinit(struct counting *counting)
{
	bitmap_deinit(&counting->sources);
	array_release(&counting->reached);
}
DEFINE_DEINIT(counting_deinit, struct counting)

void object_census_deinit(struct object_census *census)
{
	table_release(&census->groups);
	ranks_deinit(&census->blocks);
	array_release(&census->owners);
}

kind_key object_class_key(const struct analysis *analysis, allocation_id id)
{
	const struct runtimes *runtimes = analysis_runtimes(analysis);
	uint64_t number = runtimes_have_objects(runtimes) ? runtimes_class_of(runtimes, id) : 0;

	return number ? kind_make(BY_SIGNATURE, number) : KIND_UNKNOWN;
}

/* The number of the group that an object with the key is counted in. */
static struct error *find_group(struct counting *counting, allocation_id id, kind_key key,
				uint32_t *ret)
{
	const struct object_census_input *input = counting->input;
	struct object_census *census = counting->census;
	const struct object_group *found;
	struct object_group group = { 0 };

	if (input->key_of)
		key = input->key_of(input->data, id);
	found = table_find(&census->groups, key, one, one->key == key);
	if (found) {
		*ret = (uint32_t)(found - census->groups.items);
		return NULL;
	}
	group.key = key;
	if (!input->key_of)
		group.name = kind_name(input->analysis, key).text;
	*ret = (uint32_t)census->groups.count;
	return table_append(&census->groups, key, group);
}

static struct error *count_object(struct counting *counting, allocation_id id, kind_key key,
				  uint64_t bytes)
{
	struct object_group *group;
	uint32_t number;

	TRY(find_group(counting, id, key, &number));
	group = &counting->census->groups.items[number];
	group->count++;
	group->bytes += bytes;
	return NULL;
}

/* The memory of a program that embeds a language is none of its objects' blocks. */
static struct error *leave_out_own(struct analysis *analysis, struct bitmap *blocks)
{
	_cleanup_(bitmap_deinit) struct bitmap own = { 0 };
	struct embedding_input input = {
		.image = analysis_image(analysis),
		.program = analysis_program(analysis),
		.runtimes = analysis_runtimes(analysis),
		.index = analysis_index(analysis),
		.account = analysis_account(analysis),
		.progress = analysis_progress(analysis),
	};

	if (!embedding_is_there(input.image, input.program, input.runtimes))
		return NULL;
	TRY(analysis_need(analysis, STAGE_ROOTS));
	TRY(analysis_need(analysis, STAGE_GRAPH));
	input.roots = analysis_roots(analysis);
	input.graph = analysis_graph(analysis);
	TRY(embedding_find(&input, &own));
	if (own.count)
		bitmap_minus(blocks, &own);
	return NULL;
}

static struct error *count_objects(struct counting *counting)
{
	struct analysis *analysis = counting->input->analysis;
	const struct allocation_index *index = analysis_index(analysis);
	struct progress *progress = analysis_progress(analysis);
	struct memory_account *account = analysis_account(analysis);
	_cleanup_(bitmap_deinit) struct bitmap blocks = { 0 };
	uint64_t passed = 0;
	size_t hint = 0;

	progress_begin(progress, "counting objects", allocation_count(index));
	TRY(bitmap_init(&counting->sources, allocation_count(index), account));
	TRY(bitmap_init(&blocks, allocation_count(index), account));
	bitmap_for_each(i, allocation_used(index)) {
		allocation_id id = (allocation_id)i;
		kind_key key = object_class_key(counting->input->analysis, id);

		TRY(progress_check_at(progress, i, &passed));
		bitmap_set(key == KIND_UNKNOWN ? &blocks : &counting->sources, i);
		if (key != KIND_UNKNOWN && bitmap_get(counting->input->members, i))
			TRY(count_object(counting, id, key,
					 range_size(allocation_range_near(index, id, &hint))));
	}
	TRY(leave_out_own(analysis, &blocks));
	return ranks_init(&counting->census->blocks, &blocks, account);
}

static struct error *add_retained(struct counting *counting)
{
	struct object_census *census = counting->census;
	struct analysis *analysis = counting->input->analysis;
	_cleanup_(free) uint64_t *bytes = calloc(census->groups.count + 1, sizeof(*bytes));
	_cleanup_(array_release) ARRAY(uint32_t) numbers = {
		.memory.account = analysis_account(analysis),
	};

	TRY_MEMORY(bytes);
	TRY(array_resize(&numbers, allocation_count(analysis_index(analysis))));
	for (size_t i = 0; i < numbers.count; i++)
		numbers.items[i] = NO_GROUP;
	bitmap_for_each(id, &counting->sources) {
		if (!bitmap_get(counting->input->members, id))
			continue;
		TRY(find_group(counting, (allocation_id)id,
			       object_class_key(counting->input->analysis, (allocation_id)id),
			       &numbers.items[id]));
	}
	TRY(retained_by_group(analysis_dominators(analysis), numbers.items, NULL,
			      census->groups.count, bytes));
	for (size_t i = 0; i < census->groups.count; i++)
		census->groups.items[i].retained = bytes[i];
	return NULL;
}

/* Count the block, if it is not yet, for the group of who leads to it: an object, or a block. */
static struct error *count_block(struct counting *counting, allocation_id id, allocation_id by)
{
	const struct ranks *blocks = &counting->census->blocks;
	const uint32_t *owners = counting->census->owners.items;
	uint32_t *number = &counting->census->owners.items[ranks_of(blocks, id)];
	struct object_group *group;

	if (*number != NO_GROUP)
		return NULL;
	if (bitmap_get(&blocks->members, by))
		*number = owners[ranks_of(blocks, by)];
	else if (bitmap_get(counting->input->members, by))
		TRY(find_group(counting, by, object_class_key(counting->input->analysis, by),
			       number));
	else
		*number = OTHER_GROUP;
	if (*number != OTHER_GROUP) {
		group = &counting->census->groups.items[*number];
		group->blocks++;
		group->block_bytes +=
			allocation_size(analysis_index(counting->input->analysis), id);
	}
	return array_append(&counting->reached, id);
}

/* Prefer a pattern's owner to a referrer, whose word may be stale. */
static struct error *count_owned(struct counting *counting)
{
	const struct allocation_index *index = analysis_index(counting->input->analysis);
	const struct patterns *patterns = analysis_patterns(counting->input->analysis);

	bitmap_for_each(i, &counting->census->blocks.members) {
		uint64_t address = patterns_owner(patterns, (allocation_id)i);
		allocation_id owner = address ? allocation_find(index, address) : NO_ALLOCATION;

		if (owner != NO_ALLOCATION && bitmap_get(&counting->sources, owner))
			TRY(count_block(counting, (allocation_id)i, owner));
	}
	return NULL;
}

static struct error *take_references(void *data, const allocation_id *sources,
				     const allocation_id *targets, size_t count)
{
	struct counting *counting = data;

	for (size_t i = 0; i < count; i++)
		if (targets[i] != NO_ALLOCATION &&
		    bitmap_get(&counting->census->blocks.members, targets[i]))
			TRY(count_block(counting, targets[i], sources[i]));
	return NULL;
}

/* Count the blocks that objects refer to. */
static struct error *read_objects(struct counting *counting)
{
	enum { AT_ONCE = 1 << 13 };
	struct analysis *analysis = counting->input->analysis;
	const struct bitmap *sources = &counting->sources;
	size_t next = bitmap_next(sources, 0);
	uint64_t passed = 0, bytes = 0;

	progress_begin(analysis_progress(analysis), "finding blocks of objects", sources->count);
	while (next < sources->count) {
		allocation_id id = (allocation_id)next;
		size_t end = next + AT_ONCE < sources->count ? next + AT_ONCE : sources->count;

		TRY(allocations_check(analysis_image(analysis), analysis_index(analysis),
				      analysis_progress(analysis), next, &passed));
		TRY(references_read_some(&counting->references, (allocation_id)end, &id, &bytes));
		next = bitmap_next(sources, id);
	}
	return NULL;
}

/* Count what the blocks lead to, which are more and more. */
static struct error *read_blocks(struct counting *counting)
{
	struct analysis *analysis = counting->input->analysis;
	const struct allocation_index *index = analysis_index(analysis);
	const struct bitmap *pointerless = allocation_having(index, TRAIT_POINTERLESS);
	size_t hint = 0;

	for (size_t i = 0;;) {
		for (; i < counting->reached.count; i++) {
			allocation_id id = counting->reached.items[i];

			TRY(progress_check(analysis_progress(analysis), 1));
			if (!pointerless || !bitmap_get(pointerless, id))
				TRY(references_read_part(&counting->references,
							 allocation_range_near(index, id, &hint),
							 id));
		}
		TRY(references_end(&counting->references));
		if (i == counting->reached.count)
			return NULL;
	}
}

static struct error *count_blocks(struct counting *counting)
{
	struct analysis *analysis = counting->input->analysis;
	const struct allocation_index *index = analysis_index(analysis);
	const struct bitmap *pointerless = allocation_having(index, TRAIT_POINTERLESS);
	struct object_census *census = counting->census;

	TRY(array_resize(&census->owners, census->blocks.count));
	for (size_t i = 0; i < census->owners.count; i++)
		census->owners.items[i] = NO_GROUP;
	/* Nearly all of them, as a rule: an array that grows would have a quarter more. */
	TRY(array_reserve(&counting->reached, census->blocks.count));
	TRY(count_owned(counting));
	if (pointerless)
		bitmap_minus(&counting->sources, pointerless);
	TRY(heaps_wake(analysis_heaps(analysis)));
	references_init(&counting->references, analysis_image(analysis), index,
			analysis_runtimes(analysis), &counting->sources);
	counting->references.wanted = &census->blocks.members;
	counting->references.pass = take_references;
	counting->references.data = counting;
	TRY(read_objects(counting));
	return read_blocks(counting);
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
	if (counting->input->keeps_owners)
		return;
	array_release(&census->owners);
	ranks_deinit(&census->blocks);
	if (census->groups.count)
		qsort_r(census->groups.items, census->groups.count, sizeof(*census->groups.items),
			compare_groups, (void *)counting->input);
}

uint32_t object_census_owner(const struct object_census *census, allocation_id id)
{
	uint32_t owner = bitmap_get(&census->blocks.members, id)
				 ? census->owners.items[ranks_of(&census->blocks, id)]
				 : NO_GROUP;

	return owner == OTHER_GROUP ? NO_GROUP : owner;
}

struct error *object_census_take(const struct object_census_input *input, struct object_census *ret)
{
	struct memory_account *account = analysis_account(input->analysis);
	_cleanup_(object_census_deinit) struct object_census census = {
		.groups.memory.account = account,
		.owners.memory.account = account,
	};
	_cleanup_(counting_deinit) struct counting counting = {
		.input = input,
		.census = &census,
		.reached.memory.account = account,
	};

	TRY(analysis_need(input->analysis, STAGE_CLASSES));
	TRY(analysis_need(input->analysis, STAGE_OWNERS));
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
