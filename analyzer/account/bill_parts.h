/*
 * The parts that a bill is made of, each of which takes what the ones before it left over.
 */
#pragma once

#include "analyzer/account/bill.h"
#include "analyzer/base/array.h"

/* Count the memory of all heaps in bill->heaps and in rows. */
struct error *bill_add_heaps(struct bill *bill, struct analysis *analysis, bool by_arena);

/* Claim all that heaps have, as one row. */
struct error *bill_claim_heaps(struct ledger *ledger, const struct heaps *heaps);

enum { GUESS_SIZE = 24 };

/* Anonymous memory that nobody is known to have: a part of one mapping. */
struct unknown {
	uint64_t start, end;
	const struct region *region; /* the first; others if parts were cut */
	char guess[GUESS_SIZE];	     /* whose it is; empty: none */
	bool is_scanned;	     /* for what it refers to */
};

struct unknowns {
	ARRAY(struct unknown); /* by address */
};

/* Find what is left over of the bill, without counting anything: quick. */
struct error *bill_find_unknowns(struct analysis *analysis, struct unknowns *ret);

/* Find out whose it may be. */
struct error *bill_guess(struct unknowns *unknowns, struct analysis *analysis);
