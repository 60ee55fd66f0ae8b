/*
 * Pieces of the heap, and chunks with a mapping of their own.
 *
 * Nothing lists either. A piece begins on a page, in the first page of a mapping, or in what
 * libraries leave unused of their pages of data, with a chunk that has none before it. A mapped
 * chunk begins on a page:
 *
 *	page
 *	| 0, 0, 16, size | user's memory ...                   size + 16: whole pages, bit 0 not set
 *	| 0, 0, 16, any | unused | distance, size | user's memory ...     aligned
 *
 * An aligned chunk begins at the first multiple of a power of two.
 */
#include "allocators/oldmalloc/oldmalloc.h"

enum {
	SENTINEL = CHUNK_USED,	/* the size of the last chunk of a piece */
	FEWEST_LINKS = 3,	/* of chunks that are found again behind damage */
	LONGEST_USED = 1 << 19, /* bytes that a damaged chunk may have */
	LONGEST_SKIP = 1 << 24,
	MOST_REPAIRS = 256,
	LEAST_ALIGNED = 6, /* logarithms of alignments that need room */
	MOST_ALIGNED = 40,
	PROGRESS_STEP = 1 << 24,
};

struct scan {
	struct oldmalloc_heap *heap;
	struct block_sink *sink;
	struct view view, links;
	arena_number first;
	uint64_t end;	/* of writable memory without a gap */
	uint64_t done;	/* what begins below it was added */
	uint64_t dense; /* a piece may begin anywhere up to here */
	unsigned int repairs;
};

struct chunk {
	uint64_t before, size; /* with their bits */
};

static bool read_chunk(struct scan *scan, uint64_t address, struct chunk *ret)
{
	return view_read(&scan->view, address, ret, sizeof(*ret));
}

static uint64_t bytes_of(uint64_t size)
{
	return size & ~(uint64_t)CHUNK_USED;
}

/* Whether the chunk may have that size; *ret_stated is what the next one says. */
static bool is_sound(struct scan *scan, uint64_t address, uint64_t size, uint64_t *ret_stated)
{
	uint64_t bytes = bytes_of(size);

	return bytes >= CHUNK_UNIT && bytes % CHUNK_UNIT == 0 && bytes < scan->end - address &&
	       scan->end - address - bytes >= CHUNK_HEADER &&
	       view_word(&scan->view, address + bytes, ret_stated);
}

/* Whether that many chunks from address on follow each other, or the piece ends before. */
static bool are_linked(struct scan *scan, uint64_t address, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++) {
		struct chunk chunk;
		uint64_t stated;

		if (!read_chunk(scan, address, &chunk))
			return false;
		if (chunk.size == SENTINEL)
			return true;
		if (!is_sound(scan, address, chunk.size, &stated) || stated != chunk.size)
			return false;
		address += bytes_of(chunk.size);
	}
	return true;
}

/* Where the chunk at address ends: at the next one that says so; 0 if there is none. */
static uint64_t find_end(struct scan *scan, uint64_t address)
{
	uint64_t distance = scan->end - address, before;

	if (distance > LONGEST_USED)
		distance = LONGEST_USED;
	for (uint64_t at = CHUNK_UNIT; at < distance; at += CHUNK_UNIT)
		if (view_word(&scan->view, address + at, &before) && bytes_of(before) == at &&
		    are_linked(scan, address + at, FEWEST_LINKS))
			return address + at;
	return 0;
}

/* Where chunks go on behind address; 0: nowhere. */
static uint64_t find_linked(struct scan *scan, uint64_t address)
{
	uint64_t distance = scan->end - address;

	if (distance > LONGEST_SKIP)
		distance = LONGEST_SKIP;
	for (uint64_t at = CHUNK_UNIT; at < distance; at += CHUNK_UNIT) {
		struct chunk chunk;

		if (read_chunk(scan, address + at, &chunk) && chunk.size != SENTINEL &&
		    are_linked(scan, address + at, FEWEST_LINKS))
			return address + at;
	}
	return 0;
}

/* The lists of a free chunk's bin must lead back to it. */
static void check_links(struct scan *scan, uint64_t chunk)
{
	uint64_t links[2], back[2];

	if (!view_read(&scan->view, chunk + CHUNK_NEXT, links, sizeof(links)) ||
	    !view_word(&scan->links, links[0] + CHUNK_PREVIOUS, &back[0]) ||
	    !view_word(&scan->links, links[1] + CHUNK_NEXT, &back[1]) || back[0] != chunk ||
	    back[1] != chunk)
		heap_damage_note(&scan->heap->links, chunk);
}

static struct error *add_chunk(struct scan *scan, uint64_t address, uint64_t size)
{
	struct block block = { address + CHUNK_HEADER, bytes_of(size) - CHUNK_HEADER,
			       size & CHUNK_USED ? BLOCK_USED : BLOCK_FREE };

	if (block.state == BLOCK_FREE)
		check_links(scan, address);
	return block_sink_add(scan->sink, block);
}

static struct error *begin_region(struct scan *scan, uint64_t start, enum oldmalloc_arena arena)
{
	return block_sink_region(scan->sink, start, scan->end, scan->first + arena);
}

static void end_region(struct scan *scan, uint64_t start, uint64_t end, enum oldmalloc_arena arena)
{
	struct oldmalloc_heap *heap = scan->heap;

	block_sink_cut(scan->sink, end);
	heap->bytes[arena] += end - start;
	if (arena == OLDMALLOC_HEAP) {
		heap->start = heap->start ? heap->start : start;
		heap->end = end;
	}
}

static void note_size(struct oldmalloc_heap *heap, uint64_t address, uint64_t size, uint64_t stated)
{
	if (heap->sizes.count == 0) {
		heap->wrong_size = size;
		heap->stated_size = stated;
	}
	heap_damage_note(&heap->sizes, address);
}

/*
 * Go on behind a chunk whose size the next one contradicts; *size is its size, 0: it is unknown.
 * *next is the chunk where that is, 0: nowhere.
 */
static void repair(struct scan *scan, uint64_t address, const struct chunk *chunk, uint64_t *size,
		   uint64_t *next)
{
	uint64_t stated = 0;
	bool sound = is_sound(scan, address, chunk->size, &stated);

	note_size(scan->heap, address, chunk->size, stated);
	*next = 0;
	*size = chunk->size;
	if (scan->repairs++ == MOST_REPAIRS)
		return;
	*next = sound ? address + bytes_of(chunk->size) : 0;
	if (sound && (are_linked(scan, *next, FEWEST_LINKS) || find_end(scan, *next)))
		return;
	*next = find_end(scan, address);
	if (*next && view_word(&scan->view, *next, size))
		return;
	*size = 0;
	*next = find_linked(scan, address);
}

/* Add the chunks of the piece; *ret_end is where it ends. */
static struct error *add_piece(struct scan *scan, uint64_t start, uint64_t *ret_end)
{
	uint64_t address = start, budget = 0;
	struct chunk chunk = { 0, 0 };

	TRY(begin_region(scan, start, OLDMALLOC_HEAP));
	while (read_chunk(scan, address, &chunk) && chunk.size != SENTINEL) {
		uint64_t size = chunk.size, stated, next = address + bytes_of(size);

		if (!is_sound(scan, address, size, &stated) || stated != size)
			repair(scan, address, &chunk, &size, &next);
		if (!next)
			break;
		if (size) {
			TRY(add_chunk(scan, address, size));
		} else {
			end_region(scan, start, address, OLDMALLOC_HEAP);
			TRY(begin_region(scan, start = next, OLDMALLOC_HEAP));
		}
		budget += next - address;
		address = next;
		if (budget >= PROGRESS_STEP) {
			TRY(progress_check(scan->heap->context.progress, budget));
			budget = 0;
		}
	}
	*ret_end = chunk.size == SENTINEL ? address + CHUNK_HEADER : address;
	end_region(scan, start, *ret_end, OLDMALLOC_HEAP);
	return NULL;
}

/* Whether a mapped chunk is at address, of a mapping that begins at page; *ret_end is its end. */
static bool is_mapped(struct scan *scan, uint64_t page, uint64_t address, uint64_t *ret_end)
{
	struct chunk chunk;

	if (!read_chunk(scan, address, &chunk) || chunk.before != address - page ||
	    chunk.size <= CHUNK_HEADER || (chunk.size & CHUNK_USED) ||
	    (chunk.before + chunk.size) % PAGE != 0 || chunk.size > scan->end - address)
		return false;
	*ret_end = address + chunk.size;
	return true;
}

/* The chunk of the mapping that begins at page; 0: it is none. */
static uint64_t find_mapped(struct scan *scan, uint64_t page, uint64_t *ret_end)
{
	uint64_t first = page + CHUNK_HEADER, chunk, before;

	if (!view_word(&scan->view, first, &before) || before != CHUNK_HEADER)
		return 0;
	for (unsigned int log = LEAST_ALIGNED; log < MOST_ALIGNED; log++) {
		uint64_t unit = UINT64_C(1) << log;

		chunk = ((page + CHUNK_UNIT + unit - 1) & -unit) - CHUNK_HEADER;
		if (chunk > first && chunk < scan->end && is_mapped(scan, page, chunk, ret_end))
			return chunk;
	}
	return is_mapped(scan, page, first, ret_end) ? first : 0;
}

static struct error *add_mapped(struct scan *scan, uint64_t page, uint64_t chunk, uint64_t end)
{
	TRY(begin_region(scan, page, OLDMALLOC_MAPPED));
	TRY(block_sink_add(scan->sink, (struct block){ chunk + CHUNK_HEADER,
						       end - chunk - CHUNK_HEADER, BLOCK_USED }));
	end_region(scan, page, end, OLDMALLOC_MAPPED);
	return NULL;
}

/* Whether a piece begins there. */
static bool is_piece(struct scan *scan, uint64_t address)
{
	struct chunk chunk;

	return read_chunk(scan, address, &chunk) && chunk.before == SENTINEL &&
	       chunk.size != SENTINEL && are_linked(scan, address, 1);
}

/* The next place from address on where a chunk may be the first of something. */
static uint64_t next_place(const struct scan *scan, uint64_t address)
{
	uint64_t unit = address < scan->dense ? CHUNK_UNIT : PAGE;

	return ((address + unit - CHUNK_HEADER - 1) & -unit) + CHUNK_HEADER;
}

static struct error *scan_memory(struct scan *scan, uint64_t start, uint64_t end)
{
	const struct image *image = scan->heap->context.image;
	uint64_t at = next_place(scan, start);

	while (at < end && end - at >= 2 * CHUNK_HEADER) {
		uint64_t page = at - CHUNK_HEADER, data = image_next_data(image, page), chunk = 0;
		uint64_t behind = at + CHUNK_UNIT;

		if (data > at) {
			at = next_place(scan, data);
			continue;
		}
		if (is_piece(scan, at))
			TRY(add_piece(scan, at, &behind));
		else if (page % PAGE == 0 && (chunk = find_mapped(scan, page, &behind)) != 0)
			TRY(add_mapped(scan, page, chunk, behind));
		scan->done = behind;
		at = next_place(scan, behind);
	}
	return progress_check(scan->heap->context.progress, end - start);
}

/* Up to where a piece may begin anywhere in the region: in data of modules, or in its first page.
 */
static uint64_t dense_end(const struct scan *scan, const struct region *region)
{
	const struct program *program = scan->heap->context.program;

	if (region->mapping)
		return region->end;
	list_for_each(module, program->modules, program->module_count)
		if (region->start >= module->start && region->start < module->end)
			return page_below(module->end + PAGE - 1);
	return region->start + PAGE;
}

/* The end of writable memory without a gap, from that region on. */
static uint64_t writable_end(const struct image *image, size_t number)
{
	uint64_t end = image->regions[number].end;

	for (number++; number < image->region_count && image->regions[number].start == end &&
		       (image->regions[number].rights & RIGHT_WRITE);
	     number++)
		end = image->regions[number].end;
	return end;
}

struct error *oldmalloc_add_blocks(struct oldmalloc_heap *heap, arena_number first,
				   struct block_sink *sink)
{
	const struct image *image = heap->context.image;
	struct scan scan = {
		heap, sink, .view = { image }, .links = { image }, .first = first,
	};

	for (size_t i = 0; i < image->region_count; i++) {
		const struct region *region = &image->regions[i];

		if (!(region->rights & RIGHT_WRITE) || !region->bytes)
			continue;
		if (region->start >= scan.end)
			scan.end = writable_end(image, i);
		scan.dense = dense_end(&scan, region);
		TRY(scan_memory(&scan, region->start > scan.done ? region->start : scan.done,
				region->end));
	}
	return NULL;
}
