/*
 * A graph for Graphviz: dot -Tsvg. An arrow is drawn dashed where the one only dominates the other.
 */
#include "analyzer/export/picture.h"

/* Within quotes, a backslash begins an escape. */
static void write_text(struct writer *writer, const char *text)
{
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			writer_put(writer, '\\');
		writer_put(writer, *text);
	}
}

static void write_box(struct writer *writer, size_t number, const struct box *box)
{
	static const char *const looks[] = {
		[BOX_ROOT] = "\",shape=box,style=\"rounded,filled\",fillcolor=lightblue];\n",
		[BOX_KIND] = "\",shape=box];\n",
		[BOX_ALLOCATION] = "\",shape=box];\n",
		[BOX_OTHERS] = "\",shape=box,style=dashed];\n",
	};
	_cleanup_(free) char *amount = box_amount(box);

	writer_text(writer, "\tn");
	writer_decimal(writer, number);
	writer_text(writer, " [label=\"");
	write_text(writer, box->text);
	writer_text(writer, "\\n");
	writer_text(writer, amount ? amount : "");
	writer_text(writer, looks[box->kind]);
}

static struct error *dot_write(const struct export *export, struct writer *writer)
{
	_cleanup_(picture_deinit) struct picture picture = { 0 };

	TRY(picture_make(export, &picture));
	writer_text(writer,
		    "digraph heapcore {\n\trankdir=LR;\n\tnode [fontname=\"sans-serif\"];\n");
	for (size_t i = 0; i < picture.boxes.count; i++)
		write_box(writer, i, &picture.boxes.items[i]);
	array_for_each(arrow, &picture.arrows) {
		writer_text(writer, "\tn");
		writer_decimal(writer, arrow->from);
		writer_text(writer, " -> n");
		writer_decimal(writer, arrow->to);
		writer_text(writer, export->graph == GRAPH_REFERENCES && !arrow->is_reference
					    ? " [style=dashed];\n"
					    : ";\n");
	}
	writer_text(writer, "}\n");
	return NULL;
}

const struct export_format export_format_dot = {
	.name = "dot",
	.summary = "a graph for Graphviz, of kinds or allocations",
	.limit = 60,
	.write = dot_write,
};
