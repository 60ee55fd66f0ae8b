/*
 * A flow chart for mermaid, as GitHub and GitLab draw it in Markdown. Dotted arrows: the one only
 * dominates the other.
 */
#include "analyzer/export/picture.h"

/* Within quotes, mermaid reads HTML and entities of its own: only letters and the like are safe. */
static void write_text(struct writer *writer, const char *text)
{
	for (; *text; text++) {
		unsigned char byte = (unsigned char)*text;

		if (byte >= 0x80 || byte == ' ' || byte == '_' || byte == '.' || byte == ',' ||
		    (byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') ||
		    (byte >= 'a' && byte <= 'z')) {
			writer_put(writer, *text);
			continue;
		}
		writer_put(writer, '#');
		writer_decimal(writer, byte);
		writer_put(writer, ';');
	}
}

static void write_box(struct writer *writer, size_t number, const struct box *box)
{
	_cleanup_(free) char *amount = box_amount(box);

	writer_text(writer, "  n");
	writer_decimal(writer, number);
	writer_text(writer, box->kind == BOX_ROOT ? "([\"" : "[\"");
	write_text(writer, box->text);
	writer_text(writer, "<br/>");
	write_text(writer, amount ? amount : "");
	writer_text(writer, box->kind == BOX_ROOT ? "\"])\n" : "\"]\n");
}

static struct error *mermaid_write(const struct export *export, struct writer *writer)
{
	_cleanup_(picture_deinit) struct picture picture = { 0 };

	TRY(picture_make(export, &picture));
	writer_text(writer, "graph LR\n");
	for (size_t i = 0; i < picture.boxes.count; i++)
		write_box(writer, i, &picture.boxes.items[i]);
	array_for_each(arrow, &picture.arrows) {
		writer_text(writer, "  n");
		writer_decimal(writer, arrow->from);
		writer_text(writer, export->graph == GRAPH_REFERENCES && !arrow->is_reference
					    ? " -.-> n"
					    : " --> n");
		writer_decimal(writer, arrow->to);
		writer_put(writer, '\n');
	}
	return NULL;
}

const struct export_format export_format_mermaid = {
	.name = "mermaid",
	.summary = "a flow chart for Markdown, of kinds or allocations",
	.limit = 40,
	.write = mermaid_write,
};
