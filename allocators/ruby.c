/*
 * The slots of Ruby's objects: MRI 2.7 to 4.0; and up to 3.2, what young ones hold.
 *
 * Nothing is needed but the dump's memory; see ruby/ruby.h for the layout. Slots may be collected;
 * what an object has apart from its slot is from malloc(). Ruby marks from memory of malloc(), too,
 * by functions of each type: so slots are not "managed", as those of a conservative collector are.
 */
#include "allocators/ruby/ruby.h"
#include "allocators/ruby/transient.h"

#include "analyzer/base/keep.h"
#include "analyzer/heap/sink.h"
#include "analyzer/program/symbols.h"

#include <inttypes.h>

enum { FREE_SLOT, FREE_PAGE, DROPPED, FREE_TRANSIENT };

static const struct free_kind free_kinds[] = {
	[FREE_SLOT] = { "free slots" },	  /* in a page with others in use */
	[FREE_PAGE] = { "free pages" },	  /* slots of a page without any */
	[DROPPED] = { "dropped pieces" }, /* of the transient heap; no object leads to them */
	[FREE_TRANSIENT] = { "free transient" }, { NULL },
};

/* One arena for all slots of a size, and one for the transient heap. */
static const struct arena_kind arena_kinds[] = {
	{ .name = "ruby-40", .group = "Slots of Ruby, 40 bytes" },
	{ .name = "ruby-80", .group = "Slots of Ruby, 80 bytes" },
	{ .name = "ruby-160", .group = "Slots of Ruby, 160 bytes" },
	{ .name = "ruby-320", .group = "Slots of Ruby, 320 bytes" },
	{ .name = "ruby-640", .group = "Slots of Ruby, 640 bytes" },
	[RUBY_SLOT_SIZES] = { .name = "ruby-transient",
			      .group = "Transient heap of Ruby",
			      .used = "used transient" },
	{ NULL },
};

struct ruby_heap {
	struct heap heap;
	struct heap_context context;
	struct ruby_pages pages;
	struct ruby_transients transients;
};

static const struct ruby_heap *of(const struct heap *heap)
{
	return (const struct ruby_heap *)heap;
}

static void ruby_close(struct heap *base)
{
	struct ruby_heap *heap = (struct ruby_heap *)base;

	arrays_release(&heap->pages.list, &heap->transients.list);
}

static struct error *ruby_open(struct heap *base, const struct heap_context *context, bool *ret)
{
	struct ruby_heap *heap = (struct ruby_heap *)base;

	if (!program_has_code(context->program, "ruby", "ruby_init"))
		return NULL;
	heap->context = *context;
	arrays_use(context->account, &heap->pages.list, &heap->transients.list);
	TRY(ruby_find_pages(context->image, &heap->pages));
	if (heap->pages.list.count > 0)
		TRY(ruby_find_transients(context->image, &heap->transients));
	*ret = heap->pages.list.count > 0;
	return NULL;
}

static unsigned int size_class(const struct ruby_page *page)
{
	return (unsigned int)__builtin_ctz(page->slot_size / RUBY_BASE_SLOT);
}

/* The page's relation to memory of other heaps. */
enum place { PLACE_APART, PLACE_NESTED, PLACE_OVERLAPS };

static enum place find_place(const struct block_sink *sink, uint64_t start, uint64_t end)
{
	struct block block;

	switch (block_sink_place(sink, start, end, &block)) {
	case SINK_APART:
		return PLACE_APART;
	case SINK_AROUND:
		return block.state == BLOCK_USED && end - block.start <= block.size
			       ? PLACE_NESTED
			       : PLACE_OVERLAPS;
	default:
		return PLACE_OVERLAPS;
	}
}

/* Leave out pages that are freed memory of other heaps, which were walked before. */
static struct error *drop_overlapping(struct ruby_heap *heap, struct block_sink *sink)
{
	size_t kept = 0;

	TRY(block_sink_order(sink));
	for (size_t i = 0; i < heap->pages.list.count; i++) {
		struct ruby_page page = heap->pages.list.items[i];
		enum place place = find_place(sink, page.address, ruby_slots_end(&page));
		uint64_t end = page.address + ruby_page_size(&page);

		if (place == PLACE_OVERLAPS)
			continue;
		if (place == PLACE_APART)
			TRY(block_sink_claim(sink, ruby_slots_end(&page), end));
		heap->pages.list.items[kept++] = page;
	}
	heap->pages.list.count = kept;
	return NULL;
}

static struct error *walk_page(struct view *view, struct ruby_page *page, arena_number arena,
			       struct block_sink *sink)
{
	uint64_t flags;

	TRY(block_sink_region(sink, page->address, ruby_slots_end(page), arena));
	for (uint32_t i = 0; i < page->slots; i++) {
		uint64_t slot = page->first_slot + (uint64_t)i * page->slot_size;
		struct block block = { slot, page->slot_size, BLOCK_FREE };

		/* A slot that is missing from the dump may be in use. */
		if (!view_word(view, slot, &flags) || (flags & RUBY_TYPE_BITS)) {
			block.state = BLOCK_USED;
			block.traits = TRAIT_COLLECTABLE;
			page->used++;
		}
		TRY(block_sink_add(sink, block));
	}
	return NULL;
}

static struct error *walk_transient(struct view *view, const struct ruby_transient *transient,
				    struct block_sink *sink)
{
	uint64_t end = transient->address + RUBY_TRANSIENT_BLOCK;
	uint64_t unused = transient->address + RUBY_TRANSIENT_HEAD + transient->used;
	struct ruby_piece piece;

	for (uint32_t at = 0; at < transient->used; at += RUBY_TRANSIENT_HEAD + piece.size) {
		struct block block = { .state = BLOCK_FREE };

		if (!ruby_read_piece(view, transient->address, at, &piece))
			break;
		block.start = piece.start;
		block.size = piece.size;
		if (ruby_piece_is_used(view, &piece))
			block.state = BLOCK_USED;
		if (piece.size > 0)
			TRY(block_sink_add(sink, block));
	}
	if (unused < end)
		TRY(block_sink_add(sink, (struct block){ unused, end - unused, BLOCK_FREE, 0 }));
	return NULL;
}

/* A row of blocks is a region. Those that are memory of other heaps are left out. */
static struct error *walk_transients(struct ruby_heap *heap, struct block_sink *sink)
{
	const arena_number arena = heap->heap.first_arena + (arena_number)heap->heap.arenas.count;
	struct view view = { heap->context.image };
	uint64_t end = 0;
	size_t count;

	array_keep(&heap->transients.list, piece, last,
		   find_place(sink, piece->address, piece->address + RUBY_TRANSIENT_BLOCK) !=
			   PLACE_OVERLAPS);
	count = heap->transients.list.count;
	array_for_each(transient, &heap->transients.list) {
		if (transient->address != end) {
			uint64_t size = RUBY_TRANSIENT_BLOCK;
			const struct ruby_transient *next = transient + 1;

			for (; next < heap->transients.list.items + count &&
			       next->address == transient->address + size;
			     next++)
				size += RUBY_TRANSIENT_BLOCK;
			end = transient->address;
			TRY(block_sink_region(sink, end, end + size, arena));
		}
		end += RUBY_TRANSIENT_BLOCK;
		TRY(walk_transient(&view, transient, sink));
	}
	return count > 0 ? array_append(&heap->heap.arenas,
					(struct arena){ &arena_kinds[RUBY_SLOT_SIZES],
							.size = count * RUBY_TRANSIENT_BLOCK })
			 : NULL;
}

static struct error *ruby_walk(struct heap *base, struct block_sink *sink)
{
	struct ruby_heap *heap = (struct ruby_heap *)base;
	struct view view = { heap->context.image };

	TRY(drop_overlapping(heap, sink));
	for (size_t i = 0; i < RUBY_SLOT_SIZES; i++)
		TRY(array_append(&base->arenas, (struct arena){ &arena_kinds[i] }));
	array_for_each(page, &heap->pages.list) {
		unsigned int number = size_class(page);

		base->arenas.items[number].size += ruby_page_size(page);
		TRY(walk_page(&view, page, base->first_arena + number, sink));
	}
	while (base->arenas.count > 1 && base->arenas.items[base->arenas.count - 1].size == 0)
		base->arenas.count--;
	return walk_transients(heap, sink);
}

/* The page that has the address, or NULL. */
static const struct ruby_page *find_page(const struct ruby_heap *heap, uint64_t address)
{
	const struct ruby_page *page =
		LIST_LAST(heap->pages.list.items, heap->pages.list.count, address, address);

	return page && address - page->address < ruby_page_size(page) ? page : NULL;
}

static unsigned int ruby_free_kind(const struct heap *base, size_t number, allocation_id id,
				   struct block block)
{
	const struct ruby_page *page = find_page(of(base), block.start);
	uint64_t end = block.start + block.size;

	if (base->arenas.items[number].kind == &arena_kinds[RUBY_SLOT_SIZES])
		return end % RUBY_TRANSIENT_BLOCK == 0 ? FREE_TRANSIENT : DROPPED;
	return page && page->used == 0 ? FREE_PAGE : FREE_SLOT;
}

static struct error *ruby_visit_units(const struct heap *base, unit_visit visit, void *data)
{
	static const struct unit_kind kind = { "page", .given_back = true };

	array_for_each(page, &of(base)->pages.list)
		TRY(visit(data, base->allocator,
			  &(struct heap_unit){ &kind, page->address, ruby_slots_end(page),
					       page->slot_size }));
	return NULL;
}

static bool ruby_tell(const struct heap *base, uint64_t address, char *ret, size_t size)
{
	const struct ruby_page *page = find_page(of(base), address);

	if (!page || address >= page->first_slot)
		return false;
	snprintf(ret, size, "the head of a page of Ruby, with slots of %" PRIu32 " bytes",
		 page->slot_size);
	return true;
}

/* Flags of objects, which say that a slot is used. */
static struct error *visit_page(struct view *view, const struct ruby_page *page,
				program_range_visitor *visit, void *data)
{
	enum { WORD = 8 };
	uint64_t heap_page, flags;

	if (!view_word(view, page->address, &heap_page))
		return NULL;
	TRY(visit(data, heap_page, WORD));
	for (uint64_t slot = page->first_slot; slot < ruby_slots_end(page); slot += page->slot_size)
		if (view_word(view, slot, &flags) && (flags & RUBY_TYPE_BITS))
			TRY(visit(data, slot, WORD));
	return NULL;
}

static struct error *visit_transient(struct view *view, const struct ruby_transient *transient,
				     program_range_visitor *visit, void *data)
{
	enum { OWNER = 8 };
	struct ruby_piece piece;

	TRY(visit(data, transient->address, RUBY_TRANSIENT_HEAD));
	for (uint32_t at = 0;
	     at < transient->used && ruby_read_piece(view, transient->address, at, &piece);
	     at += RUBY_TRANSIENT_HEAD + piece.size)
		TRY(visit(data, piece.start - RUBY_TRANSIENT_HEAD, OWNER));
	return NULL;
}

static struct error *ruby_visit_structure(const struct heap *base, program_range_visitor *visit,
					  void *data)
{
	struct view view = { of(base)->context.image };

	array_for_each(page, &of(base)->pages.list)
		TRY(visit_page(&view, page, visit, data));
	array_for_each(transient, &of(base)->transients.list)
		TRY(visit_transient(&view, transient, visit, data));
	return NULL;
}

const struct allocator allocator_ruby = {
	.name = "ruby",
	.summary = "slots of Ruby's objects, 2.7 to 4.0, and the transient heap",
	.is_private = true,
	.is_last = true,
	.alignment = 8,
	.arena_kinds = arena_kinds,
	.free_kinds = free_kinds,
	.heap_size = sizeof(struct ruby_heap),
	FILL_SLOTS(ruby, open, close, walk, free_kind, visit_units, tell, visit_structure),
};
