#include "cli/views/allocation_summary.h"

#include "analyzer/kinds/summary.h"
#include "cli/views/comment_row.h"
#include "cli/views/heap_rows.h"
#include "cli/views/rows.h"

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
	heap_rows_write(report, analysis, &members.set);
	return NULL;
}
