#include "analyzer/query/place.h"

static bool find_allocation(const struct analysis *analysis, uint64_t address, struct place *place)
{
	const struct allocation_index *index = analysis_index(analysis);

	place->id = allocation_find(index, address);
	if (place->id == NO_ALLOCATION)
		return false;
	place->kind = PLACE_ALLOCATION;
	place->start = allocation_start(index, place->id);
	place->size = allocation_size(index, place->id);
	return true;
}

static bool find_stack(const struct analysis *analysis, uint64_t address, struct place *place)
{
	const struct program *program = analysis_program(analysis);

	place->stack = program_find_stack(program, address);
	if (!place->stack)
		return false;
	place->kind = PLACE_STACK;
	place->start = place->stack->start;
	place->size = place->stack->end - place->stack->start;
	return true;
}

static bool find_arena(const struct analysis *analysis, uint64_t address, struct place *place)
{
	const struct heap_region *region = heap_region_find(analysis_index(analysis), address);
	const struct heaps *heaps = analysis_heaps(analysis);

	if (!region || region->arena >= heaps_arena_count(heaps))
		return false;
	place->kind = PLACE_ARENA;
	place->arena = heaps_arena(heaps, region->arena);
	place->allocator = heaps_arena_allocator(heaps, region->arena);
	place->start = region->start;
	place->size = region->end - region->start;
	return true;
}

static bool find_claim(const struct analysis *analysis, uint64_t address, struct place *place)
{
	const struct allocation_index *index = analysis_index(analysis);
	size_t number = heap_claim_above(index, address);

	if (number == heap_claim_count(index) || heap_claim(index, number).start > address)
		return false;
	place->kind = PLACE_BOOKKEEPING;
	place->start = heap_claim(index, number).start;
	place->size = heap_claim(index, number).end - place->start;
	return true;
}

static bool find_module(const struct analysis *analysis, uint64_t address, struct place *place)
{
	const struct program *program = analysis_program(analysis);

	place->module = program_find_module(program, address);
	if (!place->module)
		return false;
	place->kind = PLACE_MODULE;
	place->start = place->module->start;
	place->size = place->module->end - place->module->start;
	return true;
}

struct place place_find(const struct analysis *analysis, uint64_t address)
{
	struct place place = {
		.kind = PLACE_NOWHERE,
		.region = image_find(analysis_image(analysis), address),
		.id = NO_ALLOCATION,
	};

	if (find_allocation(analysis, address, &place) || find_stack(analysis, address, &place) ||
	    find_arena(analysis, address, &place) || find_claim(analysis, address, &place) ||
	    find_module(analysis, address, &place) || !place.region)
		return place;
	place.kind = PLACE_MAPPING;
	place.start = place.region->start;
	place.size = place.region->end - place.region->start;
	return place;
}
