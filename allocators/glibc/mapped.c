/*
 * Memory that malloc got from mmap() and has on no list: chunks of their own, and pieces of a main
 * arena that could not grow by sbrk().
 *
 * The kernel merges neighbouring mappings, so these may begin anywhere in one.
 *
 *	                page                               page
 *	| not malloc's  | 0 | size+2 | user's memory ...    |
 *	                page                               page
 *	aligned:        | unused | prev | size+2 | user's memory ... |
 *	                         prev = from the page to here
 *
 * From glibc 2.43 on, size leaves out as many bytes at the end of the mapping as a header has, and
 * the program may use half of them.
 */
#include "allocators/glibc/mapped_filter.h"
#include "allocators/glibc/walk.h"
#include "analyzer/base/keep.h"

#include <inttypes.h>

enum {
	PROGRESS_STEP = 1 << 20, /* bytes */
};

enum find_kind {
	FIND_CHUNK,   /* with a mapping of its own */
	FIND_PIECE,   /* of a main arena */
	FIND_SUBHEAP, /* of another arena, known before */
};

struct find {
	enum find_kind kind;
	uint64_t start, end;
	uint64_t chunk; /* the first in it */
	size_t arena;	/* of a piece or heap */
	bool apart;	/* other memory on both sides */
};

struct scan {
	struct glibc_heap *heap;
	struct block_sink *sink;
	ARRAY(struct memory_range) taken; /* not to be searched, by address */
	size_t next_taken, next_subheap;
	ARRAY(struct find) finds; /* by address */
	size_t emitted;		  /* of them, so far */
	struct view view;
	mapped_filter_function filter;
	/* Main arenas of which a piece may be found: their numbers. */
	struct number_list lacking;
};

DEFINE_COMPARE(compare_ranges, struct memory_range, ASCENDING(start))

static bool is_mapped_chunk(struct scan *scan, uint64_t address, uint64_t low, uint64_t high,
			    uint64_t *ret_start, uint64_t *ret_end);

/*
 * True if the program took the stack's memory from malloc: a chunk begins right below it, or on the
 * page before.
 */
static bool is_in_chunk(struct scan *scan, const struct stack *stack)
{
	const uint64_t offset = glibc_offset(scan->heap);
	const uint64_t places[] = {
		stack->start - scan->heap->header,
		page_below(stack->start - 1) + offset,
		page_below(stack->start - 1) - PAGE + offset,
	};

	for (size_t i = 0; i < COUNT_OF(places); i++) {
		const struct region *region = image_find(scan->heap->context.image, places[i]);
		uint64_t start, end;

		if (region && places[i] < stack->start &&
		    is_mapped_chunk(scan, places[i], region->start, region->end, &start, &end) &&
		    end >= stack->end)
			return true;
	}
	return false;
}

/* Memory that was walked is taken, but for the gaps in it. */
static struct error *take_walked(struct scan *scan, struct memory_range done)
{
	array_for_each(gap, &scan->heap->gaps) {
		if (gap->start < done.start || gap->end > done.end)
			continue;
		TRY(array_append(&scan->taken, (struct memory_range){ done.start, gap->start }));
		done.start = gap->end;
	}
	return array_append(&scan->taken, done);
}

/* Stacks, heaps, memory walked before and that of other allocators hold no chunk of this kind. */
static struct error *collect_taken(struct scan *scan, const struct memory_range *done,
				   size_t done_count)
{
	const struct program *program = scan->heap->context.program;
	const struct owned_memory *owned = scan->heap->context.owned;
	size_t owned_count = owned ? owned->ranges.count : 0;

	for (size_t i = 0; i < done_count; i++)
		TRY(take_walked(scan, done[i]));
	list_for_each(subheap, scan->heap->subheaps, scan->heap->subheap_count) {
		TRY(array_append(&scan->taken,
				 (struct memory_range){ subheap->start, subheap->end }));
	}
	for (size_t i = 0; i < owned_count; i++)
		TRY(array_append(&scan->taken, owned->ranges.items[i]));
	list_for_each(stack, program->stacks, program->stack_count) {
		if (!is_in_chunk(scan, stack))
			TRY(array_append(&scan->taken,
					 (struct memory_range){ stack->start, stack->end }));
	}
	array_sort(&scan->taken, compare_ranges);
	return NULL;
}

/* True if taken memory begins in [start, end). */
static bool meets_taken(const struct scan *scan, uint64_t start, uint64_t end)
{
	return scan->next_taken < scan->taken.count &&
	       scan->taken.items[scan->next_taken].start >= start &&
	       scan->taken.items[scan->next_taken].start < end;
}

/*
 * True if a chunk with a mapping of its own, [*ret_start, *ret_end), is at address, within [low,
 * high) and the memory that follows without a gap.
 */
static bool is_mapped_chunk(struct scan *scan, uint64_t address, uint64_t low, uint64_t high,
			    uint64_t *ret_start, uint64_t *ret_end)
{
	const struct glibc_heap *heap = scan->heap;
	uint64_t before, size;

	if (!view_word(&scan->view, address + heap->word, &size) || (size & FLAGS) != IS_MMAPPED ||
	    !view_word(&scan->view, address, &before))
		return false;
	size &= ~(uint64_t)FLAGS;
	if ((address + size) % PAGE == PAGE - heap->header)
		size += heap->header;
	if (!glibc_may_be_chunk(heap, address) || before % heap->header != 0 ||
	    size % heap->header != 0 || size < heap->minimum || before > address - low ||
	    (address - before) % PAGE != 0 || size > UINT64_MAX - address ||
	    (address + size) % PAGE != 0 || meets_taken(scan, address, address + size) ||
	    view_reach(&scan->view, high, address + size) < address + size)
		return false;
	*ret_start = address - before;
	*ret_end = address + size;
	return true;
}

/* The bytes at the mapping's end that the chunk's size does not include. */
static uint64_t mapped_tail(struct scan *scan, uint64_t chunk, uint64_t end)
{
	uint64_t size;

	return view_word(&scan->view, chunk + scan->heap->word, &size) &&
			       chunk + header_size(size) == end
		       ? 0
		       : scan->heap->header;
}

/*
 * memalign() moves the chunk up to where the user's memory is aligned, and leaves the header at the
 * start of the mapping as it was. So try the places where it may be now, for each alignment.
 */
static uint64_t aligned_chunk(struct scan *scan, uint64_t start, uint64_t end)
{
	const uint64_t header = scan->heap->header, word = scan->heap->word;
	const uint64_t first = glibc_chunk_above(scan->heap, start);
	uint64_t tail = mapped_tail(scan, first, end);

	for (uint64_t alignment = 2 * scan->heap->grain; alignment < end - start; alignment *= 2) {
		uint64_t user = (first + 2 * header + alignment - 1) & ~(alignment - 1);

		/* The next multiple, if this one left too little room below it. */
		for (int i = 0; i < 2; i++, user += alignment) {
			uint64_t before, size;

			if (user <= first + header || user >= end)
				break;
			if (view_word(&scan->view, user - header, &before) &&
			    view_word(&scan->view, user - word, &size) &&
			    before == user - header - start &&
			    size + tail == end - user + header + IS_MMAPPED)
				return user - header;
		}
	}
	return first;
}

/* List the arenas that hold more than was found of them. */
static struct error *list_lacking(struct scan *scan)
{
	const struct glibc_heap *heap = scan->heap;

	for (size_t i = 0; i < heap->arena_count; i++)
		if (glibc_arena_lacks(&heap->arenas[i]))
			TRY(array_append(&scan->lacking, i));
	return NULL;
}

/* An arena that lacks a piece, which is at start; NULL if there is none. */
static struct glibc_arena *find_piece(struct scan *scan, uint64_t start, uint64_t high,
				      uint64_t *ret_end)
{
	struct glibc_heap *heap = scan->heap;

	for (size_t i = 0; i < scan->lacking.count; i++) {
		struct glibc_arena *arena = &heap->arenas[scan->lacking.items[i]];

		if (glibc_arena_lacks(arena) && glibc_is_piece(heap, arena, start, high, ret_end)) {
			arena->size += *ret_end - start;
			return arena;
		}
	}
	return NULL;
}

/* True if a piece's first chunk may be at the start of a page. */
static bool may_be_piece(struct scan *scan, uint64_t start)
{
	uint64_t header;

	return view_word(&scan->view, start + scan->heap->word, &header) &&
	       (header & FLAGS) == PREV_INUSE && header >= scan->heap->minimum;
}

/* Try address; *ret_next is where to go on. */
static struct error *try_place(struct scan *scan, uint64_t address, uint64_t low, uint64_t high,
			       uint64_t *ret_next)
{
	const uint64_t offset = glibc_offset(scan->heap);
	struct find find = { .kind = FIND_CHUNK };
	struct glibc_arena *arena;

	if (is_mapped_chunk(scan, address, low, high, &find.start, &find.end)) {
		find.chunk = address == find.start + offset
				     ? aligned_chunk(scan, find.start, find.end)
				     : address;
		find.apart = find.start != low && find.end != high;
	} else if (address % PAGE == offset && may_be_piece(scan, address) &&
		   (arena = find_piece(scan, address, high, &find.end))) {
		find.kind = FIND_PIECE;
		find.start = find.chunk = address;
		find.arena = (size_t)(arena - scan->heap->arenas);
	} else {
		*ret_next = address + scan->heap->grain;
		return NULL;
	}
	*ret_next = glibc_chunk_above(scan->heap, find.end);
	return array_append(&scan->finds, find);
}

/* True if place may have a mapped chunk or a piece's first chunk. */
static bool is_candidate(const struct scan *scan, const struct region *region, uint64_t place)
{
	const uint8_t *bytes = region->bytes + (place - region->start);

	return (place % PAGE == glibc_offset(scan->heap) && scan->lacking.count > 0) ||
	       (scan->heap->word == 4 ? mapped_filter_narrow(bytes, place)
				      : mapped_filter_one(bytes, place));
}

/* The first such place from address on, where chunks may be; or end. */
static uint64_t find_candidate(const struct scan *scan, const struct region *region,
			       uint64_t address, uint64_t end)
{
	while (address < end) {
		const uint8_t *bytes = region->bytes + (address - region->start);
		uint64_t found;

		if (address % FILTERED_BYTES != 0 || scan->heap->word == 4 ||
		    end - address < FILTERED_BYTES) {
			if (is_candidate(scan, region, address))
				return address;
			address += scan->heap->grain;
			continue;
		}
		found = scan->filter(bytes, address);
		if (address % PAGE == 0 && scan->lacking.count > 0)
			found |= 1;
		if (found)
			return address + 8 * (uint64_t)__builtin_ctzll(found);
		address += FILTERED_BYTES;
	}
	return end;
}

/* Show progress, and release memory that was searched. */
static struct error *finish(struct scan *scan, uint64_t start, uint64_t end)
{
	TRY(progress_check(scan->heap->context.progress, end - start));
	image_release(scan->heap->context.image, start, end);
	return NULL;
}

/*
 * Find chunks of the gap in [start, end), which has no holes. They may reach further: *ret_end is
 * where to go on.
 */
static struct error *scan_data(struct scan *scan, const struct region *region,
			       struct memory_range gap, uint64_t start, uint64_t end,
			       uint64_t *ret_end)
{
	uint64_t reported = start, address = start;

	while (address < end) {
		uint64_t stop = end - reported > PROGRESS_STEP ? reported + PROGRESS_STEP : end;

		address = find_candidate(scan, region, address, stop);
		if (address < stop)
			TRY(try_place(scan, address, gap.start, gap.end, &address));
		if (address >= end || address - reported >= PROGRESS_STEP) {
			TRY(finish(scan, reported, address));
			reported = address;
		}
	}
	*ret_end = address;
	return NULL;
}

/* Find chunks in the gap, of which nothing is taken. */
static struct error *scan_gap(struct scan *scan, const struct region *region,
			      struct memory_range gap)
{
	const struct glibc_heap *heap = scan->heap;
	const struct image *image = heap->context.image;
	uint64_t address, first, end;

	first = glibc_chunk_above(heap, gap.start);
	gap.start = glibc_region_start(heap, first);
	if (gap.start >= gap.end || gap.end - gap.start < heap->minimum)
		return NULL;
	/* Places from there on have too little room. */
	end = glibc_chunk_below(heap, gap.end - heap->minimum) + heap->grain;
	address = first;
	while (address < end) {
		uint64_t hole;

		address = glibc_chunk_below(heap, image_next_data(image, address));
		if (address < gap.start)
			address = first;
		if (address >= end)
			break;
		hole = glibc_chunk_above(heap, image_next_hole(image, address));
		TRY(scan_data(scan, region, gap, address, hole > address && hole < end ? hole : end,
			      &address));
	}
	return NULL;
}

/* Add the heaps below address, in order. */
static struct error *add_subheaps(struct scan *scan, uint64_t address)
{
	struct glibc_heap *heap = scan->heap;

	while (scan->next_subheap < heap->subheap_count &&
	       heap->subheaps[scan->next_subheap].start < address) {
		const struct glibc_subheap *subheap = &heap->subheaps[scan->next_subheap++];

		TRY(array_append(&scan->finds, (struct find){
						       .kind = FIND_SUBHEAP,
						       .start = subheap->start,
						       .end = subheap->end,
						       .chunk = subheap->first,
						       .arena = subheap->arena,
					       }));
	}
	return NULL;
}

/* Search the parts of the region that are not taken. */
static struct error *scan_region(struct scan *scan, const struct region *region)
{
	uint64_t low = region->start;

	/* A chunk may reach into this region from the one below. */
	if (scan->finds.count > 0 && scan->finds.items[scan->finds.count - 1].end > low)
		low = scan->finds.items[scan->finds.count - 1].end;
	while (low < region->end) {
		uint64_t high = region->end, next = region->end;

		while (scan->next_taken < scan->taken.count &&
		       scan->taken.items[scan->next_taken].end <= low)
			scan->next_taken++;
		if (scan->next_taken < scan->taken.count &&
		    scan->taken.items[scan->next_taken].start < high) {
			high = scan->taken.items[scan->next_taken].start;
			next = scan->taken.items[scan->next_taken].end;
		}
		TRY(add_subheaps(scan, low));
		if (low < high)
			TRY(scan_gap(scan, region, (struct memory_range){ low, high }));
		low = next;
	}
	return NULL;
}

/* Chunks that touch each other vouch for each other. */
static void join_neighbours(struct scan *scan)
{
	for (size_t i = 1; i < scan->finds.count; i++) {
		struct find *below = &scan->finds.items[i - 1];
		struct find *above = &scan->finds.items[i];

		if (below->end == above->start)
			below->apart = above->apart = false;
	}
}

/* Count all chunks and their bytes, or only those apart from others. */
static void count_chunks(const struct scan *scan, bool apart, uint64_t *count, uint64_t *size)
{
	*count = *size = 0;
	array_for_each(find, &scan->finds) {
		if (find->kind != FIND_CHUNK || (apart && !find->apart))
			continue;
		(*count)++;
		*size += find->end - find->start;
	}
}

/*
 * Other memory can look like a mapped chunk: a small number at the start of a page. If malloc
 * counts fewer than were found, and its count is right without the chunks that are alone amid other
 * memory, those are none.
 */
static void drop_chance_finds(struct scan *scan)
{
	uint64_t count, size, apart_count, apart_size;
	uint64_t stated_count = 0, stated_size = 0;

	for (size_t i = 0; i < scan->heap->parameters_count; i++) {
		stated_count += scan->heap->parameters[i].mapped_count;
		stated_size += scan->heap->parameters[i].mapped_size;
	}
	count_chunks(scan, false, &count, &size);
	count_chunks(scan, true, &apart_count, &apart_size);
	if (count <= stated_count || count - apart_count != stated_count ||
	    size - apart_size != stated_size)
		return;
	array_keep(&scan->finds, find, last, find->kind != FIND_CHUNK || !find->apart);
}

/* Find where a chunk should be that malloc counts: right behind another. */
static void find_chunk_gap(struct scan *scan)
{
	for (size_t i = 0; i < scan->finds.count; i++) {
		const struct find *find = &scan->finds.items[i];
		const struct region *region = image_find(scan->heap->context.image, find->end);

		if (find->kind != FIND_CHUNK || !region || region->start == find->end ||
		    (i + 1 < scan->finds.count && find[1].start == find->end))
			continue;
		scan->heap->mapped_gap = find->end + scan->heap->word;
		return;
	}
}

static struct error *emit_chunk(struct scan *scan, const struct find *find)
{
	struct glibc_heap *heap = scan->heap;
	struct block block = {
		.start = find->chunk + heap->header,
		.size = find->end - find->chunk - heap->header -
			(mapped_tail(scan, find->chunk, find->end) ? heap->overhead : 0),
		.state = BLOCK_USED,
	};

	TRY(block_sink_region(scan->sink, find->start, find->end,
			      heap->heap.first_arena + (arena_number)heap->arena_count));
	TRY(block_sink_add(scan->sink, block));
	heap->mapped_count++;
	heap->mapped_size += find->end - find->start;
	return NULL;
}

static struct error *emit(struct scan *scan, const struct find *find)
{
	if (find->kind == FIND_CHUNK)
		return emit_chunk(scan, find);
	if (find->kind == FIND_SUBHEAP)
		return block_sink_claim(scan->sink, find->start, find->end);
	/* The walk counts it. */
	scan->heap->arenas[find->arena].size -= find->end - find->start;
	return NULL;
}

/* True if there is more than one chunk. */
static bool is_stretch(const struct find *find)
{
	return find->kind != FIND_CHUNK && find->chunk < find->end;
}

/* Emit all up to the next find that is walked, or to the end. */
static struct error *emit_some(void *data, size_t number)
{
	struct scan *scan = data;

	while (scan->emitted < scan->finds.count) {
		const struct find *find = &scan->finds.items[scan->emitted++];

		TRY(emit(scan, find));
		if (is_stretch(find))
			break;
	}
	return NULL;
}

static struct error *emit_all(struct scan *scan)
{
	_cleanup_(free) struct glibc_stretch *stretches =
		calloc(scan->finds.count + 1, sizeof(*stretches));
	size_t count = 0;

	TRY_MEMORY(stretches);
	array_for_each(find, &scan->finds) {
		if (is_stretch(find))
			stretches[count++] =
				(struct glibc_stretch){ find->arena, find->chunk, find->end };
	}
	TRY(glibc_walk_stretches(scan->heap, scan->sink, stretches, count, emit_some, scan));
	return emit_some(scan, count);
}

static struct error *find_all(struct scan *scan)
{
	const struct image *image = scan->heap->context.image;

	list_for_each(region, image->regions, image->region_count) {
		if ((region->rights & RIGHT_WRITE) && region->bytes && !region->mapping)
			TRY(scan_region(scan, region));
	}
	return add_subheaps(scan, UINT64_MAX);
}

static void scan_deinit(struct scan *scan)
{
	arrays_release(&scan->lacking, &scan->finds, &scan->taken);
}
DEFINE_DEINIT(scan_deinit, struct scan)

struct error *glibc_walk_mapped(struct glibc_heap *heap, struct block_sink *sink,
				const struct memory_range *done, size_t done_count)
{
	_cleanup_(scan_deinit) struct scan scan = {
		.heap = heap,
		.sink = sink,
		.view = { heap->context.image },
		.filter = mapped_filter_here(),
		.taken = { .memory.account = heap->context.account },
		.finds = { .memory.account = heap->context.account },
		.lacking = { .memory.account = heap->context.account },
	};

	TRY(collect_taken(&scan, done, done_count));
	TRY(list_lacking(&scan));
	TRY(find_all(&scan));
	join_neighbours(&scan);
	drop_chance_finds(&scan);
	find_chunk_gap(&scan);
	return emit_all(&scan);
}
