#include "allocators/boehm/tell.h"

#include "allocators/boehm/blocks.h"
#include "allocators/boehm/calibrate.h"
#include "allocators/boehm/internals.h"
#include "allocators/boehm/objects.h"

#include <assert.h>
#include <inttypes.h>

static const char *const internal_names[] = {
	[INTERNAL_LINK] = "a disappearing link of the collector",
	[INTERNAL_FINALIZER] = "a finalizer's entry of the collector",
	[INTERNAL_TABLE] = "the collector's table of disappearing links or finalizers",
	[INTERNAL_THREAD] = "the collector's record of a thread",
	[INTERNAL_LISTS] = "the heads of the collector's free lists of a kind",
};

static const struct collector *find_collector(const struct boehm_heap *heap, uint64_t address,
					      const struct boehm_block **ret)
{
	for (size_t i = 0; i < heap->collector_count; i++) {
		size_t hint = 0;

		*ret = boehm_find_block(&heap->collectors[i], address, &hint);
		if (*ret)
			return &heap->collectors[i];
	}
	return NULL;
}

static void tell_kind(const struct boehm_block *block, char *ret, size_t size)
{
	static const char *const kinds[] = {
		[KIND_ATOMIC] = "a pointer-free object",
		[KIND_NORMAL] = "an object",
		[KIND_UNCOLLECTABLE] = "an uncollectable object",
		[KIND_ATOMIC_UNCOLLECTABLE] = "a pointer-free uncollectable object",
	};

	if (block->kind < KIND_FIRST_OWN)
		snprintf(ret, size, "%s", kinds[block->kind]);
	else
		snprintf(ret, size, "an object of kind %u", block->kind);
}

bool boehm_tell_object(const struct boehm_heap *heap, uint64_t address, char *ret, size_t size)
{
	const struct boehm_block *block;
	const struct collector *collector = find_collector(heap, address, &block);
	enum internal internal;

	if (!collector || is_free(block))
		return false;
	internal = boehm_internal(collector, heap->context.image, address);
	if (internal == INTERNAL_NONE)
		tell_kind(block, ret, size);
	else
		snprintf(ret, size, "%s", internal_names[internal]);
	return true;
}

static bool tell_free(const struct collector *collector, const struct image *image,
		      const struct boehm_block *block, uint64_t address, char *ret, size_t size)
{
	uint64_t slot = (address - block->start) / block->size;
	struct marks marks;

	if (is_free(block)) {
		snprintf(ret, size, "free blocks of the collector");
		return true;
	}
	if (slot >= object_slots(collector, block))
		return false;
	boehm_read_marks(collector, image, block, &marks);
	switch (boehm_object_state(collector, block, &marks, slot)) {
	case OBJECT_CACHED:
		snprintf(ret, size, "on a thread's list of free objects");
		return true;
	case OBJECT_FREE:
		snprintf(ret, size, "on a list of free objects");
		return true;
	case OBJECT_DEAD:
		snprintf(ret, size, "garbage that is not swept yet");
		return true;
	case OBJECT_UNDECIDED:
	case OBJECT_USED:
		break;
	}
	return false;
}

/* Tell of what lies outside of the blocks. */
static bool tell_bookkeeping(const struct collector *collector, uint64_t address, char *ret,
			     size_t size)
{
	const struct boehm_block *blocks = boehm_blocks(collector);
	const uint64_t *indexes = collector->indexes.items;
	uint64_t header = boehm_header_size(collector);

	if (collector->freelists && address >= collector->freelists &&
	    address < collector->size_map) {
		snprintf(ret, size, "the heads of the collector's lists of free objects");
		return true;
	}
	for (size_t i = 0; i < collector->indexes.count; i++)
		if (address - indexes[i] < index_size(&collector->geometry)) {
			snprintf(ret, size, "an index of the collector's blocks");
			return true;
		}
	for (size_t i = 0; i < collector->blocks.count; i++)
		if (address - blocks[i].header < header) {
			snprintf(ret, size, "the collector's header of the block at %#" PRIx64,
				 blocks[i].start);
			return true;
		}
	return false;
}

bool boehm_tell_address(const struct boehm_heap *heap, uint64_t address, char *ret, size_t size)
{
	const struct boehm_block *block;
	const struct collector *collector;

	assert(heap->collector_count == 0 || heap->collectors);
	collector = find_collector(heap, address, &block);
	if (collector)
		return tell_free(collector, heap->context.image, block, address, ret, size);
	for (size_t i = 0; i < heap->collector_count; i++)
		if (tell_bookkeeping(&heap->collectors[i], address, ret, size))
			return true;
	return false;
}
