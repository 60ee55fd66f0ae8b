#include "analyzer/account/bill_parts.h"

struct claimer {
	const struct image *image;
	const struct object_pages *pages;
	struct ledger *ledger;
	row_number row;
};

static struct error *claim_pages(void *data, const struct region *region, uint64_t start,
				 uint64_t end)
{
	const struct claimer *claimer = data;
	uint64_t least = claimer->pages->alignment[0];
	uint64_t at = (start + least - 1) & ~(least - 1);
	struct error *error = NULL;

	if (!region->bytes || region->mapping)
		return NULL;
	while (!error && at < end && end - at >= least) {
		uint64_t data_at = image_next_data(claimer->image, at);
		uint64_t size;

		if (data_at - at >= least) {
			at = data_at & ~(least - 1);
			continue;
		}
		size = claimer->pages->measure(claimer->image, at);
		if (size > end - at)
			size = 0;
		if (size)
			error = ledger_claim(claimer->ledger, at, at + size, claimer->row);
		at += size > least ? size : least;
	}
	return error;
}

struct error *bill_add_objects(struct bill *bill, struct analysis *analysis)
{
	const struct runtimes *runtimes = analysis_runtimes(analysis);
	struct claimer claimer = { .image = analysis_image(analysis), .ledger = bill->ledger };
	struct error *error = NULL;

	for (size_t i = 0; i < runtime_count(runtimes) && !error; i++) {
		claimer.pages = runtime_at(runtimes, i)->pages;
		if (!claimer.pages || !claimer.pages->is_certain)
			continue;
		error = ledger_add_row(bill->ledger, "other memory", claimer.pages->name,
				       &claimer.row);
		if (!error)
			error = ledger_rest(bill->ledger, claim_pages, &claimer);
		if (!error)
			error = ledger_settle(bill->ledger, NULL, NULL);
	}
	return error;
}
