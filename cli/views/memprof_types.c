#include "analyzer/base/sort.h"
#include "analyzer/kinds/reach.h"
#include "analyzer/kinds/types.h"
#include "analyzer/query/set.h"
#include "cli/views/memprof.h"

#include <stdio.h>
#include <string.h>

enum { NOTE_SIZE = 160 };

void memprof_write_lines(struct report *report, uint64_t lines)
{
	static const struct table table = TABLE("lines", "{lines}", { "lines", VALUE_COUNT });

	report_single(report, &table, lines);
}

struct error *memprof_counts(struct analysis *analysis, const struct memprof_arguments *arguments,
			     struct report *report)
{
	static const struct table table =
		TABLE("type", "{count}\t{type}", { "count", VALUE_COUNT }, { "type", VALUE_TEXT });
	_cleanup_(types_deinit) struct types types = { 0 };
	struct error *error = types_find(analysis, TYPES_OBJECTS, &types);

	if (error)
		return error;
	memprof_write_lines(report, types.count);
	report_begin_table(report, &table);
	for (size_t i = 0; i < types.count; i++)
		report_row(report, types.list[i].count, types.list[i].name);
	report_end_table(report);
	return NULL;
}

static struct reach_input make_input(struct analysis *analysis, const struct types *types)
{
	return (struct reach_input){
		.graph = analysis_graph(analysis),
		.index = analysis_index(analysis),
		.members = &types->live,
		.groups = types->groups.bytes,
		.group_count = types->count,
		.account = analysis_account(analysis),
		.progress = analysis_progress(analysis),
	};
}

/* A type, and what its objects reach. */
struct reaching {
	const char *name;
	uint64_t bytes;
};

DEFINE_COMPARE(compare_reaching, struct reaching, DESCENDING(bytes), ALPHABETICAL(name))

static void write_reaching(const struct reaching *list, size_t count, struct report *report)
{
	/* Bytes are a count: decimal, as scripts expect it. */
	static const struct table table =
		TABLE("type", "{bytes}\t{type}", { "bytes", VALUE_COUNT }, { "type", VALUE_TEXT });

	memprof_write_lines(report, count);
	report_begin_table(report, &table);
	for (size_t i = 0; i < count; i++)
		report_row(report, list[i].bytes, list[i].name);
	report_end_table(report);
}

/* Those with the fewest objects are left out if there are too many types. */
static void limit_types(struct analysis *analysis, struct reach_input *input)
{
	size_t most = reach_most_groups(input, image_size(analysis_image(analysis)));
	char text[NOTE_SIZE];

	if (most == input->group_count)
		return;
	snprintf(
		text, sizeof(text),
		"there are %zu types; only the %zu with the most objects are shown, as all would take too long",
		input->group_count, most);
	input->group_count = most;
	analysis_note(analysis, text);
}

struct error *memprof_sizes(struct analysis *analysis, const struct memprof_arguments *arguments,
			    struct report *report)
{
	_cleanup_(types_deinit) struct types types = { 0 };
	_cleanup_(free) struct reaching *list = NULL;
	_cleanup_(free) uint64_t *bytes = NULL;
	struct error *error = types_find(analysis, TYPES_OBJECTS, &types);
	struct reach_input input = { 0 };

	if (error)
		return error;
	list = calloc(types.count + 1, sizeof(*list));
	bytes = calloc(types.count + 1, sizeof(*bytes));
	if (!list || !bytes)
		return &error_no_memory;
	input = make_input(analysis, &types);
	limit_types(analysis, &input);
	error = reach_by_group(&input, bytes);
	if (error)
		return error;
	for (size_t i = 0; i < input.group_count; i++)
		list[i] = (struct reaching){ types.list[i].name, bytes[i] };
	SORT(list, input.group_count, compare_reaching);
	write_reaching(list, input.group_count, report);
	return NULL;
}

struct error *memprof_size(struct analysis *analysis, const struct memprof_arguments *arguments,
			   struct report *report)
{
	static const struct table table = TABLE("size", "{bytes}", { "bytes", VALUE_COUNT });
	const struct allocation_index *index = analysis_index(analysis);
	const struct reach_input input = {
		.graph = analysis_graph(analysis),
		.index = index,
		.members = allocation_used(index),
		.account = analysis_account(analysis),
		.progress = analysis_progress(analysis),
	};
	uint64_t bytes;
	allocation_id id;
	struct error *error = set_find_allocation(analysis, arguments->address, &id);

	if (!error && !bitmap_get(input.members, id))
		error = error_create(ERROR_USAGE, "the allocation at 0x%jx is free",
				     (uintmax_t)allocation_start(index, id));
	if (!error)
		error = reach_of(&input, id, &bytes);
	if (error)
		return error;
	report_single(report, &table, bytes);
	return NULL;
}
