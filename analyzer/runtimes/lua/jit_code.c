/*
 * The code that LuaJIT compiled: areas of lj_mcode.c, which begin with the one before and their
 *size:
 *
 *	| next, or 0 | size | code that is jumped to ... free ... traces |
 */
#include "analyzer/base/list.h"
#include "analyzer/runtimes/lua/lua.h"

enum { PAGE_SIZE = 4096 };

/* Code in no file, of no library. */
static bool may_have_code(const struct region *region)
{
	return region && (region->rights & RIGHT_EXECUTE) && !region->mapping;
}

/* The size of the area at the start of what is left of a region; 0: there is none. */
static uint64_t measure(const struct image *image, uint64_t start, uint64_t end)
{
	uint64_t next, size;

	if (!image_read_u64(image, start, &next) ||
	    !image_read_u64(image, start + LUA_WORD, &size) || size == 0 || size % PAGE_SIZE != 0 ||
	    size > end - start ||
	    (next && (next % PAGE_SIZE != 0 || !may_have_code(image_find(image, next)))))
		return 0;
	return size;
}

struct error *lua_find_jit_code(struct lua *lua)
{
	const struct image *image = lua->space.image;

	list_for_each(region, image->regions, image->region_count) {
		uint64_t start = region->start, size;

		if (!may_have_code(region))
			continue;
		while (start < region->end && (size = measure(image, start, region->end))) {
			TRY(array_append(
				&lua->space.ranges,
				(struct named_range){ { start, start + size }, "LuaJIT's code" }));
			start += size;
		}
	}
	return NULL;
}
