#include "analyzer/runtimes/lisp.h"

bool lisp_is_object(const struct reader *reader, allocation_id id)
{
	const struct bitmap *collectable = allocation_having(reader->index, TRAIT_MANAGED);

	return collectable && bitmap_get(collectable, id);
}

bool lisp_is_plain(const struct reader *reader, allocation_id id)
{
	const struct bitmap *plain = allocation_having(reader->index, TRAIT_POINTERLESS);

	return plain && bitmap_get(plain, id);
}

/* Without the byte more that some runtimes ask for. */
bool lisp_size_fits(uint64_t size, uint64_t wanted)
{
	enum { GRANULE = 16, BLOCK = 4096, SMALL = BLOCK / 2 };
	uint64_t least = (wanted + GRANULE - 1) & ~UINT64_C(15), most;

	if (size < wanted || wanted == 0)
		return false;
	if (least > SMALL)
		return size - wanted < BLOCK + GRANULE;
	most = least + least / 7;
	most = BLOCK / (BLOCK / most) / GRANULE * GRANULE;
	return size <= (most > least ? most : least) + GRANULE;
}

bool lisp_is_address(struct reader *reader, uint64_t address)
{
	struct memory_range range;

	if (address == 0 || address % 8 != 0)
		return false;
	if (heap_bounds_hold(&reader->bounds, address)) {
		if (reader_start(reader, address, &range) != NO_ALLOCATION)
			return true;
		if (heap_region_find(reader->index, address))
			return false;
	}
	return image_find(reader->image, address) != NULL;
}
