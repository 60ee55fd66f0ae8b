#include "analyzer/kinds/types.h"

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

/* Number the types in the order in which they are found. */
static struct error *count_all(struct finder *finder)
{
	struct progress *progress = analysis_progress(finder->analysis);
	const struct allocation_index *index = analysis_index(finder->analysis);
	uint32_t *groups = finder->found->groups.bytes;
	uint64_t told = 0;

	progress_begin(progress, "telling what things are", finder->found->live.count);
	bitmap_for_each(id, &finder->found->live) {
		kind_key key = kind_type(finder->analysis, finder->patterns, (allocation_id)id);
		struct tally tally = {
			.key = key,
			.count = 1,
			.bytes = allocation_size(index, (allocation_id)id),
		};
		struct error *error;

		if (key == KIND_UNKNOWN)
			continue;
		error = tally_add_numbered(&finder->tallies, tally, &groups[id]);
		if (error)
			return error;
		if (!progress_pass(progress, id, &told))
			return error_create(ERROR_INTERRUPTED, "interrupted");
	}
	return NULL;
}

/* A tally with its type's name. */
struct named {
	struct type type;
	uint32_t number;
};

static void free_names(struct named *named, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(named[i].type.name);
	free(named);
}

DEFINE_COMPARE(compare_names, struct named, ALPHABETICAL(type.name))

DEFINE_COMPARE(compare_counts, struct named, DESCENDING(type.count), AS_BY(compare_names))

/* The tallies with their names, in the order of these. */
static struct error *name_all(const struct finder *finder, struct named **ret)
{
	const struct tally_table *tallies = &finder->tallies;
	struct named *named = calloc(tallies->count + 1, sizeof(*named));
	size_t count = 0;

	if (!named)
		return &error_no_memory;
	for (size_t i = 0; i < tallies->count; i++) {
		const struct tally *tally = &tallies->items[i];

		named[count].number = tally->number;
		named[count].type = (struct type){
			.name = kind_text(finder->analysis, tally->key),
			.count = tally->count,
			.bytes = tally->bytes,
		};
		if (!named[count++].type.name) {
			free_names(named, count - 1);
			return &error_no_memory;
		}
	}
	SORT(named, count, compare_names);
	*ret = named;
	return NULL;
}

/*
 * Several signatures may be of a class: make one of those with the same name. Notes in merged, by
 * number, the number of the one that is left.
 */
static size_t merge(struct named *named, size_t count, uint32_t *merged)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++) {
		struct named *last = kept ? &named[kept - 1] : NULL;

		assert(named[i].type.name);
		if (!last || strcmp(last->type.name, named[i].type.name) != 0) {
			merged[named[i].number] = named[i].number;
			named[kept++] = named[i];
			continue;
		}
		last->type.count += named[i].type.count;
		last->type.bytes += named[i].type.bytes;
		merged[named[i].number] = last->number;
		free(named[i].type.name);
	}
	return kept;
}

/* Replace the numbers of tallies by places in the list. */
static struct error *place_all(struct finder *finder, const struct named *named, size_t count,
			       const uint32_t *merged)
{
	struct types *found = finder->found;
	size_t tallies = finder->tallies.count;
	_cleanup_(free) uint32_t *places = calloc(tallies + 1, sizeof(*places));
	uint32_t *groups = found->groups.bytes;

	if (!places)
		return &error_no_memory;
	for (size_t i = 0; i < count; i++)
		places[named[i].number] = (uint32_t)i;
	bitmap_for_each(id, &found->live)
		if (groups[id] != NO_GROUP)
			groups[id] = places[merged[groups[id]]];
	return NULL;
}

/* Hand the names over to the list. */
static struct error *list_all(struct finder *finder, struct named *named, size_t count)
{
	struct types *found = finder->found;

	found->list = calloc(count + 1, sizeof(*found->list));
	if (!found->list) {
		free_names(named, count);
		return &error_no_memory;
	}
	for (size_t i = 0; i < count; i++)
		found->list[i] = named[i].type;
	found->count = count;
	free(named);
	return NULL;
}

static struct error *make_list(struct finder *finder)
{
	size_t count = finder->tallies.count;
	_cleanup_(free) uint32_t *merged = calloc(count + 1, sizeof(*merged));
	struct named *named = NULL;
	struct error *error = merged ? name_all(finder, &named) : &error_no_memory;

	if (error)
		return error;
	count = merge(named, count, merged);
	SORT(named, count, compare_counts);
	error = place_all(finder, named, count, merged);
	if (error) {
		free_names(named, count);
		return error;
	}
	return list_all(finder, named, count);
}

static struct error *find_live(struct analysis *analysis, struct types *types)
{
	const struct allocation_index *index = analysis_index(analysis);
	struct memory_account *account = analysis_account(analysis);
	size_t count = allocation_count(index);
	struct error *error = bitmap_init(&types->live, count, account);

	if (error)
		return error;
	bitmap_copy(&types->live, allocation_used(index));
	if (analysis_garbage(analysis))
		bitmap_minus(&types->live, analysis_garbage(analysis));
	types->groups.account = account;
	error = memory_resize(&types->groups, (count + 1) * sizeof(uint32_t));
	if (!error)
		memset(types->groups.bytes, 0xff, types->groups.size);
	return error;
}

static struct error *build_needs(struct finder *finder)
{
	struct analysis *analysis = finder->analysis;
	struct error *error = analysis_need(analysis, STAGE_CLASSES);

	if (!error)
		error = analysis_need(analysis, STAGE_REACHABILITY);
	if (!error)
		error = find_live(analysis, finder->found);
	if (error ||
	    (finder->choice == TYPES_OBJECTS && runtimes_have_objects(analysis_runtimes(analysis))))
		return error;
	error = signatures_need(analysis, &finder->found->live);
	if (!error)
		error = analysis_need(analysis, STAGE_PATTERNS);
	if (!error)
		finder->patterns = analysis_patterns(analysis);
	return error;
}

struct error *types_find(struct analysis *analysis, enum types_choice choice, struct types *ret)
{
	struct finder finder = { .analysis = analysis, .choice = choice, .found = ret };
	struct error *error;

	finder.tallies.memory.account = analysis_account(analysis);
	error = build_needs(&finder);
	if (!error)
		error = count_all(&finder);
	if (!error)
		error = make_list(&finder);
	table_release(&finder.tallies);
	return error;
}

void types_deinit(struct types *types)
{
	for (size_t i = 0; i < types->count; i++)
		free(types->list[i].name);
	free(types->list);
	bitmap_deinit(&types->live);
	memory_release(&types->groups);
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
