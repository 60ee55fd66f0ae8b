#include "analyzer/heap/heaps.h"

#include "analyzer/base/array.h"
#include "analyzer/heap/index_side.h"
#include "analyzer/heap/sink.h"
#include "analyzer/heap/unsupported.h"

#include <assert.h>
#include <string.h>

struct heap_slot {
	struct heap *heap;
	ARRAY(struct memory_range) claims; /* its bookkeeping */
};

/* The allocators that were found. */
struct slots {
	struct heap_slot *list;
	size_t count;
	arena_number arena_count;
	struct owned_memory owned;
	struct nesting nesting;
	struct heap_context context;
	/* They were not needed yet, as the index was loaded. */
	bool asleep;
	struct findings repeated; /* of walking the heaps once more; dropped */
};

#define for_each_slot(slot, slots)                                                                \
	for (const struct heap_slot *slot = (slots)->list; slot < (slots)->list + (slots)->count; \
	     slot++)

/* An arena in a side file. */
struct kept_arena {
	uint64_t address, size, stated_size;
	uint64_t kind; /* of the allocator's */
	char allocator[16];
};

struct heaps {
	struct slots *slots;
	const struct kept_arena *arenas; /* NULL: the allocators tell */
	size_t arena_count;		 /* of these */
	struct allocation_index *index;
};

bool heap_has_arena_in(const struct heap *heap, uint64_t start, uint64_t end)
{
	array_for_each(arena, &heap->arenas)
		if (arena->address >= start && arena->address < end)
			return true;
	return false;
}

/* True if the module belongs to a heap that was found. */
static bool is_understood(const void *data, const struct module *module)
{
	const struct slots *slots = data;

	for_each_slot(slot, slots) {
		const struct allocator *allocator = slot->heap->allocator;

		if (allocator->lives_in &&
		    allocator->lives_in(slot->heap, module->start, module->end))
			return true;
	}
	return false;
}

/* A count of 0 must not hide that the heap may be elsewhere. */
static void report_heaps(const struct slots *slots, const struct heap_context *context)
{
	bool used = false;

	if (report_unsupported(context, is_understood, slots))
		return;
	for_each_slot(slot, slots)
		used |= !slot->heap->allocator->is_used ||
			slot->heap->allocator->is_used(slot->heap);
	if (slots->count == 0)
		report_no_heap(context);
	else if (!program_knows_modules(context->program))
		report_no_modules(context);
	else if (!used)
		findings_add(
			context->findings, FINDING_NOTE,
			"malloc was never called in this process: it allocated nothing, or has an allocator of its own");
}

/* The heap that the arena is one of. */
static struct heap *find_heap(const struct slots *slots, arena_number number)
{
	const struct heap_slot *slot = slots->list + slots->count - 1;

	while (slot->heap->first_arena > number)
		slot--;
	return slot->heap;
}

/*
 * Links that allocators left in used blocks; see the contract. What looks like one in the block of
 * another allocator is a reference.
 */
static unsigned int find_stale_links(const void *data, const struct allocation_index *index,
				     uint64_t start, const uint64_t words[4])
{
	const struct slots *slots = data;
	unsigned int mask = 0;

	for_each_slot(slot, slots) {
		const struct allocator *allocator = slot->heap->allocator;
		const struct heap_region *region = NULL;
		unsigned int own = 0;

		if (allocator->stale_links)
			own = allocator->stale_links(slot->heap, index, start, words);
		if (own && slots->count > 1)
			region = heap_region_find(index, start);
		if (slots->count == 1 || (region && find_heap(slots, region->arena) == slot->heap))
			mask |= own;
	}
	return mask;
}

/* Ask the allocator that owns the block how it rounds. */
static bool fits(const void *data, struct memory_range range, uint64_t wanted, bool exactly)
{
	const struct heaps *heaps = data;
	const struct heap_region *region = heap_region_find(heaps->index, range.start);
	uint64_t size = range.end - range.start;
	const struct allocator *allocator;

	if (!region)
		return rounds_like_malloc(size, wanted);
	allocator = heaps_arena_allocator(heaps, region->arena);
	return allocator->size_fits ? allocator->size_fits(size, wanted, exactly)
				    : size - wanted < allocator->alignment;
}

/* Set the functions by which the index asks allocators. */
static void set_questions(const struct heaps *heaps)
{
	bool anywhere = false;

	for (arena_number i = 0; i < heaps_arena_count(heaps); i++)
		anywhere |= heaps_arena_allocator(heaps, i)->links_lead_anywhere;
	allocation_set_stale_links(heaps->index, find_stale_links, heaps->slots, anywhere);
	allocation_set_rounding(heaps->index, fits, heaps);
	allocation_set_tag_bits(heaps->index, heaps->slots->context.program->ignored_bits);
}

/* Tell other allocators which memory belongs to the heap. */
static struct error *note_owned(struct slots *slots, const struct heap *heap)
{
	array_for_each(range, &heap->owned)
		TRY(array_append(&slots->owned.ranges, *range));
	slots->owned.ranges.count =
		memory_ranges_join(slots->owned.ranges.items, slots->owned.ranges.count);
	return NULL;
}

static void close_heap(struct heap *heap)
{
	heap->allocator->close(heap);
	arrays_release(&heap->owned, &heap->arenas);
	free(heap);
}

static struct error *open_heap(struct slots *slots, const struct allocator *allocator,
			       const struct heap_context *context)
{
	struct heap *heap = calloc(1, allocator->heap_size);
	bool found = false;
	struct error *error;

	TRY_MEMORY(heap);
	heap->allocator = allocator;
	arrays_use(context->account, &heap->owned, &heap->arenas);
	error = allocator->open(heap, context, &found);
	if (!error && found) {
		slots->list[slots->count++].heap = heap;
		return note_owned(slots, heap);
	}
	close_heap(heap);
	return error && error_code(error) != ERROR_INTERRUPTED
		       ? error_wrap(error, "%s", allocator->name)
		       : error;
}

static struct error *open_each(struct slots *slots)
{
	_cleanup_(image_advice_end) struct image_advice advice =
		image_advise_random(slots->context.image);
	struct heap_context context = slots->context;
	bool is_narrow = image_word_size(context.image) == 4;
	size_t kinds = 0;

	context.owned = &slots->owned;
	slots->owned.ranges.memory.account = context.account;
	while (allocators[kinds])
		kinds++;
	slots->list = calloc(kinds + 1, sizeof(*slots->list));
	TRY_MEMORY(slots->list);
	for (int is_last = false; is_last <= true; is_last++)
		for (size_t i = 0; i < kinds; i++)
			if (allocators[i]->is_last == is_last &&
			    (!is_narrow || allocators[i]->narrow))
				TRY(open_heap(slots, allocators[i], &context));
	return NULL;
}

/* Keep the claims that the allocator added to the sink, from first on. */
static struct error *keep_claims(struct heap_slot *slot, const struct block_sink *sink,
				 size_t first)
{
	slot->claims.memory.account = sink->account;
	for (size_t i = first; i < sink->claims.count; i++)
		TRY(array_append(&slot->claims, sink->claims.items[i]));
	return NULL;
}

/* Report the blocks and regions that the heap's walk refused. */
static void report_refused(const struct slots *slots, const struct heap *heap,
			   struct block_sink *sink)
{
	heap_damage_report(&sink->refused, slots->context.findings, heap->allocator->name,
			   "blocks or regions that overlap others or have no place in their region",
			   "they are not counted");
	sink->refused.count = 0;
}

static struct error *walk_heaps(struct slots *slots, struct block_sink *sink)
{
	const struct program *program = slots->context.program;

	block_sink_protect(sink, program->thread_memory, program->thread_memory_count);
	for (size_t i = 0; i < slots->count; i++) {
		struct heap *heap = slots->list[i].heap;
		size_t claims = sink->claims.count;

		assert(heap);
		heap->first_arena = slots->arena_count;
		block_sink_align(sink, heap->allocator->alignment);
		TRY(heap->allocator->walk(heap, sink));
		report_refused(slots, heap, sink);
		TRY(keep_claims(&slots->list[i], sink, claims));
		slots->arena_count += (arena_number)heap->arenas.count;
	}
	return NULL;
}

/* See which heaps are nested in others. */
static struct error *nest(struct slots *slots, struct block_sink *sink)
{
	_cleanup_(free) arena_number *firsts = calloc(slots->count + 1, sizeof(*firsts));

	TRY_MEMORY(firsts);
	slots->nesting.blocks.memory.account = sink->account;
	for (size_t i = 0; i < slots->count; i++)
		firsts[i] = slots->list[i].heap->first_arena;
	return slots->count > 1 ? nesting_resolve(sink, firsts, slots->count, &slots->nesting)
				: NULL;
}

static struct error *create(const struct heap_context *context, struct heaps **ret)
{
	_cleanup_(heaps_destroy) struct heaps *heaps = calloc(1, sizeof(*heaps));

	if (heaps)
		heaps->slots = calloc(1, sizeof(*heaps->slots));
	TRY_MEMORY(heaps && heaps->slots);
	heaps->slots->context = *context;
	*ret = take(heaps);
	return NULL;
}

static struct error *open_and_walk(struct slots *slots, struct block_sink *sink)
{
	progress_begin(slots->context.progress, "walking the heap", slots->context.image->size);
	TRY(open_each(slots));
	TRY(walk_heaps(slots, sink));
	return nest(slots, sink);
}

struct error *heaps_create(const struct heap_context *context, struct heaps **ret)
{
	_cleanup_(heaps_destroy) struct heaps *heaps = NULL;
	_cleanup_(block_sink_destroy) struct block_sink *sink = NULL;

	TRY(create(context, &heaps));
	TRY(block_sink_create(context->account, &sink));
	TRY(open_and_walk(heaps->slots, sink));
	TRY(allocation_index_create(sink, &heaps->index));
	report_heaps(heaps->slots, context);
	set_questions(heaps);
	*ret = take(heaps);
	return NULL;
}

struct error *heaps_save(const struct heaps *heaps, struct side_writer *writer)
{
	TRY(allocation_index_save(heaps->index, writer));
	side_writer_begin(writer, SIDE_ARENAS);
	for (arena_number i = 0; i < heaps_arena_count(heaps); i++) {
		struct arena arena = heaps_arena(heaps, i);
		const struct allocator *allocator = heaps_arena_allocator(heaps, i);
		struct kept_arena kept = { arena.address, arena.size, arena.stated_size,
					   (uint64_t)(arena.kind - allocator->arena_kinds) };

		snprintf(kept.allocator, sizeof(kept.allocator), "%s", allocator->name);
		TRY(side_writer_add(writer, &kept, sizeof(kept)));
	}
	return NULL;
}

/* The name may not end. */
static const struct allocator *find_allocator(const struct kept_arena *arena)
{
	size_t i = 0;

	while (allocators[i] &&
	       strncmp(allocators[i]->name, arena->allocator, sizeof(arena->allocator)) != 0)
		i++;
	return allocators[i];
}

static bool is_sound(const struct kept_arena *arena)
{
	const struct allocator *allocator = find_allocator(arena);
	uint64_t kinds = 0;

	while (allocator && allocator->arena_kinds[kinds].name)
		kinds++;
	return arena->kind < kinds;
}

static struct error *load_arenas(struct heaps *heaps, struct side_file *file)
{
	struct side_array array;

	TRY(side_file_find(file, SIDE_ARENAS, &array));
	heaps->arenas = array.bytes;
	heaps->arena_count = array.size / sizeof(*heaps->arenas);
	for (size_t i = 0; i < heaps->arena_count; i++)
		if (!is_sound(&heaps->arenas[i]))
			return error_create(ERROR_BAD_DUMP, "it is damaged");
	for (size_t i = 0; i < heap_region_count(heaps->index); i++)
		if (heap_region(heaps->index, i)->arena >= heaps->arena_count)
			return error_create(ERROR_BAD_DUMP, "it is damaged");
	return array.bytes ? NULL : error_create(ERROR_BAD_DUMP, "it is damaged");
}

struct error *heaps_load(const struct heap_context *context, struct side_file *file,
			 struct heaps **ret)
{
	_cleanup_(heaps_destroy) struct heaps *heaps = NULL;

	TRY(create(context, &heaps));
	TRY(allocation_index_load(file, context->account, &heaps->index));
	TRY(load_arenas(heaps, file));
	heaps->slots->asleep = true;
	set_questions(heaps);
	*ret = take(heaps);
	return NULL;
}

static void close_heaps(struct slots *slots)
{
	for (size_t i = 0; i < slots->count; i++) {
		close_heap(slots->list[i].heap);
		array_release(&slots->list[i].claims);
	}
	arrays_release(&slots->owned.ranges, &slots->nesting.blocks);
	free(slots->list);
	slots->list = NULL;
	slots->count = 0;
	slots->arena_count = 0;
}

void heaps_destroy(struct heaps *heaps)
{
	if (heaps->index)
		allocation_index_destroy(heaps->index);
	if (heaps->slots) {
		close_heaps(heaps->slots);
		findings_deinit(&heaps->slots->repeated);
		free(heaps->slots);
	}
	free(heaps);
}

struct error *heaps_wake(const struct heaps *heaps)
{
	struct slots *slots = heaps->slots;
	_cleanup_(block_sink_destroy) struct block_sink *sink = NULL;
	struct error *error;

	if (!slots->asleep)
		return NULL;
	slots->context.findings = &slots->repeated;
	error = block_sink_create(slots->context.account, &sink);
	if (!error)
		error = open_and_walk(slots, sink);
	/* Arenas are numbers, by which others have made room for them. */
	if (!error && slots->arena_count != heaps->arena_count)
		error = error_create(ERROR_BAD_DUMP,
				     "the arenas of the side file are not those of the core");
	if (error) {
		close_heaps(slots);
		return error;
	}
	slots->asleep = false;
	return NULL;
}

/* The allocators; none if opening them fails, for lack of memory or because of an interrupt. */
static const struct slots *awake(const struct heaps *heaps)
{
	struct error *error = heaps_wake(heaps);

	if (error)
		error_destroy(error);
	return heaps->slots;
}

const struct allocation_index *heaps_index(const struct heaps *heaps)
{
	return heaps->index;
}

void heaps_ignore_bits(const struct heaps *heaps, uint64_t bits)
{
	allocation_set_tag_bits(heaps->index, heaps->slots->context.program->ignored_bits | bits);
}

struct error *heaps_set_collectable(const struct heaps *heaps, const struct bitmap *set)
{
	return allocation_add_trait(heaps->index, TRAIT_COLLECTABLE, set,
				    heaps->slots->context.account);
}

bool heaps_tell(const struct heaps *heaps, uint64_t address, char *ret, size_t size)
{
	const struct slots *slots = awake(heaps);

	for_each_slot(slot, slots)
		if (slot->heap->allocator->tell &&
		    slot->heap->allocator->tell(slot->heap, address, ret, size))
			return true;
	return false;
}

bool heaps_tell_used(const struct heaps *heaps, uint64_t start, char *ret, size_t size)
{
	const struct slots *slots = awake(heaps);

	for_each_slot(slot, slots)
		if (slot->heap->allocator->tell_used &&
		    slot->heap->allocator->tell_used(slot->heap, start, ret, size))
			return true;
	return false;
}

enum more_roots heaps_more_roots(const struct heaps *heaps)
{
	const struct slots *slots = awake(heaps);
	enum more_roots most = MORE_ROOTS_NONE, more;

	for_each_slot(slot, slots) {
		if (!slot->heap->allocator->more_roots)
			continue;
		more = slot->heap->allocator->more_roots(slot->heap);
		most = more > most ? more : most;
	}
	return most;
}

void heaps_visit_spare(const struct heaps *heaps,
		       void (*visit)(void *data, const struct spare *spare), void *data)
{
	const struct slots *slots = awake(heaps);

	for_each_slot(slot, slots)
		if (slot->heap->allocator->spare)
			slot->heap->allocator->spare(slot->heap, heaps->index, visit, data);
}

struct error *heaps_visit_units(const struct heaps *heaps, unit_visit visit, void *data)
{
	TRY(heaps_wake(heaps));
	for_each_slot(slot, heaps->slots) {
		if (slot->heap->allocator->visit_units)
			TRY(slot->heap->allocator->visit_units(slot->heap, visit, data));
	}
	return NULL;
}

struct error *heaps_sort_free(const struct heaps *heaps)
{
	TRY(heaps_wake(heaps));
	progress_begin(heaps->slots->context.progress, "sorting what is free",
		       allocation_count(heaps->index));
	for_each_slot(slot, heaps->slots) {
		if (slot->heap->allocator->sort_free)
			TRY(slot->heap->allocator->sort_free(slot->heap, heaps->index));
	}
	return NULL;
}

const struct free_kind *heaps_free_kind(const struct heaps *heaps, allocation_id id, size_t *hint)
{
	const struct allocation_index *index = heaps->index;
	const struct bitmap *dead = allocation_having(index, TRAIT_DEAD);
	struct memory_range range = allocation_range_near(index, id, hint);
	arena_number arena = heap_region(index, *hint)->arena;
	const struct allocator *allocator = heaps_arena_allocator(heaps, arena);
	const struct slots *slots = awake(heaps);
	const struct heap *heap;
	struct block block = { range.start, range.end - range.start, allocation_state(index, id) };

	/* Asleep, for lack of memory: any kind will do. */
	if (arena >= slots->arena_count || !allocator->free_kind)
		return &allocator->free_kinds[0];
	if (dead && bitmap_get(dead, id))
		block.traits = TRAIT_DEAD;
	heap = find_heap(slots, arena);
	return &allocator->free_kinds[allocator->free_kind(heap, arena - heap->first_arena, id,
							   block)];
}

size_t heaps_arena_count(const struct heaps *heaps)
{
	return heaps->arenas ? heaps->arena_count : heaps->slots->arena_count;
}

struct arena heaps_arena(const struct heaps *heaps, arena_number number)
{
	const struct heap *heap;

	if (heaps->arenas) {
		const struct kept_arena *kept = &heaps->arenas[number];

		return (struct arena){ &find_allocator(kept)->arena_kinds[kept->kind],
				       kept->address, kept->size, kept->stated_size };
	}
	heap = find_heap(heaps->slots, number);
	return heap->arenas.items[number - heap->first_arena];
}

const struct allocator *heaps_arena_allocator(const struct heaps *heaps, arena_number number)
{
	if (heaps->arenas)
		return find_allocator(&heaps->arenas[number]);
	return find_heap(heaps->slots, number)->allocator;
}

size_t heaps_count(const struct heaps *heaps)
{
	return awake(heaps)->count;
}

static const struct heap_slot *slot_at(const struct heaps *heaps, size_t number)
{
	const struct slots *slots = awake(heaps);

	assert(slots->list && number < slots->count);
	return &slots->list[number];
}

const struct heap *heaps_heap(const struct heaps *heaps, size_t number)
{
	return slot_at(heaps, number)->heap;
}

const struct heap *heaps_heap_of(const struct heaps *heaps, arena_number arena)
{
	return find_heap(awake(heaps), arena);
}

struct error *heaps_find_noting(const struct heaps *heaps, const struct noting **ret,
				void **ret_owner)
{
	*ret = NULL;
	for (arena_number i = 0; i < heaps_arena_count(heaps); i++) {
		const struct allocator *allocator = heaps_arena_allocator(heaps, i);

		if (!allocator->noting || !allocator->noting->calls_of)
			continue;
		TRY(heaps_wake(heaps));
		*ret = allocator->noting;
		*ret_owner = find_heap(awake(heaps), i);
	}
	return NULL;
}

struct error *heaps_find(const struct heaps *heaps, const struct allocator *allocator,
			 const struct heap **ret)
{
	TRY(heaps_wake(heaps));
	*ret = NULL;
	for_each_slot(slot, heaps->slots)
		if (slot->heap->allocator == allocator)
			*ret = slot->heap;
	return NULL;
}

const struct memory_range *heaps_bookkeeping(const struct heaps *heaps, size_t number,
					     size_t *ret_count)
{
	const struct heap_slot *slot = slot_at(heaps, number);

	*ret_count = slot->claims.count;
	return slot->claims.items;
}

const struct outer_block *heaps_outer_block(const struct heaps *heaps, size_t number)
{
	const struct nesting *nesting = &awake(heaps)->nesting;

	return number < nesting->blocks.count ? &nesting->blocks.items[number] : NULL;
}

const struct outer_block *heaps_find_outer_block(const struct heaps *heaps, uint64_t address)
{
	return nesting_find(&awake(heaps)->nesting, address);
}

allocation_id heaps_find_header(const struct heaps *heaps, uint64_t address)
{
	const struct heap_region *region = heap_region_find(heaps->index, address);
	uint64_t unit, above;
	allocation_id id;

	if (!region || !heaps_arena_allocator(heaps, region->arena)->extent)
		return NO_ALLOCATION;
	unit = UINT64_C(1) << region->shift;
	above = (address + unit - 1) / unit * unit;
	id = allocation_find(heaps->index, above);
	return id != NO_ALLOCATION && allocation_start(heaps->index, id) == above ? id
										  : NO_ALLOCATION;
}
