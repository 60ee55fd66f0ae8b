/*
 * A ledger of memory: each mapped byte stands in one row of it, once.
 *
 * Code that knows what some memory is claims it for a row. Claims come in layers: what is claimed
 *in one layer is no longer there for the next, and in a layer the first counts. So nothing can be
 * counted twice, whatever a dump says, and what nobody claims is left over for the last layer. Only
 * what is mapped counts.
 *
 *	layer 1    |-- heap --|        |--- heap ---|
 *	layer 2       |---- a claim ----|            only what is between
 *	the rest                                    |-------|
 */
#ifndef ANALYZER_HEAP_LEDGER_H
#define ANALYZER_HEAP_LEDGER_H

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

const struct residency *ledger_residency(const struct ledger *ledger);

/* A new row. The name is copied. */
struct error *ledger_add_row(struct ledger *ledger, const char *group, const char *name,
			     row_number *ret);

/* Rows in the order in which they were added. */
size_t ledger_row_count(const struct ledger *ledger);
const struct ledger_row *ledger_row(const struct ledger *ledger, row_number number);

/* Add to what stands in a row what was counted elsewhere. */
void ledger_add_amount(struct ledger *ledger, row_number row, struct amount amount);

/* In this layer, [start, end) is the row's. */
struct error *ledger_claim(struct ledger *ledger, uint64_t start, uint64_t end, row_number row);

/*
 * Told of each piece of a claim that is its row's: to be counted by the one who takes it. Pieces
 * come by address.
 */
typedef struct error *ledger_piece_fn(void *data, row_number row, uint64_t start, uint64_t end);

/* End the layer. NULL for found: each piece counts in its row. */
struct error *ledger_settle(struct ledger *ledger, ledger_piece_fn *found, void *data);

/* Count [start, end) in the row, for a piece. */
void ledger_count(struct ledger *ledger, row_number row, uint64_t start, uint64_t end);

/* What no layer claimed, by address: a part of one region of the image each. */
typedef struct error *ledger_rest_fn(void *data, const struct region *region, uint64_t start,
				     uint64_t end);

struct error *ledger_rest(const struct ledger *ledger, ledger_rest_fn *found, void *data);

/* All that stands in rows: once nothing is left over, all that is mapped. */
struct amount ledger_total(const struct ledger *ledger);

static inline void amount_add(struct amount *amount, struct amount more)
{
	amount->count += more.count;
	amount->mapped += more.mapped;
	amount->resident += more.resident;
}

#endif
