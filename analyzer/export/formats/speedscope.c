/*
 * Profiles for speedscope (speedscope.app): one of bytes, one of allocations. The format is that of
 * https://www.speedscope.app/file-format-schema.json.
 */
#include "analyzer/export/export.h"
#include "analyzer/owners/frames.h"
#include "analyzer/report/values.h"

static uint64_t amount_of(const struct owner_amount *amount, bool bytes)
{
	return bytes ? amount->bytes : amount->count;
}

static void write_frames(struct writer *writer, const struct frames *frames)
{
	char buffer[FRAME_TEXT_SIZE];

	writer_text(writer, "\"shared\":{\"frames\":[");
	for (size_t i = 0; i < frames->list.count; i++) {
		writer_text(writer, i ? ",\n{\"name\":" : "\n{\"name\":");
		json_text(writer, frame_text(frames, i, buffer));
		writer_put(writer, '}');
	}
	writer_text(writer, "]}");
}

/* Each sample is a path of frames, from the root on. */
static void write_sample(struct writer *writer, const size_t *path, size_t depth)
{
	writer_put(writer, '[');
	for (size_t level = 1; level <= depth; level++) {
		if (level > 1)
			writer_put(writer, ',');
		writer_decimal(writer, path[level]);
	}
	writer_put(writer, ']');
}

static void write_profile(struct writer *writer, const struct frames *frames,
			  enum owner_measure measure, bool bytes)
{
	size_t path[MOST_DEPTH + 2];
	const char *between = "\n";

	writer_text(writer,
		    bytes ? "{\"type\":\"sampled\",\"name\":\"bytes\",\"unit\":\"bytes\""
			  : "{\"type\":\"sampled\",\"name\":\"allocations\",\"unit\":\"none\"");
	writer_text(writer, ",\"startValue\":0,\"endValue\":");
	writer_decimal(writer, amount_of(&frames->list.items[0].total[measure], bytes));
	writer_text(writer, ",\"samples\":[");
	for (size_t i = 1; i < frames->list.count; i++) {
		const struct owner_frame *frame = &frames->list.items[i];

		path[frame->depth] = i;
		if (!frame->own[measure].count)
			continue;
		writer_text(writer, between);
		write_sample(writer, path, frame->depth);
		between = ",\n";
	}
	writer_text(writer, "],\"weights\":[");
	between = "";
	for (size_t i = 1; i < frames->list.count; i++) {
		if (!frames->list.items[i].own[measure].count)
			continue;
		writer_text(writer, between);
		writer_decimal(writer, amount_of(&frames->list.items[i].own[measure], bytes));
		between = ",";
	}
	writer_text(writer, "]}");
}

static struct error *speedscope_write(const struct export *export, struct writer *writer)
{
	_cleanup_(frames_deinit) struct frames frames = { 0 };

	TRY(frames_make(export->owners, export->measure, export->limit,
			analysis_account(export->analysis), &frames));
	writer_text(writer, "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\n"
			    "\"exporter\":\"heapcore\",\"name\":");
	json_text(writer, export->title);
	writer_text(writer, ",\"activeProfileIndex\":0,\n\"profiles\":[");
	write_profile(writer, &frames, export->measure, true);
	writer_text(writer, ",\n");
	write_profile(writer, &frames, export->measure, false);
	writer_text(writer, "],\n");
	write_frames(writer, &frames);
	writer_text(writer, "}\n");
	return NULL;
}

const struct export_format export_format_speedscope = {
	.name = "speedscope",
	.summary = "JSON for speedscope",
	.limit = 100000,
	.write = speedscope_write,
};
