/*
 * Where the memory of the process is: a row for each use, in which every mapped byte stands once.
 *
 * What is known for certain is taken first: heaps block by block, what allocators keep for
 * themselves, stacks, modules. What is left is anonymous memory: whose that may be is guessed by
 * what is in it and by who refers to it, and said as a guess. What remains then is unexplained.
 */
#ifndef ANALYZER_ACCOUNT_BILL_H
#define ANALYZER_ACCOUNT_BILL_H

#include "analyzer/analysis/analysis.h"
#include "analyzer/heap/heap_accounts.h"

/* The group of what nobody has a guess for. */
#define BILL_UNEXPLAINED "unexplained"

/* A stack's part in the bill. */
struct stack_account {
	const struct stack *stack;
	struct amount used;    /* above the stack pointer, TLS included */
	struct amount touched; /* below it, and resident */
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

/*
 * Make the bill; arenas have rows of their own if told so. Needs STAGE_HEAP, and builds what
 * collectors need.
 */
struct error *bill_create(struct analysis *analysis, bool by_arena, struct bill **ret);
void bill_destroy(struct bill *bill);
DEFINE_CLEANUP(bill_destroy, struct bill *)

#endif
