/*
 * JSON for dh_view.html, the viewer of valgrind's DHAT (its docs: "dhatFileVersion": 2).
 *
 * A program point is a path of owners. "Total" and "At t-gmax" are what is in use, "At t-end" is
 * what leaked of it. There are no times, and no accesses.
 */
#include "analyzer/export/export.h"
#include "analyzer/owners/frames.h"
#include "analyzer/report/values.h"

/* Not a misspelling. */
static const char end_time[] = { 't', 'e', '\0' };

static void write_pair(struct writer *writer, const char *prefix, const struct owner_amount *amount)
{
	writer_text(writer, ",\"");
	writer_text(writer, prefix);
	writer_text(writer, "b\":");
	writer_decimal(writer, amount->bytes);
	writer_text(writer, ",\"");
	writer_text(writer, prefix);
	writer_text(writer, "bk\":");
	writer_decimal(writer, amount->count);
}

static void write_point(struct writer *writer, const struct owner_frame *frame,
			enum owner_measure measure, const size_t *path)
{
	writer_text(writer, "{\"tl\":0");
	write_pair(writer, "t", &frame->own[measure]);
	write_pair(writer, "m", &frame->own[measure]);
	write_pair(writer, "g", &frame->own[measure]);
	write_pair(writer, "e", &frame->own[MEASURE_LEAKED]);
	writer_text(writer, ",\"fs\":[");
	for (size_t level = 1; level <= frame->depth; level++) {
		if (level > 1)
			writer_put(writer, ',');
		writer_decimal(writer, path[level]);
	}
	writer_text(writer, "]}");
}

static void write_points(const struct export *export, const struct frames *frames,
			 struct writer *writer)
{
	size_t path[MOST_DEPTH + 2];
	const char *between = "\n";

	for (size_t i = 1; i < frames->list.count; i++) {
		const struct owner_frame *frame = &frames->list.items[i];

		path[frame->depth] = i;
		if (!frame->own[export->measure].count)
			continue;
		writer_text(writer, between);
		write_point(writer, frame, export->measure, path);
		between = ",\n";
	}
}

static struct error *dhat_write(const struct export *export, struct writer *writer)
{
	_cleanup_(frames_deinit) struct frames frames = { 0 };
	char buffer[FRAME_TEXT_SIZE];

	TRY(frames_make(export->owners, export->measure, export->limit,
			analysis_account(export->analysis), &frames));
	writer_text(writer, "{\"dhatFileVersion\":2,\"mode\":\"heapcore\",\"verb\":\"Held\","
			    "\"bklt\":true,\"bkacc\":false,\"tu\":\"none\",\"Mtu\":\"none\","
			    "\"tuth\":0,\"tg\":1,");
	json_key(writer, end_time);
	writer_text(writer, "1,\n\"cmd\":");
	json_text(writer, export->title);
	writer_text(writer, ",\"pid\":");
	writer_decimal(writer, analysis_image(export->analysis)->origin.process);
	writer_text(writer, ",\n\"pps\":[");
	write_points(export, &frames, writer);
	writer_text(writer, "],\n\"ftbl\":[\"[root]\"");
	for (size_t i = 1; i < frames.list.count; i++) {
		writer_text(writer, ",\n");
		json_text(writer, frame_text(&frames, i, buffer));
	}
	writer_text(writer, "]}\n");
	return NULL;
}

const struct export_format export_format_dhat = {
	.name = "dhat",
	.summary = "JSON for dh_view.html, which comes with valgrind",
	.limit = 20000,
	.write = dhat_write,
};
