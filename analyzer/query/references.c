#include "analyzer/query/references.h"

#include "analyzer/base/text.h"
#include "analyzer/query/place.h"

#include <inttypes.h>
#include <string.h>

static const struct skip_name {
	const char *name;
	unsigned int places;
} skip_names[] = {
	{ "used", SKIP_USED },
	{ "free", SKIP_FREE },
	{ "allocations", SKIP_USED | SKIP_FREE },
	{ "stacks", SKIP_STACKS },
};

enum { SKIP_NAMES = sizeof(skip_names) / sizeof(*skip_names) };

static const char *skip_name(const void *data, size_t number)
{
	return number < SKIP_NAMES ? skip_names[number].name : NULL;
}

struct error *skipped_parse(const char *word, unsigned int *skipped)
{
	const char *nearest = nearest_word(word, skip_name, NULL);

	for (size_t i = 0; i < SKIP_NAMES; i++) {
		if (strcasecmp(word, skip_names[i].name) == 0) {
			*skipped |= skip_names[i].places;
			return NULL;
		}
	}
	if (nearest)
		return error_unknown("place to skip", word, nearest);
	return error_not(word, "a place to skip: used, free, allocations or stacks");
}

/* What a search is to leave out. */
struct skipping {
	const struct analysis *analysis;
	unsigned int places;
};

static bool is_skipped(const void *data, uint64_t address)
{
	const struct skipping *skipping = data;
	const struct analysis *analysis = skipping->analysis;
	const struct allocation_index *index = analysis_index(analysis);
	allocation_id id;

	if ((skipping->places & SKIP_STACKS) &&
	    program_find_stack(analysis_program(analysis), address))
		return true;
	if (!(skipping->places & (SKIP_USED | SKIP_FREE)))
		return false;
	id = allocation_find(index, address);
	if (id == NO_ALLOCATION)
		return false;
	return skipping->places & (bitmap_get(allocation_used(index), id) ? SKIP_USED : SKIP_FREE);
}

struct error *references_find(struct analysis *analysis, struct search search, unsigned int skipped,
			      struct ranges *ret)
{
	struct skipping skipping = { analysis, skipped };
	struct error *error;

	search.skips = skipped ? is_skipped : NULL;
	search.data = &skipping;
	error = search_memory(analysis_image(analysis), &search, analysis_account(analysis),
			      analysis_progress(analysis), &ret->hits);
	if (!error)
		ret->count = ret->hits.addresses.count;
	return error;
}

static struct error *pointers_collect(struct analysis *analysis,
				      const struct set_arguments *arguments, struct ranges *ret)
{
	struct search search = { .kind = SEARCH_WORDS, .first = arguments->values[0], .span = 1 };

	return references_find(analysis, search, arguments->skipped, ret);
}

static struct error *rangerefs_collect(struct analysis *analysis,
				       const struct set_arguments *arguments, struct ranges *ret)
{
	uint64_t start = arguments->values[0], end = arguments->values[1];
	struct search search = { .kind = SEARCH_WORDS, .first = start, .span = end - start };

	if (start >= end)
		return error_create(ERROR_USAGE,
				    "the range from 0x%" PRIx64 " up to 0x%" PRIx64
				    ", its excluded end, is empty",
				    start, end);
	return references_find(analysis, search, arguments->skipped, ret);
}

static struct error *relrefs_collect(struct analysis *analysis,
				     const struct set_arguments *arguments, struct ranges *ret)
{
	struct search search = { .kind = SEARCH_RELATIVE, .first = arguments->values[0] };

	return references_find(analysis, search, arguments->skipped, ret);
}

static const char *place_name(const struct analysis *analysis, const struct place *place)
{
	switch (place->kind) {
	case PLACE_ALLOCATION:
		return bitmap_get(allocation_used(analysis_index(analysis)), place->id)
			       ? "used allocation"
			       : "free allocation";
	case PLACE_STACK:
		return "stack";
	case PLACE_ARENA:
	case PLACE_BOOKKEEPING:
		return "allocator's own";
	case PLACE_MODULE:
		return "module";
	default:
		return place->region && place->region->mapping ? "mapped file" : "anonymous memory";
	}
}

/* What of a call stands there, or else whose stack it is. */
static const char *stack_name(const struct analysis *analysis, const struct stack *stack,
			      uint64_t address)
{
	const char *name = NULL;

	if (stack->thread != NO_THREAD && address >= stack->live)
		name = debug_stack_place(analysis_debug(analysis), stack->thread, address);
	return name ? name : stack_kind_name(stack->kind);
}

/* The name of what stands there, or of what it is part of; or NULL. */
static const char *what_name(const struct analysis *analysis, const struct place *place,
			     uint64_t address)
{
	struct identity identity;
	uint64_t signature;

	switch (place->kind) {
	case PLACE_ALLOCATION:
		signature = analysis_signature(analysis, place->id);
		if (signature)
			return classes_name(analysis_classes(analysis), signature);
		return analysis_identity(analysis, place->id, &identity) ? identity.name : NULL;
	case PLACE_STACK:
		return stack_name(analysis, place->stack, address);
	case PLACE_ARENA:
		return place->arena.kind->name;
	case PLACE_MODULE:
		return debug_name(analysis_debug(analysis), address);
	default:
		return place->region && place->region->mapping ? place->region->mapping->path
							       : NULL;
	}
}

static void write_hit(const struct analysis *analysis, const struct ranges *ranges,
		      const struct range *range, struct report *report)
{
	struct place place = place_find(analysis, range->start);

	report_add(report, range->start, place_name(analysis, &place), place.start,
		   range->start - place.start, what_name(analysis, &place, range->start));
}

static const char *group_of(const struct analysis *analysis, const struct range *range)
{
	struct place place = place_find(analysis, range->start);

	switch (place.kind) {
	case PLACE_ALLOCATION:
		return bitmap_get(allocation_used(analysis_index(analysis)), place.id)
			       ? "Those in used allocations"
			       : "Those in free allocations";
	case PLACE_STACK:
		return "Those in stacks";
	case PLACE_ARENA:
	case PLACE_BOOKKEEPING:
		return "Those in memory of the allocators' own";
	case PLACE_MODULE:
		return "Those in modules";
	default:
		return place.region && place.region->mapping ? "Those in other mapped files"
							     : "Those in other anonymous memory";
	}
}

#define HIT_TABLE(name, sentence)                                                 \
	TABLE(name, sentence, { "address", VALUE_ADDRESS }, { "in", VALUE_TEXT }, \
	      { "start", VALUE_ADDRESS }, { "at offset", VALUE_ADDRESS }, { "name", VALUE_TEXT })

const struct range_kind range_kind_pointers = {
	.noun = "pointers",
	.table = HIT_TABLE("pointer", NULL),
	.contiguous = true,
	.skips = true,
	.needs = STAGE_CLASSES,
	.collect = pointers_collect,
	.write = write_hit,
	.group = group_of,
};

const struct range_kind range_kind_rangerefs = {
	.noun = "range references",
	.table = HIT_TABLE("reference", NULL),
	.contiguous = true,
	.skips = true,
	.needs = STAGE_CLASSES,
	.collect = rangerefs_collect,
	.write = write_hit,
	.group = group_of,
};

const struct range_kind range_kind_relrefs = {
	.noun = "relative references",
	.table = HIT_TABLE("reference", NULL),
	.contiguous = true,
	.skips = true,
	.needs = STAGE_CLASSES,
	.collect = relrefs_collect,
	.write = write_hit,
	.group = group_of,
};

const struct range_kind range_kind_matches = {
	.noun = "matches",
	.table = HIT_TABLE("match", NULL),
	.contiguous = true,
	.skips = true,
	.needs = STAGE_CLASSES,
	.write = write_hit,
	.group = group_of,
};
