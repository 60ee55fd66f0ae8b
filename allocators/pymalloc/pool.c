#include "allocators/pymalloc/pymalloc.h"

const struct pymalloc_geometry pymalloc_geometries[GEOMETRIES] = {
	{ 16 << 10, 1 << 20, 16 },
	{ 4 << 10, 256 << 10, 16 },
	{ 4 << 10, 256 << 10, 8 },
};

enum { LARGEST_BLOCK = 512 };

/* struct pool_header, the same in all versions. */
struct header {
	uint32_t used, padding;
	uint64_t free; /* the first of the free blocks that were in use before */
	uint64_t next, previous;
	uint32_t arena;
	uint32_t size_class;
	uint32_t next_offset; /* of the next block to hand out for the first time */
	uint32_t last_offset; /* that this may have */
};

/* Set what follows from the header alone. */
static bool read_layout(const struct header *header, const struct pymalloc_geometry *geometry,
			struct pymalloc_pool *ret)
{
	uint32_t alignment = geometry->alignment, block;

	if (header->size_class >= LARGEST_BLOCK / alignment)
		return false;
	block = (header->size_class + 1) * alignment;
	ret->block = block;
	ret->capacity = (geometry->pool - POOL_HEADER) / block;
	if (header->last_offset != geometry->pool - block || header->next_offset < POOL_HEADER ||
	    (header->next_offset - POOL_HEADER) % block != 0)
		return false;
	ret->carved = (header->next_offset - POOL_HEADER) / block;
	return ret->carved <= ret->capacity && header->used > 0 && header->used <= ret->carved;
}

/* Follow the list of free blocks; each is at most once on it. Returns false if it is none. */
static bool read_free(struct view *view, uint64_t pool, uint64_t first, struct pymalloc_pool *ret,
		      uint32_t *ret_count)
{
	*ret_count = 0;
	memset(ret->free, 0, sizeof(ret->free));
	for (uint64_t at = first; at != 0; (*ret_count)++) {
		uint64_t offset = at - pool - POOL_HEADER, number = offset / ret->block;

		if (offset % ret->block != 0 || number >= ret->carved ||
		    (ret->free[number / 64] >> number % 64 & 1) || !view_word(view, at, &at))
			return false;
		ret->free[number / 64] |= UINT64_C(1) << number % 64;
	}
	return true;
}

bool pymalloc_read_pool(struct view *view, const struct pymalloc_arena *arena, uint64_t address,
			struct pymalloc_pool *ret)
{
	struct header header;
	uint32_t free;

	if (!view_read(view, address, &header, sizeof(header)) || header.arena != arena->number ||
	    !header.next || !header.previous || !read_layout(&header, arena->geometry, ret) ||
	    !read_free(view, address, header.free, ret, &free))
		return false;
	return header.used + free + 1 >= ret->carved && header.used + free <= ret->carved + 1;
}
