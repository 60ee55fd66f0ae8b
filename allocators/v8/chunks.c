#include "allocators/v8/v8.h"

#include "analyzer/base/keep.h"
#include "analyzer/base/macros.h"

enum {
	MOST_HEAD = 64 << 10,
	LEAST_HEAD = 2 * V8_WORD,

	IS_EXECUTABLE = 1 << 0,
	FROM_PAGE = 1 << 3,
	TO_PAGE = 1 << 4,
	MOST_HEAPS = 64,
	MOST_LABS = 1024,
	/* An Isolate begins with IsolateData, which has the ends of what is allocated from. */
	ISOLATE = 128 << 10,
	MOST_BEHIND = 32 << 20,
};

static const uint64_t LARGEST_CHUNK = UINT64_C(1) << 40;

struct head {
	uint64_t size, flags, heap;
	uint64_t start, end;
	uint64_t allocated;
	bool is_early; /* up to V8 11 */
};

static bool is_executable(const struct image *image, uint64_t address)
{
	const struct region *region = image_find(image, address);

	return region && (region->rights & RIGHT_EXECUTE);
}

/* Flags of large chunks differ between versions; their size does not. */
static enum v8_space space_of(const struct image *image, const struct head *head)
{
	if ((head->is_early && (head->flags & IS_EXECUTABLE)) || is_executable(image, head->start))
		return V8_CODE;
	if (head->flags & (FROM_PAGE | TO_PAGE))
		return V8_NEW;
	return head->heap == 0 ? V8_READ_ONLY : head->size > V8_CHUNK_ALIGNMENT ? V8_LARGE : V8_OLD;
}

/*
 * Read a head with flags first, which are followed by the address of the rest: in the chunk itself,
 * or in a block of malloc with
 *
 *	| allocator | chunk | size | allocated | wasted | reached | size | end | heap | start |
 */
static bool read_apart(const struct image *image, uint64_t address, const uint64_t *words,
		       struct head *ret)
{
	enum { CHUNK = 1, ALLOCATED = 3, SIZE = 6, END, HEAP, START, WORDS };
	uint64_t apart[WORDS];

	if (words[1] % V8_WORD != 0 || !image_read(image, words[1], apart, sizeof(apart)) ||
	    apart[CHUNK] != address)
		return false;
	*ret = (struct head){
		.flags = words[0],
		.size = apart[SIZE],
		.heap = apart[HEAP],
		.start = apart[START],
		.end = apart[END],
		.allocated = apart[ALLOCATED],
	};
	return true;
}

static bool read_head(const struct image *image, uint64_t address, struct head *ret)
{
	enum { WORDS = 7 };
	uint64_t words[WORDS];
	size_t first; /* word of what came first up to V8 11, a size */

	if (!image_read(image, address, words, sizeof(words)))
		return false;
	if (words[1] != address && words[0] <= UINT32_MAX && read_apart(image, address, words, ret))
		return true;
	first = words[1] == address ? 2 : 0;
	*ret = (struct head){
		.flags = words[first ? 0 : 1],
		.size = words[first],
		.heap = words[first ? 3 : 2],
		.start = words[first ? 4 : 3],
		.end = words[first ? 5 : 4],
		.allocated = words[first ? 6 : 5],
		.is_early = first == 0,
	};
	return true;
}

bool v8_read_chunk(const struct image *image, uint64_t address, struct v8_chunk *ret)
{
	struct head head;

	if (!read_head(image, address, &head) || head.size == 0 || head.size % PAGE != 0 ||
	    head.size > LARGEST_CHUNK || head.start - address >= MOST_HEAD ||
	    head.start - address < LEAST_HEAD || (head.start | head.end) % V8_WORD != 0 ||
	    head.end <= head.start || head.end - address > head.size ||
	    head.allocated > head.end - head.start)
		return false;
	*ret = (struct v8_chunk){
		.address = address,
		.size = head.size,
		.start = head.start,
		.end = head.end,
		.allocated = head.allocated,
		.heap = head.heap,
		.space = space_of(image, &head),
		.is_from = (head.flags & FROM_PAGE) != 0,
	};
	return true;
}

struct error *v8_visit_head(const struct image *image, const struct v8_chunk *chunk,
			    program_range_visitor *visit, void *data)
{
	enum { HEAD = 7 * V8_WORD, APART = 10 * V8_WORD };
	uint64_t words[2];
	struct head head;

	if (!image_read(image, chunk->address, words, sizeof(words)))
		return NULL;
	TRY(visit(data, chunk->address, HEAD));
	return words[1] != chunk->address && words[0] <= UINT32_MAX &&
			       read_apart(image, chunk->address, words, &head)
		       ? visit(data, words[1], APART)
		       : NULL;
}

static struct error *find_chunks_in(const struct image *image, const struct region *region,
				    struct v8_heap_parts *parts)
{
	static const uint64_t MASK = V8_CHUNK_ALIGNMENT - 1;
	struct v8_chunk chunk;

	for (uint64_t at = (region->start + MASK) & ~MASK; at >= region->start && at < region->end;
	     at = (image_next_data(image, at + V8_CHUNK_ALIGNMENT) + MASK) & ~MASK)
		if (v8_read_chunk(image, at, &chunk))
			TRY(array_append(&parts->chunks, chunk));
	return NULL;
}

const struct v8_chunk *v8_find_chunk(const struct v8_heap_parts *parts, uint64_t address)
{
	const struct v8_chunk *chunks = parts->chunks.items;
	size_t i = LIST_ABOVE(chunks, parts->chunks.count, address, address);

	return i > 0 && address >= chunks[i - 1].start && address <= chunks[i - 1].end
		       ? &chunks[i - 1]
		       : NULL;
}

/* LinearAllocationArea: start, top, limit. */
static struct error *find_labs(const struct image *image, uint64_t start, uint64_t end,
			       struct v8_heap_parts *parts)
{
	struct view view = { image };
	uint64_t words[3];

	for (uint64_t at = start; at < end; at += V8_WORD) {
		const struct v8_chunk *chunk;

		if (!view_read(&view, at, words, sizeof(words)) ||
		    ((words[0] | words[1] | words[2]) & (V8_WORD - 1)) != 0 ||
		    words[0] > words[1] || words[1] >= words[2])
			continue;
		chunk = v8_find_chunk(parts, words[0]);
		if (chunk && words[2] <= chunk->end && parts->labs.count < MOST_LABS)
			TRY(array_append(&parts->labs, (struct v8_lab){ words[1], words[2] }));
	}
	return NULL;
}

/* Find those whose ends are in the part of memory that range_of returns for each heap. */
static struct error *find_all_labs(const struct image *image, struct v8_heap_parts *parts,
				   struct memory_range (*range_of)(const struct image *image,
								   uint64_t heap))
{
	uint64_t heaps[MOST_HEAPS];
	size_t count = 0;

	array_for_each(chunk, &parts->chunks) {
		struct memory_range range;
		size_t i = 0;

		while (i < count && heaps[i] != chunk->heap)
			i++;
		if (i < count || count == MOST_HEAPS || chunk->heap == 0)
			continue;
		range = range_of(image, chunk->heap);
		heaps[count++] = chunk->heap;
		TRY(find_labs(image, range.start, range.end, parts));
	}
	return NULL;
}

static struct memory_range isolate_of(const struct image *image, uint64_t heap)
{
	return (struct memory_range){ heap > ISOLATE ? heap - ISOLATE : 0, heap };
}

/* Spaces are allocated after their heap. */
static struct memory_range memory_behind(const struct image *image, uint64_t heap)
{
	const struct region *region = image_find(image, heap);
	uint64_t end = region ? region->end : heap;

	return (struct memory_range){ heap, end - heap > MOST_BEHIND ? heap + MOST_BEHIND : end };
}

struct error *v8_find_lab(const struct image *image, struct v8_heap_parts *parts, uint64_t top,
			  const struct v8_lab **ret)
{
	if (!parts->has_other_labs)
		TRY(find_all_labs(image, parts, memory_behind));
	parts->has_other_labs = true;
	*ret = NULL;
	array_for_each(lab, &parts->labs)
		if (lab->top == top)
			*ret = lab;
	return NULL;
}

/* A chunk within another is none. */
static void drop_nested(struct v8_heap_parts *parts)
{
	array_keep(&parts->chunks, chunk, last,
		   !last || chunk->address >= last->address + last->size);
}

struct error *v8_find(const struct image *image, const struct program *program,
		      struct v8_heap_parts *ret)
{
	if (!v8_find_layout(image, program, &ret->layout))
		return NULL;
	for (size_t i = 0; i < image->region_count; i++)
		TRY(find_chunks_in(image, &image->regions[i], ret));
	drop_nested(ret);
	TRY(find_all_labs(image, ret, isolate_of));
	ret->own_labs = ret->labs.count;
	return NULL;
}
