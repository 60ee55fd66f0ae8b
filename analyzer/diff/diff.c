#include "analyzer/diff/diff.h"

#include "analyzer/diff/group_table.h"
#include "analyzer/diff/oldest.h"

#include <string.h>

struct diff {
	enum aspect aspect;
	struct memory_account *account; /* borrowed */
	struct diff_core cores[MOST_CORES];
	size_t core_count;
	enum kinship kinship;
	struct group_table groups;
	struct oldest oldest; /* of the oldest core */
};

struct error *diff_create(enum aspect aspect, struct memory_account *account, struct diff **ret)
{
	struct diff *diff = calloc(1, sizeof(*diff));

	if (!diff)
		return &error_no_memory;
	diff->aspect = aspect;
	diff->account = account;
	group_table_init(&diff->groups, account);
	diff->oldest = (struct oldest){ .list.account = account };
	*ret = diff;
	return NULL;
}

void diff_destroy(struct diff *diff)
{
	for (size_t i = 0; i < diff->core_count; i++)
		free(diff->cores[i].path);
	group_table_deinit(&diff->groups);
	oldest_deinit(&diff->oldest);
	free(diff);
}

static struct error *add_core(struct diff *diff, const struct analysis *analysis)
{
	const struct image *image = analysis_image(analysis);
	struct diff_core *core = &diff->cores[diff->core_count];

	if (diff->core_count == MOST_CORES)
		return error_create(ERROR_USAGE, "more than %d cores cannot be compared",
				    MOST_CORES);
	core->path = strdup(image_path(image));
	if (!core->path)
		return &error_no_memory;
	core->lineage = lineage_of(image);
	diff->core_count++;
	if (diff->kinship == KIN_SAME_PROCESS && diff->core_count > 1)
		diff->kinship = lineage_compare(&diff->cores[0].lineage, &core->lineage);
	/* What it costs is of no use any more. */
	if (diff->kinship != KIN_SAME_PROCESS)
		oldest_deinit(&diff->oldest);
	return NULL;
}

/* Put the group of each key of the census into ret, by the key's number. */
static struct error *add_groups(struct diff *diff, const struct census *census, struct memory *ret)
{
	size_t core = diff->core_count - 1;
	size_t count = census->keys.count;
	/* The slot of each key's number. */
	_cleanup_(free) size_t *slots = calloc(count + 1, sizeof(*slots));
	struct error *error = memory_resize(ret, count * sizeof(uint32_t));

	if (!error && !slots)
		error = &error_no_memory;
	/* In the order in which they came: groups are numbered by it. */
	for (size_t i = 0; !error && i < census->keys.capacity; i++)
		if (census->keys.slots[i].count)
			slots[census->keys.slots[i].number] = i;
	for (size_t i = 0; !error && i < count; i++) {
		const struct tally *tally = &census->keys.slots[slots[i]];
		const struct census_name name = census_name(census, tally->key);

		error = group_table_add(&diff->groups, &name, core,
					(struct set_total){ tally->count, tally->bytes },
					(uint32_t *)ret->bytes + i);
	}
	return error;
}

/* From numbers of keys, plus 1, to numbers of groups, plus 1. */
static void renumber(struct memory *numbers, const uint32_t *groups)
{
	uint32_t *list = numbers->bytes;

	for (size_t i = 0; i < numbers->size / sizeof(*list); i++)
		if (list[i])
			list[i] = groups[list[i] - 1] + 1;
}

/* Count the core, and put the group of each allocation, plus 1, into the census's numbers. */
static struct error *count_core(struct diff *diff, struct analysis *analysis, struct census *census)
{
	_cleanup_(memory_release) struct memory groups = { .account = analysis_account(analysis) };
	struct diff_core *core;
	struct error *error = add_core(diff, analysis);

	if (!error)
		error = census_take(analysis, diff->aspect, census);
	if (!error)
		error = add_groups(diff, census, &groups);
	if (error)
		return error;
	renumber(&census->numbers, groups.bytes);
	core = &diff->cores[diff->core_count - 1];
	core->total = allocations_total(analysis_index(analysis),
					allocation_used(analysis_index(analysis)));
	core->is_complete = !findings_incomplete(analysis_findings(analysis));
	return NULL;
}

struct error *diff_add(struct diff *diff, struct analysis *analysis)
{
	_cleanup_(census_deinit) struct census census = { 0 };
	struct error *error = count_core(diff, analysis, &census);
	struct matching matching = {
		.oldest = &diff->oldest,
		.analysis = analysis,
		.numbers = census.numbers.bytes,
		.groups = &diff->groups,
		.progress = analysis_progress(analysis),
	};

	if (error || diff->kinship != KIN_SAME_PROCESS)
		return error;
	return diff->core_count == 1 ? oldest_keep(&matching) : oldest_narrow(&matching);
}

static struct error *make_sets(struct diff *diff, struct analysis *newest,
			       const struct census *census)
{
	const struct allocation_index *index = analysis_index(newest);
	struct named_sets *sets = analysis_named_sets(newest);
	struct matching matching = {
		.oldest = &diff->oldest,
		.analysis = newest,
		.numbers = census->numbers.bytes,
		.groups = &diff->groups,
		.progress = analysis_progress(newest),
	};
	struct bitmap added = { 0 }, survived = { 0 };
	struct error *error =
		bitmap_init(&added, allocation_count(index), analysis_account(newest));

	if (!error)
		error = bitmap_init(&survived, allocation_count(index), analysis_account(newest));
	if (!error)
		error = oldest_finish(&matching, &added, &survived);
	if (error) {
		bitmap_deinit(&added);
		bitmap_deinit(&survived);
		return error;
	}
	error = named_sets_assign(sets, NEW_SET, &added);
	if (error) {
		bitmap_deinit(&survived);
		return error;
	}
	return named_sets_assign(sets, SURVIVED_SET, &survived);
}

struct error *diff_finish(struct diff *diff, struct analysis *newest)
{
	_cleanup_(census_deinit) struct census census = { 0 };
	struct error *error;

	named_sets_forget(analysis_named_sets(newest), NEW_SET);
	named_sets_forget(analysis_named_sets(newest), SURVIVED_SET);
	error = count_core(diff, newest, &census);
	if (!error && diff->kinship == KIN_SAME_PROCESS)
		error = make_sets(diff, newest, &census);
	if (error)
		return error;
	group_table_sort(&diff->groups, diff->core_count);
	oldest_deinit(&diff->oldest);
	return NULL;
}

size_t diff_core_count(const struct diff *diff)
{
	return diff->core_count;
}

const struct diff_core *diff_core(const struct diff *diff, size_t number)
{
	return &diff->cores[number];
}

enum kinship diff_kinship(const struct diff *diff)
{
	return diff->kinship;
}

size_t diff_group_count(const struct diff *diff)
{
	return diff->groups.count;
}

const struct diff_group *diff_group(const struct diff *diff, size_t number)
{
	return group_at(&diff->groups, number);
}

const char *diff_name(const struct diff *diff, const struct diff_group *group)
{
	return group_name(&diff->groups, group);
}

bool diff_only_grows(const struct diff *diff, const struct diff_group *group)
{
	return diff->core_count > 2 && group->steps == diff->core_count - 1;
}

struct set_total diff_total(const struct diff *diff, const struct diff_group *group, size_t core)
{
	return group_total(&diff->groups, group, core);
}

uint64_t diff_elapsed(const struct diff *diff)
{
	const struct lineage *old = &diff->cores[0].lineage;
	const struct lineage *now = &diff->cores[diff->core_count - 1].lineage;

	if (old->source == TIME_UNKNOWN || now->source == TIME_UNKNOWN || now->time < old->time)
		return 0;
	return now->time - old->time;
}
