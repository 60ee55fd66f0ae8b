#include "analyzer/kinds/holders.h"
#include "analyzer/kinds/kind_key.h"
#include "analyzer/kinds/types.h"
#include "cli/views/memprof.h"

#include <string.h>

enum { OFFSET_SIZE = 40 };

/* What writes the graph, as the flow chart that mermaid draws of it. */
struct chart {
	struct analysis *analysis;
	const struct types *types;
	struct report *report;
	char **names;		       /* of the types, quoted; owned */
	char unknown[CLASS_NAME_SIZE]; /* the name of what has no type */
	char offset[OFFSET_SIZE];      /* the field of the row being written */
};

/* A text within quotes, which mermaid has a code for. NULL: memory is short. */
static char *quote(const char *text)
{
	static const char code[] = "#quot;";
	char *quoted = calloc(strlen(text) + 1, sizeof(code)), *end = quoted;

	if (!quoted)
		return NULL;
	for (; *text; text++)
		if (*text == '"')
			end = stpcpy(end, code);
		else
			*end++ = *text;
	return quoted;
}

static struct error *quote_names(struct chart *chart)
{
	const struct types *types = chart->types;

	class_number_name(0, chart->unknown);
	chart->names = calloc(types->count + 1, sizeof(*chart->names));
	if (!chart->names)
		return &error_no_memory;
	for (size_t i = 0; i < types->count; i++) {
		chart->names[i] = quote(types->list[i].name);
		if (!chart->names[i])
			return &error_no_memory;
	}
	return NULL;
}

static void chart_deinit(struct chart *chart)
{
	for (size_t i = 0; chart->names && chart->names[i]; i++)
		free(chart->names[i]);
	free(chart->names);
}
DEFINE_DEINIT(chart_deinit, struct chart)

/* The column of what the allocation is. */
static void write_type(struct chart *chart, allocation_id id)
{
	uint32_t type = types_of(chart->types, id);

	report_add(chart->report, type == NO_GROUP ? chart->unknown : chart->names[type]);
}

static void write_head(struct report *report)
{
	static const struct table table = TABLE("graph", "{graph}", { "graph", VALUE_TEXT });

	report_single(report, &table, "graph LR");
}

static void write_objects(struct chart *chart, const allocation_id *objects, size_t count)
{
	static const struct table table =
		TABLE("object", "  0x{address}{[}\"0x{address} {type}\"{]}",
		      { "address", VALUE_ADDRESS }, { "type", VALUE_TEXT });
	const struct allocation_index *index = analysis_index(chart->analysis);

	report_begin_table(chart->report, &table);
	for (size_t i = 0; i < count; i++) {
		report_add(chart->report, allocation_start(index, objects[i]));
		write_type(chart, objects[i]);
		report_end_row(chart->report);
	}
	report_end_table(chart->report);
}

/* The column of the field that a reference is in. */
static void write_field(struct chart *chart, const struct holding *holding)
{
	const char *name = runtimes_field_name(analysis_runtimes(chart->analysis), holding->from,
					       holding->offset);

	if (!name)
		snprintf(chart->offset, sizeof(chart->offset), "(field %ju)",
			 (uintmax_t)holding->offset);
	report_add(chart->report, name ? name : chart->offset);
}

static bool write_holding(void *data, const struct holding *holding)
{
	struct chart *chart = data;
	struct report *report = chart->report;
	const struct allocation_index *index = analysis_index(chart->analysis);

	report_add(report, allocation_start(index, holding->from));
	write_type(chart, holding->from);
	write_field(chart, holding);
	report_row(report, holding->level, allocation_start(index, holding->to));
	return !report_broken(report);
}

static struct error *write_holders(struct chart *chart, uint64_t levels,
				   const allocation_id *objects, size_t count)
{
	static const struct table table =
		TABLE("reference",
		      "  0x{from}{[}\"0x{from} {from type}\"{]} --@{field},{level}--> 0x{to}",
		      { "from", VALUE_ADDRESS }, { "from type", VALUE_TEXT },
		      { "field", VALUE_TEXT }, { "level", VALUE_NUMBER }, { "to", VALUE_ADDRESS });
	struct error *error;

	report_begin_table(chart->report, &table);
	error = holders_visit(&(struct holders_input){
		.analysis = chart->analysis,
		.live = &chart->types->live,
		.targets = objects,
		.target_count = count,
		.levels = levels,
		.visit = write_holding,
		.data = chart,
	});
	report_end_table(chart->report);
	return error;
}

/* The first objects of the type, by address. */
static struct error *take_objects(const struct types *types, uint32_t type, uint64_t limit,
				  struct memory *ret, size_t *ret_count)
{
	uint64_t most = types->list[type].count;
	struct error *error;
	size_t count = 0;

	if (limit && limit < most)
		most = limit;
	error = memory_resize(ret, most * sizeof(allocation_id));
	if (error)
		return error;
	bitmap_for_each(id, &types->live) {
		if (count == most)
			break;
		if (types_of(types, (allocation_id)id) == type)
			((allocation_id *)ret->bytes)[count++] = (allocation_id)id;
	}
	*ret_count = count;
	return NULL;
}

struct error *memprof_graph(struct analysis *analysis, const struct memprof_arguments *arguments,
			    struct report *report)
{
	_cleanup_(types_deinit) struct types types = { 0 };
	_cleanup_(memory_release) struct memory objects = { .account = analysis_account(analysis) };
	_cleanup_(chart_deinit) struct chart chart = { .analysis = analysis,
						       .types = &types,
						       .report = report };
	struct error *error = types_find(analysis, TYPES_ALL, &types);
	uint32_t type = 0;
	size_t count = 0;

	if (!error)
		error = types_find_name(&types, arguments->type, &type);
	if (!error)
		error = analysis_need(analysis, STAGE_INCOMING);
	if (!error)
		error = analysis_need(analysis, STAGE_OWNERS);
	if (!error)
		error = take_objects(&types, type, arguments->objects, &objects, &count);
	if (!error)
		error = quote_names(&chart);
	if (error)
		return error;
	write_head(report);
	write_objects(&chart, objects.bytes, count);
	return write_holders(&chart, arguments->levels, objects.bytes, count);
}
