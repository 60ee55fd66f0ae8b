#include "analyzer/account/units.h"

#include "analyzer/base/list.h"
#include "analyzer/base/sort.h"

struct unit_search {
	const struct allocation_index *index;
	const arena_number *only_arena; /* NULL: all */
	struct units *units;
	struct pin_count *pins;	   /* NULL: none */
	ARRAY(allocation_id) used; /* of the unit under way */
	struct progress *progress;
	uint64_t seen;
	uint64_t told;
};

void units_deinit(struct units *units)
{
	table_release(&units->groups);
	table_release(&units->keepers);
}

static struct unit_group *group_of(struct unit_search *search, const struct allocator *allocator,
				   const struct heap_unit *unit)
{
	return table_obtain(&search->units->groups, unit->block, group,
			    group->allocator == allocator && group->kind == unit->kind &&
				    group->block == unit->block,
			    (struct unit_group){ allocator, unit->kind, unit->block });
}

/* Add up what is in the unit. */
static struct error *count_blocks(struct unit_search *search, const struct heap_unit *unit,
				  size_t first, struct set_total *ret_used,
				  struct set_total *ret_free)
{
	size_t hint = 0;

	search->used.count = 0;
	for (size_t id = first; id < allocation_count(search->index); id++) {
		struct memory_range range =
			allocation_range_near(search->index, (allocation_id)id, &hint);
		struct set_total one = { 1, range.end - range.start };

		if (range.start >= unit->end)
			break;
		if (bitmap_get(allocation_used(search->index), id))
			TRY(array_append(&search->used, (allocation_id)id));
		set_total_add(bitmap_get(allocation_used(search->index), id) ? ret_used : ret_free,
			      one);
		TRY(progress_check_at(search->progress, search->seen++, &search->told));
	}
	return NULL;
}

static bool is_chosen(const struct unit_search *search, size_t first)
{
	const struct heap_region *region = heap_region_find(
		search->index, allocation_start(search->index, (allocation_id)first));

	return !search->only_arena || (region && region->arena == *search->only_arena);
}

static struct error *count_unit(void *data, const struct allocator *allocator,
				const struct heap_unit *unit)
{
	enum { NEARLY = 10 };
	struct unit_search *search = data;
	size_t count = allocation_count(search->index);
	size_t first = BISECT(id, 0, count,
			      allocation_start(search->index, (allocation_id)id) < unit->start);
	struct set_total used = { 0 }, free = { 0 };
	uint64_t size = unit->end - unit->start;
	struct unit_group *group;

	if (first == count || !is_chosen(search, first))
		return NULL;
	TRY(count_blocks(search, unit, first, &used, &free));
	group = group_of(search, allocator, unit);
	if (!group)
		return &error_no_memory;
	group->count++;
	group->empty += used.count == 0;
	set_total_add(&group->used, used);
	set_total_add(&group->free, free);
	if (used.count == 0 || free.bytes < size - size / NEARLY)
		return NULL;
	group->sparse++;
	set_total_add(&group->kept_by, used);
	set_total_add(&group->kept, free);
	return search->pins && unit->kind->given_back
		       ? pinned_add(search->pins, search->used.items, search->used.count,
				    free.bytes, true)
		       : NULL;
}

DEFINE_COMPARE(compare_groups, struct unit_group, ALPHABETICAL(allocator->name), ASCENDING(kind),
	       DESCENDING(free.bytes), ASCENDING(block))

struct error *units_find(struct analysis *analysis, const arena_number *only_arena, bool keepers,
			 struct units *ret)
{
	_cleanup_(pinned_deinit) struct pin_count pins = { 0 };
	struct unit_search search = {
		.index = analysis_index(analysis),
		.only_arena = only_arena,
		.units = ret,
		.pins = keepers ? &pins : NULL,
		.progress = analysis_progress(analysis),
	};
	struct error *error = NULL;

	ret->groups.memory.account = analysis_account(analysis);
	search.used.memory.account = analysis_account(analysis);
	if (keepers)
		TRY(pinned_begin(analysis, &ret->keepers, &pins));
	progress_begin(search.progress, "looking at pools", 0);
	error = heaps_visit_units(analysis_heaps(analysis), count_unit, &search);
	array_release(&search.used);
	array_sort(&ret->groups, compare_groups);
	pinned_sort(&ret->keepers);
	return error;
}
