#include "analyzer/account/units.h"

#include "analyzer/base/list.h"
#include "analyzer/base/sort.h"

enum { NEARLY = 10 }; /* one in so many is in use */

struct unit_search {
	const struct allocation_index *index;
	const arena_number *only_arena; /* NULL: all */
	struct units *units;
	struct pin_count *pins;	   /* NULL: none */
	ARRAY(allocation_id) used; /* of the unit under way */
	struct progress *progress;
	uint64_t seen;
	uint64_t reported;
};

void units_deinit(struct units *units)
{
	tables_release(&units->groups, &units->keepers);
}

static struct unit_group *group_of(struct units *units, const char *memory,
				   const struct heap_unit *unit)
{
	return table_obtain(&units->groups, unit->block, group,
			    group->memory == memory && group->kind == unit->kind &&
				    group->block == unit->block,
			    (struct unit_group){ memory, unit->kind, unit->block });
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
		TRY(progress_check_at(search->progress, search->seen++, &search->reported));
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
	group = group_of(search->units, allocator->name, unit);
	TRY_MEMORY(group);
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

DEFINE_COMPARE(compare_groups, struct unit_group, ALPHABETICAL(memory), ASCENDING(kind),
	       DESCENDING(free.bytes), ASCENDING(block))

/* A page of objects that its runtime counts, unless the objects are allocations. */
static struct error *count_page(struct units *units, const struct object_pages *pages,
				const struct image *image, const struct allocation_index *index,
				uint64_t page)
{
	static const struct unit_kind kind = { "chunk", .given_back = true };
	uint64_t size = pages->measure(image, page), used, room;
	const struct heap_unit unit = { &kind, page, page + size, 0 };
	struct unit_group *group;

	if (!size || heap_region_find(index, page + size / 2) ||
	    !pages->fill(image, page, &used, &room) || used > room)
		return NULL;
	group = group_of(units, pages->use(image, page), &unit);
	TRY_MEMORY(group);
	group->count++;
	group->empty += used == 0;
	group->used.bytes += used;
	group->free.bytes += room - used;
	group->sparse += used > 0 && used < room / NEARLY;
	return NULL;
}

/* Holes of the dump are passed over. */
static struct error *count_pages(struct units *units, const struct object_pages *pages,
				 const struct image *image, const struct allocation_index *index)
{
	uint64_t distance = pages->alignment[0];

	list_for_each(region, image->regions, image->region_count) {
		uint64_t at = (region->start + distance - 1) & ~(distance - 1);

		while (at >= region->start && at < region->end) {
			uint64_t data = image_next_data(image, at);

			if (data - at < distance)
				TRY(count_page(units, pages, image, index, at));
			else
				at = (data & ~(distance - 1)) - distance;
			at += distance;
		}
	}
	return NULL;
}

static struct error *count_runtimes(struct analysis *analysis, struct units *units)
{
	const struct runtimes *runtimes;

	TRY(analysis_need(analysis, STAGE_FIBERS));
	runtimes = analysis_runtimes(analysis);
	for (size_t i = 0; i < runtime_count(runtimes); i++) {
		const struct object_pages *pages = runtime_at(runtimes, i)->pages;

		if (pages && pages->fill)
			TRY(count_pages(units, pages, analysis_image(analysis),
					analysis_index(analysis)));
	}
	return NULL;
}

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

	arrays_use(analysis_account(analysis), &ret->groups, &search.used);
	if (keepers)
		TRY(pinned_begin(analysis, &ret->keepers, &pins));
	progress_begin(search.progress, "examining pools", 0);
	error = heaps_visit_units(analysis_heaps(analysis), count_unit, &search);
	array_release(&search.used);
	if (!error && !only_arena)
		error = count_runtimes(analysis, ret);
	array_sort(&ret->groups, compare_groups);
	pinned_sort(&ret->keepers);
	return error;
}
