#include "analyzer/heap/heaps.h"

#include "analyzer/base/array.h"
#include "analyzer/heap/index_side.h"
#include "analyzer/heap/sink.h"
#include "analyzer/heap/unsupported.h"

#include <assert.h>
#include <string.h>

struct heap_slot {
	struct heap *heap;
	arena_number first;
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
	struct findings repeated; /* what they said when that was made */
};

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

/* Whether a heap that was found is the module's. */
static bool is_understood(const void *data, const struct module *module)
{
	const struct slots *slots = data;

	for (size_t i = 0; i < slots->count; i++) {
		const struct heap *heap = slots->list[i].heap;

		if (heap->allocator->lives_in &&
		    heap->allocator->lives_in(heap, module->start, module->end))
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
	for (size_t i = 0; i < slots->count; i++) {
		const struct heap *heap = slots->list[i].heap;

		used |= !heap->allocator->is_used || heap->allocator->is_used(heap);
	}
	if (slots->count == 0)
		report_no_heap(context);
	else if (!used)
		findings_add(
			context->findings, FINDING_NOTE,
			"malloc was never called in this process: it allocated nothing, or by means of its own");
}

/* Whether the block that starts there is of the heap in that slot. */
static bool is_block_of(const struct slots *slots, size_t slot,
			const struct allocation_index *index, uint64_t start)
{
	const struct heap_region *region;

	if (slots->count == 1)
		return true;
	region = heap_region_find(index, start);
	return region && region->arena >= slots->list[slot].first &&
	       (slot + 1 == slots->count || region->arena < slots->list[slot + 1].first);
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

	for (size_t i = 0; i < slots->count; i++) {
		const struct heap *heap = slots->list[i].heap;
		unsigned int own = 0;

		if (heap->allocator->stale_links)
			own = heap->allocator->stale_links(heap, index, start, words);
		if (own && is_block_of(slots, i, index, start))
			mask |= own;
	}
	return mask;
}

static void set_stale_links(const struct heaps *heaps)
{
	bool anywhere = false;

	for (arena_number i = 0; i < heaps_arena_count(heaps); i++)
		anywhere |= heaps_arena_allocator(heaps, i)->links_lead_anywhere;
	allocation_set_stale_links(heaps->index, find_stale_links, heaps->slots, anywhere);
}

/* As the allocator rounds whose block it is. */
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

/* What the index asks allocators for. */
static void set_questions(const struct heaps *heaps)
{
	set_stale_links(heaps);
	allocation_set_rounding(heaps->index, fits, heaps);
}

/* Let the next ones know what memory is the heap's. */
static struct error *note_owned(struct slots *slots, const struct heap *heap)
{
	const struct memory_range *ranges;
	size_t count;

	if (!heap->allocator->owned)
		return NULL;
	ranges = heap->allocator->owned(heap, &count);
	return owned_memory_add(&slots->owned, ranges, count);
}

static struct error *open_each(struct slots *slots)
{
	struct heap_context context = slots->context;
	size_t kinds = 0;

	context.owned = &slots->owned;
	slots->owned.ranges.memory.account = context.account;
	while (allocators[kinds])
		kinds++;
	slots->list = calloc(kinds + 1, sizeof(*slots->list));
	if (!slots->list)
		return &error_no_memory;
	for (size_t i = 0; i < kinds; i++) {
		struct heap *heap = NULL;
		struct error *error = allocators[i]->open(&context, &heap);

		if (error)
			return error_code(error) == ERROR_INTERRUPTED
				       ? error
				       : error_wrap(error, "%s", allocators[i]->name);
		if (!heap)
			continue;
		heap->allocator = allocators[i];
		slots->list[slots->count++].heap = heap;
		error = note_owned(slots, heap);
		if (error)
			return error;
	}
	return NULL;
}

static struct error *open_heaps(struct slots *slots)
{
	struct error *error;

	image_advise_random(slots->context.image, true);
	error = open_each(slots);
	image_advise_random(slots->context.image, false);
	return error;
}

/* Keep the claims that the allocator added to the sink, from first on. */
static struct error *keep_claims(struct heap_slot *slot, const struct block_sink *sink,
				 size_t first)
{
	const struct memory_range *claims = sink->claims.items;
	size_t count = sink->claims.count - first;
	struct error *error;

	slot->claims.memory.account = sink->account;
	error = array_resize(&slot->claims, count);
	if (error || count == 0)
		return error;
	memcpy(slot->claims.items, claims + first, count * sizeof(*claims));
	slot->claims.count = count;
	return NULL;
}

static struct error *walk_heaps(struct slots *slots, struct block_sink *sink)
{
	struct error *error = NULL;

	for (size_t i = 0; i < slots->count && !error; i++) {
		struct heap *heap = slots->list[i].heap;
		size_t claims = sink->claims.count;

		assert(heap);
		slots->list[i].first = slots->arena_count;
		block_sink_align(sink, heap->allocator->alignment);
		error = heap->allocator->walk(heap, slots->arena_count, sink);
		if (!error)
			error = keep_claims(&slots->list[i], sink, claims);
		slots->arena_count += (arena_number)heap->allocator->arena_count(heap);
	}
	return error;
}

/* See which heaps are nested in others. */
static struct error *nest(struct slots *slots, struct block_sink *sink)
{
	_cleanup_(free) arena_number *firsts = calloc(slots->count + 1, sizeof(*firsts));

	if (!firsts)
		return &error_no_memory;
	slots->nesting.blocks.account = sink->account;
	for (size_t i = 0; i < slots->count; i++)
		firsts[i] = slots->list[i].first;
	return slots->count > 1 ? nesting_resolve(sink, firsts, slots->count, &slots->nesting)
				: NULL;
}

static struct error *create(const struct heap_context *context, struct heaps **ret)
{
	_cleanup_(heaps_destroy) struct heaps *heaps = calloc(1, sizeof(*heaps));

	if (heaps)
		heaps->slots = calloc(1, sizeof(*heaps->slots));
	if (!heaps || !heaps->slots)
		return &error_no_memory;
	heaps->slots->context = *context;
	*ret = take(heaps);
	return NULL;
}

static struct error *open_and_walk(struct slots *slots, struct block_sink *sink)
{
	struct error *error;

	progress_begin(slots->context.progress, "walking the heap",
		       image_size(slots->context.image));
	error = open_heaps(slots);
	if (!error)
		error = walk_heaps(slots, sink);
	return error ? error : nest(slots, sink);
}

struct error *heaps_create(const struct heap_context *context, struct heaps **ret)
{
	_cleanup_(heaps_destroy) struct heaps *heaps = NULL;
	_cleanup_(block_sink_destroy) struct block_sink *sink = NULL;
	struct error *error = create(context, &heaps);

	if (!error)
		error = block_sink_create(context->account, &sink);
	if (!error)
		error = open_and_walk(heaps->slots, sink);
	if (!error)
		error = allocation_index_create(sink, &heaps->index);
	if (error)
		return error;
	report_heaps(heaps->slots, context);
	set_questions(heaps);
	*ret = take(heaps);
	return NULL;
}

struct error *heaps_save(const struct heaps *heaps, struct side_writer *writer)
{
	struct error *error = allocation_index_save(heaps->index, writer);

	side_writer_begin(writer, SIDE_ARENAS);
	for (arena_number i = 0; i < heaps_arena_count(heaps) && !error; i++) {
		struct arena arena = heaps_arena(heaps, i);
		const struct allocator *allocator = heaps_arena_allocator(heaps, i);
		struct kept_arena kept = { arena.address, arena.size, arena.stated_size,
					   (uint64_t)(arena.kind - allocator->arena_kinds) };

		snprintf(kept.allocator, sizeof(kept.allocator), "%s", allocator->name);
		error = side_writer_add(writer, &kept, sizeof(kept));
	}
	return error;
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
	struct error *error = side_file_find(file, SIDE_ARENAS, &array);

	if (error)
		return error;
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
	struct error *error = create(context, &heaps);

	if (!error)
		error = allocation_index_load(file, context->account, &heaps->index);
	if (!error)
		error = load_arenas(heaps, file);
	if (error)
		return error;
	heaps->slots->asleep = true;
	set_questions(heaps);
	*ret = take(heaps);
	return NULL;
}

static void close_heaps(struct slots *slots)
{
	for (size_t i = 0; i < slots->count; i++) {
		struct heap *heap = slots->list[i].heap;

		heap->allocator->close(heap);
		array_release(&slots->list[i].claims);
	}
	array_release(&slots->owned.ranges);
	nesting_deinit(&slots->nesting);
	free(slots->list);
	slots->owned = (struct owned_memory){ 0 };
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
				     "the side file tells of other arenas than the core");
	if (error) {
		close_heaps(slots);
		return error;
	}
	slots->asleep = false;
	return NULL;
}

/*
 * The allocators, which are there as a rule. If they cannot be had, for want of memory or as nobody
 * wants to wait for them, there are none.
 */
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

bool heaps_tell(const struct heaps *heaps, uint64_t address, char *ret, size_t size)
{
	const struct slots *slots = awake(heaps);

	for (size_t i = 0; i < slots->count; i++) {
		const struct heap *heap = slots->list[i].heap;

		if (heap->allocator->tell && heap->allocator->tell(heap, address, ret, size))
			return true;
	}
	return false;
}

enum more_roots heaps_more_roots(const struct heaps *heaps)
{
	const struct slots *slots = awake(heaps);
	enum more_roots most = MORE_ROOTS_NONE;

	for (size_t i = 0; i < slots->count; i++) {
		const struct heap *heap = slots->list[i].heap;
		enum more_roots more = heap->allocator->more_roots
					       ? heap->allocator->more_roots(heap)
					       : MORE_ROOTS_NONE;

		if (more > most)
			most = more;
	}
	return most;
}

bool heaps_tell_used(const struct heaps *heaps, uint64_t start, char *ret, size_t size)
{
	const struct slots *slots = awake(heaps);

	for (size_t i = 0; i < slots->count; i++) {
		const struct heap *heap = slots->list[i].heap;

		if (heap->allocator->tell_used &&
		    heap->allocator->tell_used(heap, start, ret, size))
			return true;
	}
	return false;
}

void heaps_visit_spare(const struct heaps *heaps,
		       void (*visit)(void *data, const struct spare *spare), void *data)
{
	const struct slots *slots = awake(heaps);

	for (size_t i = 0; i < slots->count; i++) {
		const struct heap *heap = slots->list[i].heap;

		if (heap->allocator->spare)
			heap->allocator->spare(heap, heaps->index, visit, data);
	}
}

/* The heap that the arena is one of. */
static const struct heap_slot *find_slot(const struct slots *slots, arena_number number)
{
	size_t i = slots->count - 1;

	while (slots->list[i].first > number)
		i--;
	return &slots->list[i];
}

struct error *heaps_sort_free(const struct heaps *heaps)
{
	struct error *error = heaps_wake(heaps);
	const struct slots *slots = error ? NULL : awake(heaps);

	if (!error)
		progress_begin(slots->context.progress, "sorting what is free",
			       allocation_count(heaps->index));
	for (size_t i = 0; !error && i < slots->count; i++) {
		struct heap *heap = slots->list[i].heap;

		if (heap->allocator->sort_free)
			error = heap->allocator->sort_free(heap, heaps->index);
	}
	return error;
}

const struct free_kind *heaps_free_kind(const struct heaps *heaps, allocation_id id, size_t *hint)
{
	const struct allocation_index *index = heaps->index;
	const struct bitmap *dead = allocation_having(index, TRAIT_DEAD);
	struct memory_range range = allocation_range_near(index, id, hint);
	arena_number arena = heap_region(index, *hint)->arena;
	const struct allocator *allocator = heaps_arena_allocator(heaps, arena);
	const struct slots *slots = awake(heaps);
	const struct heap_slot *slot;
	struct block block = { range.start, range.end - range.start, allocation_state(index, id) };

	/* Asleep, for lack of memory: any kind will do. */
	if (arena >= slots->arena_count || !allocator->free_kind)
		return &allocator->free_kinds[0];
	if (dead && bitmap_get(dead, id))
		block.traits = TRAIT_DEAD;
	slot = find_slot(slots, arena);
	return &allocator->free_kinds[allocator->free_kind(slot->heap, arena - slot->first, id,
							   block)];
}

size_t heaps_arena_count(const struct heaps *heaps)
{
	return heaps->arenas ? heaps->arena_count : heaps->slots->arena_count;
}

struct arena heaps_arena(const struct heaps *heaps, arena_number number)
{
	const struct heap_slot *slot;

	if (heaps->arenas) {
		const struct kept_arena *kept = &heaps->arenas[number];

		return (struct arena){ &find_allocator(kept)->arena_kinds[kept->kind],
				       kept->address, kept->size, kept->stated_size };
	}
	slot = find_slot(heaps->slots, number);
	return slot->heap->allocator->arena(slot->heap, number - slot->first);
}

const struct allocator *heaps_arena_allocator(const struct heaps *heaps, arena_number number)
{
	if (heaps->arenas)
		return find_allocator(&heaps->arenas[number]);
	return find_slot(heaps->slots, number)->heap->allocator;
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

const struct heap *heaps_heap(const struct heaps *heaps, size_t number, arena_number *ret_first)
{
	const struct heap_slot *slot = slot_at(heaps, number);

	*ret_first = slot->first;
	return slot->heap;
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
	const struct outer_block *blocks = nesting->blocks.bytes;

	return number < nesting->count ? &blocks[number] : NULL;
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
