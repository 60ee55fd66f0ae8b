/*
 * The bill of the process's memory: a row for each use. Every mapped byte counts in exactly one
 * row.
 *
 * What is certain comes first: heaps block by block, what allocators keep for themselves, stacks,
 * modules. What is left is anonymous memory: its contents, and what refers to it, give a guess at
 * whose it may be, and the row says that it is a guess. The rest is unexplained.
 */
#pragma once

#include "analyzer/account/ledger.h"
#include "analyzer/analysis/analysis.h"

/* The group of what nobody has a guess for. */
#define BILL_UNEXPLAINED "unexplained"

/*
 * Uses of an arena's memory. Blocks count with their headers, as malloc itself counts. Memory
 * between them, or behind the last one, is bookkeeping.
 */
enum heap_account {
	ACCOUNT_USED,	 /* usable bytes of used blocks */
	ACCOUNT_OUTER,	 /* used blocks with a nested heap, but for that */
	ACCOUNT_GARBAGE, /* used blocks that a collector will free */
	ACCOUNT_FREE,	 /* and the allocator's kinds of free memory from there on */
	ACCOUNT_HEADERS = ACCOUNT_FREE + MOST_FREE_KINDS, /* and padding */
	ACCOUNT_BOOKKEEPING,
	ACCOUNT_RESERVED, /* not in use yet, for the heap to grow into */
	HEAP_ACCOUNTS,
};

struct arena_accounts {
	struct amount amounts[HEAP_ACCOUNTS];
};

struct heap_accounts {
	struct arena_accounts *arenas;	/* by the heaps' number */
	struct arena_accounts *outside; /* for each heap: what belongs to no single arena */
};

/* A stack's part in the bill. */
struct stack_account {
	const struct stack *stack;
	struct amount used;    /* above the stack pointer, TLS included */
	struct amount touched; /* below it, and resident */
	struct amount zeros;   /* the same, below all that calls have left there */
	struct amount untouched;
	struct amount guard; /* no access */
};

struct bill {
	struct residency *residency;
	struct ledger *ledger;
	struct heap_accounts heaps;
	struct stack_account *stacks; /* as program_stack() has them */
	size_t stack_count;
	struct named_arena *arenas; /* groups of rows of their own */
	size_t arena_count;
};

/* Resident bytes of all heaps. */
struct heap_shares {
	uint64_t used, garbage, free, overhead;
};

struct heap_shares bill_heap_shares(const struct bill *bill, const struct heaps *heaps);

/* With each one, the bill tells more: guesses read all of the heap. */
enum bill_detail {
	BILL_SUMS,
	BILL_GUESSES, /* whose memory may be that nobody is certain of */
	BILL_ARENAS,  /* have rows of their own */
};

/* Make the bill. Builds what it needs. */
struct error *bill_create(struct analysis *analysis, enum bill_detail detail, struct bill **ret);
void bill_destroy(struct bill *bill);
DEFINE_CLEANUP(bill_destroy, struct bill *)
