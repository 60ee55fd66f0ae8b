/*
 * Addresses of metadata, and free memory, in words.
 */
#include "allocators/jemalloc/jemalloc.h"

#include <inttypes.h>

static const char *const state_names[] = { "active", "dirty", "muzzy", "retained" };

static bool tell_extent(const struct jemalloc *je, uint64_t address, char *ret, size_t size)
{
	const struct jemalloc_extent *extent = jemalloc_find_extent(je, address);
	struct memory_range range;
	unsigned int class;

	if (!extent)
		return false;
	if (is_free_extent(&je->layout, extent))
		snprintf(ret, size, "a free extent of arena %" PRIu32 ", %s", arena_index(extent),
			 state_names[extent_state(&je->layout, extent)]);
	else if (!jemalloc_find_region(je, address, &range, &class))
		snprintf(ret, size, "padding of the large allocation at %#" PRIx64,
			 extent->start + extent->offset);
	else if (number_list_has(&je->stacks, range.start))
		snprintf(ret, size, "the stack of a thread cache");
	else if (number_list_has(&je->cached, range.start))
		snprintf(ret, size, "in a thread cache, of the class of %" PRIu64 " bytes",
			 je->layout.classes[class]);
	else
		snprintf(ret, size,
			 "a region of the slab at %#" PRIx64 " of arena %" PRIu32
			 ", of the class of %" PRIu64 " bytes",
			 extent->start, arena_index(extent), je->layout.classes[class]);
	return true;
}

/* Extents are by address of what they describe, not of their metadata. */
static bool tell_metadata(const struct jemalloc *je, uint64_t address, char *ret, size_t size)
{
	array_for_each(extent, &je->extents)
		if (address - extent->metadata < METADATA_BYTES) {
			snprintf(ret, size,
				 "the metadata of the extent at %#" PRIx64 " of arena %" PRIu32,
				 extent->start, arena_index(extent));
			return true;
		}
	return false;
}

static bool tell_node(const struct jemalloc *je, uint64_t address, char *ret, size_t size)
{
	array_for_each(leaf, &je->leaves)
		if (address - leaf->start < leaf->end - leaf->start) {
			snprintf(ret, size, "in the radix tree of extents");
			return true;
		}
	if (address - je->root >= node_bytes(&je->geometry, 0))
		return false;
	snprintf(ret, size, "in the root of the radix tree of extents");
	return true;
}

static bool tell_base(const struct jemalloc *je, uint64_t address, char *ret, size_t size)
{
	array_for_each(arena, &je->arenas)
		if (arena->address == address) {
			snprintf(ret, size, "the structure of arena %" PRIu32, arena->index);
			return true;
		}
	if (!jemalloc_find_base(je, address))
		return false;
	snprintf(ret, size, "in memory for jemalloc's metadata");
	return true;
}

static bool tell(const struct jemalloc *je, uint64_t address, char *ret, size_t size)
{
	return tell_extent(je, address, ret, size) || tell_node(je, address, ret, size) ||
	       tell_metadata(je, address, ret, size) || tell_base(je, address, ret, size);
}

bool jemalloc_tell(const struct heap *base, uint64_t address, char *ret, size_t size)
{
	const struct jemalloc_heap *heap = (const struct jemalloc_heap *)base;

	array_for_each(je, &heap->list)
		if (tell(je, address, ret, size))
			return true;
	return false;
}
