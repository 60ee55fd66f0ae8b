#include "analyzer/diff/diff.h"

#include "analyzer/diff/count.h"
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
	struct error *error = memory_resize(ret, count * sizeof(uint32_t));

	for (size_t i = 0; !error && i < count; i++) {
		const struct tally *tally = &census->keys.items[i];
		const struct census_name name = census_name(census, tally->key);

		error = group_table_add(&diff->groups, &name, core,
					(struct set_total){ tally->count, tally->bytes },
					(uint32_t *)ret->bytes + i);
	}
	return error;
}

/* Make what the matching with the newest core found its sets. */
static struct error *make_sets(struct analysis *newest, struct matching *matching)
{
	struct named_sets *sets = analysis_named_sets(newest);
	struct bitmap survived = matching->survived;
	struct error *error;

	matching->survived = (struct bitmap){ 0 };
	error = named_sets_assign(sets, NEW_SET, &matching->added);
	matching->added = (struct bitmap){ 0 };
	if (error) {
		bitmap_deinit(&survived);
		return error;
	}
	return named_sets_assign(sets, SURVIVED_SET, &survived);
}

static struct error *count_core(struct diff *diff, struct analysis *analysis, bool is_newest)
{
	_cleanup_(census_deinit) struct census census = { 0 };
	_cleanup_(memory_release) struct memory groups = { .account = diff->account };
	_cleanup_(matching_deinit) struct matching matching = {
		.oldest = &diff->oldest,
		.analysis = analysis,
		.groups = &diff->groups,
		.is_oldest = diff->core_count == 0,
		.is_newest = is_newest,
	};
	struct diff_core *core = &diff->cores[diff->core_count];
	struct error *error = add_core(diff, analysis);
	bool matches = diff->kinship == KIN_SAME_PROCESS;

	if (!error)
		error = census_need(analysis, diff->aspect);
	if (!error && matches)
		error = matching_begin(&matching);
	if (!error)
		error = census_take(analysis, diff->aspect, matches ? matching_visit : NULL,
				    &matching, &census);
	if (!error)
		error = add_groups(diff, &census, &groups);
	if (!error && matches)
		error = matching_end(&matching, &groups);
	if (!error && matches && is_newest)
		error = make_sets(analysis, &matching);
	if (error)
		return error;
	core->total = allocations_total(analysis_index(analysis),
					allocation_used(analysis_index(analysis)));
	core->is_complete = !findings_incomplete(analysis_findings(analysis));
	return NULL;
}

struct error *diff_add(struct diff *diff, struct analysis *analysis)
{
	return count_core(diff, analysis, false);
}

struct error *diff_finish(struct diff *diff, struct analysis *newest)
{
	struct error *error;

	named_sets_forget(analysis_named_sets(newest), NEW_SET);
	named_sets_forget(analysis_named_sets(newest), SURVIVED_SET);
	error = count_core(diff, newest, true);
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
	return diff->groups.groups.count;
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
