/*
 * A graph for yEd, Gephi, Cytoscape and networkx: GraphML, with what is known as attributes.
 */
#include "analyzer/export/picture.h"
#include "analyzer/report/values.h"

static const char head[] =
	"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
	"<graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\">\n"
	"<key id=\"label\" for=\"node\" attr.name=\"label\" attr.type=\"string\"/>\n"
	"<key id=\"kind\" for=\"node\" attr.name=\"kind\" attr.type=\"string\"/>\n"
	"<key id=\"address\" for=\"node\" attr.name=\"address\" attr.type=\"string\"/>\n"
	"<key id=\"count\" for=\"node\" attr.name=\"count\" attr.type=\"long\"/>\n"
	"<key id=\"bytes\" for=\"node\" attr.name=\"bytes\" attr.type=\"long\"/>\n"
	"<key id=\"retained\" for=\"node\" attr.name=\"retained\" attr.type=\"long\"/>\n"
	"<key id=\"reference\" for=\"edge\" attr.name=\"reference\" attr.type=\"boolean\"/>\n"
	"<graph id=\"heapcore\" edgedefault=\"directed\">\n";

static void begin_data(struct writer *writer, const char *key)
{
	writer_text(writer, "<data key=\"");
	writer_text(writer, key);
	writer_text(writer, "\">");
}

static void write_number(struct writer *writer, const char *key, uint64_t number)
{
	begin_data(writer, key);
	writer_decimal(writer, number);
	writer_text(writer, "</data>");
}

static void write_text(struct writer *writer, const char *key, const char *text)
{
	begin_data(writer, key);
	xml_text(writer, text);
	writer_text(writer, "</data>");
}

static void write_box(struct writer *writer, size_t number, const struct box *box)
{
	static const char *const kinds[] = {
		[BOX_ROOT] = "root",
		[BOX_KIND] = "kind",
		[BOX_ALLOCATION] = "allocation",
		[BOX_OTHERS] = "others",
	};
	char address[NUMBER_SIZE];

	writer_text(writer, "<node id=\"n");
	writer_decimal(writer, number);
	writer_text(writer, "\">");
	write_text(writer, "label", box->text);
	write_text(writer, "kind", kinds[box->kind]);
	if (box->kind == BOX_ALLOCATION) {
		snprintf(address, sizeof(address), "0x%jx", (uintmax_t)box->address);
		write_text(writer, "address", address);
	}
	write_number(writer, "count", box->count);
	write_number(writer, "bytes", box->bytes);
	write_number(writer, "retained", box->retained);
	writer_text(writer, "</node>\n");
}

static struct error *graphml_write(const struct export *export, struct writer *writer)
{
	_cleanup_(picture_deinit) struct picture picture = { 0 };

	TRY(picture_make(export, &picture));
	writer_text(writer, head);
	for (size_t i = 0; i < picture.boxes.count; i++)
		write_box(writer, i, &picture.boxes.items[i]);
	array_for_each(arrow, &picture.arrows) {
		writer_text(writer, "<edge source=\"n");
		writer_decimal(writer, arrow->from);
		writer_text(writer, "\" target=\"n");
		writer_decimal(writer, arrow->to);
		writer_text(writer, "\">");
		write_text(writer, "reference", json_truth(arrow->is_reference));
		writer_text(writer, "</edge>\n");
	}
	writer_text(writer, "</graph>\n</graphml>\n");
	return NULL;
}

const struct export_format export_format_graphml = {
	.name = "graphml",
	.summary = "a graph for yEd, Gephi and networkx, of kinds or allocations",
	.limit = 1000,
	.write = graphml_write,
};
