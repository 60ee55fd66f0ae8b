#include "analyzer/runtimes/node/node.h"

#include <string.h>

/*
 * The head of a chunk of V8's heap: BasicMemoryChunk of src/heap/basic-memory-chunk.h, the same in
 * 10.2 and 11.3. A chunk begins at a multiple of 256 KiB, and is as large, unless it is for one
 * large object or only the first of its mapping is used.
 */
struct chunk {
	uint64_t size, flags, heap;
	uint64_t start, end; /* of the objects */
	uint64_t allocated;
};

enum { CHUNK_ALIGNMENT = 256 << 10, MOST_HEAD = 64 << 10 };
enum { IS_EXECUTABLE = 1 << 0, FROM_PAGE = 1 << 3, TO_PAGE = 1 << 4 };

static const uint64_t LARGEST_CHUNK = UINT64_C(1) << 40;

static bool read_chunk(const struct image *image, uint64_t address, struct chunk *ret)
{
	return image_read(image, address, ret, sizeof(*ret)) && ret->size != 0 &&
	       ret->size % PAGE == 0 && ret->size <= LARGEST_CHUNK &&
	       ret->start - address < MOST_HEAD && ret->start - address >= sizeof(*ret) &&
	       ret->end > ret->start && ret->end - address <= ret->size &&
	       ret->allocated <= ret->end - ret->start;
}

static uint64_t measure(const struct image *image, uint64_t address)
{
	struct chunk chunk;

	return read_chunk(image, address, &chunk) ? chunk.size : 0;
}

/* Flags of large chunks differ between versions; their size does not. */
static const char *use(const struct image *image, uint64_t address)
{
	struct chunk chunk;

	if (!read_chunk(image, address, &chunk))
		return "V8's heap";
	if (chunk.flags & IS_EXECUTABLE)
		return "V8's heap: code";
	if (chunk.flags & (FROM_PAGE | TO_PAGE))
		return "V8's heap: new objects";
	return chunk.heap == 0		      ? "V8's heap: read-only"
	       : chunk.size > CHUNK_ALIGNMENT ? "V8's heap: large objects"
					      : "V8's heap: old objects";
}

/* What is allocated in a chunk of new objects is not counted there: it is all of it. */
static bool fill(const struct image *image, uint64_t address, uint64_t *ret_used,
		 uint64_t *ret_room)
{
	struct chunk chunk;

	if (!read_chunk(image, address, &chunk) || (chunk.flags & (FROM_PAGE | TO_PAGE)))
		return false;
	*ret_used = chunk.allocated;
	*ret_room = chunk.end - chunk.start;
	return true;
}

static const struct object_pages pages = {
	.name = "V8's heap",
	.alignment = { CHUNK_ALIGNMENT },
	.measure = measure,
	.use = use,
	.fill = fill,
	.is_certain = true,
};

const struct runtime runtime_node = {
	.name = "node",
	.modules = "libnode.so|node$|nodejs$",
	.pages = &pages,
	.leaks_note =
		"Node.js is loaded: V8's objects are no allocations here, and hold what they refer to until V8 frees them",
};
