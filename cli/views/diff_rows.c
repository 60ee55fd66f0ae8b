#include "cli/views/diff_rows.h"

#include "analyzer/base/list.h"
#include "cli/views/rows.h"

#include <inttypes.h>

enum { SECOND = 1000000000 };

/* ns between the oldest and the newest core; 0: not known. */
static uint64_t elapsed(const struct diff_view *view)
{
	if (view->elapsed)
		return view->elapsed;
	/* Time between two runs is not time in which anything grew. */
	return kinship_is_same(view->diff->kinship) ? diff_elapsed(view->diff) : 0;
}

/* The source of the time between the cores; NULL: unknown. */
static const char *clock_name(const struct diff_view *view)
{
	const struct diff *diff = view->diff;
	size_t last = diff->core_count - 1;

	if (view->elapsed)
		return "according to --elapsed";
	if (!elapsed(view))
		return NULL;
	if (diff->cores[0].lineage.source == TIME_CORE &&
	    diff->cores[last].lineage.source == TIME_CORE)
		return "according to the cores";
	return "according to file times";
}

static void write_relation(struct report *report, const struct diff_view *view)
{
	static const struct table table = TABLE(
		"comparison",
		"{relation}[ {process}]: {reason}.[\n"
		"{seconds} seconds passed, {clock}.]",
		{ "relation", VALUE_TEXT }, { "reason", VALUE_TEXT }, { "process", VALUE_NUMBER },
		{ "seconds", VALUE_SECONDS }, { "clock", VALUE_TEXT });
	enum kinship kinship = view->diff->kinship;
	uint32_t process = view->diff->cores[0].lineage.process;
	const char *clock = clock_name(view);

	report_single(report, &table, kinship_is_same(kinship) ? "One process" : "Different runs",
		      kinship_reason(kinship),
		      VALUE_IF(kinship_is_same(kinship) && process, process),
		      VALUE_IF(clock, (double)elapsed(view) / SECOND), clock);
}

void diff_write_cores(struct report *report, const struct diff_view *view)
{
	static const struct table table =
		TABLE("core", NULL, { "allocations", VALUE_COUNT }, { "bytes", VALUE_BYTES },
		      { "taken", VALUE_TEXT }, { "core", VALUE_TEXT });

	write_relation(report, view);
	report_begin_table(report, &table);
	list_for_each(core, view->diff->cores, view->diff->core_count) {
		char buffer[LINEAGE_TIME_SIZE];

		report_row(report, core->total.count, core->total.bytes,
			   lineage_time(&core->lineage, buffer), core->path);
	}
	report_end_table(report);
}

/* Report bytes per hour; absent if the time is unknown, or only seconds. */
static void report_rate(struct report *report, const struct diff_view *view, int64_t bytes)
{
	enum { LEAST_SECONDS = 60 };
	static const double most = (double)INT64_MAX;
	double seconds = (double)elapsed(view) / SECOND;
	double hours = seconds < LEAST_SECONDS ? 0 : seconds / 3600;
	double rate = hours > 0 ? (double)bytes / hours : 0;

	report_add(report, VALUE_IF(hours > 0 && rate > -most && rate < most, (int64_t)rate));
}

/* A walk through the groups that changed and are to be shown. */
struct walk {
	const struct diff_view *view;
	size_t number;
	uint64_t shown;
};

static bool has_changed(const struct diff_group *group)
{
	return group->bytes || group->count;
}

static const struct diff_group *next_changed(struct walk *walk)
{
	const struct group_table *table = &walk->view->diff->groups;
	uint64_t limit = walk->view->limit;

	while (walk->number < table->groups.count && (!limit || walk->shown < limit)) {
		const struct diff_group *group = &table->groups.items[walk->number++];

		if (!has_changed(group))
			continue;
		walk->shown++;
		return group;
	}
	return NULL;
}

/* End the row with the name: "unrecognized of size 1,032 (0x408)". */
static void end_with(struct report *report, const char *text, uint64_t bytes)
{
	_cleanup_(free) char *sized = NULL;
	char size[SIZE_SIZE];

	if (bytes)
		sized = format_text("%s of size %s", text, format_size(bytes, size));
	report_row(report, sized ? sized : text);
}

static void end_with_name(struct report *report, const struct diff_group *group)
{
	end_with(report, group->text, group->size);
}

/* At how many of the steps it grew; NULL if there is but one. */
static const char *how_often(const struct diff *diff, const struct diff_group *group)
{
	if (diff->core_count < 3)
		return NULL;
	if (group->only_grows)
		return "always";
	return group->steps ? "at times" : "never";
}

void diff_write_kinds(struct report *report, const struct diff_view *view)
{
	static const struct table table =
		TABLE("growth", NULL, { "growth", VALUE_CHANGE },
		      { "growth count", VALUE_CHANGE, .heading = "count change" },
		      { "per hour", VALUE_CHANGE, .heading = "bytes/hour" },
		      { "share", VALUE_SHARE }, { "grew", VALUE_TEXT }, { "kind", VALUE_TEXT });
	const struct group_table *groups = &view->diff->groups;
	struct walk walk = { view };
	const struct diff_group *group;
	uint64_t all = 0, changed = 0; /* bytes of those that grew */

	for (size_t i = 0; i < groups->groups.count; i++) {
		group = &groups->groups.items[i];
		changed += has_changed(group);
		all += group->bytes > 0 ? (uint64_t)group->bytes : 0;
	}
	report_begin_table(report, &table);
	while ((group = next_changed(&walk))) {
		report_add(report, group->bytes, group->count);
		report_rate(report, view, group->bytes);
		report_add(report, group->bytes > 0 ? rows_share((uint64_t)group->bytes, all) : 0.0,
			   how_often(view->diff, group));
		end_with_name(report, group);
	}
	report_end_table(report);
	rows_left_out(report, "kinds", changed, view->limit);
}

/* Write how many allocations are new, gone and survived. */
static void write_turnover(struct report *report, const struct diff_view *view)
{
	static const struct table table =
		TABLE("turnover", NULL, { "now", VALUE_COUNT }, { "bytes", VALUE_BYTES },
		      { "new", VALUE_COUNT }, { "gone", VALUE_COUNT }, { "survived", VALUE_COUNT },
		      { "kind", VALUE_TEXT });
	struct walk walk = { view };
	const struct diff_group *group;

	report_begin_table(report, &table);
	while ((group = next_changed(&walk))) {
		report_add(report, group->now.count, group->now.bytes, group->added, group->gone,
			   group->survived);
		end_with_name(report, group);
	}
	report_end_table(report);
}

/* From each core to the next one, of what only grew. */
static void write_steps(struct report *report, const struct diff_view *view)
{
	static const struct table table =
		TABLE("step", NULL, { "step", VALUE_NUMBER }, { "growth", VALUE_CHANGE },
		      { "growth count", VALUE_CHANGE, .heading = "count change" },
		      { "kind", VALUE_TEXT });
	const struct diff *diff = view->diff;
	struct walk walk = { view };
	const struct diff_group *group;

	report_begin_table(report, &table);
	while ((group = next_changed(&walk))) {
		for (size_t i = 0; group->only_grows && i + 1 < diff->core_count; i++) {
			struct set_total old = group_total(&diff->groups, group, i);
			struct set_total now = group_total(&diff->groups, group, i + 1);

			report_add(report, i + 1, (int64_t)(now.bytes - old.bytes),
				   (int64_t)(now.count - old.count));
			end_with_name(report, group);
		}
	}
	report_end_table(report);
}

static void write_total(struct report *report, const struct diff_view *view)
{
	static const struct table table = TABLE(
		"total growth",
		"In total, {count} allocations and {bytes} bytes[, {per hour} bytes an hour].",
		{ "bytes", VALUE_CHANGE }, { "count", VALUE_CHANGE }, { "per hour", VALUE_CHANGE });
	const struct diff *diff = view->diff;
	struct set_total old = diff->cores[0].total;
	struct set_total now = diff->cores[diff->core_count - 1].total;
	int64_t bytes = (int64_t)(now.bytes - old.bytes);

	report_begin_table(report, &table);
	report_add(report, bytes, (int64_t)(now.count - old.count));
	report_rate(report, view, bytes);
	report_end_row(report);
	report_end_table(report);
}

static void write_holder(struct report *report, const struct analysis *newest,
			 const struct growth *growth)
{
	_cleanup_(free) char *place = NULL;
	struct error *error = growth_place(newest, growth, !report->no_content, &place);
	const struct diff_group *most = growth->most;

	if (error) {
		report->error = error_first(report->error, error);
		return;
	}
	report_add(report, growth->whole->bytes, growth->whole->count, growth->holder,
		   VALUE_IF(most, most ? most->count : 0), place);
	end_with(report, most ? growth->kind : NULL, growth->size);
}

/* Write the holders of the growth, before the kinds. */
static void write_holders(struct report *report, const struct diff_view *view)
{
	static const struct table table = TABLE(
		"holder growth",
		"{holder}: {growth} bytes in {growth count} allocations[, most in {kind count} {kind}][, mostly held by {place}]",
		{ "growth", VALUE_CHANGE }, { "growth count", VALUE_CHANGE },
		{ "holder", VALUE_TEXT }, { "kind count", VALUE_CHANGE }, { "place", VALUE_TEXT },
		{ "kind", VALUE_TEXT });

	report_begin_table(report, &table);
	array_for_each(growth, view->holders)
		write_holder(report, view->newest, growth);
	report_end_table(report);
}

void diff_write_growth(struct report *report, const struct diff_view *view)
{
	if (view->holders)
		write_holders(report, view);
	diff_write_kinds(report, view);
	if (kinship_is_same(view->diff->kinship))
		write_turnover(report, view);
	if (view->diff->core_count > 2)
		write_steps(report, view);
	write_total(report, view);
}
