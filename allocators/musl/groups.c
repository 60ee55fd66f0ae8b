/*
 * Meta areas and groups.
 *
 * Areas are linked, each of one page:
 *
 *	| secret | next area | number of metas | metas ... |
 *
 * A meta: previous, next, group, masks of available and of freed slots (32 bits each), and a word
 * with the number of slots less 1 (bits 0 to 4), the size class (6 to 11) and, of a group with a
 * mapping of its own, its pages (from 12 on).
 *
 * Before each block are 4 bytes: 0, or 1 if its offset is of 32 bits, in the 4 bytes before; the
 * number of its slot (5 bits) and how many bytes of the slot's end it does not have (3 bits; 5:
 *that is in the last 4 bytes; 6: a group is in the slot); and its offset in the group, in units. A
 *slot whose block begins later says so in the same place.
 */
#include "allocators/musl/musl.h"
#include "analyzer/base/budget.h"

enum {
	SIZE_CLASSES = 48,
	MAP_PAGE = 4096,
	SLOT_MASK = 31,
	SPARE_FIELD = 5, /* 5 bytes or more: how many is in a field */
	SPARE_GROUP = 6, /* a group is in the slot */
	MOVED = 7 << 5,	 /* the block begins later */
	PROGRESS_STEP = 1024,
};

static const uint16_t class_units[SIZE_CLASSES] = {
	1,   2,	  3,   4,    5,	   6,	 7,    8,    9,	   10,	 12,   15,   18,   20,	 25,   31,
	36,  42,  50,  63,   72,   84,	 102,  127,  146,  170,	 204,  255,  292,  340,	 409,  511,
	584, 682, 818, 1023, 1169, 1364, 1637, 2047, 2340, 2730, 3276, 4095, 4680, 5460, 6552, 8191,
};

struct meta_words {
	uint64_t previous, next, group;
	uint32_t available, freed;
	uint64_t bits;
};

/* Read the meta at address. */
static bool read_meta(struct view *view, uint64_t address, struct meta_words *ret)
{
	uint32_t narrow[6];

	if (image_word_size(view->image) == sizeof(uint64_t))
		return view_read(view, address, ret, sizeof(*ret));
	if (!view_read(view, address, narrow, sizeof(narrow)))
		return false;
	*ret =
		(struct meta_words){ narrow[0], narrow[1], narrow[2],
				     narrow[3], narrow[4], narrow[5] };
	return true;
}

/* The group of the meta; false: it has none. */
static bool read_group(const struct meta_words *words, struct musl_group *ret)
{
	uint64_t pages = words->bits >> 12;
	unsigned int last = words->bits & SLOT_MASK, class = words->bits >> 6 & 63;

	if (!words->group)
		return false;
	*ret = (struct musl_group){ .start = words->group,
				    .available = words->available,
				    .freed = words->freed,
				    .slots = last + 1 };
	if (last == 0 && pages > 0)
		ret->stride = pages * MAP_PAGE - UNIT;
	else if (class < SIZE_CLASSES)
		ret->stride = (uint64_t)UNIT * class_units[class];
	ret->end = ret->start + UNIT + ret->slots * ret->stride;
	return true;
}

/* Add the group of the meta if it names the meta, too. */
static struct error *add_meta(struct musl_heap *heap, struct view *view, uint64_t meta)
{
	struct meta_words words;
	struct musl_group group;
	uint64_t back;

	if (!read_meta(view, meta, &words) || !read_group(&words, &group))
		return NULL;
	group.meta = meta;
	if (!image_read_word(heap->context.image, group.start, &back))
		heap_damage_note(&heap->absent, meta);
	else if (back != meta || group.stride == 0 || group.stride >> 47 ||
		 !image_may_address(heap->context.image, group.start) || group.start % UNIT != 0)
		heap_damage_note(&heap->strangers, meta);
	else
		return array_append(&heap->groups, group);
	return NULL;
}

static struct error *read_area(struct musl_heap *heap, struct view *view, uint64_t area,
			       uint64_t *ret_next)
{
	const struct image *image = heap->context.image;
	const uint64_t next = area + sizeof(heap->secret);
	uint64_t secret;
	uint32_t count;

	*ret_next = 0;
	if (area % AREA_BYTES != 0 || !view_read(view, area, &secret, sizeof(secret)) ||
	    secret != heap->secret || !view_word(view, next, ret_next) ||
	    !view_read(view, next + image_word_size(image), &count, sizeof(count))) {
		heap_damage_note(&heap->strangers, area);
		return NULL;
	}
	count = MIN(count, most_metas(image));
	TRY(array_append(&heap->areas, (struct memory_range){ area, area + AREA_BYTES }));
	for (uint64_t i = 0; i < count; i++)
		TRY(add_meta(heap, view, area + area_head(image) + meta_bytes(image) * i));
	return NULL;
}

DEFINE_COMPARE(compare_groups, struct musl_group, ASCENDING(start), DESCENDING(end),
	       ASCENDING(meta))

/* True if the other group lies in one slot of this group. */
static bool has_in_slot(const struct musl_group *group, const struct musl_group *other)
{
	uint64_t first = slot_start(group, 0);

	return other->start >= first &&
	       (other->start - first) / group->stride == (other->end - 1 - first) / group->stride &&
	       other->end <= group->end;
}

static unsigned int depth_of(const struct musl_heap *heap, uint32_t number)
{
	unsigned int depth = 0;

	for (; number != NO_PARENT; number = heap->groups.items[number].parent)
		depth++;
	return depth;
}

/* See which groups are in others, and leave out those that overlap otherwise. */
static void check_groups(struct musl_heap *heap)
{
	struct musl_group *groups = heap->groups.items;
	uint32_t kept = 0, parent = NO_PARENT;

	array_sort(&heap->groups, compare_groups);
	for (size_t i = 0; i < heap->groups.count; i++) {
		struct musl_group group = groups[i];

		while (parent != NO_PARENT && groups[parent].end <= group.start)
			parent = groups[parent].parent;
		if (parent != NO_PARENT && (!has_in_slot(&groups[parent], &group) ||
					    depth_of(heap, parent) == MOST_DEPTH)) {
			heap_damage_note(&heap->overlaps, group.start);
			continue;
		}
		if (parent == NO_PARENT)
			heap->bytes += group.end - group.start;
		group.parent = parent;
		groups[kept] = group;
		parent = kept++;
	}
	heap->groups.count = kept;
}

struct error *musl_read_groups(struct musl_heap *heap)
{
	struct view view = { heap->context.image };
	struct budget budget = { image_held_bytes(heap->context.image) / AREA_BYTES };
	uint64_t area;

	if (!view_word(&view, heap->head, &area))
		area = 0;
	while (area && budget_take(&budget)) {
		TRY(read_area(heap, &view, area, &area));
		if (budget.left % PROGRESS_STEP == 0)
			TRY(progress_check(heap->context.progress, 0));
	}
	heap->areas.count = memory_ranges_join(heap->areas.items, heap->areas.count);
	check_groups(heap);
	return NULL;
}

const struct musl_group *musl_find_slot(const struct musl_heap *heap, uint64_t address,
					unsigned int *ret_slot)
{
	const struct musl_group *groups = heap->groups.items;
	size_t above = LIST_ABOVE(groups, heap->groups.count, start, address);
	uint32_t number = above > 0 ? (uint32_t)above - 1 : NO_PARENT;

	while (number != NO_PARENT && address >= groups[number].end)
		number = groups[number].parent;
	if (number == NO_PARENT || address < slot_start(&groups[number], 0))
		return NULL;
	*ret_slot =
		(unsigned int)((address - slot_start(&groups[number], 0)) / groups[number].stride);
	return &groups[number];
}

struct adding {
	struct musl_heap *heap;
	struct block_sink *sink;
	struct view view;
	size_t next; /* group */
};

/* True if the header before the block belongs to that slot. */
static bool is_header(struct adding *adding, const struct musl_group *group, unsigned int slot,
		      uint64_t block, const uint8_t header[SLOT_HEADER])
{
	uint32_t wide = 0;
	uint64_t offset = header[2] | (uint64_t)header[3] << 8;

	if (header[0]) {
		if (!view_read(&adding->view, block - 8, &wide, sizeof(wide)))
			return false;
		offset += wide;
	}
	return (header[1] & SLOT_MASK) == slot && block == slot_start(group, 0) + UNIT * offset;
}

/* Find the start of the slot's block, and read its header. */
static bool read_header(struct adding *adding, uint64_t start, uint64_t *ret_block,
			uint8_t header[SLOT_HEADER])
{
	*ret_block = start;
	if (!view_read(&adding->view, start - SLOT_HEADER, header, SLOT_HEADER))
		return false;
	if (header[1] != MOVED)
		return true;
	*ret_block += UNIT * (header[2] | (uint64_t)header[3] << 8);
	return view_read(&adding->view, *ret_block - SLOT_HEADER, header, SLOT_HEADER);
}

/* A slot in use. *ret has the whole of it where its header is not right. */
static bool read_slot(struct adding *adding, const struct musl_group *group, unsigned int slot,
		      struct block *ret)
{
	uint64_t start = slot_start(group, slot), end = start + group->stride - SLOT_HEADER, block;
	uint8_t header[SLOT_HEADER];
	uint32_t spare;

	*ret = (struct block){ start, end - start, BLOCK_USED };
	if (!read_header(adding, start, &block, header) || block >= end ||
	    !is_header(adding, group, slot, block, header))
		return false;
	spare = header[1] >> 5;
	if (spare == SPARE_FIELD && !view_read(&adding->view, end - 4, &spare, sizeof(spare)))
		return false;
	if (spare > end - block)
		return false;
	ret->start = block;
	/* An allocation of 0 bytes still has an address. */
	ret->size = end - block - spare > 0 ? end - block - spare : 1;
	return true;
}

/* True if the slot has a group that was not read. */
static bool is_empty_group(struct adding *adding, uint64_t start)
{
	uint8_t header[SLOT_HEADER];

	return view_read(&adding->view, start - SLOT_HEADER, header, SLOT_HEADER) &&
	       header[1] >> 5 == SPARE_GROUP;
}

static struct error *add_slot(struct adding *adding, const struct musl_group *group,
			      unsigned int slot)
{
	uint64_t start = slot_start(group, slot);
	struct block block = { start, group->stride - SLOT_HEADER, BLOCK_FREE };

	if (!((group->available | group->freed) >> slot & 1)) {
		if (is_empty_group(adding, start))
			return NULL;
		if (!read_slot(adding, group, slot, &block))
			heap_damage_note(&adding->heap->headers, start);
	}
	return block_sink_add(adding->sink, block);
}

/* Add the next group, and those in its slots. */
static struct error *add_group(struct adding *adding)
{
	const struct musl_heap *heap = adding->heap;
	const struct musl_group *groups = heap->groups.items;
	const struct musl_group *group = &groups[adding->next++];

	for (unsigned int i = 0; i < group->slots; i++) {
		bool is_group = false;

		for (; adding->next < heap->groups.count &&
		       groups[adding->next].start < slot_start(group, i + 1);
		     is_group = true)
			TRY(add_group(adding));
		if (!is_group)
			TRY(add_slot(adding, group, i));
	}
	return NULL;
}

/*
 * The end of the row of groups that begins with first; skips those in slots. A group may leave the
 * end of its last page unused.
 */
static uint64_t find_region_end(const struct musl_heap *heap, size_t first)
{
	const struct musl_group *groups = heap->groups.items;
	uint64_t end = groups[first].end;

	for (size_t i = first + 1; i < heap->groups.count; i++) {
		if (groups[i].start > (end + PAGE - 1) / PAGE * PAGE)
			break;
		if (groups[i].start >= end)
			end = groups[i].end;
	}
	return end;
}

struct error *musl_add_blocks(struct musl_heap *heap, arena_number arena, struct block_sink *sink)
{
	struct adding adding = { heap, sink, { heap->context.image }, 0 };
	uint64_t end = 0;

	while (adding.next < heap->groups.count) {
		const struct musl_group *group = &heap->groups.items[adding.next];

		if (group->start >= end) {
			end = find_region_end(heap, adding.next);
			TRY(block_sink_region(sink, group->start, end, arena));
		}
		TRY(add_group(&adding));
		TRY(progress_check(heap->context.progress, group->end - group->start));
	}
	return NULL;
}
