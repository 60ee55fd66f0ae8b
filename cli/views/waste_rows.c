#include "cli/views/waste_rows.h"

#include "analyzer/kinds/kind_key.h"
#include "cli/views/contents_text.h"
#include "cli/views/rows.h"

#include <inttypes.h>

const char *waste_kind_name(enum waste_kind kind)
{
	static const char *const names[WASTE_KINDS] = {
		[WASTE_DUPLICATES] = "duplicates",
		[WASTE_ZEROS] = "zeros",
		[WASTE_SPARE] = "spare",
		[WASTE_SLACK] = "slack",
	};

	return names[kind];
}

static bool is_meant(enum waste_kind kind, enum waste_kind only)
{
	return only == WASTE_KINDS || only == kind;
}

static void write_sum(struct report *report, const struct waste *waste, const struct waste_sum *sum)
{
	report_add(report, sum->count, sum->bytes, rows_share(sum->bytes, waste->looked_at.bytes));
}

void waste_write_sums(struct report *report, const struct waste *waste, enum waste_kind only)
{
	static const struct table table =
		TABLE("waste", NULL, { "waste", VALUE_TEXT }, { "allocations", VALUE_COUNT },
		      { "bytes", VALUE_BYTES }, { "share", VALUE_SHARE });

	report_begin_table(report, &table);
	for (enum waste_kind kind = 0; kind < WASTE_KINDS; kind++) {
		if (!is_meant(kind, only))
			continue;
		report_add(report, waste_kind_name(kind));
		write_sum(report, waste, &waste->sums[kind]);
		report_end_row(report);
	}
	report_end_table(report);
}

static void write_row(struct report *report, const struct waste *waste, const struct waste_row *row)
{
	report_add(report, waste_kind_name(row->kind));
	write_sum(report, waste, &row->sum);
	report_row(report, value_nonzero(row->size), row->name ? row->name : "unrecognized");
}

void waste_write_rows(struct report *report, const struct waste *waste, enum waste_kind only,
		      uint64_t limit)
{
	static const struct table table =
		TABLE("waste by type", NULL, { "waste", VALUE_TEXT },
		      { "allocations", VALUE_COUNT }, { "bytes", VALUE_BYTES },
		      { "share", VALUE_SHARE }, { "size", VALUE_BYTES }, { "kind", VALUE_TEXT });
	uint64_t count = 0;

	report_begin_table(report, &table);
	for (size_t i = 0; i < waste->row_count; i++) {
		const struct waste_row *row = &waste->rows[i];

		if (is_meant(row->kind, only) && count++ < limit)
			write_row(report, waste, row);
	}
	report_end_table(report);
	rows_left_out(report, "lines", count, limit);
}

static struct error *write_group(struct report *report, const struct analysis *analysis,
				 const struct extent *extent, const struct duplicate_group *group)
{
	_cleanup_(free) char *name = NULL;
	char text[CONTENTS_TEXT_SIZE];
	kind_key key = kind_type(analysis, analysis_patterns(analysis), group->first);

	if (key != KIND_UNKNOWN) {
		name = kind_text(analysis, key);
		if (!name)
			return &error_no_memory;
	}
	report_row(report, group->copies, group->size, duplicate_bytes(group), extent->start,
		   report_content(report, contents_text_write(analysis_image(analysis),
							      extent->start, group->size, text)),
		   name		     ? name
		   : extent->is_text ? "text"
				     : "unrecognized");
	return NULL;
}

struct error *waste_write_contents(struct report *report, const struct analysis *analysis,
				   const struct waste *waste)
{
	static const struct table table =
		TABLE("content", NULL, { "copies", VALUE_COUNT }, { "of size", VALUE_BYTES },
		      { "waste", VALUE_BYTES }, { "first", VALUE_ADDRESS },
		      { "contents", VALUE_TEXT }, { "kind", VALUE_TEXT });
	const struct duplicates *duplicates = &waste->duplicates;
	struct error *error = NULL;
	struct extents extents;

	extents_init(&extents, analysis);
	report_begin_table(report, &table);
	for (size_t i = 0; !error && i < duplicates->largest_count; i++) {
		const struct duplicate_group *group = &duplicates->largest[i];
		struct extent extent = extent_of(&extents, group->first);

		error = write_group(report, analysis, &extent, group);
	}
	report_end_table(report);
	if (!error)
		rows_left_out(report, "contents", duplicates->group_count,
			      duplicates->largest_count);
	return error;
}

/* Absent unless it is of that kind of waste. */
static void write_known(struct report *report, const struct waste_sum *sum, bool is_asked)
{
	report_add(report, VALUE_IF(is_asked, sum->bytes));
}

void waste_write_total(struct report *report, const struct waste *waste, enum waste_kind only)
{
	static const struct table table = TABLE(
		"total waste",
		"{bytes,} bytes are waste, {share} of the {of bytes,} bytes that {allocations,} allocations use.[\nSpare room is known of {capacity known,} bytes of these.][\nWhat was asked for is known of {request known,} bytes of these.][\nThe core lacks contents of {absent,} bytes of these.]",
		{ "bytes", VALUE_BYTES }, { "share", VALUE_SHARE }, { "allocations", VALUE_COUNT },
		{ "of bytes", VALUE_BYTES }, { "capacity known", VALUE_BYTES },
		{ "request known", VALUE_BYTES }, { "absent", VALUE_BYTES });
	uint64_t bytes = 0;

	for (enum waste_kind kind = 0; kind < WASTE_KINDS; kind++)
		if (is_meant(kind, only))
			bytes += waste->sums[kind].bytes;
	report_begin_table(report, &table);
	report_add(report, bytes, rows_share(bytes, waste->looked_at.bytes), waste->looked_at.count,
		   waste->looked_at.bytes);
	write_known(report, &waste->known_spare, is_meant(WASTE_SPARE, only));
	write_known(report, &waste->known_slack, is_meant(WASTE_SLACK, only));
	write_known(report, &waste->absent, waste->absent.count > 0);
	report_end_row(report);
	report_end_table(report);
}
