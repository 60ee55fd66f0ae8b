/*
 * The Boehm-Demers-Weiser collector (bdwgc, libgc), 7.2 and later.
 *
 * Nothing is needed but the dump's memory: no symbols, no debug information. See boehm/boehm.h for
 * the layouts, boehm/search.c for how collectors are found, boehm/objects.c for what makes an
 * object free.
 */
#include "allocators/boehm/boehm.h"

#include "analyzer/heap/debug_header.h"
#include "analyzer/program/symbols.h"

#include <inttypes.h>

static void boehm_close(struct heap *base)
{
	struct boehm_heap *heap = (struct boehm_heap *)base;

	list_for_each(collector, heap->collectors, heap->collector_count) {
		arrays_release(&collector->blocks, &collector->indexes, &collector->threads,
			       &collector->spares, &collector->thread_lists);
		bitmap_deinit(&collector->listed);
		bitmap_deinit(&collector->cached);
	}
	free(heap->collectors);
}

static struct error *read_collector(struct boehm_heap *heap, struct collector *collector)
{
	boehm_calibrate(collector, heap->context.image);
	TRY(boehm_read_lists(collector, &heap->context));
	boehm_find_cycle(collector, &heap->context);
	TRY(boehm_find_spares(collector, &heap->context));
	return boehm_add_owned(collector, &heap->heap.owned);
}

static struct error *boehm_open(struct heap *base, const struct heap_context *context, bool *ret)
{
	struct boehm_heap *heap = (struct boehm_heap *)base;

	heap->context = *context;
	TRY(boehm_search(heap));
	_cleanup_(image_advice_end) struct image_advice advice =
		image_advise_in_order(context->image);
	for (size_t i = 0; i < heap->collector_count; i++)
		TRY(read_collector(heap, &heap->collectors[i]));
	*ret = heap->collector_count > 0;
	return NULL;
}

/* Report what limits the trust in the states of objects. */
static void report(const struct collector *collector, struct findings *findings)
{
	if (collector->bad_slots > 0)
		findings_add(findings, FINDING_INCOMPLETE,
			     "blocks of the collector's heap with no sound header: %" PRIu64
			     "; their objects are not counted",
			     collector->bad_slots);
	if (collector->undecided > 0)
		findings_add(findings, FINDING_INCOMPLETE,
			     "the core was taken during a collection: of its objects, %" PRIu64
			     " count as used that may be dead already",
			     collector->undecided);
	else if (collector->is_collecting)
		findings_add(findings, FINDING_NOTE, "the core was taken during a collection");
}

static const struct arena_kind boehm_arena_kinds[] = {
	{ .name = "collected", .group = "Arenas of collectors" },
	{ NULL },
};

static struct error *boehm_walk(struct heap *base, struct block_sink *sink)
{
	struct boehm_heap *heap = (struct boehm_heap *)base;

	block_sink_align(sink, 2 * image_word_size(heap->context.image));
	for (size_t i = 0; i < heap->collector_count; i++) {
		struct collector *collector = &heap->collectors[i];
		struct arena arena = {
			.kind = boehm_arena_kinds,
			.address = collector->freelists ? collector->freelists : collector->arrays,
		};

		TRY(boehm_claim_bookkeeping(collector, &heap->context, sink));
		TRY(boehm_add_objects(collector, &heap->context,
				      base->first_arena + (arena_number)i, sink));
		arena.size = collector->size;
		TRY(array_append(&base->arenas, arena));
		report(collector, heap->context.findings);
	}
	return NULL;
}

enum { FREE_CACHED, FREE_LIST, FREE_PAGES, FREE_DEAD };

static const struct free_kind boehm_free_kinds[] = {
	[FREE_CACHED] = { "tcache" },	     /* a thread's list */
	[FREE_LIST] = { "free list" },	     /* of one size */
	[FREE_PAGES] = { "free pages" },     /* whole ones, for any size */
	[FREE_DEAD] = { "dead, not swept" }, /* the collector has still to sweep it */
	{ NULL },
};

static unsigned int boehm_free_kind(const struct heap *base, size_t number, allocation_id id,
				    struct block block)
{
	const struct boehm_heap *heap = (const struct boehm_heap *)base;
	const struct collector *collector = &heap->collectors[number];
	const struct boehm_block *found;
	size_t hint = 0;

	if (block.traits & TRAIT_DEAD)
		return FREE_DEAD;
	if (block.state == BLOCK_CACHED)
		return FREE_CACHED;
	if (block.size < block_bytes(collector))
		return FREE_LIST;
	found = boehm_find_block(collector, block.start, &hint);
	return found && is_free(found) ? FREE_PAGES : FREE_LIST;
}

/* Free blocks whose memory it gave back to the system, but not their addresses. */
static bool boehm_reserved(const struct heap *base, size_t number, struct memory_range *ret)
{
	const struct boehm_heap *heap = (const struct boehm_heap *)base;

	list_for_each(collector, heap->collectors, heap->collector_count) {
		if (number < collector->blocks.count) {
			const struct boehm_block *block = &collector->blocks.items[number];

			*ret = (struct memory_range){ block->start, block->start };
			if (is_unmapped(block))
				ret->end = block_end(collector, block);
			return true;
		}
		number -= collector->blocks.count;
	}
	return false;
}

/* Visit the free memory that GC_gcollect_and_unmap() would unmap without freeing more. */
static void boehm_visit_spare(const struct heap *base, const struct allocation_index *index,
			      void (*visit)(void *data, const struct spare *spare), void *data)
{
	const struct boehm_heap *heap = (const struct boehm_heap *)base;

	for (size_t i = 0; i < heap->collector_count; i++) {
		const struct collector *collector = &heap->collectors[i];
		const struct boehm_block *blocks = collector->blocks.items;

		for (size_t j = 0; j < collector->blocks.count; j++) {
			struct spare spare = {
				.start = page_above(blocks[j].start),
				.end = page_below(block_end(collector, &blocks[j])),
				.kind = SPARE_INSIDE,
				.arena = base->first_arena + (arena_number)i,
			};

			if (is_free(&blocks[j]) && !is_unmapped(&blocks[j]) &&
			    spare.start < spare.end)
				visit(data, &spare);
		}
	}
}

/* Visit blocks of small objects. A larger object has its blocks for itself. */
static struct error *boehm_visit_units(const struct heap *base, unit_visit visit, void *data)
{
	static const struct unit_kind kind = { "block", .given_back = true };
	const struct boehm_heap *heap = (const struct boehm_heap *)base;

	list_for_each(collector, heap->collectors, heap->collector_count)
		array_for_each(block, &collector->blocks)
			if (is_small(collector, block))
				TRY(visit(data, base->allocator,
					  &(struct heap_unit){ &kind, block->start,
							       block_end(collector, block),
							       block->size }));
	return NULL;
}

/* One byte may be added, so that the end of an object is in it; large ones are whole blocks. */
static bool boehm_size_fits(uint64_t size, uint64_t wanted, bool exactly)
{
	return exactly ? size - wanted <= LARGEST_GRANULE : rounds_like_malloc(size, wanted);
}

static bool boehm_lives_in(const struct heap *base, uint64_t start, uint64_t end)
{
	const struct boehm_heap *heap = (const struct boehm_heap *)base;

	for (size_t i = 0; i < heap->collector_count; i++)
		if (heap->collectors[i].arrays >= start && heap->collectors[i].arrays < end)
			return true;
	return false;
}

/*
 * True if the function is the collector's own default. Its name is local, so a stripped library has
 * no symbol for it; but then the program is another module.
 */
static bool is_default(const struct module *module, uint64_t function)
{
	uint64_t known;

	if (function == 0)
		return true;
	if (module_find_function(module, "GC_default_push_other_roots", &known))
		return function == known;
	return function - module->start < module->end - module->start;
}

/* True if the objects of any block are marked by a procedure of their kind. */
static bool has_procedures(const struct heap_context *context, const struct collector *collector)
{
	/* Tags of a descriptor are its lower two bits, from 7.2 to 8.3. */
	enum { TAGS = 3, TAG_PROCEDURE = 2 };
	uint64_t descriptor;

	array_for_each(block, &collector->blocks) {
		if (!is_free(block) && !block->pointerless && block->kind >= KIND_FIRST_OWN &&
		    image_read_word(context->image,
				    block->header + words(collector, HEADER_DESCRIPTOR),
				    &descriptor) &&
		    (descriptor & TAGS) == TAG_PROCEDURE)
			return true;
	}
	return false;
}

static enum more_roots find_more_roots(const struct heap_context *context,
				       const struct collector *collector)
{
	const struct module *module = program_find_module(context->program, collector->start);
	uint64_t variable, function;

	if (has_procedures(context, collector))
		return MORE_ROOTS_CALLBACK;
	if (!module || !module_find_variable(module, "GC_push_other_roots", &variable) ||
	    !image_read_word(context->image, variable, &function))
		return MORE_ROOTS_UNKNOWN;
	return is_default(module, function) ? MORE_ROOTS_NONE : MORE_ROOTS_CALLBACK;
}

/*
 * Says whether the program marks memory by functions of its own: the one in the variable
 * GC_push_other_roots, which the collector calls at each collection, or those for the objects of a
 * kind. Guile marks the stack of its machine by the latter.
 */
static enum more_roots boehm_more_roots(const struct heap *heap)
{
	const struct boehm_heap *boehm = (const struct boehm_heap *)heap;
	enum more_roots most = MORE_ROOTS_NONE;

	for (size_t i = 0; i < boehm->collector_count; i++) {
		enum more_roots more = find_more_roots(&boehm->context, &boehm->collectors[i]);

		if (more > most)
			most = more;
	}
	return most;
}

/*
 * Read the header that GC_debug_malloc() puts before an object in programs compiled with
 * -DGC_DEBUG: file, line, size and a mark, which is a constant combined with the object's own
 * address (struct oh in bdwgc's include/private/dbg_mlc.h, the same from 7.2 on).
 */
static bool boehm_read_debug_header(const struct image *image, uint64_t start,
				    struct debug_header *ret)
{
	static const uint64_t MARK = 0xFEDCEDCBFEDCEDCB;
	const uint64_t size = UINT64_C(4) * image_word_size(image);
	uint64_t words[4], mark = image_word_size(image) == sizeof(MARK) ? MARK : (uint32_t)MARK;

	if (!image_read_words(image, start, words, 4) || (words[3] ^ mark) != start + size)
		return false;
	*ret = (struct debug_header){ words[0], (uint32_t)words[1], start + size, words[2] };
	return true;
}

const struct allocator allocator_boehm = {
	.name = "boehm",
	.summary = "the Boehm-Demers-Weiser collector, 7.2 and later",
	.is_private = true,
	.narrow = true,
	.alignment = LARGEST_GRANULE,
	.heap_size = sizeof(struct boehm_heap),
	.spare = boehm_visit_spare,
	FILL_SLOTS(boehm, open, walk, tell, arena_kinds, free_kinds, free_kind, visit_units,
		   reserved, size_fits, lives_in, tell_used, more_roots, close, read_debug_header,
		   visit_structure),
};
