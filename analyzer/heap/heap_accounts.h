/*
 * What the memory of each arena is used for: by blocks, their headers, lists of free ones, and what
 * else there is of it.
 *
 * Blocks are counted with their headers, as malloc counts them itself. What is between them, or
 * behind the last one, is bookkeeping.
 */
#ifndef ANALYZER_HEAP_HEAP_ACCOUNTS_H
#define ANALYZER_HEAP_HEAP_ACCOUNTS_H

#include "analyzer/heap/heaps.h"
#include "analyzer/heap/ledger.h"

enum heap_account {
	ACCOUNT_USED,	 /* what the program may use of used blocks */
	ACCOUNT_OUTER,	 /* used blocks with a nested heap, but for that */
	ACCOUNT_GARBAGE, /* the same of those that a collector will free */
	ACCOUNT_FREE,	 /* and the allocator's kinds of free memory from there on */
	ACCOUNT_HEADERS = ACCOUNT_FREE + MOST_FREE_KINDS, /* and padding */
	ACCOUNT_BOOKKEEPING,
	ACCOUNT_RESERVED, /* not in use yet, for the heap to grow into */
	HEAP_ACCOUNTS,
};

/* "used", "unsorted bin" or the like. */
const char *heap_account_name(const struct allocator *allocator, enum heap_account account);

/* Of one arena. */
struct arena_accounts {
	struct amount amounts[HEAP_ACCOUNTS];
};

struct heap_accounts {
	struct arena_accounts *arenas; /* one for each of the heaps' */
	/* One for each heap: what belongs to no arena of it alone. */
	struct arena_accounts *outside;
};

/*
 * Count all memory of heaps, which becomes taken in the ledger, in accounts. garbage may be NULL:
 * used allocations that their collector will free.
 */
struct error *heap_accounts_init(struct heap_accounts *accounts, const struct heaps *heaps,
				 struct ledger *ledger, const struct bitmap *garbage,
				 struct progress *progress);
void heap_accounts_deinit(struct heap_accounts *accounts);
DEFINE_DEINIT(heap_accounts_deinit, struct heap_accounts)

/* Add all that the arena has. */
void arena_accounts_add(struct arena_accounts *accounts, const struct arena_accounts *more);

#endif
