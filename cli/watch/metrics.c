#include "cli/watch/metrics.h"

#include "analyzer/base/text.h"
#include "cli/prompt/output_file.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>
#include <sys/stat.h>

enum { MOST_KINDS = 20 };

DEFINE_CLEANUP(json_decref, json_t *)

/* The rows of a table of a report; NULL: there is none. Borrowed. */
static const json_t *find_rows(const json_t *report, const char *name)
{
	const json_t *tables = json_object_get(report, "tables"), *table;
	size_t i;

	json_array_foreach(tables, i, table)
	{
		const char *own = json_string_value(json_object_get(table, "name"));

		if (own && strcmp(own, name) == 0)
			return json_object_get(table, "rows");
	}
	return NULL;
}

static json_t *read_report(const struct stored *stored, const char *file)
{
	_cleanup_(free) char *path = stored_path(stored, file);

	return path ? json_load_file(path, 0, NULL) : NULL;
}

/* The value of a label: with quotes, which the text must not end. */
static void write_label(FILE *file, const char *text)
{
	fputc('"', file);
	for (; *text; text++)
		if (*text == '\n')
			fputs("\\n", file);
		else
			fprintf(file, "%s%c", strchr("\"\\", *text) ? "\\" : "", *text);
	fputc('"', file);
}

static void write_head(FILE *file, const char *metric, const char *unit, const char *help)
{
	fprintf(file, "# TYPE %s gauge\n", metric);
	if (unit)
		fprintf(file, "# UNIT %s %s\n", metric, unit);
	fprintf(file, "# HELP %s %s\n", metric, help);
}

/* METRIC{process="shop",LABEL="VALUE"} NUMBER */
static void write_sample(FILE *file, const char *metric, const char *process, const char *label,
			 const char *value, const json_t *number)
{
	if (!json_is_integer(number) || !value)
		return;
	fprintf(file, "%s{process=", metric);
	write_label(file, process);
	fprintf(file, ",%s=", label);
	write_label(file, value);
	fprintf(file, "} %lld\n", (long long)json_integer_value(number));
}

static void write_sets(FILE *file, const char *process, const json_t *screen)
{
	static const char *const uses[] = { "used", "leaked", "garbage", "free", "other" };
	const json_t *rows = find_rows(screen, "set"), *resident, *row;
	size_t i;

	write_head(file, "heapcore_heap_bytes", "bytes", "Bytes of the heap in each set.");
	json_array_foreach(rows, i, row) write_sample(
		file, "heapcore_heap_bytes", process, "set",
		json_string_value(json_object_get(row, "set")), json_object_get(row, "bytes"));
	write_head(file, "heapcore_heap_allocations", NULL, "Allocations in each set.");
	json_array_foreach(rows, i, row)
		write_sample(file, "heapcore_heap_allocations", process, "set",
			     json_string_value(json_object_get(row, "set")),
			     json_object_get(row, "allocations"));
	write_head(file, "heapcore_resident_bytes", "bytes",
		   "Resident bytes, by what explains them.");
	resident = json_array_get(find_rows(screen, "resident"), 0);
	for (i = 0; i < COUNT_OF(uses); i++)
		write_sample(file, "heapcore_resident_bytes", process, "use", uses[i],
			     json_object_get(resident, uses[i]));
}

static void write_growth(FILE *file, const char *process, const json_t *growth, const char *table,
			 const char *label, const char *metric, const char *help)
{
	const json_t *row;
	size_t i;

	write_head(file, metric, "bytes", help);
	json_array_foreach(find_rows(growth, table), i, row) if (i < MOST_KINDS) write_sample(
		file, metric, process, label, json_string_value(json_object_get(row, label)),
		json_object_get(row, "growth"));
}

static void write_all(FILE *file, const struct stored *stored, const char *process)
{
	_cleanup_(json_decref) json_t *screen = read_report(stored, "screen.json");
	_cleanup_(json_decref) json_t *growth = read_report(stored, "growth.json");
	struct stat status;

	write_head(file, "heapcore_snapshot_timestamp_seconds", "seconds",
		   "When the process was examined.");
	fputs("heapcore_snapshot_timestamp_seconds{process=", file);
	write_label(file, process);
	fprintf(file, "} %lld\n",
		stat(stored->folder, &status) == 0 ? (long long)status.st_mtime : 0);
	if (screen)
		write_sets(file, process, screen);
	if (growth) {
		write_growth(file, process, growth, "growth", "kind", "heapcore_growth_bytes",
			     "Growth of each kind since the snapshot before.");
		write_growth(file, process, growth, "holder growth", "holder",
			     "heapcore_holder_growth_bytes",
			     "Growth of what each holder alone holds since the snapshot before.");
	}
	fputs("# EOF\n", file);
}

struct error *metrics_write(const char *path, const struct stored *stored, const char *name)
{
	_cleanup_(output_file_deinit) struct output_file output = { .fd = -1 };
	_cleanup_(free) char *own = format_text("%s/metrics.prom", stored->shelf->folder);
	_cleanup_(fclose) FILE *file = NULL;
	int fd;

	TRY_MEMORY(own);
	path = path ? path : own;
	if (output_file_begin_named(path, &output) < 0)
		return error_system("%s", path);
	file = fdopen(dup(output.fd), "w");
	if (!file)
		return error_system("%s", path);
	write_all(file, stored, name);
	/* For whom it is read by another user. */
	fchmod(output.fd, 0644);
	if (fflush(file) != 0)
		return error_system("%s", path);
	fd = output_file_complete(&output);
	if (fd < 0)
		return error_system("%s", path);
	close(fd);
	return NULL;
}
