/*
 * The command export: who holds the memory, in a file that another tool opens.
 */
#include "analyzer/export/export.h"
#include "analyzer/export/stacks.h"
#include "cli/prompt/output.h"
#include "cli/prompt/output_file.h"
#include "cli/views/rows.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

struct export_arguments {
	struct selection selection;	    /* first: it is released as one */
	const struct export_format *format; /* NULL: list them */
	enum owner_measure measure;
	enum export_graph graph;
	const char *path; /* NULL: to the command's output; borrowed */
	bool holders;	  /* rather than who allocated */
	bool narrows;	  /* anything but the format and the path was given */
};

static const struct argp_option own_options[] = {
	{ "by", KEEP(CHOICE, struct export_arguments, measure), "own|retained|leaked", 0,
	  "Measure the bytes of the set, those and all that would be freed along, or those leaked",
	  0 },
	{ "graph", KEEP(CHOICE, struct export_arguments, graph), "kinds|dominators|references", 0,
	  "For dot: draw kinds, or the allocations that retain most", 0 },
	{ "holders", KEEP(FLAG, struct export_arguments, holders), NULL, 0,
	  "Write what holds, also where who allocated is known", 0 },
	{ "output", KEEP(TEXT, struct export_arguments, path), "FILE", 0,
	  "Write FILE; -o FILE is the same", 0 },
	{ "o", KEEP(TEXT, struct export_arguments, path), "FILE", OPTION_HIDDEN, NULL, 0 },
	{ 0 },
};

static const char *const measures[MEASURES] = {
	[MEASURE_OWN] = "own",
	[MEASURE_RETAINED] = "retained",
	[MEASURE_LEAKED] = "leaked",
};

/* A format that saves all of the core has nothing to choose. */
static struct error *check_end(struct export_arguments *arguments)
{
	const struct export_format *format = arguments->format;

	if (!format)
		return NULL;
	if (format->save && arguments->narrows)
		return error_create(ERROR_USAGE,
				    "'export %s' writes all of the core: it takes '-o FILE' alone",
				    format->name);
	if (format->save && !arguments->path)
		return error_create(ERROR_USAGE, "'%s' is a database; name a file with '-o FILE'",
				    format->name);
	return selection_end_of_allocations(&arguments->selection);
}

static struct error *export_parse(int key, const char *value, void *output)
{
	struct export_arguments *arguments = output;

	if (key == ARGP_KEY_END)
		return check_end(arguments);
	if (key == ARGP_KEY_ARG && !arguments->format)
		return export_format_find(value, &arguments->format);
	arguments->narrows |= key != KEEP(TEXT, struct export_arguments, path);
	return selection_parse(key, value, &arguments->selection);
}

static void list_formats(struct report *report)
{
	static const struct table table =
		TABLE("export format", NULL, { "format", VALUE_TEXT }, { "is", VALUE_TEXT });

	report_begin_table(report, &table);
	for (size_t i = 0; export_formats[i]; i++)
		report_row(report, export_formats[i]->name, export_formats[i]->summary);
	report_end_table(report);
}

/* An output of the session says what came before; this one has nothing to say. */
static void before_output(void *data)
{
}

static struct error *write_file(const struct export *export, const struct export_format *format,
				const char *path)
{
	struct output output = {
		.destination = TO_FILE,
		.target = path,
		.before = before_output,
		.interrupted = &analysis_progress(export->analysis)->interrupted,
	};
	struct writer writer = { 0 };
	struct error *error;

	TRY(output_open(&output, analysis_image(export->analysis)->path));
	error = writer_init(&writer, output.stream);
	if (!error)
		error = format->write(export, &writer);
	writer_flush(&writer);
	if (!error && writer.failed)
		error = &error_no_memory;
	writer_deinit(&writer);
	return error_first(output_close(&output), error);
}

/* Only one that is complete gets the name. */
static struct error *save_file(struct analysis *analysis, const struct export_arguments *arguments,
			       struct report *report)
{
	static const struct table table =
		TABLE("export file", "{file}: {bytes,} bytes, all of the core, as {format}.",
		      { "file", VALUE_TEXT }, { "format", VALUE_TEXT }, { "bytes", VALUE_BYTES });
	_cleanup_(output_file_deinit) struct output_file file = { .fd = -1 };
	struct stat status = { 0 };
	struct error *error;

	TRY(output_check_target(arguments->path, analysis_image(analysis)->path));
	if (output_file_begin_named(arguments->path, &file) < 0)
		return error_create(ERROR_USAGE, "%s: %s", arguments->path,
				    errno == EEXIST ? "that is no regular file" : strerror(errno));
	error = arguments->format->save(analysis, report->no_content, file.temporary);
	if (error)
		return error_wrap(error, "%s", arguments->path);
	if (fstat(file.fd, &status) < 0 || output_file_complete(&file) < 0)
		return error_system("%s", arguments->path);
	report_single(report, &table, arguments->path, arguments->format->name,
		      (uint64_t)status.st_size);
	return NULL;
}

/* The bytes and number of the members. */
static struct owner_amount add_up(const struct export *export)
{
	const struct allocation_index *index = analysis_index(export->analysis);
	struct owner_amount total = { 0 };
	size_t hint = 0;

	if (export->owners)
		return export->owners->nodes.items[0].total[export->measure];
	bitmap_for_each(id, export->members) {
		struct memory_range range = allocation_range_near(index, (allocation_id)id, &hint);

		total.count++;
		total.bytes += range.end - range.start;
	}
	return total;
}

/* Report what was written to the file, so that readers can compare. */
static void tell(const struct export *export, const struct export_arguments *arguments,
		 struct report *report)
{
	static const struct table table = TABLE(
		"export",
		"{file}: {count} {count|allocation|allocations} of {bytes,} bytes, {by}, as {format}.",
		{ "file", VALUE_TEXT }, { "format", VALUE_TEXT }, { "by", VALUE_TEXT },
		{ "count", VALUE_COUNT }, { "bytes", VALUE_BYTES });
	struct owner_amount total = add_up(export);

	report_single(report, &table, arguments->path, arguments->format->name,
		      measures[export->measure], total.count, total.bytes);
}

static struct error *write_export(const struct export *export,
				  const struct export_arguments *arguments, struct report *report)
{
	if (arguments->path) {
		TRY(write_file(export, arguments->format, arguments->path));
		tell(export, arguments, report);
		return NULL;
	}
	if (arguments->format->is_binary && isatty(fileno(report->out)))
		return error_create(ERROR_USAGE,
				    "'%s' is not for a terminal; name a file with '-o FILE'",
				    arguments->format->name);
	return arguments->format->write(export, &report->writer);
}

/* The paths of what is held, or of the calls that allocated it, where the format prefers these. */
static struct error *find_paths(struct export *export, bool prefers_stacks, struct owners *ret)
{
	_cleanup_(callers_deinit) struct callers callers = { 0 };

	if (prefers_stacks)
		TRY(callers_find(export->analysis, &callers));
	export->has_stacks = prefers_stacks && callers_know_blocks(&callers);
	if (!export->has_stacks)
		return owners_find(export->analysis, export->members, true, ret);
	return stacks_as_owners(&callers, export->members, ret);
}

static struct error *export_run(struct analysis *analysis, const void *input, struct report *report)
{
	const struct export_arguments *arguments = input;
	struct set_query query = arguments->selection.query;
	_cleanup_(members_deinit) struct members members = { 0 };
	_cleanup_(owners_deinit) struct owners owners = { 0 };
	struct export export = {
		.analysis = analysis,
		.members = &members.set,
		.measure = arguments->measure,
		.graph = arguments->graph,
		.no_content = report->no_content,
	};

	if (!arguments->format) {
		list_formats(report);
		return NULL;
	}
	if (arguments->format->save)
		return save_file(analysis, arguments, report);
	export.limit = query.limit ? query.limit : arguments->format->limit;
	export.title = analysis_image(analysis)->path;
	query.any_order = true;
	TRY(analysis_need(analysis, STAGE_HEAP));
	TRY(query_select(analysis, &query, &members));
	if (!arguments->format->lists_members) {
		TRY(find_paths(&export, arguments->format->prefers_stacks && !arguments->holders,
			       &owners));
		export.owners = &owners;
	}
	return write_export(&export, arguments, report);
}

const struct command command_export = {
	.name = "export",
	.summary = "Write who holds the memory, for a viewer of another tool",
	.words = "[FORMAT [SET [KIND]]]",
	.choices = "EXPORT",
	.example = "export\n"
		   "export folded leaked\n"
		   "export pprof used app::Session --by retained",
	.description =
		"Paths go from a root to what it holds, as 'tree' says it: an allocation hangs below the one without which it would be freed; what retains much is a frame of its own, with the name that the program has for it, others are joined by kind. Without a format, the formats are listed. The set is 'used' by default, and --by own counts its bytes as 'count' does. --limit is for the frames of a path, or whatever else the format is made of: the largest are kept, the others joined. 'sqlite' is all of the core as a database, for docs/sql.md's queries; 'dump_all' lists the objects of Ruby, with their texts. The others write no contents of memory. Where who allocated is known, as by 'run --stacks=always' or tracemalloc, 'heaptrack' and 'pprof' have these calls instead of what holds, unless --holders says otherwise, and 'alys' has them for each allocation.",
	.word = WORD_SET,
	.own_options = own_options,
	.options = &contents_options[SELECTION_OPTIONS],
	.parse = export_parse,
	.hears_kept = true,
	.release = selection_release,
	.arguments_size = sizeof(struct export_arguments),
	.run = export_run,
};
