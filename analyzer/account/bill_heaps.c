#include "analyzer/account/bill_parts.h"

#include <inttypes.h>

/* The name of a group of rows. */
struct named_arena {
	char name[48];
};

struct counting {
	struct bill *bill;
	struct ledger *ledger;
	const struct heaps *heaps;
	const struct allocation_index *index;
	const struct bitmap *garbage; /* may be NULL */
	bool nested;		      /* some heap is in another */
	struct progress *progress;
	uint64_t reported;
	size_t hint;	  /* for sums */
	size_t kind_hint; /* for kinds of free blocks */

	/* The memory under way: up to end, counted so far up to at. */
	uint64_t at, end;
	struct arena_accounts *accounts;
	/* And whose it is. */
	const struct heap *heap;
	size_t heap_number, arena; /* the arena's number in the heap */
	arena_number arena_number;
	enum heap_account claimed;
};

static void arena_accounts_add(struct arena_accounts *accounts, const struct arena_accounts *more)
{
	for (size_t i = 0; i < HEAP_ACCOUNTS; i++)
		amount_add(&accounts->amounts[i], more->amounts[i]);
}

struct heap_shares bill_heap_shares(const struct bill *bill, const struct heaps *heaps)
{
	struct arena_accounts sum = { 0 };
	const struct amount *amounts = sum.amounts;
	struct heap_shares shares;

	for (size_t i = 0; i < heaps_arena_count(heaps); i++)
		arena_accounts_add(&sum, &bill->heaps.arenas[i]);
	for (size_t i = 0; i < heaps_count(heaps); i++)
		arena_accounts_add(&sum, &bill->heaps.outside[i]);
	shares = (struct heap_shares){
		.used = amounts[ACCOUNT_USED].resident + amounts[ACCOUNT_OUTER].resident,
		.garbage = amounts[ACCOUNT_GARBAGE].resident,
		.overhead =
			amounts[ACCOUNT_HEADERS].resident + amounts[ACCOUNT_BOOKKEEPING].resident,
	};
	for (size_t i = 0; i < MOST_FREE_KINDS; i++)
		shares.free += amounts[ACCOUNT_FREE + i].resident;
	return shares;
}

/* Count the bytes up to end for the account. */
static void count_to(struct counting *counting, enum heap_account account, uint64_t end)
{
	struct amount *amount = &counting->accounts->amounts[account];
	struct extent_sum sum;

	end = MIN(end, counting->end);
	if (end <= counting->at)
		return;
	sum = residency_sum(counting->bill->residency, counting->at, end, &counting->hint);
	amount->mapped += sum.mapped;
	amount->resident += sum.resident;
	counting->at = end;
}

static void count_all(struct counting *counting, struct arena_accounts *accounts,
		      enum heap_account account, uint64_t start, uint64_t end)
{
	counting->accounts = accounts;
	counting->at = start;
	counting->end = end;
	count_to(counting, account, end);
}

static bool is_outer(const struct counting *counting, uint64_t start)
{
	const struct outer_block *outer = heaps_find_outer_block(counting->heaps, start);

	return outer && outer->start == start && outer->arena == counting->arena_number;
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
	extent.end = MIN(extent.end, counting->end);
	count_to(counting, ACCOUNT_BOOKKEEPING, extent.start);
	if (account != ACCOUNT_OUTER)
		counting->accounts->amounts[account].count++;
	if (block.state == BLOCK_USED) {
		count_to(counting, account, counting->at + block.size);
		count_to(counting, ACCOUNT_HEADERS, extent.end);
	}
	count_to(counting, account, extent.end);
}

/* Set the heap that the arena is one of, and which of that. */
static void find_heap(struct counting *counting, arena_number arena)
{
	counting->heap = heaps_heap_of(counting->heaps, arena);
	counting->arena = arena - counting->heap->first_arena;
	counting->arena_number = arena;
}

/* A piece of the region of that number: all of it, unless two overlap. */
static struct error *count_region(void *data, row_number number, uint64_t start, uint64_t end)
{
	struct counting *counting = data;
	const struct allocation_index *index = counting->index;
	const struct heap_region *region = heap_region(index, number);
	size_t hint = number;

	find_heap(counting, region->arena);
	counting->accounts = &counting->bill->heaps.arenas[region->arena];
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
		TRY(progress_check_at(counting->progress, id, &counting->reported));
	}
	count_to(counting, ACCOUNT_BOOKKEEPING, end);
	return NULL;
}

static struct error *count_regions(struct counting *counting)
{
	for (size_t i = 0; i < heap_region_count(counting->index); i++) {
		const struct heap_region *region = heap_region(counting->index, i);

		TRY(ledger_claim(counting->ledger, region->start, region->end, (row_number)i));
	}
	return ledger_settle(counting->ledger, count_region, counting);
}

static struct error *count_outer_block(void *data, row_number number, uint64_t start, uint64_t end)
{
	struct counting *counting = data;
	const struct outer_block *outer = heaps_outer_block(counting->heaps, number);

	count_all(counting, &counting->bill->heaps.arenas[outer->arena], ACCOUNT_OUTER, start, end);
	return NULL;
}

/*
 * Count the parts of blocks around nested heaps that are in no region. The index has no allocation
 * for some of these blocks.
 */
static struct error *count_outer(struct counting *counting)
{
	const struct outer_block *outer;

	for (size_t i = 0; (outer = heaps_outer_block(counting->heaps, i)); i++) {
		counting->bill->heaps.arenas[outer->arena].amounts[ACCOUNT_OUTER].count++;
		TRY(ledger_claim(counting->ledger, outer->start, outer->end, (row_number)i));
	}
	return ledger_settle(counting->ledger, count_outer_block, counting);
}

static struct error *count_claim(void *data, row_number row, uint64_t start, uint64_t end)
{
	struct counting *counting = data;
	const struct heap *heap = heaps_heap(counting->heaps, counting->heap_number);
	size_t arena = heap->allocator->holds ? heap->allocator->holds(heap, start) : NO_ARENA;
	struct heap_accounts *accounts = &counting->bill->heaps;

	count_all(counting,
		  arena == NO_ARENA ? &accounts->outside[counting->heap_number]
				    : &accounts->arenas[heap->first_arena + arena],
		  counting->claimed, start, end);
	counting->accounts->amounts[counting->claimed].count++;
	return NULL;
}

/* Bookkeeping of the number-th heap, outside of its regions. */
static struct error *count_bookkeeping(struct counting *counting, size_t number)
{
	size_t count;
	const struct memory_range *ranges = heaps_bookkeeping(counting->heaps, number, &count);

	counting->heap_number = number;
	counting->claimed = ACCOUNT_BOOKKEEPING;
	for (size_t i = 0; i < count; i++)
		TRY(ledger_claim(counting->ledger, ranges[i].start, ranges[i].end, 0));
	return ledger_settle(counting->ledger, count_claim, counting);
}

static struct error *count_reserved(struct counting *counting, size_t number)
{
	const struct heap *heap = heaps_heap(counting->heaps, number);
	struct memory_range range;

	counting->heap_number = number;
	counting->claimed = ACCOUNT_RESERVED;
	for (size_t i = 0; heap->allocator->reserved && heap->allocator->reserved(heap, i, &range);
	     i++)
		TRY(ledger_claim(counting->ledger, range.start, range.end, 0));
	return ledger_settle(counting->ledger, count_claim, counting);
}

static struct error *count_heaps(struct counting *counting)
{
	size_t count = heaps_count(counting->heaps);

	progress_begin(counting->progress, "adding up memory", allocation_count(counting->index));
	TRY(count_regions(counting));
	TRY(count_outer(counting));
	for (size_t i = 0; i < count; i++)
		TRY(count_bookkeeping(counting, i));
	for (size_t i = 0; i < count; i++)
		TRY(count_reserved(counting, i));
	return NULL;
}

struct error *bill_claim_heaps(struct ledger *ledger, const struct heaps *heaps)
{
	const struct allocation_index *index = heaps_index(heaps);
	const struct outer_block *outer;

	for (size_t i = 0; (outer = heaps_outer_block(heaps, i)); i++)
		TRY(ledger_claim(ledger, outer->start, outer->end, 0));
	for (size_t i = 0; i < heap_claim_count(index); i++)
		TRY(ledger_claim(ledger, heap_claim(index, i).start, heap_claim(index, i).end, 0));
	return ledger_settle(ledger, NULL, NULL);
}

/* "used", "unsorted bin" or the like. */
static const char *account_name(const struct allocator *allocator, enum heap_account account)
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

static struct error *add_row(struct bill *bill, const char *group, const char *name,
			     struct amount amount)
{
	row_number row;

	TRY(ledger_add_row(bill->ledger, group, name, &row));
	ledger_add_amount(bill->ledger, row, amount);
	return NULL;
}

/* Rows of what there is any of, in order. */
static struct error *add_accounts(struct bill *bill, const struct heap *heap, const char *group,
				  const struct arena_accounts *accounts)
{
	for (enum heap_account i = 0; i < HEAP_ACCOUNTS; i++)
		if (accounts->amounts[i].mapped ||
		    (i == ACCOUNT_OUTER && accounts->amounts[i].count))
			TRY(add_row(bill, group, account_name(heap->allocator, i),
				    accounts->amounts[i]));
	return NULL;
}

/* Rows for each arena of the heap. */
static struct error *add_arenas(struct bill *bill, const struct heap *heap)
{
	const struct arena_accounts *accounts = &bill->heaps.arenas[heap->first_arena];

	array_for_each(arena, &heap->arenas) {
		struct named_arena *named = &bill->arenas[bill->arena_count++];

		snprintf(named->name, sizeof(named->name), "%s %s", heap->allocator->name,
			 arena->kind->name);
		if (arena->address)
			snprintf(named->name, sizeof(named->name), "%s %#" PRIx64,
				 heap->allocator->name, arena->address);
		TRY(add_accounts(bill, heap, named->name, accounts++));
	}
	return NULL;
}

/* Arenas with a name for their used blocks have rows for these, the last ones. */
static struct error *add_heap(struct bill *bill, const struct heap *heap, struct arena_accounts sum)
{
	const struct arena_accounts *all = &bill->heaps.arenas[heap->first_arena];

	for (size_t i = 0; i < heap->arenas.count; i++) {
		struct arena_accounts accounts = all[i];

		if (heap->arenas.items[i].kind->used)
			accounts.amounts[ACCOUNT_USED] = (struct amount){ 0 };
		arena_accounts_add(&sum, &accounts);
	}
	TRY(add_accounts(bill, heap, heap->allocator->name, &sum));
	for (size_t i = 0; i < heap->arenas.count; i++) {
		const char *name = heap->arenas.items[i].kind->used;
		struct amount used = all[i].amounts[ACCOUNT_USED];

		if (name && used.mapped)
			TRY(add_row(bill, heap->allocator->name, name, used));
	}
	return NULL;
}

static struct error *add_rows(struct bill *bill, const struct heaps *heaps, bool by_arena)
{
	for (size_t i = 0; i < heaps_count(heaps); i++) {
		const struct arena_accounts *outside = &bill->heaps.outside[i];
		const struct heap *heap = heaps_heap(heaps, i);

		TRY(by_arena ? add_arenas(bill, heap) : add_heap(bill, heap, *outside));
		if (by_arena)
			TRY(add_accounts(bill, heap, heap->allocator->name, outside));
	}
	return NULL;
}

struct error *bill_add_heaps(struct bill *bill, struct analysis *analysis, bool by_arena)
{
	const struct heaps *heaps = analysis_heaps(analysis);
	struct counting counting = {
		.bill = bill,
		.ledger = bill->ledger,
		.heaps = heaps,
		.index = analysis_index(analysis),
		.progress = analysis_progress(analysis),
	};

	if (allocation_having(counting.index, TRAIT_COLLECTABLE))
		TRY(analysis_need(analysis, STAGE_REACHABILITY));
	TRY(heaps_sort_free(heaps));
	counting.garbage = analysis_garbage(analysis);
	counting.nested = heaps_outer_block(heaps, 0);
	bill->arenas = calloc(heaps_arena_count(heaps) + 1, sizeof(*bill->arenas));
	bill->heaps.arenas = calloc(heaps_arena_count(heaps) + 1, sizeof(*bill->heaps.arenas));
	bill->heaps.outside = calloc(heaps_count(heaps) + 1, sizeof(*bill->heaps.outside));
	TRY_MEMORY(bill->arenas && bill->heaps.arenas && bill->heaps.outside);
	TRY(count_heaps(&counting));
	return add_rows(bill, heaps, by_arena);
}
