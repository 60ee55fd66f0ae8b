#include "analyzer/kinds/types.h"

#include "analyzer/base/list.h"
#include "analyzer/base/sort.h"
#include "analyzer/base/text.h"
#include "analyzer/kinds/kind_key.h"
#include "analyzer/kinds/signatures.h"

#include <assert.h>
#include <string.h>

struct finder {
	struct analysis *analysis;
	enum types_choice choice;
	const struct patterns *patterns; /* NULL: not asked for */
	struct tally_table tallies;	 /* by key */
	struct types *found;
};

static void finder_deinit(struct finder *finder)
{
	table_release(&finder->tallies);
}
DEFINE_DEINIT(finder_deinit, struct finder)

/* Number the types in the order in which they are found. */
static struct error *count_all(struct finder *finder)
{
	struct progress *progress = analysis_progress(finder->analysis);
	const struct allocation_index *index = analysis_index(finder->analysis);
	uint32_t *groups = finder->found->groups.items;
	uint64_t reported = 0;

	progress_begin(progress, "naming allocations", finder->found->live.count);
	bitmap_for_each(id, &finder->found->live) {
		kind_key key = kind_type(finder->analysis, finder->patterns, (allocation_id)id);
		struct tally tally = {
			.key = key,
			.count = 1,
			.bytes = allocation_size(index, (allocation_id)id),
		};

		if (key == KIND_UNKNOWN)
			continue;
		TRY(tally_add_numbered(&finder->tallies, tally, &groups[id]));
		TRY(progress_check_at(progress, id, &reported));
	}
	return NULL;
}

DEFINE_COMPARE(compare_names, struct type, ALPHABETICAL(name))

DEFINE_COMPARE(compare_counts, struct type, DESCENDING(count), AS_BY(compare_names))

/* A type for each tally, by name. */
static struct error *name_all(const struct finder *finder)
{
	const struct tally_table *tallies = &finder->tallies;
	struct types *found = finder->found;

	found->list = calloc(tallies->count + 1, sizeof(*found->list));
	TRY_MEMORY(found->list);
	for (; found->count < tallies->count; found->count++) {
		const struct tally *tally = &tallies->items[found->count];
		uint64_t signature = kind_signature(tally->key);
		char *name = kind_text(finder->analysis, tally->key);

		TRY_MEMORY(name);
		found->list[found->count] = (struct type){
			.name = name,
			.count = tally->count,
			.bytes = tally->bytes,
			.class = runtimes_have_class(analysis_runtimes(finder->analysis), signature)
					 ? signature
					 : 0,
			.number = tally->number,
		};
	}
	SORT(found->list, found->count, compare_names);
	return NULL;
}

/*
 * Several signatures may be of a class: make one type of those with the same name. Puts into
 * merged, by number of tally, the number of the one that is left.
 */
static void merge(struct types *found, uint32_t *merged)
{
	size_t kept = 0;

	list_for_each(type, found->list, found->count) {
		struct type *last = kept ? &found->list[kept - 1] : NULL;

		assert(type->name);
		if (!last || strcmp(last->name, type->name) != 0) {
			merged[type->number] = type->number;
			found->list[kept++] = *type;
			continue;
		}
		last->count += type->count;
		last->bytes += type->bytes;
		merged[type->number] = last->number;
		free(type->name);
	}
	found->count = kept;
}

static struct error *make_list(struct finder *finder)
{
	struct types *found = finder->found;
	size_t count = finder->tallies.count;
	_cleanup_(free) uint32_t *merged = calloc(count + 1, sizeof(*merged));
	_cleanup_(free) uint32_t *places = calloc(count + 1, sizeof(*places));

	TRY_MEMORY(merged && places);
	TRY(name_all(finder));
	merge(found, merged);
	SORT(found->list, found->count, compare_counts);
	for (size_t i = 0; i < found->count; i++)
		places[found->list[i].number] = (uint32_t)i;
	bitmap_for_each(id, &found->live) {
		uint32_t *group = &found->groups.items[id];

		if (*group != NO_GROUP)
			*group = places[merged[*group]];
	}
	return NULL;
}

static struct error *find_live(struct analysis *analysis, struct types *types)
{
	const struct allocation_index *index = analysis_index(analysis);
	struct memory_account *account = analysis_account(analysis);
	size_t count = allocation_count(index);

	TRY(bitmap_init(&types->live, count, account));
	bitmap_copy(&types->live, allocation_used(index));
	if (analysis_garbage(analysis))
		bitmap_minus(&types->live, analysis_garbage(analysis));
	types->groups.memory.account = account;
	TRY(array_resize(&types->groups, count + 1));
	for (size_t i = 0; i <= count; i++)
		types->groups.items[i] = NO_GROUP;
	return NULL;
}

static struct error *build_needs(struct finder *finder)
{
	struct analysis *analysis = finder->analysis;

	TRY(analysis_need(analysis, STAGE_CLASSES));
	TRY(analysis_need(analysis, STAGE_REACHABILITY));
	TRY(find_live(analysis, finder->found));
	if (finder->choice == TYPES_OBJECTS && runtimes_have_objects(analysis_runtimes(analysis)))
		return NULL;
	TRY(signatures_need(analysis, &finder->found->live));
	TRY(analysis_need(analysis, STAGE_PATTERNS));
	finder->patterns = analysis_patterns(analysis);
	return NULL;
}

struct error *types_find(struct analysis *analysis, enum types_choice choice, struct types *ret)
{
	_cleanup_(finder_deinit) struct finder finder = {
		.analysis = analysis,
		.choice = choice,
		.tallies.memory.account = analysis_account(analysis),
		.found = ret,
	};

	TRY(build_needs(&finder));
	TRY(count_all(&finder));
	return make_list(&finder);
}

void types_deinit(struct types *types)
{
	for (size_t i = 0; i < types->count; i++)
		free(types->list[i].name);
	free(types->list);
	bitmap_deinit(&types->live);
	array_release(&types->groups);
}

static const char *type_name(const void *data, size_t number)
{
	const struct types *types = data;

	return number < types->count ? types->list[number].name : NULL;
}

struct error *types_find_name(const struct types *types, const char *name, uint32_t *ret)
{
	for (size_t i = 0; i < types->count; i++) {
		if (strcmp(types->list[i].name, name) != 0)
			continue;
		*ret = (uint32_t)i;
		return NULL;
	}
	return error_unknown("type", name, nearest_word(name, type_name, types));
}
