/*
 * A graph for Graphviz: dot -Tsvg. Boxes are kinds (frames.h), or allocations (sample.h); those
 * beyond the limit are one box, "12 more". An arrow is dashed where the one only dominates the
 * other.
 */
#include "analyzer/base/text.h"
#include "analyzer/export/sample.h"
#include "analyzer/owners/frames.h"

static const char root_look[] = "\",shape=box,style=\"rounded,filled\",fillcolor=lightblue];\n";
static const char usual_look[] = "\",shape=box];\n";
static const char others_look[] = "\",shape=box,style=dashed];\n";

/* Within quotes, a backslash begins an escape. */
static void write_name(struct writer *writer, const char *name)
{
	for (; *name; name++) {
		if (*name == '"' || *name == '\\')
			writer_put(writer, '\\');
		writer_put(writer, *name);
	}
}

static void begin_box(struct writer *writer, size_t number, const char *name)
{
	writer_text(writer, "\tn");
	writer_decimal(writer, number);
	writer_text(writer, " [label=\"");
	write_name(writer, name);
	writer_text(writer, "\\n");
}

static void write_grouped(struct writer *writer, uint64_t number)
{
	char digits[NUMBER_SIZE];

	writer_text(writer, grouped(number, digits));
}

static void write_root_amount(struct writer *writer, uint64_t retained)
{
	write_grouped(writer, retained);
	writer_text(writer, " bytes");
}

static void write_amount(struct writer *writer, struct owner_amount own, uint64_t retained)
{
	write_grouped(writer, own.bytes);
	writer_text(writer, " bytes in ");
	write_grouped(writer, own.count);
	writer_text(writer, own.count == 1 ? " allocation" : " allocations");
	if (retained <= own.bytes)
		return;
	writer_text(writer, ", retains ");
	write_grouped(writer, retained);
}

static void write_arrow(struct writer *writer, uint32_t from, uint32_t to, bool is_dashed)
{
	writer_text(writer, "\tn");
	writer_decimal(writer, from);
	writer_text(writer, " -> n");
	writer_decimal(writer, to);
	writer_text(writer, is_dashed ? " [style=dashed];\n" : ";\n");
}

static struct error *draw_kinds(const struct export *export, struct writer *writer)
{
	_cleanup_(frames_deinit) struct frames frames = { 0 };
	char buffer[FRAME_TEXT_SIZE];

	TRY(frames_make(export->owners, export->measure, export->limit,
			analysis_account(export->analysis), &frames));
	for (uint32_t i = 0; i < frames.list.count; i++) {
		const struct owner_frame *frame = &frames.list.items[i];
		uint64_t retained = frame->total[export->measure].bytes;
		bool is_root = !frame->others && frame->depth < 2;

		begin_box(writer, i, frame_text(&frames, i, buffer));
		if (is_root)
			write_root_amount(writer, retained);
		else
			write_amount(writer, frame->own[export->measure], retained);
		writer_text(writer, frame->others ? others_look : is_root ? root_look : usual_look);
	}
	for (uint32_t i = 1; i < frames.list.count; i++)
		write_arrow(writer, frames.list.items[i].parent, i, false);
	return NULL;
}

static void draw_others(const struct object *object, size_t number, struct writer *writer)
{
	char digits[NUMBER_SIZE], name[NUMBER_SIZE + sizeof("( more)")];

	snprintf(name, sizeof(name), "(%s more)", grouped(object->count, digits));
	begin_box(writer, number, name);
	write_amount(writer,
		     (struct owner_amount){ .count = object->count, .bytes = object->bytes },
		     object->retained);
	writer_text(writer, others_look);
}

static void draw_object(const struct sample *sample, size_t number, struct writer *writer)
{
	const struct allocation_index *index = analysis_index(sample->export->analysis);
	const struct object *object = &sample->objects.items[number];
	char address[NUMBER_SIZE];

	if (object->kind == OBJECT_OTHERS) {
		draw_others(object, number, writer);
		return;
	}
	begin_box(writer, number, object_text(sample, object));
	if (object->kind != OBJECT_ALLOCATION) {
		write_root_amount(writer, object->retained);
		writer_text(writer, root_look);
		return;
	}
	snprintf(address, sizeof(address),
		 "0x%jx: ", (uintmax_t)allocation_start(index, object->id));
	writer_text(writer, address);
	write_grouped(writer, object->bytes);
	writer_text(writer, " bytes, retains ");
	write_grouped(writer, object->retained);
	writer_text(writer, usual_look);
}

static struct error *draw_allocations(const struct export *export, struct writer *writer)
{
	_cleanup_(sample_deinit) struct sample sample = { 0 };

	TRY(sample_make(export, export->limit, true, &sample));
	for (size_t i = 0; i < sample.objects.count; i++)
		draw_object(&sample, i, writer);
	if (export->graph == GRAPH_DOMINATORS)
		for (uint32_t i = 1; i < sample.objects.count; i++)
			write_arrow(writer, sample.objects.items[i].parent, i, false);
	else
		array_for_each(edge, &sample.edges)
			write_arrow(writer, edge->from, edge->to, !edge->is_reference);
	return NULL;
}

static struct error *dot_write(const struct export *export, struct writer *writer)
{
	writer_text(writer,
		    "digraph heapcore {\n\trankdir=LR;\n\tnode [fontname=\"sans-serif\"];\n");
	TRY(export->graph == GRAPH_KINDS ? draw_kinds(export, writer)
					 : draw_allocations(export, writer));
	writer_text(writer, "}\n");
	return NULL;
}

const struct export_format export_format_dot = {
	.name = "dot",
	.summary = "a graph for Graphviz, of kinds or allocations",
	.limit = 60,
	.write = dot_write,
};
