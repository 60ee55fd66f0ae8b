#include "allocators/boehm/links.h"

enum { TURN = 1 << 10 /* blocks */ };

/*
 * A link is how many granules from the object the next one is, or one of these: it is to be read in
 * the dump, and it is 0.
 */
static const int32_t LINK_UNKNOWN = 0, LINK_END = INT32_MIN;

static int32_t make_link(uint64_t object, uint64_t next)
{
	int64_t distance = (int64_t)(next - object);

	if (next == 0)
		return LINK_END;
	if (distance % GRANULE != 0 || distance / GRANULE <= INT32_MIN ||
	    distance / GRANULE > INT32_MAX)
		return LINK_UNKNOWN;
	return (int32_t)(distance / GRANULE);
}

static void note_block(const struct collector *collector, const struct boehm_block *block,
		       struct view *view, int32_t *links)
{
	for (uint64_t i = 0; i < object_slots(collector, block); i++) {
		uint64_t object = block->start + i * block->size, next;

		if (view_word(view, object, &next))
			links[block->first + i] = make_link(object, next);
	}
}

static struct error *note_all(const struct collector *collector, const struct heap_context *context,
			      int32_t *links)
{
	const struct boehm_block *blocks = boehm_blocks(collector);
	struct view view = { context->image };

	/* From the last, as what comes next begins with the first. */
	for (size_t end = collector->blocks.count, start; end > 0; end = start) {
		start = end > TURN ? end - TURN : 0;
		for (size_t i = start; i < end; i++)
			if (is_small(collector, &blocks[i]))
				note_block(collector, &blocks[i], &view, links);
		image_release(context->image, blocks[start].start,
			      block_end(collector, &blocks[end - 1]));
		if (!progress_step(context->progress, 0))
			return error_create(ERROR_INTERRUPTED, "interrupted");
	}
	return NULL;
}

struct error *boehm_note_links(const struct collector *collector,
			       const struct heap_context *context, struct memory *ret)
{
	struct memory links = { .account = context->account };
	struct error *error;

	/* More objects than there can be are the doing of damage. */
	if (image_fits(context->image) ||
	    collector->object_count > image_size(context->image) / GRANULE)
		return NULL;
	error = memory_resize(&links, collector->object_count * sizeof(int32_t));
	if (error)
		return error;
	error = note_all(collector, context, links.bytes);
	if (error)
		memory_release(&links);
	else
		*ret = links;
	return error;
}

bool boehm_link(const struct memory *links, struct view *view, uint64_t object, uint64_t number,
		uint64_t *ret)
{
	int32_t link = links->bytes ? ((const int32_t *)links->bytes)[number] : LINK_UNKNOWN;

	if (link == LINK_UNKNOWN)
		return view_word(view, object, ret);
	*ret = link == LINK_END ? 0 : object + (uint64_t)((int64_t)link * GRANULE);
	return true;
}
