#include "analyzer/account/pinned.h"

struct search {
	struct analysis *analysis;
	const struct allocation_index *index;
	const arena_number *only_arena; /* NULL: all */
	struct pinnings *pinnings;
	struct bitmap counted; /* allocations that are */
};

/* The number of the pinning of the allocation, in which it is counted once. */
static struct error *count_pinner(struct search *search, allocation_id id, uint32_t *ret)
{
	const struct analysis *analysis = search->analysis;
	uint64_t size = allocation_size(search->index, id);
	kind_key kind = kind_with_size(kind_of(analysis, analysis_patterns(analysis), id), size);
	struct pinnings *pinnings = search->pinnings;
	struct pinning *pinning = table_find(pinnings, kind, item, item->kind == kind);

	if (!pinning) {
		TRY(table_append(pinnings, kind, (struct pinning){ .kind = kind }));
		pinning = pinnings->items + pinnings->count - 1;
	}
	*ret = (uint32_t)(pinning - pinnings->items);
	if (!bitmap_get(&search->counted, id)) {
		bitmap_set(&search->counted, id);
		pinning->count++;
		pinning->bytes += size;
	}
	return NULL;
}

static struct error *pin_page(void *data, const struct heap_page *page)
{
	struct search *search = data;
	uint32_t numbers[MOST_PINNERS];
	size_t count = page->pinner_count;
	bool alone = !page->foreign;

	if (count == 0 || (search->only_arena && *search->only_arena != page->arena))
		return NULL;
	for (size_t i = 0; i < count; i++) {
		TRY(count_pinner(search, page->pinners[i], &numbers[i]));
		if (numbers[i] != numbers[0])
			alone = false;
	}
	/* What does not divide evenly, the first ones have a byte more of. */
	for (size_t i = 0; i < count; i++)
		search->pinnings->items[numbers[i]].pinned +=
			page->free / count + (i < page->free % count);
	if (alone)
		search->pinnings->items[numbers[0]].alone += page->free;
	return NULL;
}

/* What only a size or a pattern is known of comes last. */
static bool is_nameless(const struct pinning *pinning)
{
	return kind_tag(pinning->kind) != BY_SIGNATURE && kind_tag(pinning->kind) != BY_IDENTITY;
}

static int compare_pinnings(const void *a, const void *b)
{
	const struct pinning *left = a, *right = b;

	if (left->pinned != right->pinned)
		return left->pinned > right->pinned ? -1 : 1;
	if (is_nameless(left) != is_nameless(right))
		return is_nameless(left) - is_nameless(right);
	return (left->kind > right->kind) - (left->kind < right->kind);
}

static struct error *find_pinnings(struct search *search, struct fragments **ret_fragments)
{
	struct memory_account *account = analysis_account(search->analysis);
	struct error *error;

	TRY(kind_need(search->analysis));
	TRY(bitmap_init(&search->counted, allocation_count(search->index), account));
	search->pinnings->memory.account = account;
	error = fragments_create(analysis_heaps(search->analysis), analysis_image(search->analysis),
				 analysis_progress(search->analysis), pin_page, search,
				 ret_fragments);
	array_sort(search->pinnings, compare_pinnings);
	return error;
}

struct error *pinned_find(struct analysis *analysis, const arena_number *only_arena,
			  struct pinnings *ret_pinnings, struct fragments **ret_fragments)
{
	struct search search = {
		.analysis = analysis,
		.index = analysis_index(analysis),
		.only_arena = only_arena,
		.pinnings = ret_pinnings,
	};

	if (ret_pinnings) {
		struct error *error = find_pinnings(&search, ret_fragments);

		bitmap_deinit(&search.counted);
		return error;
	}
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

	TRY(heap_pages_visit(analysis_index(analysis), analysis_progress(analysis), add_page,
			     &total));
	*ret_bytes = total.bytes;
	*ret_pinners = total.pinners;
	return NULL;
}
