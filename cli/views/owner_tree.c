#include "cli/views/owner_tree.h"

#include "cli/views/rows.h"

#include <inttypes.h>
#include <stdio.h>

struct error *owner_tree_find(struct analysis *analysis, const struct bitmap *members,
			      struct owners *ret_owners, struct frames *ret_frames)
{
	TRY(owners_find(analysis, members, false, ret_owners));
	return frames_make(ret_owners, MEASURE_OWN, MOST_FRAMES, analysis_account(analysis),
			   ret_frames);
}

static const struct table table =
	TABLE("owner", NULL, { "retained", VALUE_BYTES }, { "share", VALUE_SHARE },
	      { "allocations", VALUE_COUNT }, { "bytes", VALUE_BYTES },
	      { "example", VALUE_ADDRESS }, { "path", VALUE_TEXT, .reader = FOR_PROGRAMS },
	      { "depth", VALUE_DEPTH }, { "owner", VALUE_TEXT, .reader = FOR_PROGRAMS },
	      { "owner", VALUE_TEXT, .reader = FOR_PEOPLE });

struct tree_view {
	const struct analysis *analysis;
	const struct frames *frames;
	const struct owner_tree_limits *limits;
	struct report *report;
};

static uint64_t held_by(const struct owner_frame *frame)
{
	return frame->total[MEASURE_OWN].bytes;
}

static void write_frame(const struct tree_view *view, uint32_t number)
{
	const struct owner_frame *frame = &view->frames->list.items[number];
	const struct owner_node *node = &view->frames->owners->nodes.items[frame->node];
	const struct owner_amount *own = &frame->own[MEASURE_OWN];
	const bool is_kind = frame->depth > 1 && !frame->others;
	const bool has_example = !frame->others && node->example != NO_ALLOCATION;
	char buffer[FRAME_TEXT_SIZE], path[ROWS_PATH_SIZE], both[FRAME_TEXT_SIZE + ROWS_PATH_SIZE];
	const char *owner = frame_kind(view->frames, number, buffer);
	const bool has_path =
		has_example && rows_path(view->report, view->analysis, node->example, path);

	if (has_path)
		snprintf(both, sizeof(both), "%s (%s)", owner, path);
	report_row(view->report, held_by(frame),
		   rows_share(held_by(frame), held_by(view->frames->list.items)),
		   VALUE_IF(is_kind, own->count), VALUE_IF(is_kind, own->bytes),
		   VALUE_IF(has_example,
			    allocation_start(analysis_index(view->analysis), node->example)),
		   has_path ? path : NULL, (uint64_t)frame->depth, owner, has_path ? both : owner);
}

/* The siblings that have no row: those from this one on. */
static void write_rest(const struct tree_view *view, uint32_t first, uint32_t end)
{
	const struct owner_frame *frames = view->frames->list.items;
	uint64_t bytes = 0, siblings = 0;
	char text[64];

	for (uint32_t i = first; i < end; i = frames[i].end) {
		bytes += held_by(&frames[i]);
		siblings += frames[i].others ? frames[i].others : 1;
	}
	snprintf(text, sizeof(text), "and %" PRIu64 " more", siblings);
	report_row(view->report, bytes, rows_share(bytes, held_by(frames)), ABSENT, ABSENT, ABSENT,
		   ABSENT, (uint64_t)frames[first].depth, text, text);
}

/*
 * True if this node and its smaller siblings behind it share one row. A single sibling gets a row
 * of its own.
 */
static bool is_left_out(const struct tree_view *view, uint32_t number, uint64_t shown)
{
	const struct owner_frame *frames = view->frames->list.items, *frame = &frames[number];

	return frame->others || held_by(frame) < view->limits->least ||
	       (shown >= view->limits->top && frame->end < frames[frame->parent].end);
}

/* Write the rows within the limits, or only count them. */
static uint64_t visit_rows(const struct tree_view *view, bool writes)
{
	uint64_t shown[OWNER_TREE_DEEPEST + 2] = { 0 }; /* of the siblings at each depth, so far */
	const struct owner_frame *list = view->frames->list.items;
	uint64_t rows = 0;
	uint32_t next;

	for (uint32_t i = 0; i < view->frames->list.count; i = next, rows++) {
		uint32_t depth = list[i].depth, siblings_end = list[list[i].parent].end;

		next = list[i].end;
		if (depth > 0 && is_left_out(view, i, shown[depth]++)) {
			if (writes)
				write_rest(view, i, siblings_end);
			next = siblings_end;
			continue;
		}
		if (writes)
			write_frame(view, i);
		if (depth < view->limits->depth) {
			next = i + 1;
			shown[depth + 1] = 0;
		}
	}
	return rows;
}

/* Raise the least size until the rows are at most that many: the smallest go first, at any depth.
 */
static void fit_rows(struct tree_view *view, struct owner_tree_limits *limits, uint64_t most)
{
	uint64_t low = limits->least, high;

	view->limits = limits;
	if (!most || !view->frames->list.count || visit_rows(view, false) <= most)
		return;
	high = held_by(view->frames->list.items) + 1;
	while (low < high) {
		limits->least = low + (high - low) / 2;
		if (visit_rows(view, false) > most)
			low = limits->least + 1;
		else
			high = limits->least;
	}
	limits->least = low;
}

void owner_tree_write(const struct analysis *analysis, const struct frames *frames,
		      const struct owner_tree_limits *limits, struct report *report)
{
	struct owner_tree_limits fitted = *limits;
	struct tree_view view = { analysis, frames, limits, report };

	fit_rows(&view, &fitted, report->most_rows);
	report_begin_table(report, &table);
	visit_rows(&view, true);
	report_end_table(report);
}
