/*
 * A file of valgrind's massif, for ms_print and massif-visualizer: one snapshot, whose heap tree
 * goes from the roots down. What a node has beyond its children are its own allocations.
 */
#include "analyzer/export/export.h"
#include "analyzer/owners/frames.h"

/* ms_print takes the rest of a line behind a # for a comment. */
static void write_text(struct writer *writer, const char *text)
{
	for (; *text; text++)
		writer_put(writer, *text == '#' ? '.' : *text);
}

static void write_snapshot(struct writer *writer, uint64_t number, uint64_t bytes, const char *tree)
{
	writer_text(writer, "#-----------\nsnapshot=");
	writer_decimal(writer, number);
	writer_text(writer, "\n#-----------\ntime=");
	writer_decimal(writer, number);
	writer_text(writer, "\nmem_heap_B=");
	writer_decimal(writer, bytes);
	writer_text(writer, "\nmem_heap_extra_B=0\nmem_stacks_B=0\nheap_tree=");
	writer_text(writer, tree);
	writer_put(writer, '\n');
}

/* How many children each frame has. */
static struct error *count_children(const struct frames *frames, struct memory_account *account,
				    struct memory *ret)
{
	uint32_t *counts;

	ret->account = account;
	TRY(memory_resize(ret, frames->list.count * sizeof(*counts)));
	counts = ret->bytes;
	for (size_t i = 1; i < frames->list.count; i++)
		counts[frames->list.items[i].parent]++;
	return NULL;
}

static struct error *massif_write(const struct export *export, struct writer *writer)
{
	struct memory_account *account = analysis_account(export->analysis);
	_cleanup_(frames_deinit) struct frames frames = { 0 };
	_cleanup_(memory_release) struct memory children = { 0 };
	_cleanup_(free) char *title = escape_text(export->title);
	char buffer[FRAME_TEXT_SIZE];

	TRY(frames_make(export->owners, export->measure, export->limit, account, &frames));
	TRY(count_children(&frames, account, &children));
	writer_text(writer, "desc: who holds the memory, by heapcore\ncmd: ");
	write_text(writer, title ? title : "");
	writer_text(writer, "\ntime_unit: i\n");
	write_snapshot(writer, 0, 0, "empty");
	write_snapshot(writer, 1, frames.list.items[0].total[export->measure].bytes, "peak");
	for (size_t i = 0; i < frames.list.count; i++) {
		const struct owner_frame *frame = &frames.list.items[i];

		writer_pad(writer, frame->depth);
		writer_put(writer, 'n');
		writer_decimal(writer, ((const uint32_t *)children.bytes)[i]);
		writer_text(writer, ": ");
		writer_decimal(writer, frame->total[export->measure].bytes);
		writer_put(writer, ' ');
		write_text(writer, frame_text(&frames, i, buffer));
		writer_put(writer, '\n');
	}
	return NULL;
}

const struct export_format export_format_massif = {
	.name = "massif",
	.summary = "a snapshot for ms_print and massif-visualizer",
	.limit = 2000,
	.write = massif_write,
};
