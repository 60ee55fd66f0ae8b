#include "analyzer/query/place.h"

static bool find_allocation(const struct analysis *analysis, uint64_t address, struct place *place)
{
	const struct allocation_index *index = analysis_index(analysis);

	place->id = allocation_find(index, address);
	if (place->id == NO_ALLOCATION)
		return false;
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
	place->start = place->module->start;
	place->size = place->module->end - place->module->start;
	return true;
}

static bool find_mapping(const struct analysis *analysis, uint64_t address, struct place *place)
{
	if (!place->region)
		return false;
	place->start = place->region->start;
	place->size = place->region->end - place->region->start;
	return true;
}

const char *allocation_name(const struct analysis *analysis, allocation_id id)
{
	uint64_t signature = analysis_signature(analysis, id);
	struct identity identity;

	if (signature)
		return classes_name(analysis_classes(analysis), signature);
	return analysis_identity(analysis, id, &identity) ? identity.name : NULL;
}

static const char *name_allocation(const struct analysis *analysis, const struct place *place,
				   uint64_t address)
{
	return allocation_name(analysis, place->id);
}

/* The part of a call that is there, or else whose stack it is. */
static const char *name_in_stack(const struct analysis *analysis, const struct place *place,
				 uint64_t address)
{
	const struct stack *stack = place->stack;
	const char *name = NULL;

	if (stack->thread != NO_THREAD && address >= stack->live)
		name = debug_stack_place(analysis_debug(analysis), stack->thread, address);
	return name ? name : stack_kind_name(stack->kind);
}

static const char *name_arena(const struct analysis *analysis, const struct place *place,
			      uint64_t address)
{
	return place->arena.kind->name;
}

static const char *name_symbol(const struct analysis *analysis, const struct place *place,
			       uint64_t address)
{
	return debug_name(analysis_debug(analysis), address);
}

static const char *name_mapping(const struct analysis *analysis, const struct place *place,
				uint64_t address)
{
	const struct region *region = place->region;

	return region && region->mapping ? region->mapping->path : NULL;
}

struct naming {
	const char *noun, *group;
};

static const struct describer {
	/* Fill in the place if the address is in one of this kind; NULL: it never is. */
	bool (*find)(const struct analysis *analysis, uint64_t address, struct place *place);
	const char *(*name)(const struct analysis *analysis, const struct place *place,
			    uint64_t address);
	struct naming naming;
	struct naming other; /* of free allocations and anonymous memory */
} describers[] = {
	[PLACE_ALLOCATION] = { find_allocation,
			       name_allocation,
			       { "used allocation", "Those in used allocations" },
			       { "free allocation", "Those in free allocations" } },
	[PLACE_STACK] = { find_stack, name_in_stack, { "stack", "Those in stacks" } },
	[PLACE_ARENA] = { find_arena,
			  name_arena,
			  { "allocator's own", "Those in memory of the allocators' own" } },
	[PLACE_BOOKKEEPING] = { find_claim,
				name_mapping,
				{ "allocator's own", "Those in memory of the allocators' own" } },
	[PLACE_MODULE] = { find_module, name_symbol, { "module", "Those in modules" } },
	[PLACE_MAPPING] = { find_mapping,
			    name_mapping,
			    { "mapped file", "Those in other mapped files" },
			    { "anonymous memory", "Those in other anonymous memory" } },
	[PLACE_NOWHERE] = { NULL,
			    name_mapping,
			    { "anonymous memory", "Those in other anonymous memory" } },
};

struct place place_find(const struct analysis *analysis, uint64_t address)
{
	struct place place = {
		.region = image_find(analysis_image(analysis), address),
		.id = NO_ALLOCATION,
	};

	while (place.kind < PLACE_NOWHERE &&
	       !describers[place.kind].find(analysis, address, &place))
		place.kind++;
	return place;
}

static const struct naming *naming_of(const struct analysis *analysis, const struct place *place)
{
	const struct describer *describer = &describers[place->kind];
	bool other = false;

	if (place->kind == PLACE_ALLOCATION)
		other = !bitmap_get(allocation_used(analysis_index(analysis)), place->id);
	else if (place->kind == PLACE_MAPPING)
		other = !place->region->mapping;
	return other ? &describer->other : &describer->naming;
}

const char *place_noun(const struct analysis *analysis, const struct place *place)
{
	return naming_of(analysis, place)->noun;
}

const char *place_group(const struct analysis *analysis, const struct place *place)
{
	return naming_of(analysis, place)->group;
}

const char *place_name(const struct analysis *analysis, const struct place *place, uint64_t address)
{
	return describers[place->kind].name(analysis, place, address);
}
