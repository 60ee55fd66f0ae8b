#include "cli/views/unit_rows.h"

#include "analyzer/base/text.h"
#include "cli/views/rows.h"

#include <inttypes.h>
#include <string.h>

static void write_groups(const struct units *units, uint64_t limit, struct report *report)
{
	static const struct table table = TABLE(
		"unit", NULL, { "memory", VALUE_TEXT }, { "unit", VALUE_TEXT },
		{ "blocks of", VALUE_BYTES }, { "count", VALUE_COUNT }, { "empty", VALUE_COUNT },
		{ "nearly empty", VALUE_COUNT }, { "used", VALUE_BYTES }, { "free", VALUE_BYTES },
		{ "used share", VALUE_SHARE });

	report_begin_table(report, &table);
	for (size_t i = 0; i < units->groups.count && (!limit || i < limit); i++) {
		const struct unit_group *group = &units->groups.items[i];

		report_row(report, group->memory, group->kind->name, value_nonzero(group->block),
			   group->count, group->empty, group->sparse, group->used.bytes,
			   group->free.bytes,
			   rows_share(group->used.bytes, group->used.bytes + group->free.bytes));
	}
	report_end_table(report);
	rows_left_out(report, "lines", units->groups.count, limit);
}

/* Write the nearly empty units that would go back to the system, of all sizes together. */
static uint64_t write_kept(const struct units *units, struct report *report)
{
	static const struct table table = TABLE(
		"nearly empty",
		"{units} {unit}{units||s} of {memory} {units|is|are} nearly empty: {allocations,} {allocations|allocation|allocations} of {used,} bytes\n"
		"{allocations|keeps|keep} {free,} free bytes from going back to the system.",
		{ "memory", VALUE_TEXT }, { "unit", VALUE_TEXT }, { "units", VALUE_COUNT },
		{ "allocations", VALUE_COUNT }, { "used", VALUE_BYTES }, { "free", VALUE_BYTES });
	uint64_t all = 0;

	report_begin_table(report, &table);
	for (size_t i = 0, next; i < units->groups.count; i = next) {
		const struct unit_group *first = &units->groups.items[i];
		struct unit_group sum = { 0 };

		for (next = i; next < units->groups.count; next++) {
			const struct unit_group *group = &units->groups.items[next];

			if (group->memory != first->memory || group->kind != first->kind)
				break;
			sum.sparse += group->sparse;
			set_total_add(&sum.kept_by, group->kept_by);
			set_total_add(&sum.kept, group->kept);
		}
		if (!first->kind->given_back || !sum.kept_by.count)
			continue;
		report_row(report, first->memory, first->kind->name, sum.sparse, sum.kept_by.count,
			   sum.kept_by.bytes, sum.kept.bytes);
		all += sum.kept.bytes;
	}
	report_end_table(report);
	return all;
}

char *unit_rows_describe(struct kind_name name)
{
	if (name.pattern)
		return format_text("%%%s", name.text);
	if (name.text)
		return strdup(name.text);
	if (name.signature)
		return format_text("signature 0x%" PRIx64, name.signature);
	return strdup("unrecognized");
}

static struct error *write_keepers(const struct analysis *analysis, const struct units *units,
				   uint64_t whole, uint64_t limit, struct report *report)
{
	static const struct table table = TABLE(
		"keeper", NULL, { "kept", VALUE_BYTES }, { "share", VALUE_SHARE },
		{ "alone", VALUE_BYTES }, { "allocations", VALUE_COUNT }, { "size", VALUE_BYTES },
		{ "such as", VALUE_ADDRESS }, { "kind", VALUE_TEXT });
	const struct pinnings *keepers = &units->keepers;

	report_begin_table(report, &table);
	for (size_t i = 0; i < keepers->count && (!limit || i < limit); i++) {
		const struct pinning *keeper = &keepers->items[i];
		struct kind_name name = kind_name(analysis, keeper->kind);
		_cleanup_(free) char *text = unit_rows_describe(name);

		TRY_MEMORY(text);
		report_row(report, keeper->pinned, rows_share(keeper->pinned, whole), keeper->alone,
			   keeper->count, value_nonzero(name.size),
			   allocation_start(analysis_index(analysis), keeper->example), text);
	}
	report_end_table(report);
	rows_left_out(report, "kinds of allocations", keepers->count, limit);
	return NULL;
}

struct error *unit_rows(struct analysis *analysis, const arena_number *only_arena, bool keepers,
			uint64_t limit, struct report *report)
{
	_cleanup_(units_deinit) struct units units = { 0 };
	uint64_t whole;

	TRY(units_find(analysis, only_arena, keepers, &units));
	write_groups(&units, limit, report);
	whole = write_kept(&units, report);
	return keepers ? write_keepers(analysis, &units, whole, limit, report) : NULL;
}
