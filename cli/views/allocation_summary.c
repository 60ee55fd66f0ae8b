#include "cli/views/allocation_summary.h"

#include "analyzer/kinds/summary.h"
#include "cli/views/rows.h"

enum { MOST_ALLOCATORS = 16 };

struct heap_total {
	const struct allocator *allocator;
	uint64_t count, bytes;
};

/* In the order in which the allocators' arenas come. */
struct heap_totals {
	struct heap_total list[MOST_ALLOCATORS];
	size_t count;
};

static struct heap_total *find_total(struct heap_totals *totals, const struct allocator *allocator)
{
	for (size_t i = 0; i < totals->count; i++)
		if (totals->list[i].allocator == allocator)
			return &totals->list[i];
	return NULL;
}

static void find_allocators(struct heap_totals *totals, const struct heaps *heaps)
{
	size_t count = heaps_arena_count(heaps);

	for (size_t i = 0; i < count; i++) {
		const struct allocator *allocator = heaps_arena_allocator(heaps, (arena_number)i);

		if (totals->count < MOST_ALLOCATORS && !find_total(totals, allocator))
			totals->list[totals->count++].allocator = allocator;
	}
}

/* Add what the region has of the members. */
static void add_region(struct heap_total *total, const struct allocation_index *index,
		       const struct heap_region *region, const struct bitmap *members)
{
	size_t end = region->first + (size_t)region->count, hint = 0;

	for (size_t id = bitmap_next(members, region->first); id < end;
	     id = bitmap_next(members, id + 1)) {
		struct memory_range range = allocation_range_near(index, (allocation_id)id, &hint);

		total->count++;
		total->bytes += range.end - range.start;
	}
}

static void write_totals(struct report *report, const struct heap_totals *totals)
{
	static const struct table table = TABLE(
		"heap",
		"Of these, {count} allocations taking 0x{bytes} ({bytes,}) bytes are in the heap of {allocator}.",
		{ "count", VALUE_COUNT }, { "bytes", VALUE_BYTES }, { "allocator", VALUE_TEXT });

	report_begin_table(report, &table);
	for (size_t i = 0; i < totals->count; i++) {
		if (totals->list[i].count == 0)
			continue;
		report_row(report, totals->list[i].count, totals->list[i].bytes,
			   totals->list[i].allocator->name);
	}
	report_end_table(report);
}

/* Say how many are in the heap of each allocator, if there are several. */
static void write_heaps(struct report *report, const struct analysis *analysis,
			const struct bitmap *members)
{
	const struct allocation_index *index = analysis_index(analysis);
	const struct heaps *heaps = analysis_heaps(analysis);
	struct heap_totals totals = { .count = 0 };

	find_allocators(&totals, heaps);
	if (totals.count < 2)
		return;
	for (size_t i = 0; i < heap_region_count(index); i++) {
		const struct heap_region *region = heap_region(index, i);
		struct heap_total *total =
			find_total(&totals, heaps_arena_allocator(heaps, region->arena));

		if (total && region->count > 0)
			add_region(total, index, region, members);
	}
	write_totals(report, &totals);
}

struct summary_writer {
	const struct analysis *analysis;
	const struct set_query *query;
	struct report *report;
	uint64_t written;
};

static const struct table table = TABLE(
	"group",
	"[Signature {signature}[ ({name})] has][Multiple signatures for {several named} have a total of][   Signature {one of several} has][Pattern %{pattern} has][   Matches of size 0x{match} have][Unrecognized allocations with identity {identity} at offset {offset} have][{group} have][   Unrecognized allocations of size 0x{size} have] {count} instances taking 0x{bytes}({bytes,}) bytes[, retaining 0x{retained}({retained,}) bytes].",
	{ "signature", VALUE_ADDRESS }, { "name", VALUE_TEXT }, { "several named", VALUE_TEXT },
	{ "one of several", VALUE_ADDRESS }, { "pattern", VALUE_TEXT }, { "match", VALUE_BYTES },
	{ "identity", VALUE_TEXT }, { "offset", VALUE_ADDRESS }, { "group", VALUE_TEXT },
	{ "size", VALUE_BYTES }, { "count", VALUE_COUNT }, { "bytes", VALUE_BYTES },
	{ "retained", VALUE_BYTES });

/* The columns that differ by the kind of row. */
enum head_column {
	HEAD_SIGNATURE,
	HEAD_NAME,
	HEAD_SEVERAL,
	HEAD_ONE_OF_SEVERAL,
	HEAD_PATTERN,
	HEAD_MATCH,
	HEAD_IDENTITY,
	HEAD_OFFSET,
	HEAD_GROUP,
	HEAD_SIZE,
	HEAD_COLUMNS
};

static void write_row(struct summary_writer *writer, const struct value head[static HEAD_COLUMNS],
		      const struct tally *tally)
{
	uint64_t limit = writer->query->limit;

	if (limit && writer->written++ >= limit)
		return;
	report_values(writer->report, head, HEAD_COLUMNS);
	report_row(writer->report, tally->count, tally->bytes,
		   VALUE_IF(writer->query->sort == SORT_RETAINED, tally->owned));
}

static void write_head(struct summary_writer *writer, const struct kind_group *group,
		       const struct kind_line *lines)
{
	struct kind_name name = kind_name(writer->analysis, lines->tally.key);
	struct value head[HEAD_COLUMNS] = { 0 };

	switch (group->by) {
	case BY_SIGNATURE:
		if (group->count > 1) {
			head[HEAD_SEVERAL] = VALUE(group->name);
		} else {
			head[HEAD_SIGNATURE] = VALUE(name.signature);
			head[HEAD_NAME] = VALUE(group->name);
		}
		break;
	case BY_PATTERN:
		head[HEAD_PATTERN] = VALUE(group->name);
		break;
	case BY_IDENTITY:
		head[HEAD_IDENTITY] = VALUE(group->name);
		head[HEAD_OFFSET] = VALUE(name.offset);
		break;
	default:
		head[HEAD_GROUP] = VALUE("Unrecognized allocations");
	}
	write_row(writer, head, &group->total);
}

/* One of many addresses without a name of their own. */
static bool says_nothing(const struct summary_writer *writer, const struct kind_line *line)
{
	uint64_t signature = kind_signature(line->tally.key);

	return signature && line->tally.count == 1 &&
	       classes_kind(analysis_classes(writer->analysis), signature) == SIGNATURE_UNKNOWN;
}

static void write_group(struct summary_writer *writer, const struct kind_group *group,
			const struct kind_line *lines)
{
	write_head(writer, group, lines);
	if (group->by == BY_IDENTITY || (group->by == BY_SIGNATURE && group->count == 1))
		return;
	for (size_t i = 0; i < group->count; i++) {
		struct kind_name name = kind_name(writer->analysis, lines[i].tally.key);
		struct value head[HEAD_COLUMNS] = { 0 };

		if (says_nothing(writer, &lines[i]))
			continue;
		if (group->by == BY_SIGNATURE)
			head[HEAD_ONE_OF_SEVERAL] = VALUE(name.signature);
		else if (group->by == BY_PATTERN)
			head[HEAD_MATCH] = VALUE(name.size);
		else
			head[HEAD_SIZE] = VALUE(name.size);
		write_row(writer, head, &lines[i].tally);
	}
}

static struct kind_summary_input make_input(struct analysis *analysis,
					    const struct set_query *query,
					    const struct members *members)
{
	return (struct kind_summary_input){
		.analysis = analysis,
		.members = &members->set,
		.order = query->sort == SORT_BYTES	? tally_compare_bytes
			 : query->sort == SORT_ADDRESS	? tally_compare_keys
			 : query->sort == SORT_RETAINED ? tally_compare_owned
							: tally_compare_counts,
		.by_address = query->sort == SORT_ADDRESS,
		.retained = query->sort == SORT_RETAINED,
		.full_names = query->full_names,
	};
}

struct error *summarize_allocations(struct analysis *analysis, const struct set_query *query,
				    struct report *report)
{
	_cleanup_(kind_summary_deinit) struct kind_summary summary = { 0 };
	_cleanup_(members_deinit) struct members members = { 0 };
	struct summary_writer writer = { analysis, query, report };
	struct set_query unordered = *query;
	struct kind_summary_input input;
	struct error *error;

	unordered.any_order = true;
	error = query_select(analysis, &unordered, &members);
	if (error)
		return error;
	input = make_input(analysis, query, &members);
	error = kind_summary_find(&input, &summary);
	if (error)
		return error;
	report_begin_table(report, &table);
	for (size_t i = 0; i < summary.group_count; i++)
		write_group(&writer, &summary.groups[i], &summary.lines[summary.groups[i].first]);
	report_end_table(report);
	rows_left_out(report, "lines", writer.written, query->limit);
	comment_rows(report, analysis, &members);
	rows_total(report, "allocations",
		   allocations_total(analysis_index(analysis), &members.set));
	write_heaps(report, analysis, &members.set);
	return NULL;
}
