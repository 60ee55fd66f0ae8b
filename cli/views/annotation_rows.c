#include "cli/views/annotation_rows.h"

struct rows {
	struct report *report;
	uint64_t address; /* of the allocation */
};

struct error *annotation_rows_init(struct annotating *annotating, struct analysis *analysis,
				   const struct selection *selection)
{
	return annotating_init(annotating, analysis, &selection->annotations,
			       &selection->query.extensions, selection->query.allow_missing);
}

static bool write_row(void *data, const struct annotation *annotation)
{
	const struct rows *rows = data;
	struct report *report = rows->report;

	report_row(report, rows->address, annotation->start, annotation->end, annotation->annotator,
		   annotation->is_content ? report_content(report, annotation->text)
					  : annotation->text);
	return !report_broken(report);
}

static void write_empty_line(struct report *report)
{
	static const struct table table = TABLE("note", "{text}", { "text", VALUE_TEXT });

	report_single(report, &table, "");
}

struct error *annotation_rows_write(struct annotating *annotating, allocation_id id,
				    struct report *report)
{
	static const struct table table = TABLE(
		"annotation", "... offsets {start} to {end}: {annotator}, {text}",
		{ "address", VALUE_ADDRESS }, { "start", VALUE_ADDRESS }, { "end", VALUE_ADDRESS },
		{ "annotator", VALUE_TEXT }, { "text", VALUE_TEXT });
	struct rows rows = {
		report,
		allocation_start(analysis_index(annotating->analysis), id),
	};
	struct error *error;

	report_begin_table(report, &table);
	error = annotate(annotating, id, write_row, &rows);
	report_end_table(report);
	write_empty_line(report);
	return error;
}
