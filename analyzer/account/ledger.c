#include "analyzer/account/ledger.h"

#include "analyzer/base/array.h"
#include "analyzer/base/list.h"

/* A claim of the layer under way. */
struct claim {
	uint64_t start, end;
	row_number row;
	uint32_t order; /* of those with the same start */
};

struct ledger {
	const struct image *image;
	const struct residency *residency;
	struct ledger_row *rows;
	size_t row_count;
	ARRAY(struct claim) claims;
	ARRAY(struct memory_range) taken; /* by address, apart */
	size_t hint;			  /* for counting */
};

struct error *ledger_create(const struct image *image, const struct residency *residency,
			    struct memory_account *account, struct ledger **ret)
{
	struct ledger *ledger = calloc(1, sizeof(*ledger));

	TRY_MEMORY(ledger);
	ledger->image = image;
	ledger->residency = residency;
	arrays_use(account, &ledger->claims, &ledger->taken);
	*ret = ledger;
	return NULL;
}

void ledger_destroy(struct ledger *ledger)
{
	for (size_t i = 0; i < ledger->row_count; i++)
		free(ledger->rows[i].name);
	free(ledger->rows);
	arrays_release(&ledger->claims, &ledger->taken);
	free(ledger);
}

struct error *ledger_add_row(struct ledger *ledger, const char *group, const char *name,
			     row_number *ret)
{
	struct ledger_row row = { .group = group, .name = strdup(name) };

	if (!row.name || !LIST_GROW(ledger->rows, ledger->row_count)) {
		free(row.name);
		return &error_no_memory;
	}
	*ret = (row_number)ledger->row_count;
	ledger->rows[ledger->row_count++] = row;
	return NULL;
}

void ledger_add_amount(struct ledger *ledger, row_number row, struct amount amount)
{
	amount_add(&ledger->rows[row].amount, amount);
}

size_t ledger_row_count(const struct ledger *ledger)
{
	return ledger->row_count;
}

const struct ledger_row *ledger_row(const struct ledger *ledger, row_number number)
{
	return &ledger->rows[number];
}

struct error *ledger_claim(struct ledger *ledger, uint64_t start, uint64_t end, row_number row)
{
	if (start >= end)
		return NULL;
	return array_append(&ledger->claims,
			    (struct claim){ start, end, row, (uint32_t)ledger->claims.count });
}

DEFINE_COMPARE(compare_claims, struct claim, ASCENDING(start), ASCENDING(order))

/* If claims overlap, the first one keeps the memory. */
static void clip_claims(struct ledger *ledger)
{
	struct claim *claims = ledger->claims.items;
	size_t kept = 0;
	uint64_t end = 0;

	array_sort(&ledger->claims, compare_claims);
	for (size_t i = 0; i < ledger->claims.count; i++) {
		if (claims[i].end <= end)
			continue;
		if (claims[i].start < end)
			claims[i].start = end;
		end = claims[i].end;
		claims[kept++] = claims[i];
	}
	ledger->claims.count = kept;
}

void ledger_count(struct ledger *ledger, row_number row, uint64_t start, uint64_t end)
{
	struct extent_sum sum = residency_sum(ledger->residency, start, end, &ledger->hint);

	if (sum.mapped)
		ledger_add_amount(ledger, row, (struct amount){ 1, sum.mapped, sum.resident });
}

static struct error *count_piece(void *data, row_number row, uint64_t start, uint64_t end)
{
	ledger_count(data, row, start, end);
	return NULL;
}

/* Visit what is not taken of [start, end); *next is in those taken. */
static struct error *visit_pieces(const struct ledger *ledger, uint64_t start, uint64_t end,
				  row_number row, size_t *next, ledger_piece_fn *found, void *data)
{
	const struct memory_range *taken = ledger->taken.items;

	while (start < end) {
		uint64_t stop = end;

		while (*next < ledger->taken.count && taken[*next].end <= start)
			(*next)++;
		if (*next < ledger->taken.count && taken[*next].start < end)
			stop = taken[*next].start;
		if (stop > start)
			TRY(found(data, row, start, stop));
		else
			stop = taken[*next].end;
		start = stop;
	}
	return NULL;
}

/* Mark this layer's claims as taken for the layers to come. */
static struct error *take_claims(struct ledger *ledger)
{
	struct error *error = array_reserve(&ledger->taken, ledger->claims.count);

	for (size_t i = 0; i < ledger->claims.count && !error; i++)
		error = array_append(&ledger->taken,
				     (struct memory_range){ ledger->claims.items[i].start,
							    ledger->claims.items[i].end });
	ledger->taken.count = memory_ranges_join(ledger->taken.items, ledger->taken.count);
	return error;
}

struct error *ledger_settle(struct ledger *ledger, ledger_piece_fn *found, void *data)
{
	struct error *error = NULL;
	size_t next = 0;

	clip_claims(ledger);
	for (size_t i = 0; i < ledger->claims.count && !error; i++) {
		struct claim claim = ledger->claims.items[i];

		error = visit_pieces(ledger, claim.start, claim.end, claim.row, &next,
				     found ? found : count_piece, found ? data : ledger);
	}
	if (!error && ledger->claims.count > 0)
		error = take_claims(ledger);
	ledger->claims.count = 0;
	return error;
}

struct error *ledger_rest(const struct ledger *ledger, ledger_piece_fn *found, void *data)
{
	size_t next = 0;

	list_for_each(region, ledger->image->regions, ledger->image->region_count) {
		TRY(visit_pieces(ledger, region->start, region->end, 0, &next, found, data));
	}
	return NULL;
}

struct amount ledger_total(const struct ledger *ledger)
{
	struct amount total = { 0 };

	for (size_t i = 0; i < ledger->row_count; i++)
		amount_add(&total, ledger->rows[i].amount);
	return total;
}
