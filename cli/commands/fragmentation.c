#include "analyzer/base/text.h"
#include "cli/command.h"
#include "cli/views/fragmentation_rows.h"

#include <string.h>

enum { USUAL_LIMIT = 20 };

struct fragmentation_arguments {
	bool has_arena;
	uint64_t arena; /* its address */
	bool by_arena, quick;
	bool has_limit;
	uint64_t limit;
};

static const struct argp_option options[] = {
	{ "arena", 'a', "ADDRESS", 0, "Look at the arena at ADDRESS alone", 0 },
	{ "by-arena", 'b', NULL, 0, "Show the sizes of free blocks for each arena", 0 },
	{ "limit", 'l', "N", 0, "Show at most N rows of a table, 0 for all; 20 otherwise", 0 },
	{ "quick", 'q', NULL, 0, "Do not find out what pins memory", 0 },
	{ 0 },
};

static const struct switch_place places[] = {
	PLACE_GIVEN('a', PLACE_ADDRESS, struct fragmentation_arguments, arena, has_arena),
	PLACE('b', PLACE_FLAG, struct fragmentation_arguments, by_arena),
	PLACE_GIVEN('l', PLACE_COUNT, struct fragmentation_arguments, limit, has_limit),
	PLACE('q', PLACE_FLAG, struct fragmentation_arguments, quick),
	{ 0 },
};

static struct error *fragmentation_parse(int key, const char *value, void *output)
{
	if (key == ARGP_KEY_END)
		return NULL;
	return error_create(ERROR_USAGE, "'%s' is one word too many behind 'fragmentation'", value);
}

/* Of which arenas the command tells. */
static struct error *choose_arenas(const struct analysis *analysis,
				   const struct fragmentation_arguments *arguments,
				   arena_number *ret, size_t *ret_count)
{
	const struct heaps *heaps = analysis_heaps(analysis);
	size_t count = heaps_arena_count(heaps);

	*ret_count = 0;
	for (size_t i = 0; i < count; i++)
		if (!arguments->has_arena ||
		    heaps_arena(heaps, (arena_number)i).address == arguments->arena)
			ret[(*ret_count)++] = (arena_number)i;
	if (arguments->has_arena && *ret_count == 0)
		return error_create(ERROR_USAGE, "there is no arena at 0x%jx; see 'list arenas'",
				    (uintmax_t)arguments->arena);
	return NULL;
}

static int compare_arenas(const void *a, const void *b, void *data)
{
	const arena_number *left = a, *right = b;
	uint64_t left_bytes = fragments_of(data, *left)->free.bytes;
	uint64_t right_bytes = fragments_of(data, *right)->free.bytes;

	if (left_bytes != right_bytes)
		return left_bytes > right_bytes ? -1 : 1;
	return (*left > *right) - (*left < *right);
}

static void write_total(const struct fragmentation *fragmentation, struct report *report)
{
	static const struct table table = TABLE(
		"total free",
		"{used,} bytes are used and {free,} are free. If asked to, as by malloc_trim(0), allocators\n"
		"would give back {given back,} bytes; {pinned,} are pinned: on pages that are in use.",
		{ "used", VALUE_BYTES }, { "free", VALUE_BYTES }, { "given back", VALUE_BYTES },
		{ "pinned", VALUE_BYTES });
	const struct arena_fragments *total = fragmentation->total;

	report_single(report, &table, total->used.bytes, total->free.bytes,
		      fragments_given_back(total), total->pinned);
}

static struct error *write_all(const struct fragmentation *fragmentation,
			       const struct fragmentation_arguments *arguments,
			       const struct pinnings *pinnings, struct report *report)
{
	struct error *error = NULL;

	write_total(fragmentation, report);
	fragmentation_write_fates(fragmentation, report);
	fragmentation_write_arenas(fragmentation, report);
	fragmentation_write_maps(fragmentation, report);
	fragmentation_write_sizes(fragmentation, arguments->by_arena, report);
	if (!arguments->quick)
		error = fragmentation_write_pinnings(fragmentation, pinnings, report);
	if (!error)
		error = fragmentation_write_ends(fragmentation, !arguments->quick, report);
	if (!error)
		fragmentation_write_estimate(fragmentation, report);
	return error;
}

static struct error *fragmentation_run(struct analysis *analysis, const void *input,
				       struct report *report)
{
	const struct fragmentation_arguments *arguments = input;
	_cleanup_(fragments_destroy) struct fragments *fragments = NULL;
	_cleanup_(pinnings_deinit) struct pinnings pinnings = { 0 };
	_cleanup_(free) arena_number *arenas =
		calloc(heaps_arena_count(analysis_heaps(analysis)) + 1, sizeof(*arenas));
	struct arena_fragments total = { 0 };
	struct fragmentation fragmentation = {
		.analysis = analysis,
		.total = &total,
		.arenas = arenas,
		.limit = arguments->has_limit ? arguments->limit : USUAL_LIMIT,
	};
	struct error *error = &error_no_memory;

	if (arenas)
		error = choose_arenas(analysis, arguments, arenas, &fragmentation.arena_count);
	if (!error)
		error = pinned_find(analysis, arguments->has_arena ? arenas : NULL,
				    arguments->quick ? NULL : &pinnings, &fragments);
	if (error)
		return error;
	fragmentation.fragments = fragments;
	for (size_t i = 0; i < fragmentation.arena_count; i++)
		fragments_add(&total, fragments_of(fragments, arenas[i]));
	qsort_r(arenas, fragmentation.arena_count, sizeof(*arenas), compare_arenas, fragments);
	return write_all(&fragmentation, arguments, &pinnings, report);
}

const struct command command_fragmentation = {
	.name = "fragmentation",
	.summary =
		"Say how free memory lies, what would go back to the system, and what pins the rest",
	.example = "fragmentation\n"
		   "fragmentation --quick --by-arena\n"
		   "fragmentation --limit 5",
	.description =
		"Free memory goes back to the system in whole pages. What malloc_trim(0) would give back is shown for each arena, as far as it is in memory; then the sizes of free blocks, and the allocations that pin free memory, being in use on the same page: the free bytes of a page are divided evenly among them. 'alone' are the free bytes of pages that one kind of allocations keeps without others. At the end of each heap stands the allocation that it cannot shrink past.",
	.options = options,
	.places = places,
	.parse = fragmentation_parse,
	.arguments_size = sizeof(struct fragmentation_arguments),
	.needs = STAGE_HEAP,
	.run = fragmentation_run,
};
