/*
 * Folded stacks, as flamegraph.pl and its like read them: a line for each path, and its bytes.
 *
 *	cache (app);struct table;struct row;strings 4096
 */
#include "analyzer/export/export.h"
#include "analyzer/owners/frames.h"

/* Replace the separator of names. */
static void write_name(struct writer *writer, const char *text)
{
	for (; *text; text++)
		writer_put(writer, *text == ';' ? ',' : *text);
}

/* The path is the frame on each level from 1 on. */
static void write_path(struct writer *writer, const struct frames *frames, const size_t *path,
		       size_t depth)
{
	char buffer[FRAME_TEXT_SIZE];

	for (size_t level = 1; level <= depth; level++) {
		if (level > 1)
			writer_put(writer, ';');
		write_name(writer, frame_text(frames, path[level], buffer));
	}
}

static struct error *folded_write(const struct export *export, struct writer *writer)
{
	_cleanup_(frames_deinit) struct frames frames = { 0 };
	size_t path[MOST_DEPTH + 2];

	TRY(frames_make(export->owners, export->measure, export->limit,
			analysis_account(export->analysis), &frames));
	for (size_t i = 1; i < frames.list.count; i++) {
		const struct owner_frame *frame = &frames.list.items[i];
		uint64_t bytes = frame->own[export->measure].bytes;

		path[frame->depth] = i;
		if (!bytes)
			continue;
		write_path(writer, &frames, path, frame->depth);
		writer_put(writer, ' ');
		writer_decimal(writer, bytes);
		writer_put(writer, '\n');
	}
	return NULL;
}

const struct export_format export_format_folded = {
	.name = "folded",
	.summary = "stacks for flamegraph.pl, inferno and others that draw flame graphs",
	.limit = 1 << 20,
	.write = folded_write,
};
