#include "cli/views/diff_rows.h"

#include "cli/views/rows.h"

#include <inttypes.h>
#include <time.h>

enum { SECOND = 1000000000, TIME_SIZE = 32 };

/* ns between the oldest and the newest core; 0: not known. */
static uint64_t elapsed(const struct diff_view *view)
{
	if (view->elapsed)
		return view->elapsed;
	/* Time between two runs is not time in which anything grew. */
	return diff_kinship(view->diff) == KIN_SAME_PROCESS ? diff_elapsed(view->diff) : 0;
}

/* Where the time between the cores comes from; NULL: it is not known. */
static const char *clock_name(const struct diff_view *view)
{
	const struct diff *diff = view->diff;
	size_t last = diff_core_count(diff) - 1;

	if (view->elapsed)
		return "as --elapsed says";
	if (!elapsed(view))
		return NULL;
	if (diff_core(diff, 0)->lineage.source == TIME_CORE &&
	    diff_core(diff, last)->lineage.source == TIME_CORE)
		return "by the times in the cores";
	return "by the times of the files";
}

static void write_relation(struct report *report, const struct diff_view *view)
{
	static const struct table table = TABLE(
		"comparison",
		"{relation}: {reason}[ ({process})].[\n"
		"{seconds} seconds passed, {clock}.]",
		{ "relation", VALUE_TEXT }, { "reason", VALUE_TEXT }, { "process", VALUE_NUMBER },
		{ "seconds", VALUE_SECONDS }, { "clock", VALUE_TEXT });
	enum kinship kinship = diff_kinship(view->diff);
	uint32_t process = diff_core(view->diff, 0)->lineage.process;
	const char *clock = clock_name(view);

	report_single(
		report, &table, kinship == KIN_SAME_PROCESS ? "One process" : "Different runs",
		kinship_reason(kinship), VALUE_IF(kinship == KIN_SAME_PROCESS && process, process),
		VALUE_IF(clock, (double)elapsed(view) / SECOND), clock);
}

/* In UTC, into the buffer; NULL if it is not known. */
static const char *format_time(const struct lineage *lineage, char buffer[static TIME_SIZE])
{
	time_t seconds = (time_t)(lineage->time / SECOND);
	struct tm time;

	if (lineage->source == TIME_UNKNOWN || !gmtime_r(&seconds, &time))
		return NULL;
	return strftime(buffer, TIME_SIZE, "%Y-%m-%dT%H:%M:%SZ", &time) ? buffer : NULL;
}

void diff_write_cores(struct report *report, const struct diff_view *view)
{
	static const struct table table =
		TABLE("core", NULL, { "allocations", VALUE_COUNT }, { "bytes", VALUE_BYTES },
		      { "taken", VALUE_TEXT }, { "core", VALUE_TEXT });

	write_relation(report, view);
	report_begin_table(report, &table);
	for (size_t i = 0; i < diff_core_count(view->diff); i++) {
		const struct diff_core *core = diff_core(view->diff, i);
		char buffer[TIME_SIZE];

		report_row(report, core->total.count, core->total.bytes,
			   format_time(&core->lineage, buffer), core->path);
	}
	report_end_table(report);
}

/* By how many bytes an hour; absent if nobody knows how long it took. */
static void report_rate(struct report *report, const struct diff_view *view, int64_t bytes)
{
	static const double most = (double)INT64_MAX;
	double hours = (double)elapsed(view) / SECOND / 3600;
	double rate = hours > 0 ? (double)bytes / hours : 0;

	/* Between two moments that are next to each other it tells nothing. */
	report_add(report, VALUE_IF(hours > 0 && rate > -most && rate < most, (int64_t)rate));
}

static int64_t grown_bytes(const struct diff_group *group)
{
	return (int64_t)(group->now.bytes - group->old.bytes);
}

static int64_t grown_count(const struct diff_group *group)
{
	return (int64_t)(group->now.count - group->old.count);
}

static bool has_changed(const struct diff_group *group)
{
	return grown_bytes(group) || grown_count(group);
}

/* Call write for as many of those that changed as are to be shown. */
static void for_each_changed(const struct diff_view *view,
			     void (*write)(struct report *report, const struct diff_view *view,
					   const struct diff_group *group),
			     struct report *report)
{
	uint64_t written = 0;

	for (size_t i = 0; i < diff_group_count(view->diff); i++) {
		const struct diff_group *group = diff_group(view->diff, i);

		if (!has_changed(group))
			continue;
		if (view->limit && written++ == view->limit)
			return;
		write(report, view, group);
	}
}

/* "unrecognized of size 0x408"; the text is to be freed when the row has ended. */
static char *write_name(struct report *report, const struct diff_view *view,
			const struct diff_group *group)
{
	const char *name = diff_name(view->diff, group);
	char *sized;

	if (!group->size || asprintf(&sized, "%s of size 0x%" PRIx64, name, group->size) < 0)
		sized = NULL;
	report_add(report, sized ? sized : name);
	return sized;
}

/* What all together grew by that did grow. */
static uint64_t all_growth(const struct diff *diff)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < diff_group_count(diff); i++) {
		int64_t grown = grown_bytes(diff_group(diff, i));

		bytes += grown > 0 ? (uint64_t)grown : 0;
	}
	return bytes;
}

/* At how many of the steps it grew; NULL if there is but one. */
static const char *how_often(const struct diff_view *view, const struct diff_group *group)
{
	if (diff_core_count(view->diff) < 3)
		return NULL;
	if (diff_only_grows(view->diff, group))
		return "always";
	return group->steps ? "at times" : "never";
}

struct growth_view {
	struct diff_view view;
	uint64_t all;
};

static void write_growth_row(struct report *report, const struct diff_view *view,
			     const struct diff_group *group)
{
	const struct growth_view *growth = (const struct growth_view *)view;
	int64_t bytes = grown_bytes(group);
	_cleanup_(free) char *name = NULL;

	report_add(report, bytes, grown_count(group));
	report_rate(report, view, bytes);
	report_add(report, bytes > 0 && growth->all ? (double)bytes / (double)growth->all : 0,
		   how_often(view, group));
	name = write_name(report, view, group);
	report_end_row(report);
}

static uint64_t count_changed(const struct diff *diff)
{
	uint64_t count = 0;

	for (size_t i = 0; i < diff_group_count(diff); i++)
		count += has_changed(diff_group(diff, i));
	return count;
}

void diff_write_kinds(struct report *report, const struct diff_view *view)
{
	static const struct table table =
		TABLE("growth", NULL, { "growth", VALUE_CHANGE }, { "growth count", VALUE_CHANGE },
		      { "per hour", VALUE_CHANGE }, { "share", VALUE_SHARE },
		      { "grew", VALUE_TEXT }, { "kind", VALUE_TEXT });
	struct growth_view growth = { *view, all_growth(view->diff) };

	report_begin_table(report, &table);
	for_each_changed(&growth.view, write_growth_row, report);
	report_end_table(report);
	rows_left_out(report, "kinds", count_changed(view->diff), view->limit);
}

/* What one by one became of the allocations. */
static void write_turnover_row(struct report *report, const struct diff_view *view,
			       const struct diff_group *group)
{
	_cleanup_(free) char *name = NULL;

	report_add(report, group->now.count, group->now.bytes, group->added, group->gone,
		   group->survived);
	name = write_name(report, view, group);
	report_end_row(report);
}

static void write_turnover(struct report *report, const struct diff_view *view)
{
	static const struct table table =
		TABLE("turnover", NULL, { "now", VALUE_COUNT }, { "bytes", VALUE_BYTES },
		      { "new", VALUE_COUNT }, { "gone", VALUE_COUNT }, { "survived", VALUE_COUNT },
		      { "kind", VALUE_TEXT });

	report_begin_table(report, &table);
	for_each_changed(view, write_turnover_row, report);
	report_end_table(report);
}

/* From each core to the next one, of what only grew. */
static void write_step_rows(struct report *report, const struct diff_view *view,
			    const struct diff_group *group)
{
	const struct diff *diff = view->diff;

	if (!diff_only_grows(diff, group))
		return;
	for (size_t i = 0; i + 1 < diff_core_count(diff); i++) {
		struct set_total old = diff_total(diff, group, i);
		struct set_total now = diff_total(diff, group, i + 1);
		_cleanup_(free) char *name = NULL;

		report_add(report, i + 1, (int64_t)(now.bytes - old.bytes),
			   (int64_t)(now.count - old.count));
		name = write_name(report, view, group);
		report_end_row(report);
	}
}

static void write_steps(struct report *report, const struct diff_view *view)
{
	static const struct table table =
		TABLE("step", NULL, { "step", VALUE_NUMBER }, { "growth", VALUE_CHANGE },
		      { "growth count", VALUE_CHANGE }, { "kind", VALUE_TEXT });

	report_begin_table(report, &table);
	for_each_changed(view, write_step_rows, report);
	report_end_table(report);
}

static void write_total(struct report *report, const struct diff_view *view)
{
	static const struct table table = TABLE(
		"total growth",
		"In all, {count} allocations and {bytes} bytes[, {per hour} bytes an hour].",
		{ "bytes", VALUE_CHANGE }, { "count", VALUE_CHANGE }, { "per hour", VALUE_CHANGE });
	const struct diff *diff = view->diff;
	struct set_total old = diff_core(diff, 0)->total;
	struct set_total now = diff_core(diff, diff_core_count(diff) - 1)->total;
	int64_t bytes = (int64_t)(now.bytes - old.bytes);

	report_begin_table(report, &table);
	report_add(report, bytes, (int64_t)(now.count - old.count));
	report_rate(report, view, bytes);
	report_end_row(report);
	report_end_table(report);
}

void diff_write_growth(struct report *report, const struct diff_view *view)
{
	diff_write_kinds(report, view);
	if (diff_kinship(view->diff) == KIN_SAME_PROCESS)
		write_turnover(report, view);
	if (diff_core_count(view->diff) > 2)
		write_steps(report, view);
	write_total(report, view);
}
