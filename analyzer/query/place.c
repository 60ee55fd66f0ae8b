#include "analyzer/query/place.h"

/* Set the extent of the place that the address is in. */
static bool set_extent(struct place *place, uint64_t start, uint64_t end)
{
	place->start = start;
	place->size = end - start;
	return true;
}

static bool find_allocation(const struct analysis *analysis, uint64_t address, struct place *place)
{
	const struct allocation_index *index = analysis_index(analysis);
	uint64_t start;

	place->id = allocation_find(index, address);
	if (place->id == NO_ALLOCATION)
		return false;
	start = allocation_start(index, place->id);
	return set_extent(place, start, start + allocation_size(index, place->id));
}

static bool find_stack(const struct analysis *analysis, uint64_t address, struct place *place)
{
	const struct stack *stack = program_find_stack(analysis_program(analysis), address);

	place->stack = stack;
	return stack && set_extent(place, stack->start, stack->end);
}

static bool find_arena(const struct analysis *analysis, uint64_t address, struct place *place)
{
	const struct heap_region *region = heap_region_find(analysis_index(analysis), address);
	const struct heaps *heaps = analysis_heaps(analysis);

	if (!region || region->arena >= heaps_arena_count(heaps))
		return false;
	place->arena = heaps_arena(heaps, region->arena);
	place->allocator = heaps_arena_allocator(heaps, region->arena);
	return set_extent(place, region->start, region->end);
}

static bool find_claim(const struct analysis *analysis, uint64_t address, struct place *place)
{
	const struct allocation_index *index = analysis_index(analysis);
	size_t number = heap_claim_above(index, address);
	struct memory_range claim;

	if (number == heap_claim_count(index))
		return false;
	claim = heap_claim(index, number);
	return claim.start <= address && set_extent(place, claim.start, claim.end);
}

static bool find_module(const struct analysis *analysis, uint64_t address, struct place *place)
{
	const struct module *module = program_find_module(analysis_program(analysis), address);

	place->module = module;
	return module && set_extent(place, module->start, module->end);
}

static bool find_mapping(const struct analysis *analysis, uint64_t address, struct place *place)
{
	const struct region *region = place->region;

	return region && set_extent(place, region->start, region->end);
}

struct place place_find(const struct analysis *analysis, uint64_t address)
{
	static bool (*const finders[])(const struct analysis *analysis, uint64_t address,
				       struct place *place) = {
		[PLACE_ALLOCATION] = find_allocation, [PLACE_STACK] = find_stack,
		[PLACE_ARENA] = find_arena,	      [PLACE_BOOKKEEPING] = find_claim,
		[PLACE_MODULE] = find_module,	      [PLACE_MAPPING] = find_mapping,
	};
	struct place place = {
		.region = image_find(analysis_image(analysis), address),
		.id = NO_ALLOCATION,
	};

	while (place.kind < PLACE_NOWHERE && !finders[place.kind](analysis, address, &place))
		place.kind++;
	return place;
}

const char *allocation_name(const struct analysis *analysis, allocation_id id)
{
	uint64_t signature = analysis_signature(analysis, id);
	struct identity identity;

	if (signature)
		return classes_name(analysis_classes(analysis), signature);
	return analysis_identity(analysis, id, &identity) ? identity.name : NULL;
}

/* The part of a call that is there, or else whose stack it is. */
static const char *name_in_stack(const struct analysis *analysis, const struct stack *stack,
				 uint64_t address)
{
	const char *name = NULL;

	if (stack->thread != NO_THREAD && address >= stack->live)
		name = debug_stack_place(analysis_debug(analysis), stack->thread, address);
	return name ? name : stack_kind_name(stack->kind);
}

const char *place_name(const struct analysis *analysis, const struct place *place, uint64_t address)
{
	switch (place->kind) {
	case PLACE_ALLOCATION:
		return allocation_name(analysis, place->id);
	case PLACE_STACK:
		return name_in_stack(analysis, place->stack, address);
	case PLACE_ARENA:
		return place->arena.kind->name;
	case PLACE_MODULE:
		return debug_name(analysis_debug(analysis), address);
	default:
		return place->region && place->region->mapping ? place->region->mapping->path
							       : NULL;
	}
}

struct naming {
	const char *noun, *group;
};

static const struct naming *naming_of(const struct analysis *analysis, const struct place *place)
{
	static const struct naming namings[] = {
		[PLACE_ALLOCATION] = { "used allocation", "Matches in used allocations" },
		[PLACE_STACK] = { "stack", "Matches in stacks" },
		[PLACE_ARENA] = { "allocator's own", "Matches in the allocators' own memory" },
		[PLACE_BOOKKEEPING] = { "allocator's own",
					"Matches in the allocators' own memory" },
		[PLACE_MODULE] = { "module", "Matches in modules" },
		[PLACE_MAPPING] = { "mapped file", "Matches in other mapped files" },
		[PLACE_NOWHERE] = { "anonymous memory", "Matches in other anonymous memory" },
	};
	static const struct naming free_ones = { "free allocation", "Matches in free allocations" };

	if (place->kind == PLACE_ALLOCATION &&
	    !bitmap_get(allocation_used(analysis_index(analysis)), place->id))
		return &free_ones;
	if (place->kind == PLACE_MAPPING && !place->region->mapping)
		return &namings[PLACE_NOWHERE];
	return &namings[place->kind];
}

const char *place_noun(const struct analysis *analysis, const struct place *place)
{
	return naming_of(analysis, place)->noun;
}

const char *place_group(const struct analysis *analysis, const struct place *place)
{
	return naming_of(analysis, place)->group;
}
