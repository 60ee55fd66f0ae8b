#include "analyzer/heap/heap_accounts.h"

/* Goes over the blocks of regions. */
struct counting {
	struct heap_accounts *accounts;
	const struct heaps *heaps;
	const struct allocation_index *index;
	const struct residency *residency;
	const struct bitmap *garbage;
	bool nested; /* some heap is in another */
	struct progress *progress;
	uint64_t told;
	size_t hint;	  /* for spans */
	size_t kind_hint; /* for kinds of free blocks */

	/* The region under way. */
	const struct heap *heap;
	size_t arena;	     /* of the heap */
	arena_number number; /* the same of all */
	struct arena_accounts *arena_accounts;
	uint64_t at, end;
};

const char *heap_account_name(const struct allocator *allocator, enum heap_account account)
{
	switch (account) {
	case ACCOUNT_USED:
		return "used";
	case ACCOUNT_OUTER:
		return "used, around a nested heap";
	case ACCOUNT_GARBAGE:
		return "garbage";
	case ACCOUNT_HEADERS:
		return "headers, padding";
	case ACCOUNT_BOOKKEEPING:
		return "bookkeeping";
	case ACCOUNT_RESERVED:
		return "reserved";
	default:
		return allocator->free_kinds[account - ACCOUNT_FREE].name;
	}
}

/* The heap that the arena is one of, and which of that. */
static size_t find_heap(const struct heaps *heaps, arena_number arena, const struct heap **ret,
			size_t *ret_arena)
{
	size_t i = heaps_count(heaps);
	arena_number first = 0;

	do {
		*ret = heaps_heap(heaps, --i, &first);
	} while (first > arena);
	*ret_arena = arena - first;
	return i;
}

/* What follows, up to end, belongs to the account. */
static void count_to(struct counting *counting, enum heap_account account, uint64_t end)
{
	struct amount *amount = &counting->arena_accounts->amounts[account];
	struct extent_sum sum;

	if (end > counting->end)
		end = counting->end;
	if (end <= counting->at)
		return;
	sum = residency_sum(counting->residency, counting->at, end, &counting->hint);
	amount->mapped += sum.mapped;
	amount->resident += sum.resident;
	counting->at = end;
}

static bool is_outer(const struct counting *counting, uint64_t start)
{
	const struct outer_block *outer = heaps_find_outer_block(counting->heaps, start);

	return outer && outer->start == start && outer->arena == counting->number;
}

/* *ret_free: the kind of a free one. */
static enum heap_account account_of(struct counting *counting, allocation_id id, struct block block,
				    const struct free_kind **ret_free)
{
	const struct allocator *allocator = counting->heap->allocator;

	if (block.state != BLOCK_USED) {
		*ret_free = heaps_free_kind(counting->heaps, id, &counting->kind_hint);
		return ACCOUNT_FREE + (enum heap_account)(*ret_free - allocator->free_kinds);
	}
	if (counting->nested && is_outer(counting, block.start))
		return ACCOUNT_OUTER;
	if (counting->garbage && bitmap_get(counting->garbage, id))
		return ACCOUNT_GARBAGE;
	if (allocator->keeps && allocator->keeps(counting->heap, block))
		return ACCOUNT_BOOKKEEPING;
	return ACCOUNT_USED;
}

static void count_block(struct counting *counting, allocation_id id, struct block block)
{
	const struct allocator *allocator = counting->heap->allocator;
	const struct free_kind *kind = NULL;
	enum heap_account account = account_of(counting, id, block, &kind);
	struct memory_range extent = { block.start, block.start + block.size };

	if (allocator->extent)
		extent = allocator->extent(counting->heap, counting->arena, block, kind);
	if (extent.end > counting->end)
		extent.end = counting->end;
	count_to(counting, ACCOUNT_BOOKKEEPING, extent.start);
	if (account != ACCOUNT_OUTER)
		counting->arena_accounts->amounts[account].count++;
	if (block.state == BLOCK_USED) {
		count_to(counting, account, counting->at + block.size);
		count_to(counting, ACCOUNT_HEADERS, extent.end);
	}
	count_to(counting, account, extent.end);
}

/* A piece of the region of that number: all of it, unless two overlap. */
static struct error *count_region(void *data, row_number number, uint64_t start, uint64_t end)
{
	struct counting *counting = data;
	const struct allocation_index *index = counting->index;
	const struct heap_region *region = heap_region(index, number);
	size_t hint = number;

	find_heap(counting->heaps, region->arena, &counting->heap, &counting->arena);
	counting->number = region->arena;
	counting->arena_accounts = &counting->accounts->arenas[region->arena];
	counting->at = start;
	counting->end = end;
	for (allocation_id id = region->first; id < region->first + region->count; id++) {
		struct memory_range range = allocation_range_near(index, id, &hint);

		if (range.start >= end)
			break;
		if (range.start >= counting->at)
			count_block(counting, id,
				    (struct block){ range.start, range.end - range.start,
						    allocation_state(index, id) });
		if (!progress_pass(counting->progress, id, &counting->told))
			return error_create(ERROR_INTERRUPTED, "interrupted");
	}
	count_to(counting, ACCOUNT_BOOKKEEPING, end);
	return NULL;
}

static struct error *count_regions(struct counting *counting, struct ledger *ledger)
{
	struct error *error = NULL;

	for (size_t i = 0; i < heap_region_count(counting->index) && !error; i++) {
		const struct heap_region *region = heap_region(counting->index, i);

		error = ledger_claim(ledger, region->start, region->end, (row_number)i);
	}
	return error ? error : ledger_settle(ledger, count_region, counting);
}

/* Bookkeeping, and what is reserved, of the number-th heap. */
struct claiming {
	struct counting *counting;
	enum heap_account account;
	size_t heap;
};

static struct error *count_claim(void *data, row_number row, uint64_t start, uint64_t end)
{
	const struct claiming *claiming = data;
	struct counting *counting = claiming->counting;
	arena_number first;
	const struct heap *heap = heaps_heap(counting->heaps, claiming->heap, &first);
	size_t arena = NO_ARENA;

	if (heap->allocator->holds)
		arena = heap->allocator->holds(heap, start);
	counting->arena_accounts = arena == NO_ARENA ? &counting->accounts->outside[claiming->heap]
						     : &counting->accounts->arenas[first + arena];
	counting->at = start;
	counting->end = end;
	counting->arena_accounts->amounts[claiming->account].count++;
	count_to(counting, claiming->account, end);
	return NULL;
}

static struct error *count_bookkeeping(struct counting *counting, struct ledger *ledger,
				       size_t number)
{
	struct claiming claiming = { counting, ACCOUNT_BOOKKEEPING, number };
	struct error *error = NULL;
	size_t count;
	const struct memory_range *ranges = heaps_bookkeeping(counting->heaps, number, &count);

	for (size_t i = 0; i < count && !error; i++)
		error = ledger_claim(ledger, ranges[i].start, ranges[i].end, 0);
	return error ? error : ledger_settle(ledger, count_claim, &claiming);
}

static struct error *count_reserved(struct counting *counting, struct ledger *ledger, size_t number)
{
	struct claiming claiming = { counting, ACCOUNT_RESERVED, number };
	arena_number first;
	const struct heap *heap = heaps_heap(counting->heaps, number, &first);
	struct memory_range range;
	struct error *error = NULL;

	for (size_t i = 0;
	     heap->allocator->reserved && !error && heap->allocator->reserved(heap, i, &range); i++)
		error = ledger_claim(ledger, range.start, range.end, 0);
	return error ? error : ledger_settle(ledger, count_claim, &claiming);
}

static struct error *count_outer_block(void *data, row_number number, uint64_t start, uint64_t end)
{
	struct counting *counting = data;
	const struct outer_block *outer = heaps_outer_block(counting->heaps, number);

	counting->arena_accounts = &counting->accounts->arenas[outer->arena];
	counting->at = start;
	counting->end = end;
	count_to(counting, ACCOUNT_OUTER, end);
	return NULL;
}

/* What no region has of blocks around nested heaps. The index has no allocation for some. */
static struct error *count_outer(struct counting *counting, struct ledger *ledger)
{
	const struct outer_block *outer;
	struct error *error = NULL;

	for (size_t i = 0; !error && (outer = heaps_outer_block(counting->heaps, i)); i++) {
		counting->accounts->arenas[outer->arena].amounts[ACCOUNT_OUTER].count++;
		error = ledger_claim(ledger, outer->start, outer->end, (row_number)i);
	}
	return error ? error : ledger_settle(ledger, count_outer_block, counting);
}

struct error *heap_accounts_init(struct heap_accounts *accounts, const struct heaps *heaps,
				 struct ledger *ledger, const struct bitmap *garbage,
				 struct progress *progress)
{
	struct counting counting = {
		.accounts = accounts,
		.heaps = heaps,
		.index = heaps_index(heaps),
		.residency = ledger_residency(ledger),
		.garbage = garbage,
		.progress = progress,
	};
	struct error *error = heaps_sort_free(heaps);

	if (error)
		return error;
	*accounts = (struct heap_accounts){
		.arenas = calloc(heaps_arena_count(heaps) + 1, sizeof(*accounts->arenas)),
		.outside = calloc(heaps_count(heaps) + 1, sizeof(*accounts->outside)),
	};
	if (!accounts->arenas || !accounts->outside)
		return &error_no_memory;
	progress_begin(progress, "adding up memory", allocation_count(counting.index));
	counting.nested = heaps_outer_block(heaps, 0);
	error = count_regions(&counting, ledger);
	if (!error)
		error = count_outer(&counting, ledger);
	for (size_t i = 0; i < heaps_count(heaps) && !error; i++)
		error = count_bookkeeping(&counting, ledger, i);
	for (size_t i = 0; i < heaps_count(heaps) && !error; i++)
		error = count_reserved(&counting, ledger, i);
	return error;
}

void heap_accounts_deinit(struct heap_accounts *accounts)
{
	free(accounts->arenas);
	free(accounts->outside);
	*accounts = (struct heap_accounts){ 0 };
}

void arena_accounts_add(struct arena_accounts *accounts, const struct arena_accounts *more)
{
	for (size_t i = 0; i < HEAP_ACCOUNTS; i++)
		amount_add(&accounts->amounts[i], more->amounts[i]);
}
