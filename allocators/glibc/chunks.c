#include "allocators/glibc/walk.h"

#include "allocators/glibc/lists.h"
#include "analyzer/base/list.h"
#include "analyzer/base/text.h"

#include <inttypes.h>

enum {
	VALID_RUN = 16,		 /* so many valid chunks in a row are no accident */
	PROGRESS_STEP = 1 << 14, /* chunks; each may be read from the disk */
	PROGRESS_BYTES = 4 << 20,
	LONG_ROW = 64,		   /* chunks: stale headers hardly ever make so many, */
	LONG_ROW_BYTES = 32 << 10, /* nor so many bytes */
	NEAR = 64 << 10,	   /* bytes in which a row is searched */
	FETCH_AHEAD = 1 << 11,	   /* bytes */
};

/*
 * True if a fence begins at chunk: two headers with their own size, or one and a 0. The first says
 * whether the former top is free.
 */
static bool is_fence(struct view *view, uint64_t chunk, uint64_t header, unsigned int word)
{
	uint64_t fence = glibc_fence(word), next;

	return (header & ~(uint64_t)PREV_INUSE) == fence &&
	       view_word(view, chunk + fence + word, &next) &&
	       (next == (fence | PREV_INUSE) || next == PREV_INUSE);
}

enum step { STEP_CHUNK, STEP_TOP, STEP_FENCE, STEP_BROKEN };

/* Classify what is at chunk; after a valid chunk, *ret_next is the next one. */
static enum step look(struct view *view, const struct glibc_arena *arena, uint64_t chunk,
		      uint64_t end, uint64_t *ret_next)
{
	unsigned int word = image_word_size(view->image);
	uint64_t header, above, below;

	if (chunk >= end || end - chunk < glibc_header(word) ||
	    !view_word(view, chunk + word, &header))
		return STEP_BROKEN;
	if (chunk == arena->top)
		return STEP_TOP;
	if (is_fence(view, chunk, header, word))
		return STEP_FENCE;
	if (!is_valid_header(arena, header, end - chunk, word))
		return STEP_BROKEN;
	*ret_next = chunk + header_size(header);
	/* A free chunk's size stands at its end as well. */
	if (view_word(view, *ret_next + word, &above) && !(above & PREV_INUSE) &&
	    above >= glibc_minimum(word) &&
	    (!view_word(view, *ret_next, &below) || below != header_size(header)))
		return STEP_BROKEN;
	return STEP_CHUNK;
}

bool glibc_is_piece(struct glibc_heap *heap, const struct glibc_arena *arena, uint64_t start,
		    uint64_t end, uint64_t *ret_end)
{
	struct view view = { heap->context.image };
	uint64_t chunk = start, size;

	while (budget_take(&heap->piece_steps)) {
		switch (look(&view, arena, chunk, end, &chunk)) {
		case STEP_CHUNK:
			break;
		case STEP_TOP:
			if (!view_word(&view, chunk + heap->word, &size))
				return false;
			*ret_end = chunk + header_size(size);
			return *ret_end <= end;
		case STEP_FENCE:
			*ret_end = chunk + glibc_fences(heap);
			return *ret_end <= end && chunk > start;
		case STEP_BROKEN:
			return false;
		}
	}
	return false;
}

/*
 * True if a sequence of chunks begins at chunk and leads to top or a fence; or, unless to_end, is
 * too long for an accident.
 */
static bool starts_run(struct walk *walk, uint64_t chunk, bool to_end)
{
	struct view view = walk->view;
	uint64_t header;

	if (!view_word(&view, chunk + walk->heap->word, &header) ||
	    !is_valid_header(walk->arena, header, walk->end - chunk, walk->heap->word))
		return false;
	for (unsigned int i = 0; to_end || i < VALID_RUN; i++) {
		if (!budget_take(&walk->steps))
			return false;
		switch (look(&view, walk->arena, chunk, walk->end, &chunk)) {
		case STEP_CHUNK:
			break;
		case STEP_TOP:
		case STEP_FENCE:
			return i > 0;
		case STEP_BROKEN:
			return false;
		}
		if (!to_end && i > 0 && number_list_has(&walk->heap->vouched, chunk))
			return true;
	}
	return true;
}

/*
 * The nearest chunk from address on that a list or top names, or with which a run of valid chunks
 * begins; walk->end if there is none.
 */
static uint64_t find_chunk(struct walk *walk, uint64_t address, bool to_end)
{
	const struct number_list *vouched = &walk->heap->vouched;
	unsigned int word = walk->heap->word;

	for (address = glibc_chunk_above(walk->heap, address);
	     walk->end - address >= walk->heap->minimum && address < walk->end;
	     address += walk->heap->grain) {
		const struct memory_range *other =
			owned_memory_find(walk->heap->context.owned, address);
		uint64_t header;

		if (address == walk->arena->top)
			return address;
		if (other && address >= other->start) {
			address = glibc_chunk_above(walk->heap, other->end) - walk->heap->grain;
			continue;
		}
		if (!view_word(&walk->view, address + word, &header)) {
			const struct region *region =
				image_find(walk->heap->context.image, address);

			if (!region || region->end >= walk->end)
				break;
			address = glibc_chunk_below(walk->heap, region->end - 1);
			continue;
		}
		if (!is_valid_header(walk->arena, header, walk->end - address, word))
			continue;
		if ((!to_end && number_list_has(vouched, address)) ||
		    starts_run(walk, address, to_end))
			return address;
	}
	return walk->end;
}

static struct error *begin_region(struct walk *walk, uint64_t start)
{
	return block_sink_region(walk->sink, glibc_region_start(walk->heap, start), walk->end,
				 walk->number);
}

/* End the region at end; another one may follow. */
static void end_region(struct walk *walk, uint64_t end)
{
	block_sink_cut(walk->sink, MIN(end, walk->end));
}

static struct error *add_block(struct walk *walk, uint64_t chunk, uint64_t size,
			       enum block_state state)
{
	walk->previous = chunk + walk->heap->header;
	walk->previous_size = size;
	return block_sink_add(walk->sink, (struct block){ walk->previous, size, state });
}

/* True if a chunk is on a list that links both ways. */
static bool is_linked(struct walk *walk, uint64_t chunk)
{
	struct view view = walk->view;
	uint64_t next, previous, back, forth;
	const uint64_t fd = walk->heap->header, bk = fd + walk->heap->word;

	return view_word(&view, chunk + fd, &next) && view_word(&view, chunk + bk, &previous) &&
	       view_word(&view, next + bk, &back) && view_word(&view, previous + fd, &forth) &&
	       back == chunk && forth == chunk;
}

/* The state of a chunk: in_use, by the next chunk, if that is believed; else by its own links. */
static enum block_state chunk_state(struct walk *walk, uint64_t chunk, uint64_t size, bool in_use,
				    bool believed)
{
	if (glibc_list_has(&walk->heap->cached, &walk->cached, chunk))
		return BLOCK_CACHED;
	if (glibc_list_has(&walk->heap->fast, &walk->fast, chunk))
		return BLOCK_FREE;
	if (believed ? in_use : !is_linked(walk, chunk))
		return BLOCK_USED;
	glibc_add_links(walk->links, &walk->view, chunk, size);
	return BLOCK_FREE;
}

/*
 * Report what is wrong at address, and what follows. An arena that a thread held locked is likely
 * to be unfinished rather than damaged.
 */
static void report_damage(struct walk *walk, enum finding_weight weight, uint64_t address,
			  const char *what, const char *what_follows)
{
	struct findings *findings = walk->heap->context.findings;

	if (walk->arena->locked)
		findings_add(findings, weight,
			     "the core was taken while a thread was changing the arena at %#" PRIx64
			     ": at %#" PRIx64 ", %s. %s",
			     walk->arena->address, address, what, what_follows);
	else if (walk->previous)
		findings_add(findings, weight,
			     "the heap is damaged at %#" PRIx64
			     ": %s. The allocation below it, at %#" PRIx64 " of size %#" PRIx64
			     ", may have been overrun. %s%s",
			     address, what, walk->previous, walk->previous_size,
			     glibc_tell_work(walk->arena), what_follows);
	else
		findings_add(findings, weight, "the heap is damaged at %#" PRIx64 ": %s. %s%s",
			     address, what, glibc_tell_work(walk->arena), what_follows);
}

static void report_skip(struct walk *walk, uint64_t chunk, uint64_t skipped)
{
	char what_follows[128], size[NUMBER_SIZE];

	if (view_is_absent(&walk->view, chunk + walk->heap->word)) {
		findings_add(
			walk->heap->context.findings, FINDING_INCOMPLETE,
			"the heap goes on at %#" PRIx64
			", where %s bytes are not in the core: their allocations are not counted",
			chunk, grouped(skipped, size));
		return;
	}
	snprintf(what_follows, sizeof(what_follows),
		 "%s bytes are skipped; what is in them still counts as a reference",
		 grouped(skipped, size));
	report_damage(walk, FINDING_INCOMPLETE, chunk + walk->heap->word,
		      "that is no header of a chunk", what_follows);
}

/* Used chunks are known without the size of top. */
static void report_top(struct walk *walk, uint64_t top, uint64_t header, uint64_t end)
{
	char what[64], what_follows[64];

	snprintf(what, sizeof(what), "the size of its free end (top) is %#" PRIx64, header);
	snprintf(what_follows, sizeof(what_follows), "All up to %#" PRIx64 " is taken to be free",
		 end);
	report_damage(walk, walk->arena->locked ? FINDING_NOTE : FINDING_INCOMPLETE,
		      top + walk->heap->word, what, what_follows);
}

/*
 * Without a main arena in the core, top is not known. One that is being split may have its new
 * address before its new size.
 */
static void report_lost_top(struct walk *walk, uint64_t chunk)
{
	uint64_t top = walk->arena->top;
	bool unfinished = walk->arena->locked && top > chunk && top < walk->end;
	char what[96];

	if (top == 0)
		return;
	snprintf(what, sizeof(what),
		 "the arena at %#" PRIx64 " names %#" PRIx64 " as the free end of its heap (top)",
		 walk->arena->address, top);
	report_damage(walk, unfinished ? FINDING_NOTE : FINDING_INCOMPLETE,
		      chunk + walk->heap->word, what, "The last chunk is taken for it");
}

/* Go on behind damage at chunk: *ret_chunk is the next chunk that can be trusted, or the end. */
static struct error *skip_damage(struct walk *walk, uint64_t chunk, uint64_t *ret_chunk)
{
	uint64_t next;

	if (!walk->heap->vouched_known)
		TRY(glibc_collect_vouched(walk->heap));
	next = find_chunk(walk, chunk + walk->heap->header, false);
	report_skip(walk, chunk, next - chunk);
	end_region(walk, chunk + walk->heap->header);
	*ret_chunk = next;
	walk->previous = 0;
	return next < walk->end ? begin_region(walk, next) : NULL;
}

/* A fence may be followed by memory that others got by sbrk(), and then by a chunk: *ret_chunk. */
static struct error *skip_fence(struct walk *walk, uint64_t chunk, uint64_t *ret_chunk)
{
	uint64_t behind = chunk + glibc_fences(walk->heap);

	behind = MIN(behind, walk->end);
	end_region(walk, behind);
	*ret_chunk = walk->arena->main ? find_chunk(walk, behind, true) : walk->end;
	if (*ret_chunk >= walk->end) {
		walk->end = behind;
		*ret_chunk = behind;
		return NULL;
	}
	TRY(array_append(&walk->heap->gaps, (struct memory_range){ behind, *ret_chunk }));
	return begin_region(walk, *ret_chunk);
}

/* The expected end of top: the end of its heap, or of the memory that the main arena counts. */
static uint64_t expected_end(const struct walk *walk, uint64_t top)
{
	const struct glibc_heap *heap = walk->heap;
	const struct glibc_arena *arena = walk->arena;

	for (size_t i = 0; i < heap->parameters_count && arena->main; i++) {
		uint64_t end = heap->parameters[i].base + arena->stated_size;

		end = page_below(end);
		if (heap->parameters[i].base <= top && end >= top + heap->minimum &&
		    end <= walk->end)
			return end;
	}
	return walk->end;
}

/*
 * True if top, which ends at end, continues in a mapping that a debugger left out of the core
 * because it was never written; the arena counts it. On i386, the heap's last page is one with huge
 * pages.
 */
static bool ends_untouched(struct walk *walk, uint64_t end)
{
	const struct glibc_heap *heap = walk->heap;
	const struct glibc_arena *arena = walk->arena;

	if (!arena->main || end <= walk->end || image_find(heap->context.image, walk->end))
		return false;
	for (size_t i = 0; i < heap->parameters_count; i++)
		if (end == page_below(heap->parameters[i].base + arena->stated_size))
			return true;
	return false;
}

static struct error *add_top(struct walk *walk, uint64_t top)
{
	uint64_t header = 0, size, end;
	/* It ends with a page, whatever that makes of its size. */
	const uint64_t odd = glibc_offset(walk->heap);

	view_word(&walk->view, top + walk->heap->word, &header);
	size = header_size(header);
	end = top + size;
	if (ends_untouched(walk, end)) {
		walk->arena->size += end - walk->end;
		end = walk->end;
		size = end - top;
		header = size | (header - header_size(header));
	}
	if (!is_valid_header(walk->arena, header & ~(NON_MAIN_ARENA | odd), walk->end - top,
			     walk->heap->word) ||
	    end % PAGE != 0) {
		end = expected_end(walk, top);
		report_top(walk, top, header, end);
		size = end > top ? end - top : 0;
	}
	walk->end = end;
	end_region(walk, end);
	if (size < walk->heap->minimum)
		return NULL;
	return add_block(walk, top, size - walk->heap->header, BLOCK_FREE);
}

/* True if a valid chunk, top or a fence follows the valid header at chunk. */
static bool is_followed(struct walk *walk, uint64_t chunk, uint64_t header)
{
	const unsigned int word = walk->heap->word;
	uint64_t next = chunk + header_size(header), above;

	return next == walk->arena->top ||
	       (walk->end - next >= walk->heap->header &&
		view_word(&walk->view, next + word, &above) &&
		(is_valid_header(walk->arena, above, walk->end - next, word) ||
		 is_fence(&walk->view, next, above, word)));
}

/* Compare the end of the valid chunk with the header above; *ret_foot is the word there. */
static enum glibc_foot check_foot(struct walk *walk, uint64_t chunk, uint64_t size,
				  uint64_t *ret_foot)
{
	const struct glibc_heap *heap = walk->heap;
	uint64_t next = chunk + size, above;

	if (next == walk->arena->top || walk->end - next < heap->header ||
	    !view_word(&walk->view, next + heap->word, &above) || (above & PREV_INUSE) ||
	    !is_valid_header(walk->arena, above, walk->end - next, heap->word) ||
	    !view_word(&walk->view, next, ret_foot))
		return FOOT_FITS;
	if (number_list_has(&heap->cached, chunk) || number_list_has(&heap->fast, chunk))
		return *ret_foot == size && is_linked(walk, chunk) ? FOOT_TWICE : FOOT_FITS;
	if (*ret_foot == size || !is_followed(walk, next, above))
		return FOOT_FITS;
	return is_linked(walk, chunk) ? FOOT_LOST : FOOT_UNREAL;
}

static struct error *note_foot(struct walk *walk, uint64_t chunk, uint64_t size)
{
	struct glibc_heap *heap = walk->heap;
	struct glibc_odd_foot foot = { .chunk = chunk,
				       .size = size,
				       .locked = walk->arena->locked };

	foot.kind = check_foot(walk, chunk, size, &foot.foot);
	return foot.kind == FOOT_FITS || heap->odd_feet_count >= MAXIMUM_FINDINGS
		       ? NULL
		       : LIST_APPEND(heap->odd_feet, heap->odd_feet_count, foot);
}

/* Add the valid chunk, and leave the next one in *ret_next. */
static struct error *add_chunk(struct walk *walk, uint64_t chunk, uint64_t header,
			       uint64_t *ret_next)
{
	uint64_t size = header_size(header), next = chunk + size;
	unsigned int word = walk->heap->word;
	uint64_t above = PREV_INUSE, below = 0, usable = size - walk->heap->overhead;
	bool believed = true;

	*ret_next = next;
	if (walk->end - next < walk->heap->header) {
		/*
		 * No chunk follows whose first word would belong to this one. Only top ends like
		 * that, though the arena names another.
		 */
		usable = size - walk->heap->header;
		above = 0;
		report_lost_top(walk, chunk);
	} else if (next != walk->arena->top && view_word(&walk->view, next + word, &above)) {
		believed = is_valid_header(walk->arena, above, walk->end - next, word) ||
			   is_fence(&walk->view, next, above, word);
		if (believed && !(above & PREV_INUSE))
			believed = view_word(&walk->view, next, &below) && below == size;
		if (!believed && header_size(above) == 0)
			believed = above & PREV_INUSE; /* the end of a heap */
	}
	if (glibc_may_be_cache(size, word) &&
	    glibc_looks_like_cache(walk->heap, chunk + walk->heap->header))
		TRY(array_append(walk->suspects, chunk + walk->heap->header));
	TRY(note_foot(walk, chunk, size));
	if (walk->heap->fast_put_off)
		TRY(glibc_note_fast(walk->heap, &walk->view, chunk, size));
	return add_block(walk, chunk, usable,
			 chunk_state(walk, chunk, size, above & PREV_INUSE, believed));
}

/*
 * True if only the walk from the front may judge the chunk, because only that walk may report it.
 */
static bool is_for_front(struct walk *walk, uint64_t chunk, uint64_t header)
{
	uint64_t foot;

	return chunk == walk->arena->top ||
	       !is_valid_header(walk->arena, header, walk->end - chunk, walk->heap->word) ||
	       walk->end - chunk - header_size(header) < walk->heap->header ||
	       check_foot(walk, chunk, header_size(header), &foot) != FOOT_FITS;
}

/* Walk one chunk, and leave the next one, or the end, in *chunk. */
static struct error *walk_one(struct walk *walk, uint64_t *chunk)
{
	unsigned int word = walk->heap->word;
	uint64_t at = *chunk, header;
	bool readable = view_word(&walk->view, at + word, &header);

	if (at == walk->arena->top && walk->end - at >= walk->heap->header) {
		TRY(add_top(walk, at));
		*chunk = walk->end > at ? walk->end : at;
		return NULL;
	}
	if (readable && is_fence(&walk->view, at, header, word))
		return skip_fence(walk, at, chunk);
	if (readable && is_valid_header(walk->arena, header, walk->end - at, word))
		return add_chunk(walk, at, header, chunk);
	if (readable && header_size(header) == 0 && walk->end - at <= glibc_fence(word)) {
		*chunk = walk->end; /* of a heap without its fence */
		return NULL;
	}
	return skip_damage(walk, at, chunk);
}

/* In pieces, others show progress. */
static struct error *tell_progress(const struct walk *walk, uint64_t start, uint64_t end)
{
	const struct heap_context *context = &walk->heap->context;

	TRY(progress_check(context->progress, walk->in_pieces ? 0 : end - start));
	image_advance(context->image, start, end);
	return NULL;
}

struct error *glibc_walk_on(struct walk *walk, uint64_t *chunk, uint64_t stop)
{
	uint64_t reported = *chunk; /* progress knows of what is below */
	struct error *error = NULL;

	for (uint64_t count = 1; *chunk < stop && *chunk < walk->end && !error; count++) {
		uint64_t header;

		error = glibc_walk_plain(walk, chunk, stop);
		if (error || *chunk >= stop)
			break;
		view_fetch(&walk->view, *chunk + FETCH_AHEAD);
		if (walk->from_the_middle &&
		    (!view_word(&walk->view, *chunk + walk->heap->word, &header) ||
		     is_for_front(walk, *chunk, header)))
			break;
		error = walk_one(walk, chunk);
		if (error || (count % PROGRESS_STEP != 0 && *chunk - reported < PROGRESS_BYTES))
			continue;
		error = tell_progress(walk, reported, *chunk);
		reported = *chunk;
	}
	return error;
}

/* True if a long enough sequence of chunks begins at chunk; it leads to *ret. */
static bool is_row(struct walk *walk, uint64_t chunk, uint64_t stop, uint64_t *ret)
{
	const uint64_t start = chunk;

	for (unsigned int i = 0; i < LONG_ROW; i++) {
		if (chunk >= stop || !budget_take(&walk->steps))
			return false;
		if (i >= VALID_RUN && chunk - start >= LONG_ROW_BYTES)
			break;
		if (look(&walk->view, walk->arena, chunk, walk->end, &chunk) != STEP_CHUNK)
			return false;
	}
	*ret = chunk;
	return true;
}

bool glibc_find_row(struct walk *walk, uint64_t *chunk, uint64_t stop)
{
	unsigned int word = walk->heap->word;
	uint64_t start = glibc_chunk_above(walk->heap, *chunk);

	for (uint64_t at = start; at < stop && at - start < NEAR; at += walk->heap->grain) {
		uint64_t header;

		if (view_word(&walk->view, at + word, &header) &&
		    is_valid_header(walk->arena, header, walk->end - at, word) &&
		    is_row(walk, at, stop, chunk))
			return true;
	}
	return false;
}

struct walk glibc_walk_from(struct glibc_heap *heap, struct block_sink *sink,
			    const struct glibc_stretch *stretch, uint64_t start)
{
	return (struct walk){
		.heap = heap,
		.sink = sink,
		.arena = &heap->arenas[stretch->arena],
		.number = heap->heap.first_arena + (arena_number)stretch->arena,
		.end = stretch->end,
		.cached = number_list_below(&heap->cached, start),
		.fast = number_list_below(&heap->fast, start),
		.view = { heap->context.image },
		.steps = { (stretch->end - stretch->start) / 2 },
		.links = &heap->links,
		.suspects = &heap->suspects,
	};
}
