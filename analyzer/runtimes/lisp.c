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
