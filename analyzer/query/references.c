/*
 * The sets of references: hits of a search through the memory, wherever they are.
 */

#include "analyzer/query/place.h"
#include "analyzer/query/set.h"

#include <inttypes.h>

/* The places that a search skips. */
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

	search.skips = skipped ? is_skipped : NULL;
	search.data = &skipping;
	TRY(search_memory(analysis_image(analysis), &search, analysis_account(analysis),
			  analysis_progress(analysis), &ret->hits));
	ret->count = ret->hits.addresses.count;
	return NULL;
}

static struct error *collect(struct analysis *analysis, const struct set_arguments *arguments,
			     struct ranges *ret)
{
	const struct range_kind *kind = arguments->set->ranges;
	uint64_t start = arguments->values[0], end = arguments->values[1];
	struct search search = {
		.kind = kind->is_relative				 ? SEARCH_RELATIVE
			: image_word_size(analysis_image(analysis)) == 4 ? SEARCH_WORDS_32
									 : SEARCH_WORDS,
		.first = start,
		.span = kind->spans ? end - start : 1,
	};

	if (kind->spans && start >= end)
		return error_create(ERROR_USAGE,
				    "the range from 0x%" PRIx64 " up to 0x%" PRIx64
				    ", its excluded end, is empty",
				    start, end);
	return references_find(analysis, search, arguments->skipped, ret);
}

static void write_hit(const struct analysis *analysis, const struct ranges *ranges,
		      const struct range *range, struct report *report)
{
	struct place place = place_find(analysis, range->start);

	report_add(report, range->start, place_noun(analysis, &place), place.start,
		   range->start - place.start, place_name(analysis, &place, range->start));
}

static const char *hit_group(const struct analysis *analysis, const struct range *range)
{
	struct place place = place_find(analysis, range->start);

	return place_group(analysis, &place);
}

#define HITS(the_noun, name, ...)                                                              \
	{                                                                                      \
		.noun = the_noun,                                                              \
		.table = TABLE(name, NULL, { "address", VALUE_ADDRESS }, { "in", VALUE_TEXT }, \
			       { "start", VALUE_ADDRESS }, { "at offset", VALUE_ADDRESS },     \
			       { "name", VALUE_TEXT }),                                        \
		.contiguous = true, .skips = true, .needs = STAGE_CLASSES, .write = write_hit, \
		.group = hit_group, __VA_ARGS__                                                \
	}

const struct range_kind range_kind_pointers = HITS("pointers", "pointer", .collect = collect);
const struct range_kind range_kind_rangerefs =
	HITS("range references", "reference", .collect = collect, .spans = true);
const struct range_kind range_kind_relrefs =
	HITS("relative references", "reference", .collect = collect, .is_relative = true);
const struct range_kind range_kind_matches = HITS("matches", "match");
