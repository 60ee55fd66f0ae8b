/*
 * A heap snapshot as V8 makes them, for Chrome's developer tools (Memory, Load): kinds are
 * constructors, allocations are their objects, roots have their names.
 *
 * The first node is synthetic, and shortcuts lead from it to the roots: so distances count from
 * these. Nodes and edges are rows of numbers, as "meta" names them; edges follow each other in the
 * order of the nodes that they are from. Names are numbers of strings: those of the owners' names,
 * behind some of our own.
 */
#include "analyzer/base/text.h"
#include "analyzer/export/sample.h"
#include "analyzer/report/values.h"

enum { NODE_FIELDS = 7, FIRST_TEXT = 3 };

/* Numbers of "node_types" and "edge_types". */
enum { NODE_OBJECT = 3, NODE_SYNTHETIC = 9 };
enum { EDGE_ELEMENT = 1, EDGE_PROPERTY = 2, EDGE_SHORTCUT = 5 };

static const char meta[] =
	"{\"snapshot\":{\"meta\":{\"node_fields\":[\"type\",\"name\",\"id\",\"self_size\",\"edge_count\",\"trace_node_id\",\"detachedness\"],\n"
	"\"node_types\":[[\"hidden\",\"array\",\"string\",\"object\",\"code\",\"closure\",\"regexp\",\"number\",\"native\",\"synthetic\",\"concatenated string\",\"sliced string\",\"symbol\",\"bigint\",\"object shape\"],\"string\",\"number\",\"number\",\"number\",\"number\",\"number\"],\n"
	"\"edge_fields\":[\"type\",\"name_or_index\",\"to_node\"],\n"
	"\"edge_types\":[[\"context\",\"element\",\"property\",\"internal\",\"hidden\",\"shortcut\",\"weak\"],\"string_or_number\",\"node\"],\n"
	"\"trace_function_info_fields\":[],\"trace_node_fields\":[],\"sample_fields\":[],\"location_fields\":[]},\n";

static void write_row(struct writer *writer, bool is_first, const uint64_t *numbers, size_t count)
{
	writer_text(writer, is_first ? "\n" : "\n,");
	for (size_t i = 0; i < count; i++) {
		if (i)
			writer_put(writer, ',');
		writer_decimal(writer, numbers[i]);
	}
}

/* Nodes that stand for several have names of their own, behind those of the owners, in order. */
static void write_nodes(const struct sample *sample, struct writer *writer)
{
	uint64_t others = FIRST_TEXT + sample->export->owners->names.list.count;
	size_t edge = 0;

	writer_text(writer, "\"nodes\":[");
	for (size_t i = 0; i < sample->objects.count; i++) {
		const struct object *object = &sample->objects.items[i];
		size_t first = edge;
		uint64_t row[NODE_FIELDS] = { 0 };

		while (edge < sample->edges.count && sample->edges.items[edge].from == i)
			edge++;
		row[0] = object->kind == OBJECT_HEAP ? NODE_SYNTHETIC : NODE_OBJECT;
		row[1] = object->kind == OBJECT_OTHERS ? others++ : FIRST_TEXT + object->name;
		row[2] = 2 * i + 1;
		row[3] = object->bytes;
		row[4] = edge - first;
		write_row(writer, i == 0, row, NODE_FIELDS);
	}
	writer_text(writer, "],\n");
}

/* A property for what is only known to be held, else the number of the reference. */
static void write_edges(const struct sample *sample, struct writer *writer)
{
	uint64_t number = 0, last = UINT64_MAX;

	writer_text(writer, "\"edges\":[");
	for (size_t i = 0; i < sample->edges.count; i++) {
		const struct object_edge *edge = &sample->edges.items[i];
		uint64_t row[3] = { EDGE_PROPERTY, 1, (uint64_t)edge->to * NODE_FIELDS };

		number = edge->from == last ? number + 1 : 0;
		last = edge->from;
		if (edge->from == 0 || sample->objects.items[edge->from].kind == OBJECT_ROOT ||
		    edge->is_reference) {
			row[0] = edge->from == 0 ? EDGE_SHORTCUT : EDGE_ELEMENT;
			row[1] = edge->from == 0 ? 2 : number;
		}
		write_row(writer, i == 0, row, COUNT_OF(row));
	}
	writer_text(writer, "],\n");
}

static void write_strings(const struct sample *sample, struct writer *writer)
{
	const struct owner_names *names = &sample->export->owners->names;

	writer_text(writer, "\"strings\":[\"\",\"holds, by what is left out\",\"root\"");
	for (size_t i = 0; i < names->list.count; i++) {
		writer_text(writer, ",\n");
		json_text(writer, names->list.items[i].text);
	}
	array_for_each(object, &sample->objects) {
		_cleanup_(free) char *text = NULL;
		char digits[NUMBER_SIZE];

		if (object->kind != OBJECT_OTHERS)
			continue;
		text = format_text("%s (%s others)", object_text(sample, object),
				   grouped(object->count, digits));
		writer_text(writer, ",\n");
		json_text(writer, text ? text : "");
	}
	writer_text(writer, "]}\n");
}

static struct error *heapsnapshot_write(const struct export *export, struct writer *writer)
{
	_cleanup_(sample_deinit) struct sample sample = { 0 };

	TRY(sample_make(export, export->limit, false, &sample));
	writer_text(writer, meta);
	writer_text(writer, "\"node_count\":");
	writer_decimal(writer, sample.objects.count);
	writer_text(writer, ",\"edge_count\":");
	writer_decimal(writer, sample.edges.count);
	writer_text(writer, ",\"trace_function_count\":0},\n");
	write_nodes(&sample, writer);
	write_edges(&sample, writer);
	writer_text(
		writer,
		"\"trace_function_infos\":[],\"trace_tree\":[],\"samples\":[],\"locations\":[],\n");
	write_strings(&sample, writer);
	return NULL;
}

const struct export_format export_format_heapsnapshot = {
	.name = "heapsnapshot",
	.summary = "allocations one by one, for the memory panel of Chrome's developer tools",
	.limit = 100000,
	.write = heapsnapshot_write,
};
