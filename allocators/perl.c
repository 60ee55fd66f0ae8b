/*
 * The values of Perl 5, in arenas within blocks of malloc(): see perl/perl.h.
 *
 * Neither free slots nor what tables lead to is a root: a value is in use as long as something
 * other than its arena refers to it.
 */
#include "allocators/perl/perl.h"

#include "analyzer/base/keep.h"
#include "analyzer/heap/sink.h"
#include "analyzer/program/symbols.h"

#include <inttypes.h>

enum { ARENA_HEADS, ARENA_BODIES, ARENA_ENTRIES, ARENAS };

static const struct free_kind free_kinds[] = { { "free slots" }, { NULL } };

static const struct arena_kind arena_kinds[ARENAS + 1] = {
	[ARENA_HEADS] = { .name = "perl-values", .group = "Values of Perl" },
	[ARENA_BODIES] = { .name = "perl-bodies", .group = "Bodies of Perl's values" },
	[ARENA_ENTRIES] = { .name = "perl-entries", .group = "Entries of Perl's hashes" },
	{ NULL },
};

struct perl_heap {
	struct heap heap;
	struct heap_context context;
	struct perl_arenas arenas;
};

static const struct perl_heap *of(const struct heap *heap)
{
	return (const struct perl_heap *)heap;
}

const struct perl_arenas *perl_heap_arenas(const struct heap *heap)
{
	return &of(heap)->arenas;
}

static void perl_close(struct heap *base)
{
	struct perl_heap *heap = (struct perl_heap *)base;

	perl_arenas_deinit(&heap->arenas);
}

static struct error *perl_open(struct heap *base, const struct heap_context *context, bool *ret)
{
	struct perl_heap *heap = (struct perl_heap *)base;

	if (!program_has_code(context->program, "perl", "perl_construct"))
		return NULL;
	heap->context = *context;
	arrays_use(context->account, &heap->arenas.list, &heap->arenas.tables);
	TRY(perl_find_arenas(context->image, &heap->arenas));
	*ret = heap->arenas.list.count > 0;
	return NULL;
}

/*
 * True if the arena lies in one used block of a heap that was walked before. The rest of that block
 * behind it is unused.
 */
static bool is_in_block(const struct block_sink *sink, struct perl_arena *arena)
{
	uint64_t start = arena->address;
	struct block block;

	if (block_sink_place(sink, start, start + arena->size, &block) != SINK_AROUND)
		return false;
	arena->room = block.size;
	return block.state == BLOCK_USED && block.start == start && block.size >= arena->size;
}

/* Leave out what was freed, as by an interpreter that ended. */
static struct error *drop_freed(struct perl_heap *heap, struct block_sink *sink)
{
	TRY(block_sink_order(sink));
	array_keep(&heap->arenas.list, arena, last, is_in_block(sink, arena));
	return NULL;
}

static unsigned int number_of(const struct perl_arena *arena)
{
	return arena->kind == PERL_FREE	     ? ARENA_HEADS
	       : arena->kind == PERL_ENTRIES ? ARENA_ENTRIES
					     : ARENA_BODIES;
}

/* Doubtful slots stay outside of the heap, and so become roots. */
static struct error *walk_arena(const struct perl_arena *arena, arena_number number,
				struct block_sink *sink)
{
	uint64_t end = arena->address + arena->room;
	bool in_region = false;

	for (uint32_t i = 0; i < arena->size / arena->slot; i++) {
		uint64_t start = arena->address + (uint64_t)i * arena->slot;
		bool is_used = perl_bit(arena->claimed, i);

		if (perl_bit(arena->doubtful, i)) {
			if (in_region)
				block_sink_cut(sink, start);
			in_region = false;
			continue;
		}
		if (!in_region)
			TRY(block_sink_region(sink, start, end, number));
		in_region = true;
		/* The first head is a link. */
		if (i > 0 || arena->kind != PERL_FREE)
			TRY(block_sink_add(sink,
					   (struct block){ start, arena->slot,
							   is_used ? BLOCK_USED : BLOCK_FREE }));
	}
	return NULL;
}

static struct error *perl_walk(struct heap *base, struct block_sink *sink)
{
	struct perl_heap *heap = (struct perl_heap *)base;

	TRY(drop_freed(heap, sink));
	perl_claim_slots(heap->context.image, &heap->arenas);
	for (size_t i = 0; i < ARENAS; i++)
		TRY(array_append(&base->arenas, (struct arena){ &arena_kinds[i] }));
	array_for_each(arena, &heap->arenas.list) {
		unsigned int number = number_of(arena);

		if (arena->slot == 0)
			continue;
		base->arenas.items[number].size += arena->size;
		TRY(walk_arena(arena, base->first_arena + number, sink));
	}
	if (heap->arenas.damaged > 0)
		findings_add(
			heap->context.findings, FINDING_NOTE,
			"values of Perl that make no sense, as if one was being made or freed: %" PRIu64
			"; they are not counted, and what they refer to is not leaked",
			heap->arenas.damaged);
	return NULL;
}

static bool perl_tell(const struct heap *base, uint64_t address, char *ret, size_t size)
{
	const struct perl_arena *arena = perl_find_arena(&of(base)->arenas, address);

	if (!arena || arena->kind != PERL_FREE || address - arena->address >= PERL_HEAD)
		return false;
	snprintf(ret, size, "the link between two arenas of Perl's values");
	return true;
}

static bool perl_tell_used(const struct heap *heap, uint64_t start, char *ret, size_t size)
{
	array_for_each(table, &of(heap)->arenas.tables) {
		if (table->start != start)
			continue;
		snprintf(ret, size, "a table of Perl's arenas");
		return true;
	}
	return false;
}

/* The head of an arena, and of each value that makes sense; of free ones only that they are. */
static struct error *visit_heads(struct view *view, const struct perl_arena *arena,
				 program_range_visitor *visit, void *data)
{
	enum { COUNT = 8, FLAGS = 12, HALF = 4 };
	struct perl_head head;

	TRY(visit(data, arena->address, COUNT + sizeof(uint64_t)));
	for (uint32_t i = 1; i < arena->size / arena->slot; i++) {
		uint64_t start = arena->address + (uint64_t)i * arena->slot;

		if (!perl_read_head(view, start, &head))
			continue;
		if (head.flags != PERL_FREE && perl_type(&head) < PERL_TYPES)
			TRY(visit(data, start + COUNT, FLAGS + HALF - COUNT));
		else if (head.flags == PERL_FREE)
			TRY(visit(data, start + FLAGS, HALF));
	}
	return NULL;
}

/* Lengths of keys that are values: of them, the element of a tied hash is known. */
static struct error *visit_entries(struct view *view, const struct perl_arena *arena,
				   program_range_visitor *visit, void *data)
{
	for (uint32_t i = 0; i < arena->size / arena->slot; i++) {
		uint64_t entry = arena->address + (uint64_t)i * arena->slot, key;

		if (perl_key_is_value(view, entry, &key))
			TRY(visit(data, key + sizeof(uint32_t), sizeof(uint32_t)));
	}
	return NULL;
}

static struct error *perl_visit_structure(const struct heap *heap, program_range_visitor *visit,
					  void *data)
{
	const struct perl_arenas *arenas = &of(heap)->arenas;
	struct view view = { of(heap)->context.image };

	array_for_each(table, &arenas->tables)
		TRY(visit(data, table->start, table->end - table->start));
	array_for_each(arena, &arenas->list) {
		if (arena->kind == PERL_FREE)
			TRY(visit_heads(&view, arena, visit, data));
		else if (arena->kind == PERL_ENTRIES && arena->slot > 0)
			TRY(visit_entries(&view, arena, visit, data));
	}
	return NULL;
}

const struct allocator allocator_perl = {
	.name = "perl",
	.summary = "values of Perl 5, within blocks of malloc()",
	.is_private = true,
	.is_last = true,
	.alignment = 8,
	.arena_kinds = arena_kinds,
	.free_kinds = free_kinds,
	.heap_size = sizeof(struct perl_heap),
	FILL_SLOTS(perl, open, close, walk, tell, tell_used, visit_structure),
};
