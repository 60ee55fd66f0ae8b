/*
 * Finding the arrays of records.
 *
 * The interpreter's variable is in the data of a module: `arenas` up to 3.11, a member of
 * _PyRuntime from 3.12 on. So the writable data of modules is searched for a word that leads to an
 * array of valid records, whose pools name them. Only a process that has mapped a file with
 * "python" on its path pays for that.
 */
#include "allocators/pymalloc/pymalloc.h"

#include "analyzer/base/budget.h"
#include "analyzer/base/keep.h"
#include "analyzer/base/list.h"
#include "analyzer/program/module_words.h"

enum {
	FEWEST_RECORDS = 16, /* the array begins with so many, and doubles */
	MOST_RECORDS = 1 << 22,
	MOST_TABLES = 256,
};

static const uint64_t COOKIE = UINT64_C(0x7970677562656478); /* "xdebugpy" */

struct record {
	uint64_t address, next_pool;
	uint32_t free_pools, all_pools;
	uint64_t pools; /* those with free pools */
	uint64_t next, previous;
};

struct search {
	struct pymalloc_heap *heap;
	const struct module *module;
	uint64_t last; /* word that was looked at */
	struct view view;
	struct budget
		budget; /* of records and pools to look at: a dump may have them without end */
};

uint64_t pymalloc_first_pool(const struct pymalloc_arena *arena)
{
	uint64_t pool = arena->geometry->pool;

	return (arena->address + pool - 1) / pool * pool;
}

uint64_t pymalloc_pools_end(const struct pymalloc_arena *arena)
{
	uint64_t first = pymalloc_first_pool(arena), pool = arena->geometry->pool;
	uint64_t end = arena->address + arena->geometry->arena;

	return first + (end - first) / pool * pool;
}

/* True if the words may be a record of the array at start; *ends counts ends of the list. */
static bool is_record(const struct record *record, uint64_t start, unsigned int *ends)
{
	enum { MOST_POOLS = 64 };
	uint64_t distance = record->next - start;

	if (record->address)
		return record->address % 16 == 0 &&
		       record->next_pool - record->address <= pymalloc_geometries[0].arena &&
		       record->all_pools + 1 >= MOST_POOLS && record->all_pools <= MOST_POOLS &&
		       record->free_pools <= record->all_pools;
	if (record->next == 0)
		return ++*ends == 1;
	return distance % RECORD == 0 && distance / RECORD < MOST_RECORDS;
}

/* How many records are in a row at start: 16, or that doubled some times; 0 if none. */
static size_t count_records(struct search *search, uint64_t start)
{
	size_t count = 0, doubled = FEWEST_RECORDS;
	unsigned int ends = 0;
	struct record record;

	while (count < MOST_RECORDS &&
	       view_read(&search->view, start + RECORD * count, &record, sizeof(record)) &&
	       is_record(&record, start, &ends) && budget_take(&search->budget))
		count++;
	while (2 * doubled <= count)
		doubled *= 2;
	return doubled <= count ? doubled : 0;
}

/* True if the arena fits the geometry: its address alone decides which pools it has. */
static bool fits(const struct record *record, const struct pymalloc_arena *arena)
{
	uint64_t first = pymalloc_first_pool(arena), end = pymalloc_pools_end(arena);
	uint64_t pool = arena->geometry->pool;

	return record->address < UINT64_MAX - arena->geometry->arena &&
	       record->all_pools == (end - first) / pool && record->next_pool >= first &&
	       record->next_pool <= end && record->next_pool % pool == 0 &&
	       record->free_pools >= (end - record->next_pool) / pool;
}

/* How many bytes of the arena are in pools that name it. */
static uint64_t measure_arena(struct search *search, const struct pymalloc_arena *arena)
{
	struct pymalloc_pool pool;
	uint64_t bytes = 0;

	for (uint64_t at = pymalloc_first_pool(arena);
	     at < arena->next_pool && budget_take(&search->budget); at += arena->geometry->pool)
		if (pymalloc_read_pool(&search->view, arena, at, &pool))
			bytes += arena->geometry->pool;
	return bytes;
}

/* Set the arena of the number-th record by that geometry; false: it has none of that. */
static bool read_arena(struct search *search, uint64_t start, size_t number,
		       const struct pymalloc_geometry *geometry, struct pymalloc_arena *ret)
{
	uint64_t place = start + RECORD * number;
	struct record record;

	if (!view_read(&search->view, place, &record, sizeof(record)) || !record.address)
		return false;
	*ret = (struct pymalloc_arena){
		.address = record.address,
		.next_pool = record.next_pool,
		.record = place,
		.number = (uint32_t)number,
		.free_pools = record.free_pools,
		.geometry = geometry,
	};
	return fits(&record, ret);
}

/* The geometry by which most of the arenas is in pools; NULL: none. */
static const struct pymalloc_geometry *find_geometry(struct search *search, uint64_t start,
						     size_t count)
{
	const struct pymalloc_geometry *best = NULL;
	uint64_t most = 0;

	list_for_each(geometry, pymalloc_geometries, GEOMETRIES) {
		struct pymalloc_arena arena;
		uint64_t bytes = 0;

		for (size_t i = 0; i < count; i++)
			if (read_arena(search, start, i, geometry, &arena))
				bytes += measure_arena(search, &arena);
		if (bytes > most) {
			most = bytes;
			best = geometry;
		}
	}
	return best;
}

/* An arena of free pools alone is kept for later; no pool proves it, but others of its array do. */
static bool is_free(const struct pymalloc_arena *arena)
{
	uint64_t pools = pymalloc_pools_end(arena) - pymalloc_first_pool(arena);

	return arena->free_pools == pools / arena->geometry->pool;
}

static struct error *add_table(struct search *search, uint64_t start, size_t count,
			       const struct pymalloc_geometry *geometry)
{
	struct pymalloc_heap *heap = search->heap;
	struct pymalloc_arena arena;

	for (size_t i = 0; i < count; i++)
		if (read_arena(search, start, i, geometry, &arena) &&
		    (is_free(&arena) || measure_arena(search, &arena) > 0))
			TRY(array_append(&heap->arenas, arena));
	return array_append(&heap->tables, (struct memory_range){ start, start + RECORD * count });
}

static bool is_known(const struct pymalloc_heap *heap, uint64_t address)
{
	array_for_each(table, &heap->tables) {
		if (address >= table->start && address < table->end)
			return true;
	}
	return false;
}

/* Add the array at start, if one is there and it is new. */
static struct error *look(struct search *search, uint64_t start)
{
	const struct pymalloc_geometry *geometry;
	size_t count;

	if (start % 16 != 0 || start < PAGE || !image_may_address(search->view.image, start))
		return NULL;
	count = count_records(search, start);
	if (count == 0 || is_known(search->heap, start) ||
	    search->heap->tables.count >= MOST_TABLES)
		return NULL;
	geometry = find_geometry(search, start, count);
	return geometry ? add_table(search, start, count, geometry) : NULL;
}

/*
 * Include/internal/pycore_debug_offsets.h, from 3.13 on: _PyRuntime begins with
 *
 *	| cookie "xdebugpy" | u64 version | u64 free_threaded |
 */
static void look_at_cookie(struct search *search, uint64_t place)
{
	enum { FLAG_OFFSET = 16 };
	uint64_t flag;

	if (view_word(&search->view, place + FLAG_OFFSET, &flag) && flag == 1)
		search->heap->free_threaded = search->module;
}

/* Look where a word of the module leads. */
static struct error *look_at_word(void *data, uint64_t where, uint64_t word)
{
	struct search *search = data;
	bool is_new = word != search->last;

	search->last = word;
	if (word == COOKIE)
		look_at_cookie(search, where);
	else if (is_new)
		return look(search, word);
	return NULL;
}

/* Sort by address, and records of one address by number. */
DEFINE_COMPARE(compare_arenas, struct pymalloc_arena, ASCENDING(address), ASCENDING(record))

/* A dump may name one arena twice, or two that overlap: the lower one counts. */
static void drop_overlapping(struct pymalloc_heap *heap)
{
	array_sort(&heap->arenas, compare_arenas);
	array_keep(&heap->arenas, arena, last,
		   !last || arena->address >= last->address + last->geometry->arena);
}

struct error *pymalloc_search(struct pymalloc_heap *heap)
{
	const struct heap_context *context = &heap->context;
	struct search search = { .heap = heap, .view = { context->image } };

	search.budget.left = MOST_RECORDS + context->image->size / RECORD;
	list_for_each(module, context->program->modules, context->program->module_count) {
		search.module = module;
		TRY(module_visit_words(context->image, module, look_at_word, &search));
	}
	heap->gave_up = budget_is_spent(&search.budget);
	drop_overlapping(heap);
	return NULL;
}
