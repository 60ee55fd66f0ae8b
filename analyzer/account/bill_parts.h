/*
 * The parts that a bill is made of, each of which takes what the ones before it left over.
 */
#ifndef ANALYZER_ACCOUNT_BILL_PARTS_H
#define ANALYZER_ACCOUNT_BILL_PARTS_H

#include "analyzer/account/bill.h"

/* Stacks of threads, of fibers, and of threads that have ended. */
struct error *bill_add_stacks(struct bill *bill, struct analysis *analysis);

/* Pages of objects that runtimes are sure of. */
struct error *bill_add_objects(struct bill *bill, struct analysis *analysis);

/* Modules, files, the kernel's pages, and all anonymous memory that is left. */
struct error *bill_add_rest(struct bill *bill, struct analysis *analysis);

enum { GUESS_SIZE = 24 };

/* Anonymous memory that nobody is known to have: a part of one mapping. */
struct unknown {
	uint64_t start, end;
	const struct region *region; /* the first; others if parts were cut */
	char guess[GUESS_SIZE];	     /* whose it is; empty: none */
};

struct unknowns {
	struct unknown *list; /* by address */
	size_t count;
};

/* Find out whose it may be. */
struct error *bill_guess(struct unknowns *unknowns, struct analysis *analysis);

#endif
