#include "analyzer/account/pinned.h"

#include "analyzer/base/sort.h"
#include "analyzer/kinds/tally.h"

#include <string.h>

struct search {
	struct analysis *analysis;
	const struct allocation_index *index;
	const arena_number *only_arena;		   /* NULL: all */
	struct tally_table tables[LIKENESS_KINDS]; /* of likenesses, by kind */
	struct pinnings *pinnings;		   /* in the order in which they came */
	struct bitmap counted;			   /* allocations that are */
};

static void search_deinit(struct search *search)
{
	for (size_t i = 0; i < LIKENESS_KINDS; i++)
		tally_table_deinit(&search->tables[i]);
	bitmap_deinit(&search->counted);
}
DEFINE_DEINIT(search_deinit, struct search)

void pinnings_deinit(struct pinnings *pinnings)
{
	memory_release(&pinnings->memory);
	*pinnings = (struct pinnings){ 0 };
}

static struct error *add_pinning(struct pinnings *pinnings, struct likeness likeness)
{
	struct error *error =
		memory_reserve(&pinnings->memory, (pinnings->count + 1) * sizeof(struct pinning));

	if (error)
		return error;
	pinnings->list = pinnings->memory.bytes;
	pinnings->list[pinnings->count++] = (struct pinning){ .likeness = likeness };
	return NULL;
}

/* The number of the pinning that allocations of that likeness count in. */
static struct error *find_pinning(struct search *search, struct likeness likeness, size_t *ret)
{
	struct tally_table *table = &search->tables[likeness.kind];
	const struct tally *tally = tally_find(table, likeness.key);
	struct error *error;

	if (tally) {
		*ret = tally->owned;
		return NULL;
	}
	*ret = search->pinnings->count;
	error = add_pinning(search->pinnings, likeness);
	if (error)
		return error;
	return tally_add(table, (struct tally){ .key = likeness.key, .count = 1, .owned = *ret });
}

/* The pinning of the allocation, in which it is counted once. */
static struct error *count_pinner(struct search *search, allocation_id id, size_t *ret)
{
	uint64_t size = allocation_size(search->index, id);
	struct error *error = find_pinning(
		search,
		likeness_of(search->analysis, analysis_patterns(search->analysis), id, size), ret);

	if (error || bitmap_get(&search->counted, id))
		return error;
	bitmap_set(&search->counted, id);
	search->pinnings->list[*ret].count++;
	search->pinnings->list[*ret].bytes += size;
	return NULL;
}

static struct error *pin_page(void *data, const struct heap_page *page)
{
	struct search *search = data;
	size_t numbers[MOST_PINNERS];
	size_t count = page->pinner_count;
	bool alone = !page->foreign;

	if (count == 0 || (search->only_arena && *search->only_arena != page->arena))
		return NULL;
	for (size_t i = 0; i < count; i++) {
		struct error *error = count_pinner(search, page->pinners[i], &numbers[i]);

		if (error)
			return error;
		if (numbers[i] != numbers[0])
			alone = false;
	}
	/* What does not divide evenly, the first ones have a byte more of. */
	for (size_t i = 0; i < count; i++)
		search->pinnings->list[numbers[i]].pinned +=
			page->free / count + (i < page->free % count);
	if (alone)
		search->pinnings->list[numbers[0]].alone += page->free;
	return NULL;
}

DEFINE_COMPARE(compare_pinnings, struct pinning, DESCENDING(pinned), ASCENDING(likeness.kind),
	       ASCENDING(likeness.key))

static struct error *find_pinnings(struct search *search, struct fragments **ret_fragments)
{
	struct memory_account *account = analysis_account(search->analysis);
	struct error *error = likeness_need(search->analysis);

	if (!error)
		error = bitmap_init(&search->counted, allocation_count(search->index), account);
	if (error)
		return error;
	for (size_t i = 0; i < LIKENESS_KINDS; i++)
		tally_table_init(&search->tables[i], account);
	search->pinnings->memory.account = account;
	error = fragments_create(analysis_heaps(search->analysis), analysis_image(search->analysis),
				 analysis_progress(search->analysis), pin_page, search,
				 ret_fragments);
	if (!error && search->pinnings->count)
		SORT(search->pinnings->list, search->pinnings->count, compare_pinnings);
	return error;
}

struct error *pinned_find(struct analysis *analysis, const arena_number *only_arena,
			  struct pinnings *ret_pinnings, struct fragments **ret_fragments)
{
	_cleanup_(search_deinit) struct search search = {
		.analysis = analysis,
		.index = analysis_index(analysis),
		.only_arena = only_arena,
		.pinnings = ret_pinnings,
	};

	if (ret_pinnings)
		return find_pinnings(&search, ret_fragments);
	return fragments_create(analysis_heaps(analysis), analysis_image(analysis),
				analysis_progress(analysis), NULL, NULL, ret_fragments);
}

/* Sums over pages. */
struct total {
	uint64_t bytes, pinners;
	allocation_id last; /* counted */
};

static struct error *add_page(void *data, const struct heap_page *page)
{
	struct total *total = data;

	if (page->whole || page->pinner_count == 0)
		return NULL;
	total->bytes += page->free;
	total->pinners += page->pinner_count;
	/* One that reaches over from the page below is there already. */
	if (page->pinners[0] == total->last)
		total->pinners--;
	total->last = page->pinners[page->pinner_count - 1];
	return NULL;
}

struct error *pinned_total(struct analysis *analysis, uint64_t *ret_bytes, uint64_t *ret_pinners)
{
	struct total total = { .last = NO_ALLOCATION };
	struct error *error = heap_pages_visit(analysis_index(analysis),
					       analysis_progress(analysis), add_page, &total);

	if (error)
		return error;
	*ret_bytes = total.bytes;
	*ret_pinners = total.pinners;
	return NULL;
}
