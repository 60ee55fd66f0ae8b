#include "analyzer/account/bill.h"

#include "analyzer/account/bill_parts.h"

#include <inttypes.h>

/* The name of a group of rows. */
struct named_arena {
	char name[48];
};

/* Rows of what there is any of, in order. */
static struct error *add_accounts(struct bill *bill, const struct heap *heap, const char *group,
				  const struct arena_accounts *accounts)
{
	struct error *error = NULL;

	for (size_t i = 0; i < HEAP_ACCOUNTS && !error; i++) {
		row_number row;

		if (accounts->amounts[i].mapped == 0 &&
		    (i != ACCOUNT_OUTER || accounts->amounts[i].count == 0))
			continue;
		error = ledger_add_row(bill->ledger, group,
				       heap_account_name(heap->allocator, (enum heap_account)i),
				       &row);
		if (!error)
			ledger_add_amount(bill->ledger, row, accounts->amounts[i]);
	}
	return error;
}

static size_t arenas_of(const struct heap *heap)
{
	return heap->allocator->arena_count(heap);
}

/* Rows for each arena of the heap. */
static struct error *add_arenas(struct bill *bill, const struct heap *heap, arena_number first)
{
	struct error *error = NULL;

	for (size_t i = 0; i < arenas_of(heap) && !error; i++) {
		struct arena arena = heap->allocator->arena(heap, i);
		struct named_arena *named = &bill->arenas[bill->arena_count++];

		snprintf(named->name, sizeof(named->name), "%s %s", heap->allocator->name,
			 arena.kind->name);
		if (arena.address)
			snprintf(named->name, sizeof(named->name), "%s %#" PRIx64,
				 heap->allocator->name, arena.address);
		error = add_accounts(bill, heap, named->name, &bill->heaps.arenas[first + i]);
	}
	return error;
}

/* What an arena calls its used blocks stands apart: it is the last one, if any. */
static struct error *add_heap(struct bill *bill, const struct heap *heap, arena_number first,
			      const struct arena_accounts *outside)
{
	struct arena_accounts sum = *outside;
	struct amount apart = { 0 };
	const char *name = NULL;
	struct error *error;
	row_number row;

	for (size_t i = 0; i < arenas_of(heap); i++) {
		struct arena arena = heap->allocator->arena(heap, i);
		struct arena_accounts accounts = bill->heaps.arenas[first + i];

		if (arena.kind->used) {
			name = arena.kind->used;
			apart = accounts.amounts[ACCOUNT_USED];
			accounts.amounts[ACCOUNT_USED] = (struct amount){ 0 };
		}
		arena_accounts_add(&sum, &accounts);
	}
	error = add_accounts(bill, heap, heap->allocator->name, &sum);
	if (error || apart.mapped == 0)
		return error;
	error = ledger_add_row(bill->ledger, heap->allocator->name, name, &row);
	if (!error)
		ledger_add_amount(bill->ledger, row, apart);
	return error;
}

static struct error *add_heaps(struct bill *bill, struct analysis *analysis, bool by_arena)
{
	const struct heaps *heaps = analysis_heaps(analysis);
	struct error *error;

	if (allocation_having(analysis_index(analysis), TRAIT_COLLECTABLE)) {
		error = analysis_need(analysis, STAGE_REACHABILITY);
		if (error)
			return error;
	}
	error = heap_accounts_init(&bill->heaps, heaps, bill->ledger, analysis_garbage(analysis),
				   analysis_progress(analysis));
	for (size_t i = 0; i < heaps_count(heaps) && !error; i++) {
		arena_number first;
		const struct heap *heap = heaps_heap(heaps, i, &first);

		if (!by_arena) {
			error = add_heap(bill, heap, first, &bill->heaps.outside[i]);
			continue;
		}
		error = add_arenas(bill, heap, first);
		if (!error)
			error = add_accounts(bill, heap, heap->allocator->name,
					     &bill->heaps.outside[i]);
	}
	return error;
}

struct error *bill_create(struct analysis *analysis, bool by_arena, struct bill **ret)
{
	_cleanup_(bill_destroy) struct bill *bill = calloc(1, sizeof(*bill));
	struct memory_account *account = analysis_account(analysis);
	struct error *error;

	if (!bill)
		return &error_no_memory;
	bill->arenas =
		calloc(heaps_arena_count(analysis_heaps(analysis)) + 1, sizeof(*bill->arenas));
	if (!bill->arenas)
		return &error_no_memory;
	error = residency_create(analysis_image(analysis), account, analysis_progress(analysis),
				 &bill->residency);
	if (!error)
		error = ledger_create(analysis_image(analysis), bill->residency, account,
				      &bill->ledger);
	if (!error)
		error = add_heaps(bill, analysis, by_arena);
	if (!error)
		error = bill_add_stacks(bill, analysis);
	if (!error)
		error = bill_add_rest(bill, analysis);
	if (error)
		return error;
	*ret = take(bill);
	return NULL;
}

void bill_destroy(struct bill *bill)
{
	if (bill->ledger)
		ledger_destroy(bill->ledger);
	if (bill->residency)
		residency_destroy(bill->residency);
	heap_accounts_deinit(&bill->heaps);
	free(bill->stacks);
	free(bill->arenas);
	free(bill);
}
