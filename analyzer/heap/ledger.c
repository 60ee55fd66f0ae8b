#include "analyzer/heap/ledger.h"

#include "analyzer/base/array.h"
#include "analyzer/base/list.h"
#include "analyzer/base/sort.h"

#include <string.h>

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

	if (!ledger)
		return &error_no_memory;
	ledger->image = image;
	ledger->residency = residency;
	ledger->claims.memory.account = account;
	ledger->taken.memory.account = account;
	*ret = ledger;
	return NULL;
}

void ledger_destroy(struct ledger *ledger)
{
	for (size_t i = 0; i < ledger->row_count; i++)
		free(ledger->rows[i].name);
	free(ledger->rows);
	array_release(&ledger->claims);
	array_release(&ledger->taken);
	free(ledger);
}

const struct residency *ledger_residency(const struct ledger *ledger)
{
	return ledger->residency;
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

size_t ledger_row_count(const struct ledger *ledger)
{
	return ledger->row_count;
}

const struct ledger_row *ledger_row(const struct ledger *ledger, row_number number)
{
	return &ledger->rows[number];
}

void ledger_add_amount(struct ledger *ledger, row_number row, struct amount amount)
{
	amount_add(&ledger->rows[row].amount, amount);
}

struct error *ledger_claim(struct ledger *ledger, uint64_t start, uint64_t end, row_number row)
{
	if (start >= end)
		return NULL;
	return array_append(&ledger->claims,
			    (struct claim){ start, end, row, (uint32_t)ledger->claims.count });
}

DEFINE_COMPARE(compare_claims, struct claim, ASCENDING(start), ASCENDING(order))

/* Of claims that overlap, the first keeps what it has. */
static void clip_claims(struct ledger *ledger)
{
	struct claim *claims = ledger->claims.items;
	size_t kept = 0;
	uint64_t end = 0;

	SORT(claims, ledger->claims.count, compare_claims);
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

/* Tell of what is not taken of [start, end); *next is in those taken. */
static struct error *tell_pieces(const struct ledger *ledger, uint64_t start, uint64_t end,
				 row_number row, size_t *next, ledger_piece_fn *found, void *data)
{
	const struct memory_range *taken = ledger->taken.items;
	struct error *error = NULL;

	while (start < end && !error) {
		uint64_t stop = end;

		while (*next < ledger->taken.count && taken[*next].end <= start)
			(*next)++;
		if (*next < ledger->taken.count && taken[*next].start < end)
			stop = taken[*next].start;
		if (stop > start)
			error = found(data, row, start, stop);
		else
			stop = taken[*next].end;
		start = stop;
	}
	return error;
}

/* Append a range to those merged, joined to the last if they touch. */
static void append(struct memory_range *merged, size_t *count, struct memory_range range)
{
	if (*count > 0 && range.start <= merged[*count - 1].end) {
		if (range.end > merged[*count - 1].end)
			merged[*count - 1].end = range.end;
		return;
	}
	merged[(*count)++] = range;
}

/* What was claimed is taken for the layers to come. */
static struct error *take_claims(struct ledger *ledger)
{
	const struct claim *claims = ledger->claims.items;
	const struct memory_range *taken = ledger->taken.items;
	struct memory memory = { .account = ledger->taken.memory.account };
	struct memory_range *merged;
	size_t i = 0, j = 0, count = 0;
	struct error *error = memory_resize(
		&memory, (ledger->claims.count + ledger->taken.count + 1) * sizeof(*merged));

	if (error)
		return error;
	merged = memory.bytes;
	while (i < ledger->claims.count || j < ledger->taken.count) {
		bool is_claim = j == ledger->taken.count ||
				(i < ledger->claims.count && claims[i].start < taken[j].start);

		if (is_claim)
			append(merged, &count,
			       (struct memory_range){ claims[i].start, claims[i].end });
		else
			append(merged, &count, taken[j]);
		i += is_claim;
		j += !is_claim;
	}
	array_release(&ledger->taken);
	ledger->taken.memory = memory;
	ledger->taken.count = count;
	return NULL;
}

struct error *ledger_settle(struct ledger *ledger, ledger_piece_fn *found, void *data)
{
	const struct claim *claims;
	struct error *error = NULL;
	size_t next = 0;

	clip_claims(ledger);
	claims = ledger->claims.items;
	for (size_t i = 0; i < ledger->claims.count && !error; i++)
		error = tell_pieces(ledger, claims[i].start, claims[i].end, claims[i].row, &next,
				    found ? found : count_piece, found ? data : ledger);
	if (!error)
		error = take_claims(ledger);
	ledger->claims.count = 0;
	return error;
}

/* Passes pieces of a region on. */
struct rest {
	ledger_rest_fn *found;
	void *data;
	const struct region *region;
};

static struct error *tell_rest(void *data, row_number row, uint64_t start, uint64_t end)
{
	const struct rest *rest = data;

	return rest->found(rest->data, rest->region, start, end);
}

struct error *ledger_rest(const struct ledger *ledger, ledger_rest_fn *found, void *data)
{
	struct rest rest = { found, data, NULL };
	struct error *error = NULL;
	size_t next = 0;

	for (size_t i = 0; i < image_region_count(ledger->image) && !error; i++) {
		rest.region = image_region(ledger->image, i);
		error = tell_pieces(ledger, rest.region->start, rest.region->end, 0, &next,
				    tell_rest, &rest);
	}
	return error;
}

struct amount ledger_total(const struct ledger *ledger)
{
	struct amount total = { 0 };

	for (size_t i = 0; i < ledger->row_count; i++)
		amount_add(&total, ledger->rows[i].amount);
	return total;
}
