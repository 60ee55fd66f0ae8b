/*
 * The home-made allocator of testdata/programs/homemade.c: an allocator that only tests link.
 *
 * A mapping begins with a magic word and areas; the kernel may have merged it with others. Blocks
 * lie side by side in an area, from its base on; a bitmap tells where they start, another which are
 * in use.
 */
#include "analyzer/base/error.h"
#include "analyzer/heap/allocator.h"
#include "analyzer/image/view.h"

#include <inttypes.h>

enum { STEP = 8, LINK_TAG = 7, MOST_AREAS = 8, AREA_SIZE = 64 << 10, BITS = AREA_SIZE / STEP / 8 };

struct area {
	uint64_t base, size, used, first_free;
	uint8_t starts[BITS], in_use[BITS];
};

struct control {
	char magic[16];
	uint64_t area_count;
};

struct homemade_heap {
	struct heap heap;
	struct heap_context context;
	uint64_t address; /* of its control structure */
	uint64_t area_count;
	struct area areas[MOST_AREAS];
};

static const struct arena_kind arena_kinds[] = {
	{ .name = "area", .group = "Home-made areas" },
	{ NULL },
};

static const struct free_kind free_kinds[] = {
	{ "home-made list" },
	{ "home-made rest", .ends_heap = true },
	{ NULL },
};

static const struct homemade_heap *of(const struct heap *heap)
{
	return (const struct homemade_heap *)heap;
}

static void homemade_close(struct heap *heap)
{
}

static bool read_areas(const struct image *image, uint64_t address, struct homemade_heap *ret)
{
	struct control control;

	if (!image_read(image, address, &control, sizeof(control)) ||
	    memcmp(control.magic, "HOMEMADE ALLOC 8", sizeof(control.magic)) != 0 ||
	    control.area_count > MOST_AREAS)
		return false;
	ret->address = address;
	ret->area_count = control.area_count;
	return image_read(image, address + sizeof(control), ret->areas,
			  control.area_count * sizeof(struct area));
}

static bool find_areas(const struct image *image, struct homemade_heap *ret)
{
	for (size_t i = 0; i < image->region_count; i++) {
		const struct region *region = &image->regions[i];

		if (!region->bytes || !(region->rights & RIGHT_WRITE))
			continue;
		for (uint64_t at = region->start; at < region->end; at += PAGE) {
			at = image_next_data(image, at) & ~(uint64_t)(PAGE - 1);
			if (at < region->end && read_areas(image, at, ret))
				return true;
		}
	}
	return false;
}

static struct error *homemade_open(struct heap *base, const struct heap_context *context, bool *ret)
{
	struct homemade_heap *heap = (struct homemade_heap *)base;

	heap->context = *context;
	*ret = find_areas(context->image, heap);
	return NULL;
}

static bool get_bit(const uint8_t *bits, uint64_t step)
{
	return bits[step / 8] >> step % 8 & 1;
}

static bool is_sound(const struct area *area)
{
	return area->base % STEP == 0 && area->size == AREA_SIZE && area->used <= area->size &&
	       area->used % STEP == 0 && area->base < UINT64_MAX - area->size;
}

static struct error *walk_area(const struct area *area, arena_number number,
			       struct block_sink *sink)
{
	uint64_t steps = area->used / STEP, first = 0;
	struct error *error = block_sink_region(sink, area->base, area->base + area->size, number);

	for (uint64_t step = 1; step <= steps && !error; step++) {
		if (step < steps && !get_bit(area->starts, step))
			continue;
		error = block_sink_add(
			sink, (struct block){
				      area->base + STEP * first,
				      STEP * (step - first),
				      get_bit(area->in_use, first) ? BLOCK_USED : BLOCK_FREE,
			      });
		first = step;
	}
	if (!error && area->used < area->size)
		error = block_sink_add(sink, (struct block){ area->base + area->used,
							     area->size - area->used, BLOCK_FREE });
	return error;
}

static struct error *homemade_walk(struct heap *base, struct block_sink *sink)
{
	const struct homemade_heap *heap = of(base);
	struct error *error = block_sink_claim(sink, heap->address,
					       heap->address + sizeof(struct control) +
						       heap->area_count * sizeof(struct area));

	for (size_t i = 0; i < heap->area_count && !error; i++) {
		const struct area *area = &heap->areas[i];

		error = array_append(&base->arenas,
				     (struct arena){ arena_kinds, area->base, area->size });
		if (!error && is_sound(area))
			error = walk_area(area, base->first_arena + (arena_number)i, sink);
		else
			findings_add(heap->context.findings, FINDING_INCOMPLETE,
				     "the home-made area at %#" PRIx64 " makes no sense",
				     area->base);
	}
	return error;
}

static unsigned int homemade_free_kind(const struct heap *heap, size_t number, allocation_id id,
				       struct block block)
{
	const struct area *area = &of(heap)->areas[number];

	return block.start == area->base + area->used;
}

static unsigned int homemade_stale_links(const struct heap *heap,
					 const struct allocation_index *index, uint64_t start,
					 const uint64_t words[4])
{
	return words[0] % STEP == LINK_TAG;
}

static bool homemade_tell(const struct heap *base, uint64_t address, char *ret, size_t size)
{
	const struct homemade_heap *heap = of(base);

	for (size_t i = 0; i < heap->area_count; i++)
		if (heap->areas[i].first_free == address + LINK_TAG) {
			snprintf(ret, size, "first on the home-made list of area %zu", i);
			return true;
		}
	return false;
}

const struct allocator allocator_homemade = {
	.name = "homemade",
	.summary = "the allocator of a test program",
	.alignment = STEP,
	.arena_kinds = arena_kinds,
	.free_kinds = free_kinds,
	.heap_size = sizeof(struct homemade_heap),
	.links_lead_anywhere = true,
	FILL_SLOTS(homemade, open, close, walk, free_kind, stale_links, tell),
};
