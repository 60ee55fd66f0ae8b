/*
 * A ledger of memory: each mapped byte counts in one row, once.
 *
 * Code that knows what some memory is used for claims it for a row. Claims come in layers: what one
 * layer claims is gone for the next, and of claims in a layer that overlap, the lower one counts.
 *So nothing counts twice, whatever a dump says, and the last layer gets what nobody claimed. Only
 * mapped memory counts.
 *
 *	layer 1    |-- heap --|        |--- heap ---|
 *	layer 2       |---- a claim ----|            only what is between
 *	the rest                                    |-------|
 */
#pragma once

#include "analyzer/heap/index.h"
#include "analyzer/image/residency.h"

/* An amount of memory. */
struct amount {
	uint64_t count;		   /* of pieces, as allocations */
	uint64_t mapped, resident; /* bytes */
};

struct ledger_row {
	const char *group; /* borrowed, outliving the ledger */
	char *name;
	struct amount amount;
};

typedef uint32_t row_number;

struct ledger;

struct error *ledger_create(const struct image *image, const struct residency *residency,
			    struct memory_account *account, struct ledger **ret);
void ledger_destroy(struct ledger *ledger);
DEFINE_CLEANUP(ledger_destroy, struct ledger *)

/* Add a row, with a copy of the name, and what was counted elsewhere. */
struct error *ledger_add_row(struct ledger *ledger, const char *group, const char *name,
			     row_number *ret);
void ledger_add_amount(struct ledger *ledger, row_number row, struct amount amount);

/* Rows in the order in which they were added. */
size_t ledger_row_count(const struct ledger *ledger);
const struct ledger_row *ledger_row(const struct ledger *ledger, row_number number);

/* In this layer, [start, end) is the row's. */
struct error *ledger_claim(struct ledger *ledger, uint64_t start, uint64_t end, row_number row);

/* Called with each piece of memory that a row gets, by address; it counts the piece. */
typedef struct error *ledger_piece_fn(void *data, row_number row, uint64_t start, uint64_t end);

/* End the layer. NULL for found: each piece counts in its row. */
struct error *ledger_settle(struct ledger *ledger, ledger_piece_fn *found, void *data);

/* Visit what no layer claimed, by address, with a row of 0; each piece is in one region. */
struct error *ledger_rest(const struct ledger *ledger, ledger_piece_fn *found, void *data);

/* Count [start, end) in the row, for a piece. */
void ledger_count(struct ledger *ledger, row_number row, uint64_t start, uint64_t end);

/* The sum of all rows: once nothing is left over, all that is mapped. */
struct amount ledger_total(const struct ledger *ledger);

static inline void amount_add(struct amount *amount, struct amount more)
{
	amount->count += more.count;
	amount->mapped += more.mapped;
	amount->resident += more.resident;
}
