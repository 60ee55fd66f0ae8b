#include "analyzer/export/picture.h"

#include "analyzer/base/text.h"
#include "analyzer/export/sample.h"
#include "analyzer/owners/frames.h"

void picture_deinit(struct picture *picture)
{
	array_for_each(box, &picture->boxes)
		free(box->text);
	array_release(&picture->boxes);
	array_release(&picture->arrows);
}

char *box_amount(const struct box *box)
{
	char bytes[NUMBER_SIZE], count[NUMBER_SIZE], retained[NUMBER_SIZE];

	grouped(box->retained, retained);
	if (box->kind == BOX_ROOT)
		return format_text("%s bytes", retained);
	if (box->kind == BOX_ALLOCATION)
		return format_text("0x%jx: %s bytes, retains %s", (uintmax_t)box->address,
				   grouped(box->bytes, bytes), retained);
	return format_text("%s bytes in %s allocation%s%s%s", grouped(box->bytes, bytes),
			   grouped(box->count, count), box->count == 1 ? "" : "s",
			   box->retained > box->bytes ? ", retains " : "",
			   box->retained > box->bytes ? retained : "");
}

static struct error *add_box(struct picture *picture, struct box box)
{
	struct error *error = box.text ? array_append(&picture->boxes, box) : &error_no_memory;

	if (error)
		free(box.text);
	return error;
}

static struct error *add_arrow(struct picture *picture, struct arrow arrow)
{
	return array_append(&picture->arrows, arrow);
}

static struct error *draw_kinds(const struct export *export, struct picture *picture)
{
	_cleanup_(frames_deinit) struct frames frames = { 0 };
	char buffer[FRAME_TEXT_SIZE];

	TRY(frames_make(export->owners, export->measure, export->limit,
			analysis_account(export->analysis), &frames));
	for (uint32_t i = 0; i < frames.list.count; i++) {
		const struct owner_frame *frame = &frames.list.items[i];
		const struct owner_amount *own = &frame->own[export->measure];

		TRY(add_box(picture,
			    (struct box){ .kind = frame->others	     ? BOX_OTHERS
						  : frame->depth < 2 ? BOX_ROOT
								     : BOX_KIND,
					  .text = strdup(frame_text(&frames, i, buffer)),
					  .count = own->count,
					  .bytes = own->bytes,
					  .retained = frame->total[export->measure].bytes }));
		if (i > 0)
			TRY(add_arrow(picture, (struct arrow){ frame->parent, i, false }));
	}
	return NULL;
}

static struct error *draw_object(const struct sample *sample, const struct object *object,
				 struct picture *picture)
{
	const struct allocation_index *index = analysis_index(sample->export->analysis);
	bool is_others = object->kind == OBJECT_OTHERS;
	bool is_allocation = object->kind == OBJECT_ALLOCATION;
	char digits[NUMBER_SIZE];
	struct box box = {
		.kind = is_others	? BOX_OTHERS
			: is_allocation ? BOX_ALLOCATION
					: BOX_ROOT,
		.address = is_allocation ? allocation_start(index, object->id) : 0,
		.count = object->count,
		.bytes = object->bytes,
		.retained = object->retained,
	};

	box.text = is_others ? format_text("(%s more)", grouped(object->count, digits))
			     : strdup(object_text(sample, object));
	return add_box(picture, box);
}

static struct error *draw_allocations(const struct export *export, struct picture *picture)
{
	_cleanup_(sample_deinit) struct sample sample = { 0 };

	TRY(sample_make(export, export->limit, true, &sample));
	array_for_each(object, &sample.objects)
		TRY(draw_object(&sample, object, picture));
	if (export->graph == GRAPH_DOMINATORS) {
		for (uint32_t i = 1; i < sample.objects.count; i++)
			TRY(add_arrow(picture,
				      (struct arrow){ sample.objects.items[i].parent, i, false }));
		return NULL;
	}
	array_for_each(edge, &sample.edges)
		TRY(add_arrow(picture, (struct arrow){ edge->from, edge->to, edge->is_reference }));
	return NULL;
}

struct error *picture_make(const struct export *export, struct picture *ret)
{
	ret->boxes.memory.account = ret->arrows.memory.account = analysis_account(export->analysis);
	return export->graph == GRAPH_KINDS ? draw_kinds(export, ret)
					    : draw_allocations(export, ret);
}
