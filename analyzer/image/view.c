#include "analyzer/image/view.h"

bool view_move(struct view *view, uint64_t address)
{
	const struct region *region = image_find(view->image, address);

	if (!region || !region->bytes)
		return false;
	view->start = region->start;
	view->size = region->end - region->start;
	view->bytes = region->bytes;
	return true;
}

uint64_t view_reach(const struct view *view, uint64_t address, uint64_t end)
{
	const struct region *region;

	while (address < end && (region = image_find(view->image, address)) && !region->mapping)
		address = region->end;
	return address < end ? address : end;
}

bool view_is_absent(const struct view *view, uint64_t address)
{
	const struct region *region = image_find(view->image, address);

	return region && !region->bytes;
}
