#include "analyzer/account/pinned.h"
#include "analyzer/base/sort.h"
#include "analyzer/base/text.h"
#include "cli/command.h"
#include "cli/views/rows.h"
#include "cli/views/unit_rows.h"

#include <inttypes.h>
#include <string.h>

struct fragmentation {
	struct analysis *analysis;
	const struct fragments *fragments;
	const struct arena_fragments *total; /* sum of the arenas below */
	/* Arenas to show, most free memory first. */
	const arena_number *arenas;
	size_t arena_count;
	uint64_t limit; /* of rows in a table; 0: none */
};

static struct arena arena_of(const struct fragmentation *fragmentation, size_t number)
{
	return heaps_arena(analysis_heaps(fragmentation->analysis), fragmentation->arenas[number]);
}

static const struct arena_fragments *numbers_of(const struct fragmentation *fragmentation,
						size_t number)
{
	return fragments_of(fragmentation->fragments, fragmentation->arenas[number]);
}

static void report_arena(struct report *report, struct arena arena)
{
	report_add(report, arena.kind->name, value_nonzero(arena.address));
}

static bool is_within(const struct fragmentation *fragmentation, size_t number)
{
	return !fragmentation->limit || number < fragmentation->limit;
}

static void write_arenas(const struct fragmentation *fragmentation, struct report *report)
{
	static const struct table table = TABLE(
		"arena", NULL, { "arena", VALUE_TEXT }, { "address", VALUE_ADDRESS },
		{ "used", VALUE_BYTES }, { "free", VALUE_BYTES }, { "free share", VALUE_SHARE },
		{ "largest free", VALUE_BYTES }, { "given back", VALUE_BYTES });

	report_begin_table(report, &table);
	for (size_t i = 0; i < fragmentation->arena_count && is_within(fragmentation, i); i++) {
		const struct arena_fragments *numbers = numbers_of(fragmentation, i);

		report_arena(report, arena_of(fragmentation, i));
		report_row(
			report, numbers->used.bytes, numbers->free.bytes,
			rows_share(numbers->free.bytes, numbers->used.bytes + numbers->free.bytes),
			numbers->largest, fragments_given_back(numbers));
	}
	report_end_table(report);
	rows_left_out(report, "arenas", fragmentation->arena_count, fragmentation->limit);
}

/* One character for each cell: how much of it is in use. */
static void draw_map(const struct arena_fragments *numbers, char map[static MAP_CELLS + 1])
{
	static const char levels[] = ".:-=+*%#";
	enum { MOST = sizeof(levels) - 2 };
	size_t i;

	for (i = 0; i < MAP_CELLS && i * numbers->cell_size < numbers->size; i++) {
		uint64_t whole = numbers->size - i * numbers->cell_size;
		double share;

		whole = MIN(whole, numbers->cell_size);
		share = rows_share(numbers->map[i], whole);
		/* Anything used is seen, and headers make no hole. */
		map[i] = levels[numbers->map[i] == 0 ? 0
				: share > 0.98	     ? MOST
						     : 1 + (size_t)(share * (MOST - 1))];
	}
	map[i] = '\0';
}

static void write_maps(const struct fragmentation *fragmentation, struct report *report)
{
	static const struct table table =
		TABLE("map", NULL, { "arena", VALUE_TEXT }, { "address", VALUE_ADDRESS },
		      { "occupancy", VALUE_TEXT });
	enum { MOST_MAPS = 8 };

	report_begin_table(report, &table);
	for (size_t i = 0;
	     i < fragmentation->arena_count && i < MOST_MAPS && is_within(fragmentation, i); i++) {
		const struct arena_fragments *numbers = numbers_of(fragmentation, i);
		char map[MAP_CELLS + 1];

		if (!numbers->free.bytes)
			continue;
		draw_map(numbers, map);
		report_arena(report, arena_of(fragmentation, i));
		report_row(report, map);
	}
	report_end_table(report);
}

static void write_fates(const struct fragmentation *fragmentation, struct report *report)
{
	static const struct table table = TABLE("fate", NULL, { "free memory", VALUE_TEXT },
						{ "bytes", VALUE_BYTES }, { "share", VALUE_SHARE });
	const struct arena_fragments *total = fragmentation->total;
	uint64_t top = total->top.resident + total->top.absent + total->top.blank;
	const struct {
		const char *what;
		uint64_t bytes;
	} fates[] = {
		{ "can be given back, between allocations", total->inside.resident },
		{ "can be given back, at the end of a heap", total->end.resident },
		{ "not in memory: given back already, or never touched",
		  total->inside.absent + total->end.absent },
		{ "zeros: probably not in memory", total->inside.blank + total->end.blank },
		{ "pinned: on pages with used memory", total->pinned },
		{ "kept at the ends of heaps, in memory", total->top.resident },
		{ "kept at the ends of heaps, not in memory or zeros",
		  total->top.absent + total->top.blank },
		{ "kept: in caches, or beside links", total->kept > top ? total->kept - top : 0 },
	};

	report_begin_table(report, &table);
	for (size_t i = 0; i < COUNT_OF(fates); i++)
		if (fates[i].bytes)
			report_row(report, fates[i].what, fates[i].bytes,
				   rows_share(fates[i].bytes, total->free.bytes));
	report_end_table(report);
}

#define SIZE_COLUMNS                                                        \
	COLUMN("free from", VALUE_BYTES), COLUMN("below", VALUE_BYTES),     \
		COLUMN("count", VALUE_COUNT), COLUMN("bytes", VALUE_BYTES), \
		COLUMN("share", VALUE_SHARE)

static void write_size_classes(const struct arena_fragments *numbers, const struct arena *arena,
			       uint64_t whole, struct report *report)
{
	for (unsigned int i = 0; i < SIZE_CLASSES; i++) {
		if (!numbers->classes[i].count)
			continue;
		if (arena)
			report_arena(report, *arena);
		report_row(report, UINT64_C(1) << i, UINT64_C(1) << (i + 1),
			   numbers->classes[i].count, numbers->classes[i].bytes,
			   rows_share(numbers->classes[i].bytes, whole));
	}
}

static void write_sizes(const struct fragmentation *fragmentation, bool by_arena,
			struct report *report)
{
	static const struct table each = TABLE("free size", NULL, { "arena", VALUE_TEXT },
					       { "address", VALUE_ADDRESS }, SIZE_COLUMNS);
	static const struct table all = TABLE("free size", NULL, SIZE_COLUMNS);
	uint64_t whole = fragmentation->total->free.bytes;

	report_begin_table(report, by_arena ? &each : &all);
	if (!by_arena)
		write_size_classes(fragmentation->total, NULL, whole, report);
	for (size_t i = 0; by_arena && i < fragmentation->arena_count; i++) {
		struct arena arena = arena_of(fragmentation, i);

		if (is_within(fragmentation, i))
			write_size_classes(numbers_of(fragmentation, i), &arena, whole, report);
	}
	report_end_table(report);
}

static struct error *write_pinning(const struct fragmentation *fragmentation,
				   const struct pinning *pinning, struct report *report)
{
	struct kind_name name = kind_name(fragmentation->analysis, pinning->kind);
	_cleanup_(free) char *text = unit_rows_describe(name);

	TRY_MEMORY(text);
	report_row(report, pinning->pinned,
		   rows_share(pinning->pinned, fragmentation->total->pinned), pinning->alone,
		   pinning->count, value_nonzero(name.size), text);
	return NULL;
}

static struct error *write_pinnings(const struct fragmentation *fragmentation,
				    const struct pinnings *pinnings, struct report *report)
{
	static const struct table table =
		TABLE("pinning", NULL, { "pinned", VALUE_BYTES }, { "share", VALUE_SHARE },
		      { "alone", VALUE_BYTES }, { "allocations", VALUE_COUNT },
		      { "size", VALUE_BYTES }, { "kind", VALUE_TEXT });

	report_begin_table(report, &table);
	for (size_t i = 0; i < pinnings->count && is_within(fragmentation, i); i++)
		TRY(write_pinning(fragmentation, &pinnings->items[i], report));
	report_end_table(report);
	rows_left_out(report, "kinds of allocations", pinnings->count, fragmentation->limit);
	return NULL;
}

/* The end of a heap, and the allocation that it cannot shrink past. */
struct heap_end {
	arena_number arena;
	uint64_t size;	      /* of the free block at the end */
	allocation_id holder; /* the last that is in use or cached below */
	uint64_t freed;	      /* bytes that the end would grow by if it were freed */
};

static bool is_free_chunk(const struct allocation_index *index, allocation_id id)
{
	return !bitmap_get(allocation_used(index), id) && !bitmap_get(allocation_cached(index), id);
}

/* False if the region does not end a heap, or nothing is in it. */
static bool find_end(const struct analysis *analysis, const struct heap_region *region,
		     struct heap_end *ret)
{
	const struct allocation_index *index = analysis_index(analysis);
	allocation_id last = region->first + region->count - 1;
	size_t hint = 0;

	if (region->count < 2 || !is_free_chunk(index, last) ||
	    !heaps_free_kind(analysis_heaps(analysis), last, &hint)->ends_heap)
		return false;
	*ret = (struct heap_end){ .arena = region->arena };
	while (last > region->first && is_free_chunk(index, last))
		ret->size += allocation_size(index, last--);
	if (is_free_chunk(index, last))
		return false;
	ret->holder = last;
	do
		ret->freed += allocation_size(index, last);
	while (last-- > region->first && is_free_chunk(index, last));
	return true;
}

/* Find the ends of the heaps that are shown: an arena has one. */
static struct error *find_ends(const struct fragmentation *fragmentation, struct heap_end *ret,
			       size_t *ret_count)
{
	const struct analysis *analysis = fragmentation->analysis;
	const struct allocation_index *index = analysis_index(analysis);
	_cleanup_(free) bool *wanted =
		calloc(heaps_arena_count(analysis_heaps(analysis)) + 1, sizeof(bool));

	TRY_MEMORY(wanted);
	for (size_t i = 0; i < fragmentation->arena_count; i++)
		wanted[fragmentation->arenas[i]] = true;
	*ret_count = 0;
	for (size_t i = 0; i < heap_region_count(index); i++) {
		const struct heap_region *region = heap_region(index, i);

		if (!wanted[region->arena] || !find_end(analysis, region, &ret[*ret_count]))
			continue;
		wanted[region->arena] = false;
		(*ret_count)++;
	}
	return NULL;
}

static struct error *write_end(const struct fragmentation *fragmentation,
			       const struct heap_end *end, bool named, struct report *report)
{
	const struct analysis *analysis = fragmentation->analysis;
	const struct allocation_index *index = analysis_index(analysis);
	uint64_t size = allocation_size(index, end->holder);
	_cleanup_(free) char *text = NULL;

	if (!bitmap_get(allocation_used(index), end->holder)) {
		text = strdup("free, in a thread's cache");
	} else if (named) {
		kind_key kind = kind_of(analysis, analysis_patterns(analysis), end->holder);

		text = unit_rows_describe(kind_name(analysis, kind_with_size(kind, size)));
	}
	if (named && !text)
		return &error_no_memory;
	report_arena(report, heaps_arena(analysis_heaps(analysis), end->arena));
	report_row(report, end->size, end->freed, allocation_start(index, end->holder), size, text);
	return NULL;
}

DEFINE_COMPARE(compare_ends, struct heap_end, DESCENDING(freed), ASCENDING(holder))

static struct error *write_ends(const struct fragmentation *fragmentation, bool named,
				struct report *report)
{
	static const struct table table = TABLE(
		"heap end", NULL, { "arena", VALUE_TEXT }, { "address", VALUE_ADDRESS },
		{ "free at end", VALUE_BYTES }, { "held back", VALUE_BYTES },
		{ "allocation", VALUE_ADDRESS }, { "size", VALUE_BYTES }, { "kind", VALUE_TEXT });
	_cleanup_(free) struct heap_end *ends = calloc(
		heaps_arena_count(analysis_heaps(fragmentation->analysis)) + 1, sizeof(*ends));
	size_t count;

	TRY_MEMORY(ends);
	TRY(find_ends(fragmentation, ends, &count));
	SORT(ends, count, compare_ends);
	report_begin_table(report, &table);
	for (size_t i = 0; i < count && is_within(fragmentation, i); i++)
		TRY(write_end(fragmentation, &ends[i], named, report));
	report_end_table(report);
	rows_left_out(report, "ends of heaps", count, fragmentation->limit);
	return NULL;
}

/* The arena's free bytes that are resident, as far as the dump says. */
static uint64_t free_in_memory(const struct arena_fragments *numbers)
{
	uint64_t away = numbers->inside.absent + numbers->inside.blank + numbers->end.absent +
			numbers->end.blank + numbers->top.absent + numbers->top.blank;

	return numbers->free.bytes > away ? numbers->free.bytes - away : 0;
}

static void write_estimate(const struct fragmentation *fragmentation, struct report *report)
{
	static const struct table table = TABLE(
		"fewer arenas",
		"{arenas} {arenas|arena|arenas} beyond the first {arenas|has|have} {bytes,} free bytes in memory:\n"
		"a single arena might have saved about as much.",
		{ "arenas", VALUE_COUNT }, { "bytes", VALUE_BYTES });
	uint64_t count = 0, bytes = 0;

	for (size_t i = 0; i < fragmentation->arena_count; i++) {
		const struct arena arena = arena_of(fragmentation, i);

		if (!arena.kind->is_extra)
			continue;
		count++;
		bytes += free_in_memory(numbers_of(fragmentation, i));
	}
	report_begin_table(report, &table);
	if (count)
		report_row(report, count, bytes);
	report_end_table(report);
}

enum { USUAL_LIMIT = 20 };

struct fragmentation_arguments {
	uint64_t arena; /* its address */
	uint64_t limit;
	bool has_arena, has_limit, by_arena, quick;
};

static const struct argp_option options[] = {
	{ "arena", KEEP_GIVEN(ADDRESS, struct fragmentation_arguments, arena, has_arena), "ADDRESS",
	  0, "Only the arena at ADDRESS", 0 },
	{ "by-arena", KEEP(FLAG, struct fragmentation_arguments, by_arena), NULL, 0,
	  "Show the sizes of free blocks for each arena", 0 },
	{ "limit", KEEP_GIVEN(COUNT, struct fragmentation_arguments, limit, has_limit), "N", 0,
	  "Show at most N rows of a table, 0 for all; 20 by default", 0 },
	{ "quick", KEEP(FLAG, struct fragmentation_arguments, quick), NULL, 0,
	  "Do not search for what pins memory", 0 },
	{ 0 },
};

/* Choose the arenas to report. */
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
		"{used,} bytes are used, {free,} are free. malloc_trim(0) or the like\n"
		"would give back {given back,} bytes; {pinned,} are pinned on pages with used memory.",
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
	write_total(fragmentation, report);
	write_fates(fragmentation, report);
	write_arenas(fragmentation, report);
	write_maps(fragmentation, report);
	write_sizes(fragmentation, arguments->by_arena, report);
	if (!arguments->quick)
		TRY(write_pinnings(fragmentation, pinnings, report));
	TRY(unit_rows(fragmentation->analysis, arguments->has_arena ? fragmentation->arenas : NULL,
		      !arguments->quick, fragmentation->limit, report));
	TRY(write_ends(fragmentation, !arguments->quick, report));
	write_estimate(fragmentation, report);
	return NULL;
}

static struct error *fragmentation_run(struct analysis *analysis, const void *input,
				       struct report *report)
{
	const struct fragmentation_arguments *arguments = input;
	_cleanup_(fragments_destroy) struct fragments *fragments = NULL;
	_cleanup_(table_release) struct pinnings pinnings = { 0 };
	_cleanup_(free) arena_number *arenas =
		calloc(heaps_arena_count(analysis_heaps(analysis)) + 1, sizeof(*arenas));
	struct arena_fragments total = { 0 };
	struct fragmentation fragmentation = {
		.analysis = analysis,
		.total = &total,
		.arenas = arenas,
		.limit = arguments->has_limit ? arguments->limit : USUAL_LIMIT,
	};

	TRY_MEMORY(arenas);
	TRY(choose_arenas(analysis, arguments, arenas, &fragmentation.arena_count));
	TRY(pinned_find(analysis, arguments->has_arena ? arenas : NULL,
			arguments->quick ? NULL : &pinnings, &fragments));
	fragmentation.fragments = fragments;
	for (size_t i = 0; i < fragmentation.arena_count; i++)
		fragments_add(&total, fragments_of(fragments, arenas[i]));
	qsort_r(arenas, fragmentation.arena_count, sizeof(*arenas), compare_arenas, fragments);
	return write_all(&fragmentation, arguments, &pinnings, report);
}

const struct command command_fragmentation = {
	.name = "fragmentation",
	.table = "arena",
	.summary =
		"Show where free memory is, what could go back to the system, and what pins the rest",
	.example = "fragmentation\n"
		   "fragmentation --quick --by-arena\n"
		   "fragmentation --limit 5",
	.description =
		"Free memory goes back to the system in whole pages. For each arena, the output shows how much resident memory malloc_trim(0) would give back, the sizes of free blocks, and the allocations that pin free memory because they are on the same page; the free bytes of a page are divided evenly among them. 'alone' counts the free bytes of pages that only one kind of allocation pins. A heap cannot shrink past the allocation at its end, which is shown too.",
	.options = options,
	.arguments_size = sizeof(struct fragmentation_arguments),
	.needs = STAGE_HEAP,
	.run = fragmentation_run,
};
