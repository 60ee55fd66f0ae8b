#include "analyzer/base/sort.h"
#include "analyzer/base/text.h"
#include "analyzer/heap/debug_header.h"
#include "analyzer/kinds/kind_key.h"
#include "analyzer/kinds/tally.h"
#include "analyzer/kinds/types.h"
#include "cli/views/memprof.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

/*
 * A group's key: its type in the lower half, who made it in the upper one; or, of those of which
 * neither is known, their size with the upper bit.
 */
static const uint64_t SIZE_BIT = UINT64_C(1) << 63;
enum { MAKER_SHIFT = 32, FILE_SHIFT = 17, MOST_LINES = 1 << FILE_SHIFT };

struct grouping {
	struct analysis *analysis;
	const struct types *types;
	struct tally_table makers; /* by file and line */
	struct tally_table groups; /* by key */
};

/* The number of who made it, from 1 on; 0: that is not known. */
static struct error *find_maker(struct grouping *grouping, allocation_id id, uint64_t *ret)
{
	const struct allocation_index *index = analysis_index(grouping->analysis);
	struct debug_header header;
	struct tally tally = { .count = 1 };
	struct error *error;
	uint32_t number;

	*ret = 0;
	if (!debug_header_read(analysis_image(grouping->analysis), allocation_start(index, id),
			       &header))
		return NULL;
	/* Addresses have 47 bits, and files fewer lines than fit beside. */
	tally.key = header.file << FILE_SHIFT | header.line % MOST_LINES;
	error = tally_add_numbered(&grouping->makers, tally, &number);
	if (!error)
		*ret = 1 + (uint64_t)number;
	return error;
}

static struct error *add_member(struct grouping *grouping, allocation_id id,
				const struct bitmap *collectable)
{
	uint64_t size = allocation_size(analysis_index(grouping->analysis), id);
	uint32_t type = types_of(grouping->types, id);
	struct tally tally = { .count = 1, .bytes = size };
	uint64_t maker = 0;
	struct error *error = NULL;

	if (collectable && bitmap_get(collectable, id))
		error = find_maker(grouping, id, &maker);
	if (error)
		return error;
	tally.key = maker << MAKER_SHIFT | type;
	if (type == NO_GROUP && maker == 0)
		tally.key = SIZE_BIT | size;
	return tally_add(&grouping->groups, tally);
}

static struct error *add_members(struct grouping *grouping)
{
	struct progress *progress = analysis_progress(grouping->analysis);
	const struct bitmap *collectable =
		allocation_having(analysis_index(grouping->analysis), TRAIT_MANAGED);
	uint64_t told = 0;

	progress_begin(progress, "grouping", grouping->types->live.count);
	bitmap_for_each(id, &grouping->types->live) {
		struct error *error = add_member(grouping, (allocation_id)id, collectable);

		if (error)
			return error;
		if (!progress_pass(progress, id, &told))
			return error_create(ERROR_INTERRUPTED, "interrupted");
	}
	return NULL;
}

/* A line: the context is what stands there instead of the calls. */
struct line {
	uint64_t count, bytes;
	char *frames[2]; /* owned; the second may be NULL */
};

struct lines {
	struct line *list;
	size_t count;
};

static void lines_deinit(struct lines *lines)
{
	for (size_t i = 0; i < lines->count; i++) {
		free(lines->list[i].frames[0]);
		free(lines->list[i].frames[1]);
	}
	free(lines->list);
}
DEFINE_DEINIT(lines_deinit, struct lines)

/* Where the call that made it is in the source; to be freed. */
static char *name_maker(const struct grouping *grouping, uint64_t key)
{
	const struct debug_header header = {
		.file = key >> FILE_SHIFT,
		.line = (uint32_t)(key % MOST_LINES),
	};

	return debug_header_text(analysis_image(grouping->analysis), &header);
}

static struct error *name_line(const struct grouping *grouping, uint64_t key, struct line *line)
{
	uint32_t type = (uint32_t)key;
	uint64_t maker = key >> MAKER_SHIFT;
	char unknown[CLASS_NAME_SIZE];

	class_number_name(0, unknown);
	if (key & SIZE_BIT) {
		line->frames[0] = strdup(unknown);
		if (asprintf(&line->frames[1], "%" PRIu64 " bytes each", key & ~SIZE_BIT) < 0)
			line->frames[1] = NULL;
		return line->frames[0] && line->frames[1] ? NULL : &error_no_memory;
	}
	line->frames[0] = strdup(type == NO_GROUP ? unknown : grouping->types->list[type].name);
	/* The file's name may be absent: then that is all. */
	if (maker)
		line->frames[1] = name_maker(grouping, grouping->makers.items[maker - 1].key);
	return line->frames[0] ? NULL : &error_no_memory;
}

/* More bytes first, then more of them, then by what they are. */
static int compare_lines(const void *a, const void *b)
{
	const struct line *left = a, *right = b;
	int order;

	if (left->bytes != right->bytes)
		return left->bytes > right->bytes ? -1 : 1;
	if (left->count != right->count)
		return left->count > right->count ? -1 : 1;
	order = strcmp(left->frames[0], right->frames[0]);
	return order || !left->frames[1] || !right->frames[1]
		       ? order
		       : strcmp(left->frames[1], right->frames[1]);
}

static struct error *make_lines(const struct grouping *grouping, uint64_t least,
				struct lines *lines)
{
	struct error *error = NULL;

	lines->list = calloc(grouping->groups.count + 1, sizeof(*lines->list));
	if (!lines->list)
		return &error_no_memory;
	for (size_t i = 0; !error && i < grouping->groups.count; i++) {
		const struct tally *tally = &grouping->groups.items[i];
		struct line *line = &lines->list[lines->count];

		if (tally->bytes < least)
			continue;
		lines->count++;
		line->count = tally->count;
		line->bytes = tally->bytes;
		error = name_line(grouping, tally->key, line);
	}
	if (!error)
		SORT(lines->list, lines->count, compare_lines);
	return error;
}

static void write_lines(const struct lines *lines, struct report *report)
{
	/* Bytes are a count: decimal, as scripts expect it. */
	static const struct table table = TABLE(
		"allocations", "{count}\t{bytes}\t{type}[\t{detail}]", { "count", VALUE_COUNT },
		{ "bytes", VALUE_COUNT }, { "type", VALUE_TEXT }, { "detail", VALUE_TEXT });

	memprof_write_lines(report, lines->count);
	report_begin_table(report, &table);
	for (size_t i = 0; i < lines->count; i++) {
		const struct line *line = &lines->list[i];

		report_row(report, line->count, line->bytes, line->frames[0], line->frames[1]);
	}
	report_end_table(report);
}

static void write_pretty_head(struct report *report)
{
	static const struct table table = TABLE("heading", "{line}", { "line", VALUE_TEXT });

	report_begin_table(report, &table);
	report_row(report, "| Allocations | Total size | Context |");
	report_row(report, "|------------:|-----------:|---------|");
	report_end_table(report);
}

/* As many blanks as the number has characters less than the widest one. */
static void write_blanks(struct report *report, size_t widest, uint64_t number)
{
	static const char blanks[] = "                                ";
	char buffer[NUMBER_SIZE];
	size_t count = widest - format_grouped(number, buffer);

	static_assert(sizeof(blanks) > NUMBER_SIZE, "no number is as wide");
	report_add(report, blanks + sizeof(blanks) - 1 - count);
}

static void write_pretty(const struct lines *lines, struct report *report)
{
	static const struct table table = TABLE(
		"allocations",
		"| {count indent}{count,} | {bytes indent}{bytes,} | `{type}`[<br>`{detail}`] |",
		{ "count indent", VALUE_TEXT }, { "count", VALUE_COUNT },
		{ "bytes indent", VALUE_TEXT }, { "bytes", VALUE_BYTES }, { "type", VALUE_TEXT },
		{ "detail", VALUE_TEXT });
	size_t counts = 0, sizes = 0;
	char buffer[NUMBER_SIZE];

	for (size_t i = 0; i < lines->count; i++) {
		size_t count = format_grouped(lines->list[i].count, buffer);
		size_t size = format_grouped(lines->list[i].bytes, buffer);

		counts = count > counts ? count : counts;
		sizes = size > sizes ? size : sizes;
	}
	write_pretty_head(report);
	report_begin_table(report, &table);
	for (size_t i = 0; i < lines->count; i++) {
		const struct line *line = &lines->list[i];

		write_blanks(report, counts, line->count);
		report_add(report, line->count);
		write_blanks(report, sizes, line->bytes);
		report_row(report, line->bytes, line->frames[0], line->frames[1]);
	}
	report_end_table(report);
}

struct error *memprof_allocations(struct analysis *analysis,
				  const struct memprof_arguments *arguments, struct report *report)
{
	_cleanup_(types_deinit) struct types types = { 0 };
	_cleanup_(lines_deinit) struct lines lines = { 0 };
	struct grouping grouping = { .analysis = analysis, .types = &types };
	struct error *error = types_find(analysis, TYPES_ALL, &types);

	if (error)
		return error;
	grouping.makers.memory.account = analysis_account(analysis);
	grouping.groups.memory.account = analysis_account(analysis);
	error = add_members(&grouping);
	if (!error)
		error = make_lines(&grouping, arguments->least, &lines);
	table_release(&grouping.makers);
	table_release(&grouping.groups);
	if (!error && arguments->pretty)
		write_pretty(&lines, report);
	else if (!error)
		write_lines(&lines, report);
	return error;
}
