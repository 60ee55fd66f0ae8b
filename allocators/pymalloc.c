/*
 * CPython's allocator for small objects: pymalloc, 2.7 to 3.14.
 *
 * Nothing is needed but the dump's memory: no symbols, no debug information. See
 * pymalloc/pymalloc.h for the layouts, pymalloc/search.c for how arenas are found. What is larger
 * than 512 bytes is from malloc(), as is all with PYTHONMALLOC=malloc. A free-threaded build has
 * mimalloc instead.
 */
#include "allocators/pymalloc/pymalloc.h"

#include "analyzer/base/list.h"
#include "analyzer/heap/sink.h"
#include "analyzer/program/symbols.h"

#include <ctype.h>
#include <inttypes.h>

enum { FREE_LIST, FREE_UNTOUCHED, FREE_POOLS };

static const struct free_kind free_kinds[] = {
	[FREE_LIST] = { "free list" },	   /* of a pool */
	[FREE_UNTOUCHED] = { "pool end" }, /* never handed out as blocks of that size */
	[FREE_POOLS] = { "free pools" },   /* whole ones, and what is not cut into pools yet */
	{ NULL },
};

static const struct arena_kind arena_kinds[] = {
	{ .name = "python", .group = "Arenas of Python" },
	{ NULL },
};

static const struct pymalloc_heap *of(const struct heap *heap)
{
	return (const struct pymalloc_heap *)heap;
}

static void pymalloc_close(struct heap *base)
{
	struct pymalloc_heap *heap = (struct pymalloc_heap *)base;

	arrays_release(&heap->arenas, &heap->tables);
}

/*
 * True if the file has the name of a free-threaded interpreter: python3.13t, libpython3.13t.so.1.0.
 */
static bool has_free_threaded_name(const struct module *module)
{
	const char *name = strstr(module_file_name(module), "python3.");

	if (!name)
		return false;
	name += strlen("python3.");
	while (isdigit((unsigned char)*name))
		name++;
	return *name == 't';
}

static void find_free_threaded(struct pymalloc_heap *heap)
{
	const struct program *program = heap->context.program;

	for (size_t i = 0; i < program->module_count && !heap->free_threaded; i++)
		if (has_free_threaded_name(&program->modules[i]))
			heap->free_threaded = &program->modules[i];
	if (!heap->free_threaded)
		return;
	findings_add(
		heap->context.findings, FINDING_INCOMPLETE,
		"%s is a free-threaded Python: its objects, in a mimalloc heap of its own, are not read. They are not counted, and neither classes nor calls of Python have names; as memory outside of heaps, they keep what they refer to from being called leaked",
		heap->free_threaded->path);
}

static struct error *pymalloc_open(struct heap *base, const struct heap_context *context, bool *ret)
{
	struct pymalloc_heap *heap = (struct pymalloc_heap *)base;

	if (!program_has_code(context->program, "python", "Py_Initialize"))
		return NULL;
	heap->context = *context;
	arrays_use(context->account, &heap->arenas, &heap->tables);
	TRY(pymalloc_search(heap));
	find_free_threaded(heap);
	if (heap->gave_up)
		findings_add(
			context->findings, FINDING_INCOMPLETE,
			"the search for Python's arenas stopped after more records than the core can have: small objects may be missing");
	*ret = heap->arenas.count > 0 || heap->free_threaded;
	return NULL;
}

static struct error *add_free(struct block_sink *sink, uint64_t start, uint64_t end)
{
	return start < end ? block_sink_add(sink, (struct block){ start, end - start, BLOCK_FREE })
			   : NULL;
}

static struct error *add_pool(struct block_sink *sink, uint64_t address,
			      const struct pymalloc_pool *pool)
{
	uint64_t start = address + POOL_HEADER, used[FREE_WORDS];

	for (size_t i = 0; i < FREE_WORDS; i++)
		used[i] = ~pool->free[i];
	TRY(block_sink_add_row(sink, start, pool->block, used, NULL, pool->carved));
	return add_free(sink, start + (uint64_t)pool->carved * pool->block,
			start + (uint64_t)pool->capacity * pool->block);
}

/* The bit of each free pool of the arena: they are on a list. */
static uint64_t find_free_pools(struct view *view, const struct pymalloc_arena *arena)
{
	enum { RECORD_POOLS = 24, POOL_NEXT = 16 };
	uint64_t first = pymalloc_first_pool(arena), bits = 0, at;

	if (!view_word(view, arena->record + RECORD_POOLS, &at))
		return 0;
	while (at >= first && at < arena->next_pool && at % arena->geometry->pool == 0) {
		uint64_t bit = UINT64_C(1) << (at - first) / arena->geometry->pool;

		if ((bits & bit) || !view_word(view, at + POOL_NEXT, &at))
			break;
		bits |= bit;
	}
	return bits;
}

struct walk {
	struct view view;
	struct block_sink *sink;
	uint64_t damaged;
	bool in_region;
};

/* Add the pool at address; one that makes no sense is left out of the heap, and so is a root. */
static struct error *walk_pool(struct walk *walk, const struct pymalloc_arena *arena,
			       arena_number number, uint64_t address, bool is_free)
{
	struct pymalloc_pool pool;
	uint64_t end = address + arena->geometry->pool;

	if (!is_free && !pymalloc_read_pool(&walk->view, arena, address, &pool)) {
		if (walk->in_region)
			block_sink_cut(walk->sink, address);
		walk->in_region = false;
		walk->damaged++;
		return NULL;
	}
	if (!walk->in_region)
		TRY(block_sink_region(walk->sink, address, pymalloc_pools_end(arena), number));
	walk->in_region = true;
	return is_free ? add_free(walk->sink, address, end) : add_pool(walk->sink, address, &pool);
}

static struct error *walk_arena(struct walk *walk, const struct pymalloc_arena *arena,
				arena_number number)
{
	uint64_t first = pymalloc_first_pool(arena), end = pymalloc_pools_end(arena);
	uint64_t pool = arena->geometry->pool, free = find_free_pools(&walk->view, arena);
	uint64_t arena_end = arena->address + arena->geometry->arena;

	walk->in_region = false;
	if (first > arena->address)
		TRY(block_sink_claim(walk->sink, arena->address, first));
	if (arena_end > end)
		TRY(block_sink_claim(walk->sink, end, arena_end));
	for (uint64_t at = first; at < arena->next_pool; at += pool)
		TRY(walk_pool(walk, arena, number, at, free >> (at - first) / pool & 1));
	if (arena->next_pool == end)
		return NULL;
	if (!walk->in_region)
		TRY(block_sink_region(walk->sink, arena->next_pool, end, number));
	return add_free(walk->sink, arena->next_pool, end);
}

/* True if the arena can be added to the sink: it overlaps no other region, or lies in one block. */
static bool is_apart(const struct block_sink *sink, const struct pymalloc_arena *arena)
{
	uint64_t start = arena->address, end = start + arena->geometry->arena;
	struct block around;

	return block_sink_place(sink, start, end, &around) == SINK_APART;
}

/* Leave out arenas that overlap the regions of other heaps, which were walked before. */
static struct error *drop_overlapping(struct pymalloc_heap *heap, struct block_sink *sink)
{
	size_t kept = 0;

	TRY(block_sink_order(sink));
	for (size_t i = 0; i < heap->arenas.count; i++) {
		struct pymalloc_arena arena = heap->arenas.items[i];

		if (is_apart(sink, &arena))
			heap->arenas.items[kept++] = arena;
		else
			findings_add(
				heap->context.findings, FINDING_INCOMPLETE,
				"the arena of Python at %#" PRIx64
				" overlaps the heap of another allocator: its objects are not counted",
				arena.address);
	}
	heap->arenas.count = kept;
	return NULL;
}

static struct error *pymalloc_walk(struct heap *base, struct block_sink *sink)
{
	struct pymalloc_heap *heap = (struct pymalloc_heap *)base;
	struct walk walk = { .view = { heap->context.image }, .sink = sink };

	TRY(drop_overlapping(heap, sink));
	for (size_t i = 0; i < heap->arenas.count; i++) {
		const struct pymalloc_arena *arena = &heap->arenas.items[i];

		block_sink_align(sink, arena->geometry->alignment);
		TRY(walk_arena(&walk, arena, base->first_arena + (arena_number)i));
		TRY(array_append(&base->arenas, (struct arena){ arena_kinds, arena->address,
								arena->geometry->arena }));
	}
	if (walk.damaged > 0)
		findings_add(
			heap->context.findings, FINDING_INCOMPLETE,
			"pools of Python's arenas that make no sense: %" PRIu64
			"; their objects are not counted, and what they refer to is not leaked",
			walk.damaged);
	return NULL;
}

/* The interpreter has a mimalloc from 3.13 on; that it uses it is said already. */
static bool pymalloc_lives_in(const struct heap *heap, uint64_t start, uint64_t end)
{
	const struct module *module = program_find_module(of(heap)->context.program, start);

	return module && end <= module->end &&
	       (strstr(module_file_name(module), "python") || module == of(heap)->free_threaded);
}

static unsigned int pymalloc_free_kind(const struct heap *heap, size_t number, allocation_id id,
				       struct block block)
{
	enum { NEXT_OFFSET = 40 };
	const struct pymalloc_arena *arena = &of(heap)->arenas.items[number];
	uint64_t pool = block.start / arena->geometry->pool * arena->geometry->pool;
	uint32_t untouched;

	if (block.start == pool)
		return FREE_POOLS;
	return image_read_u32(of(heap)->context.image, pool + NEXT_OFFSET, &untouched) &&
			       block.start - pool >= untouched
		       ? FREE_UNTOUCHED
		       : FREE_LIST;
}

/* The arena that has the address, or NULL. */
static const struct pymalloc_arena *find_arena(const struct pymalloc_heap *heap, uint64_t address)
{
	const struct pymalloc_arena *arena =
		LIST_LAST(heap->arenas.items, heap->arenas.count, address, address);

	return arena && address - arena->address < arena->geometry->arena ? arena : NULL;
}

enum { UNIT_ARENA, UNIT_POOL };

static const struct unit_kind unit_kinds[] = {
	[UNIT_ARENA] = { "arena", .given_back = true },
	[UNIT_POOL] = { "pool" },
};

static struct error *pymalloc_visit_units(const struct heap *base, unit_visit visit, void *data)
{
	struct view view = { of(base)->context.image };
	struct pymalloc_pool pool;

	array_for_each(arena, &of(base)->arenas) {
		uint64_t end = arena->address + arena->geometry->arena;

		TRY(visit(data, base->allocator,
			  &(struct heap_unit){ &unit_kinds[UNIT_ARENA], arena->address, end, 0 }));
		for (uint64_t at = pymalloc_first_pool(arena); at < arena->next_pool;
		     at += arena->geometry->pool)
			if (pymalloc_read_pool(&view, arena, at, &pool))
				TRY(visit(data, base->allocator,
					  &(struct heap_unit){ &unit_kinds[UNIT_POOL], at,
							       at + arena->geometry->pool,
							       pool.block }));
	}
	return NULL;
}

static bool pymalloc_tell(const struct heap *base, uint64_t address, char *ret, size_t size)
{
	const struct pymalloc_heap *heap = of(base);
	const struct pymalloc_arena *arena = find_arena(heap, address);
	struct view view = { heap->context.image };
	struct pymalloc_pool pool;

	if (!arena || address % arena->geometry->pool >= POOL_HEADER ||
	    !pymalloc_read_pool(&view, arena, address - address % arena->geometry->pool, &pool))
		return false;
	snprintf(ret, size, "the header of a pool of Python, of blocks of %" PRIu32 " bytes",
		 pool.block);
	return true;
}

static bool pymalloc_tell_used(const struct heap *heap, uint64_t start, char *ret, size_t size)
{
	array_for_each(table, &of(heap)->tables) {
		if (table->start != start)
			continue;
		snprintf(ret, size, "the table of Python's arenas");
		return true;
	}
	return false;
}

static struct error *visit_arena(struct view *view, const struct pymalloc_arena *arena,
				 program_range_visitor *visit, void *data)
{
	struct pymalloc_pool pool;

	for (uint64_t at = pymalloc_first_pool(arena); at < arena->next_pool;
	     at += arena->geometry->pool)
		if (pymalloc_read_pool(view, arena, at, &pool))
			TRY(visit(data, at, POOL_HEADER));
	return NULL;
}

static struct error *pymalloc_visit_structure(const struct heap *base, program_range_visitor *visit,
					      void *data)
{
	struct view view = { of(base)->context.image };

	array_for_each(table, &of(base)->tables)
		TRY(visit(data, table->start, table->end - table->start));
	array_for_each(arena, &of(base)->arenas)
		TRY(visit_arena(&view, arena, visit, data));
	return NULL;
}

const struct allocator allocator_pymalloc = {
	.name = "pymalloc",
	.summary = "CPython's allocator for small objects, 2.7 to 3.14",
	.is_private = true,
	.is_last = true,
	.alignment = 16,
	.arena_kinds = arena_kinds,
	.free_kinds = free_kinds,
	.heap_size = sizeof(struct pymalloc_heap),
	FILL_SLOTS(pymalloc, open, close, walk, lives_in, free_kind, visit_units, tell, tell_used,
		   visit_structure),
};
